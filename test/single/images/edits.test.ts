/** `POST /images/edits` and `/images/variations` with the SDK of OpenAI. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI, { toFile } from 'openai';
import { INFERENCE_KEY } from '../../../src/testing/gateway/gateway.ts';
import { gateway, PNG } from './scene.ts';

const openai = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api, maxRetries: 0 });
const png = (name: string) => toFile(Buffer.from(PNG, 'base64'), name, { type: 'image/png' });
const script = () =>
  gateway.upstream.script('old', [
    { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify({ data: [{ b64_json: PNG }] })] },
  ]);

async function sent(): Promise<[string, string][]> {
  const { path, body, headers } = gateway.upstream.requests('old').at(-1)!;
  assert.equal(path, '/images/edits');
  const type = { 'content-type': headers['content-type']! };
  const form = await new Response(body as Buffer<ArrayBuffer>, { headers: type }).formData();
  return [...form].map(([name, value]) => [name, typeof value === 'string' ? value : value.type]);
}

test('edits send every image and option to the model', async () => {
  script();
  const image = [await png('a.png'), await png('b.png')];
  const { data } = await openai.images.edit({
    model: 'test/old',
    image,
    prompt: 'Add a hat.',
    n: 1,
    size: '1024x1024',
    input_fidelity: 'high',
  });
  assert.equal(data![0]!.b64_json, PNG);
  const parts = await sent();
  assert.deepEqual(
    parts.filter(([name]) => ['image[]', 'prompt', 'size'].includes(name)),
    [
      ['prompt', 'Add a hat.'],
      ['size', '1024x1024'],
      ['image[]', 'image/png'],
      ['image[]', 'image/png'],
    ],
  );
});

test('a variation is an edit that says so', async () => {
  script();
  const { data } = await openai.images.createVariation({ model: 'test/old', image: await png('a.png'), n: 1 });
  assert.equal(data![0]!.b64_json, PNG);
  assert.ok((await sent()).some(([name, value]) => name === 'prompt' && value === 'Make a variation of this image.'));
});

test('bad parts are named', async () => {
  const refused = async (edit: Promise<unknown>, field: string) =>
    assert.rejects(edit, (error: InstanceType<typeof OpenAI.APIError>) => {
      assert.equal(error.status, 400);
      assert.ok(error.message.includes(field), error.message);
      return true;
    });
  const image = await png('a.png');
  const base = { model: 'test/old', prompt: 'x' };
  await refused(openai.images.edit({ ...base, image, mask: await png('m.png') }), 'mask');
  await refused(openai.images.edit({ ...base, image: await toFile(Buffer.from('text'), 'a.png') }), 'image[0]');
  await refused(openai.images.edit({ ...base, image, n: 1.5 }), 'n');
  await refused(openai.images.edit({ ...base, image, stream: 'yes' as never }), 'stream must be true or false');
  await refused(openai.images.edit({ ...base, image, response_format: 'url' }), 'response_format');
  for (const name of ['image', 'image[]', 'mask', 'input_references']) {
    const form = new FormData();
    form.set('model', 'test/old');
    form.set('prompt', 'x');
    form.append('image', new Blob([Buffer.from(PNG, 'base64')], { type: 'image/png' }), 'a.png');
    if (name === 'image') form.delete('image');
    form.append(name, 'https://example.com/a.png');
    const headers = { authorization: `Bearer ${INFERENCE_KEY}` };
    const odd = await fetch(`${gateway.api}/images/edits`, { method: 'POST', headers, body: form });
    assert.equal(odd.status, 400, name);
    assert.ok((await odd.text()).includes(`"${name} must be a file`), name);
  }
  const json = await gateway.post('/images/edits', { model: 'test/old', prompt: 'x' });
  assert.equal(json.status, 400);
  assert.match(await json.text(), /image/);
});

test('the events of a streamed edit have the types of edits', async () => {
  const partial = { type: 'image_edit.partial_image', b64_json: 'AAAA', partial_image_index: 0 };
  const completed = { type: 'image_edit.completed', b64_json: PNG, usage: { input_tokens: 1, output_tokens: 2 } };
  gateway.upstream.script('gpt', [
    {
      headers: { 'content-type': 'text/event-stream' },
      chunks: [partial, completed].map((event) => `data: ${JSON.stringify(event)}\n\n`),
    },
  ]);
  const stream = await openai.images.edit({
    model: 'test/gpt',
    image: await png('a.png'),
    prompt: 'Add a hat.',
    stream: true,
  });
  const seen: string[] = [];
  for await (const { type } of stream) seen.push(type);
  assert.deepEqual(seen, ['image_edit.partial_image', 'image_edit.completed']);
});
