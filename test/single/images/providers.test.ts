/** What each image service is asked, what its responses mean, and what is cancelled when the client disconnects. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readRows } from '../../../src/testing/database/rows.ts';
import { INFERENCE_KEY } from '../../../src/testing/gateway/gateway.ts';
import { drawn, eventually, gateway, JPEG, json, made, make, PNG, refused, row, sent, upstream } from './scene.ts';

test('svg comes as the base64 of its text', async () => {
  const svg = btoa('<svg xmlns="http://www.w3.org/2000/svg"></svg>');
  upstream.script('recraft', [drawn(svg)]);
  const body = await made(await make('recraft', { output_format: 'svg', aspect_ratio: '7:5', n: 10 }));
  assert.deepEqual(body.data, [{ b64_json: svg, media_type: 'image/svg+xml' }]);
  const asked = sent('recraft').json as Record<string, unknown>;
  assert.deepEqual([asked['size'], asked['n']], ['14:10', 6]);
});

test('Stability gets a multipart form and returns one image, or reports a filtered one', async () => {
  upstream.script('stability', [
    json({ image: PNG, finish_reason: 'SUCCESS', seed: 5 }),
    json({ image: PNG, finish_reason: 'CONTENT_FILTERED', seed: 5 }),
  ]);
  const body = await made(await make('stability', { seed: 5, aspect_ratio: '16:9' }));
  assert.equal(body.data[0]?.b64_json, PNG);
  const { path, headers, body: bytes } = sent('stability');
  assert.equal(path, '/v2beta/stable-image/generate/sd3');
  assert.equal(headers.accept, 'application/json');
  const form = await new Response(new Uint8Array(bytes), {
    headers: { 'content-type': headers['content-type']! },
  }).formData();
  assert.deepEqual(Object.fromEntries(form.entries()), {
    prompt: 'Earth',
    output_format: 'png',
    model: 'sd3.5-large',
    mode: 'text-to-image',
    aspect_ratio: '16:9',
    seed: '5',
  });
  const filtered = await make('stability');
  await refused(filtered, 400, /filtered/);
  assert.equal((await row(filtered))['total_cost'], 0);
});

test('Imagen answers with what its filter left, which is all that is charged', async () => {
  upstream.script('imagen', [
    json({
      predictions: [{ bytesBase64Encoded: PNG, mimeType: 'image/png' }, { raiFilteredReason: 'filtered out 1' }],
    }),
    json({ predictions: [{ raiFilteredReason: 'filtered out 2' }] }),
  ]);
  const body = await made(await make('imagen', { n: 2, size: '2048x2048' }));
  assert.equal(body.data.length, 1);
  assert.equal(body.usage['cost'], 0.04);
  const { path, json: asked } = sent('imagen');
  assert.equal(path, '/models/imagen-4.0-generate-001:predict');
  assert.deepEqual(asked, {
    instances: [{ prompt: 'Earth' }],
    parameters: { sampleCount: 2, includeRaiReason: true, aspectRatio: '1:1', sampleImageSize: '2K' },
  });
  await refused(await make('imagen'), 400, /filtered out 2/);
});

test('a Gemini image model is asked for an image, and its image tokens are priced', async () => {
  upstream.script('gemini', [
    json({
      candidates: [
        {
          content: { parts: [{ text: 'Here', thought: true }, { inlineData: { mimeType: 'image/png', data: PNG } }] },
          finishReason: 'STOP',
        },
      ],
      usageMetadata: {
        promptTokenCount: 10,
        candidatesTokenCount: 1120,
        totalTokenCount: 1130,
        candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1120 }],
      },
    }),
    json({ candidates: [{ finishReason: 'IMAGE_SAFETY' }] }),
  ]);
  const input_references = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${JPEG}` } }];
  const body = await made(await make('gemini', { aspect_ratio: '9:16', resolution: '4K', seed: 7, input_references }));
  assert.deepEqual(body.data, [{ b64_json: PNG, media_type: 'image/png' }]);
  // 10 x 0.000002 + 1120 x 0.00012
  assert.equal(body.usage['cost'], 0.13442);
  assert.deepEqual(sent('gemini').json, {
    contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/jpeg', data: JPEG } }, { text: 'Earth' }] }],
    generationConfig: {
      responseModalities: ['TEXT', 'IMAGE'],
      imageConfig: { aspectRatio: '9:16', imageSize: '4K' },
      seed: 7,
    },
  });
  await refused(await make('gemini'), 400, /IMAGE_SAFETY/);
});

test('another gateway of this form is asked in it', async () => {
  const usage = { prompt_tokens: 3, completion_tokens: 4, total_tokens: 7, cost: 99 };
  upstream.script('twin', [json({ created: 5, data: [{ b64_json: PNG, media_type: 'image/png' }], usage })]);
  const body = await made(await make('twin', { aspect_ratio: '21:9', quality: 'low', background: 'transparent' }));
  assert.equal(body.usage['cost'], 0.04);
  const { user: _user, ...asked } = sent('twin').json as Record<string, unknown>;
  assert.deepEqual(asked, {
    model: 'acme/painter',
    prompt: 'Earth',
    n: 1,
    aspect_ratio: '21:9',
    quality: 'low',
    background: 'transparent',
  });
});

test('a Black Forest Labs job is polled until ready; its image is fetched and charged by area', async () => {
  upstream.script('sample', [{ chunks: [Buffer.from(PNG, 'base64')] }]);
  upstream.script('flux', [
    json({ id: 'job-1', polling_url: `${upstream.url}/flux/get_result?id=job-1&region=eu` }),
    json({ id: 'job-1', status: 'Pending' }),
    json({ id: 'job-1', status: 'Ready', result: { sample: `${upstream.url}/sample/x.png?sig=1` } }),
  ]);
  const pending = make('flux', { size: '1024x1024', output_format: 'png' });
  await upstream.request('flux', upstream.requests('flux').length + 1);
  const jumping = setInterval(() => gateway.clock.jump(1_000), 20);
  const body = await made(await pending.finally(() => clearInterval(jumping)));
  assert.deepEqual(body.data, [{ b64_json: PNG, media_type: 'image/png' }]);
  assert.equal(body.usage['cost'], 0.03);
  const [submitted, first, second] = upstream.requests('flux').slice(-3);
  assert.deepEqual(submitted!.json, { prompt: 'Earth', width: 1024, height: 1024, output_format: 'png' });
  assert.deepEqual(
    [submitted!.path, first!.path, second!.path],
    ['/flux-2-pro', '/get_result?id=job-1&region=eu', '/get_result?id=job-1&region=eu'],
  );
  assert.equal(first!.method, 'GET');
  assert.ok(first!.headers['x-key']);
  assert.equal(upstream.requests('sample')[0]!.headers['x-key'], undefined);
});

test('an address to ask at that is not the service’s own never gets the credential', async () => {
  for (const polling_url of [
    'https://evil.example/get?id=1',
    'http://127.0.0.1:9/get',
    'https://bfl.ai.evil.example/x',
  ]) {
    upstream.script('flux', [json({ id: 'job-2', polling_url })]);
    await refused(await make('flux'), 502, /another host/);
  }
});

test('a client that leaves while a job is asked after ends the asking, and the row says so', async () => {
  const address = `${upstream.url}/fal/requests/r1`;
  upstream.script('fal', [
    json({ request_id: 'r1', status_url: `${address}/status`, response_url: address }),
    { ...json({ status: 'IN_PROGRESS' }), repeat: true },
  ]);
  const controller = new AbortController();
  const before = upstream.requests('fal').length;
  const pending = fetch(`${gateway.api}/images`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'test/fal', prompt: 'x', user: 'left' }),
    signal: controller.signal,
  });
  await upstream.request('fal', before + 1);
  const jumping = setInterval(() => gateway.clock.jump(1_000), 20);
  await upstream.request('fal', before + 2);
  controller.abort();
  await assert.rejects(pending);
  const entered = await eventually(async () => (await readRows(gateway.target)).find(({ tag }) => tag === 'left'));
  assert.deepEqual([entered.cancelled, entered.estimated, entered.cost], [true, true, 40_000_000n]);
  const asked = upstream.requests('fal').length;
  gateway.clock.jump(60_000);
  await gateway.get('/models');
  clearInterval(jumping);
  assert.equal(upstream.requests('fal').length, asked);
});

test('a fal job is polled, then fetched; images blacked out by its checker are dropped', async () => {
  const address = `${upstream.url}/falpair/requests/r2`;
  upstream.script('black', [{ chunks: [Buffer.from(PNG, 'base64')] }]);
  upstream.script('falpair', [
    json({ request_id: 'r2', status_url: `${address}/status`, response_url: address }),
    json({ status: 'COMPLETED' }),
    json({
      images: [
        { url: `${upstream.url}/black/0` },
        { url: `data:image/jpeg;base64,${JPEG}`, content_type: 'image/jpeg' },
      ],
      has_nsfw_concepts: [true, false],
      seed: 9,
    }),
  ]);
  const jumping = setInterval(() => gateway.clock.jump(1_000), 20);
  const response = await make('falpair', { n: 2, aspect_ratio: '16:9', seed: 9 }).finally(() => clearInterval(jumping));
  const body = await made(response);
  assert.deepEqual(body.data, [{ b64_json: JPEG, media_type: 'image/jpeg' }]);
  assert.equal(body.usage['cost'], 0.04);
  const [submitted, looked, fetched] = upstream.requests('falpair').slice(-3);
  assert.equal(submitted!.path, '/fal-ai/flux/dev');
  assert.match(String(submitted!.headers.authorization), /^Key /);
  assert.deepEqual(submitted!.json, {
    prompt: 'Earth',
    num_images: 2,
    image_size: { width: 1360, height: 768 },
    seed: 9,
  });
  assert.deepEqual([looked!.path, fetched!.path], ['/requests/r2/status', '/requests/r2']);
  assert.equal((await row(response))['upstream_id'], 'r2');
});

test('a job that is moderated is 400 and costs nothing', async () => {
  upstream.script('flux', [json({ id: 'job-3' }), json({ id: 'job-3', status: 'Request Moderated', result: null })]);
  const jumping = setInterval(() => gateway.clock.jump(1_000), 20);
  const response = await make('flux').finally(() => clearInterval(jumping));
  await refused(response, 400, /Request Moderated/);
  assert.equal((await row(response))['total_cost'], 0);
});

test('references go to xAI, Stability and Black Forest Labs as each takes them', async () => {
  const input_references = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${JPEG}` } }];
  upstream.script('xai', [drawn(PNG)]);
  await made(await make('xai', { input_references }));
  assert.equal(sent('xai').path, '/images/edits');
  const edit = sent('xai').json as Record<string, unknown>;
  assert.deepEqual(edit['image'], { type: 'image_url', url: `data:image/jpeg;base64,${JPEG}` });

  upstream.script('stability', [json({ image: PNG, finish_reason: 'SUCCESS' })]);
  await made(await make('stability', { input_references, provider: { options: { stability: { strength: 0.5 } } } }));
  const { headers, body } = sent('stability');
  const type = headers['content-type']!;
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } }).formData();
  assert.deepEqual([form.get('mode'), form.get('strength')], ['image-to-image', '0.5']);
  assert.equal((form.get('image') as File).type, 'image/jpeg');

  upstream.script('flux', [json({ id: 'job-4' }), json({ status: 'Error', details: { why: 'x' } })]);
  const jumping = setInterval(() => gateway.clock.jump(1_000), 20);
  const failed = await make('flux', { input_references }).finally(() => clearInterval(jumping));
  await refused(failed, 502, /the job ended with status Error/);
  const submitted = upstream.requests('flux').at(-2)!.json as Record<string, unknown>;
  assert.equal(submitted['input_image'], JPEG);
});

test('a result URL in the private network is refused, and its content is not shown', async () => {
  const usage = { input_tokens: 20, input_tokens_details: { text_tokens: 20, image_tokens: 0 }, output_tokens: 300 };
  upstream.script('old', [json({ created: 1, data: [{ url: 'http://10.0.0.1/secret.png' }], usage })]);
  const response = await make('old');
  const { error } = await refused(response, 502, /not public/);
  assert.doesNotMatch(JSON.stringify(error), /secret/);
  // The image was made, so the reported usage is charged: 20 x 0.000005 + 300 x 0.00004.
  const { total_cost, native_tokens_completion } = await row(response);
  assert.deepEqual([total_cost, native_tokens_completion], [0.0121, 300]);
});

test('an image may take minutes; streaming clients get comments meanwhile, then events', async () => {
  upstream.script('xai', [{ ...drawn(PNG), chunks: [{ gate: 'slow picture' }, ...drawn(PNG).chunks!] }]);
  const before = upstream.requests('xai').length;
  const response = make('xai', { stream: true });
  await upstream.request('xai', before + 1);
  gateway.clock.jump(10_000);
  const reader = (await response).body!.pipeThrough(new TextDecoderStream()).getReader();
  assert.match((await reader.read()).value!, /^: .*\n\n$/);
  gateway.clock.jump(240_000);
  upstream.open('slow picture');
  let rest = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) rest += part.value;
  const events = rest.split('\n\n').filter((line) => line.startsWith('data: '));
  assert.equal(events.length, 2);
  assert.equal((JSON.parse(events[0]!.slice(6)) as { b64_json: string }).b64_json, PNG);
  assert.equal(events[1], 'data: [DONE]');
});
