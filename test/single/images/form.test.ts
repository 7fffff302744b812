/** `POST /images`: its fields and rules, references, streams, what it costs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drawn, JPEG, json, made, make, PNG, refused, row, sent, upstream } from './scene.ts';

test('an image is base64 with its media type, its tokens and its exact cost', async () => {
  const usage = {
    input_tokens: 15,
    output_tokens: 1056,
    total_tokens: 1071,
    input_tokens_details: { text_tokens: 15, image_tokens: 0 },
    output_tokens_details: { image_tokens: 1056, text_tokens: 0 },
  };
  upstream.script('gpt', [json({ created: 1750000000, data: [{ b64_json: PNG }], usage })]);
  const response = await make('gpt', { quality: 'max', output_format: 'webp', output_compression: 40, user: 'jo' });
  const body = await made(response);
  assert.equal(body.created, 1750000000);
  assert.deepEqual(body.data, [{ b64_json: PNG, media_type: 'image/png' }]);
  assert.equal(body.usage['prompt_tokens'], 15);
  assert.equal(body.usage['completion_tokens'], 1056);
  assert.equal(body.usage['total_tokens'], 1071);
  // 15 x 0.000005 + 1056 x 0.00004
  assert.equal(body.usage['cost'], 0.042315);
  const { path, json: asked } = sent('gpt');
  assert.equal(path, '/images/generations');
  const { user, ...rest } = asked as Record<string, unknown>;
  assert.deepEqual(rest, {
    model: 'gpt-image-2.5-flare',
    prompt: 'Earth',
    n: 1,
    quality: 'max',
    output_format: 'webp',
    output_compression: 40,
  });
  assert.match(String(user), /^(?!jo$).+/);
  const generation = await row(response);
  assert.equal(generation['total_cost'], 0.042315);
  assert.equal(generation['api_type'], 'image');
});

test('a model of the older kind is never asked for a response format, an address is fetched, an empty list is 502 (bug 96)', async () => {
  upstream.script('picture', [{ headers: { 'content-type': 'text/plain' }, chunks: [Buffer.from(JPEG, 'base64')] }]);
  const usage = { input_tokens: 5, output_tokens: 100, total_tokens: 105 };
  const url = `${upstream.url}/picture/2.jpg`;
  upstream.script('old', [
    json({ created: 1, data: [{ b64_json: PNG }, { url }], usage }),
    json({ created: 1, data: [] }),
  ]);
  const body = await made(await make('old', { n: 2 }));
  assert.equal('response_format' in (sent('old').json as object), false);
  assert.deepEqual(body.data, [
    { b64_json: PNG, media_type: 'image/png' },
    { b64_json: JPEG, media_type: 'image/jpeg' },
  ]);
  const { prompt_tokens, completion_tokens, total_tokens } = body.usage;
  assert.deepEqual([prompt_tokens, completion_tokens, total_tokens], [5, 100, 105]);
  await refused(await make('old'), 502, /without an image/);
});

const BAD: [string, Record<string, unknown>, RegExp][] = [
  ['no prompt', { prompt: '' }, /prompt/],
  ['no images', { n: 0 }, /\bn\b/],
  ['eleven images', { n: 11 }, /\bn\b/],
  ['an unknown ratio', { aspect_ratio: '6:7' }, /aspect_ratio/],
  ['an unknown resolution', { resolution: '8K' }, /resolution/],
  ['a size that is none', { size: 'large' }, /size must be one of/],
  ['pixels without end', { size: '99999x99999' }, /size must be one of/],
  ['pixels of another ratio', { size: '1536x1024', aspect_ratio: '1:1' }, /aspect_ratio is 1:1, but size is 1536x1024/],
  ['pixels of another resolution', { size: '1024x1024', resolution: '4K' }, /resolution is 4K, but size is 1024x1024/],
  ['two resolutions', { size: '2K', resolution: '4K' }, /size is 2K but resolution is 4K/],
  ['transparent jpeg', { background: 'transparent', output_format: 'jpeg' }, /output_format must be png or webp/],
  ['transparent svg', { background: 'transparent', output_format: 'svg' }, /output_format must be png or webp/],
  ['too much compression', { output_compression: 101 }, /output_compression/],
  ['an unknown format', { output_format: 'bmp' }, /output_format/],
  ['an unknown quality', { quality: 'best' }, /quality/],
  ['an address as answer', { response_format: 'url' }, /response_format must be b64_json/],
  ['a mask', { mask: 'data:image/png;base64,AAAA' }, /mask is not supported/],
  [
    'seventeen references',
    { input_references: Array(17).fill({ type: 'image_url', image_url: { url: 'https://a.example/b.png' } }) },
    /input_references/,
  ],
  ...['file:///etc/passwd', 'ftp://a/b', 'data:image/png,abc', 'nothing'].map(
    (url): [string, Record<string, unknown>, RegExp] => [
      `the reference ${url}`,
      { input_references: [{ type: 'image_url', image_url: { url } }] },
      /input_references\[0\]\.image_url\.url must be/,
    ],
  ),
  [
    'a reference that is no picture',
    { input_references: [{ type: 'image_url', image_url: { url: `data:image/png;base64,${btoa('<html></html>')}` } }] },
    /input_references\[0\]\.image_url\.url does not contain an image/,
  ],
  ['options of no form', { provider: { options: { gpt: 5 } } }, /provider\.options\.gpt must be an object/],
];

for (const [name, members, problem] of BAD) {
  test(`${name}: 400 with the field, and no upstream call`, async () => {
    const before = upstream.requests('gpt').length;
    await refused(await make('gpt', members), 400, problem);
    assert.equal(upstream.requests('gpt').length, before);
  });
}

const UNCARRIED: [string, string, Record<string, unknown>, RegExp][] = [
  ['several images of a service that makes one', 'flux', { n: 2 }, /n: .*one image per call/],
  ['transparency of a service that makes none', 'xai', { background: 'transparent' }, /background/],
  ['svg of a service that draws in pixels', 'xai', { output_format: 'svg' }, /output_format/],
  ['png of a service that draws in vectors', 'recraft', { output_format: 'png' }, /output_format/],
  ['pixels that a service does not make', 'stability', { size: '1000x1000' }, /exactly 1000x1000/],
  ['pixels that a model does not make', 'old', { size: '1040x1040' }, /not 1040x1040/],
  ['sides that 16 does not divide', 'gpt', { size: '1001x1000' }, /16/],
  [
    'options that are not passed on',
    'gpt',
    { provider: { options: { gpt: { store: true } } } },
    /provider\.options\.gpt\.store/,
  ],
];

for (const [name, provider, members, problem] of UNCARRIED) {
  test(`${name}: 400 that says so, and no upstream call`, async () => {
    const before = upstream.requests(provider).length;
    const { error } = await refused(await make(provider, members), 400, problem);
    assert.ok(Array.isArray(error.metadata['unsupported']));
    assert.equal(upstream.requests(provider).length, before);
  });
}

test("members of OpenAI's models reach the models that have them", async () => {
  upstream.script('gpt', [drawn(PNG)]);
  await made(await make('gpt', { moderation: 'low', style: 'vivid' }));
  const asked = sent('gpt').json as Record<string, unknown>;
  assert.deepEqual([asked['moderation'], asked['style']], ['low', undefined]);
});

test('options of the serving provider go along, those of others do not', async () => {
  upstream.script('gpt', [drawn(PNG)]);
  await made(await make('gpt', { provider: { options: { gpt: { moderation: 'low' }, xai: { x: 1 } } } }));
  const asked = sent('gpt').json as Record<string, unknown>;
  assert.equal(asked['moderation'], 'low');
  assert.deepEqual(Object.keys(asked).toSorted(), ['model', 'moderation', 'n', 'prompt', 'user']);
});

test('references go out as an upload, data URLs and fetched addresses alike, each with the type of its bytes', async () => {
  upstream.script('gpt', [drawn(PNG)]);
  upstream.script('reference', [{ headers: { 'content-type': 'text/html' }, chunks: [Buffer.from(JPEG, 'base64')] }]);
  const given = [`data:image/webp;base64,${PNG}`, `${upstream.url}/reference/a`];
  const input_references = given.map((url) => ({ type: 'image_url', image_url: { url } }));
  await made(await make('gpt', { input_references, size: '1536x1024' }));
  const { path, headers, body } = sent('gpt');
  assert.equal(path, '/images/edits');
  const form = await new Response(new Uint8Array(body), {
    headers: { 'content-type': headers['content-type']! },
  }).formData();
  assert.equal(form.get('model'), 'gpt-image-2.5-flare');
  assert.equal(form.get('size'), '1536x1024');
  const files = form.getAll('image[]') as File[];
  assert.deepEqual(
    files.map(({ type }) => type),
    ['image/png', 'image/jpeg'],
  );
  assert.deepEqual(Buffer.from(await files[1]!.arrayBuffer()), Buffer.from(JPEG, 'base64'));
});

test('an unavailable reference is 400 with its field, before any upstream call', async () => {
  upstream.script('reference', [
    { status: 404 },
    { headers: { 'content-type': 'image/png' }, chunks: ['<html></html>'] },
  ]);
  const before = upstream.requests('gpt').length;
  for (const [url, problem] of [
    [`${upstream.url}/reference/gone.png`, /input_references\[0\]\.image_url\.url answered 404/],
    [`${upstream.url}/reference/page.png`, /not an image/],
    ['http://10.0.0.1:8000/a.png', /not public/],
    ['http://169.254.169.254/latest/meta-data/', /not public/],
    ['http://[::ffff:10.0.0.1]/a.png', /not public/],
  ] as const) {
    const input_references = [{ type: 'image_url', image_url: { url } }];
    await refused(await make('gpt', { input_references }), 400, problem);
  }
  assert.equal(upstream.requests('gpt').length, before);
});

test('partial images are shown as they come, then the image with its figures, then the end', async () => {
  const event = (value: Record<string, unknown>) => `event: ${value['type']}\ndata: ${JSON.stringify(value)}\n\n`;
  const usage = { input_tokens: 10, output_tokens: 200, total_tokens: 210 };
  upstream.script('gpt', [
    {
      headers: { 'content-type': 'text/event-stream' },
      chunks: [
        event({ type: 'image_generation.partial_image', b64_json: 'AAAA', partial_image_index: 0 }),
        { gate: 'seen' },
        event({ type: 'image_generation.partial_image', b64_json: 'BBBB', partial_image_index: 1 }),
        event({ type: 'image_generation.completed', b64_json: PNG, created_at: 1750000001, usage }),
      ],
    },
  ]);
  const response = await make('gpt', { stream: true });
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8');
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const first = (await reader.read()).value!;
  assert.match(first, /"partial_image_index":0/);
  upstream.open('seen');
  let rest = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) rest += part.value;
  const events = `${first}${rest}`.split('\n\n').filter(Boolean);
  assert.equal(events.at(-1), 'data: [DONE]');
  const values = events.slice(0, -1).map((line) => JSON.parse(line.replace('data: ', '')) as Record<string, unknown>);
  assert.deepEqual(
    values.map(({ type, b64_json }) => [type, b64_json]),
    [
      ['image_generation.partial_image', 'AAAA'],
      ['image_generation.partial_image', 'BBBB'],
      ['image_generation.completed', PNG],
    ],
  );
  const last = values.at(-1)!;
  assert.deepEqual([last['created'], last['media_type']], [1750000001, 'image/png']);
  // 10 x 0.000005 + 200 x 0.00004
  assert.equal((last['usage'] as Record<string, unknown>)['cost'], 0.00805);
  assert.equal((sent('gpt').json as Record<string, unknown>)['stream'], true);
});

test('a stream that breaks off after a partial image ends with a typed error and no end marker', async () => {
  const partial = { type: 'image_generation.partial_image', b64_json: 'AAAA', partial_image_index: 0 };
  upstream.script('gpt', [
    { headers: { 'content-type': 'text/event-stream' }, chunks: [`data: ${JSON.stringify(partial)}\n\n`], end: 'cut' },
  ]);
  const text = await (await make('gpt', { stream: true })).text();
  const events = text.split('\n\n').filter(Boolean);
  assert.equal(events.length, 2);
  const error = JSON.parse(events[1]!.replace('data: ', '')) as { type: string; error: { type: string; code: string } };
  assert.deepEqual([error.type, error.error.type, error.error.code], ['error', 'provider_unavailable', '502']);
});

test('usage that comes with the error of a stream is charged as reported', async () => {
  const partial = { type: 'image_generation.partial_image', b64_json: 'AAAA', partial_image_index: 0 };
  const error = { type: 'error', error: { message: 'boom' }, usage: { input_tokens: 10, output_tokens: 100 } };
  upstream.script('gpt', [
    {
      headers: { 'content-type': 'text/event-stream' },
      chunks: [partial, error].map((event) => `data: ${JSON.stringify(event)}\n\n`),
    },
  ]);
  const response = await make('gpt', { stream: true });
  assert.match(await response.text(), /boom/);
  // 10 x 0.000005 + 100 x 0.00004
  assert.equal((await row(response))['total_cost'], 0.00405);
});

test('a wish for a stream is answered whole by a service that does not stream', async () => {
  upstream.script('xai', [drawn(JPEG)]);
  const response = await make('xai', { stream: true, aspect_ratio: '5:4', resolution: '4K', quality: 'high' });
  const body = await made(response);
  assert.equal(body.data[0]?.media_type, 'image/jpeg');
  // What is made has 2K, and so has its price.
  assert.equal(body.usage['cost'], 0.08);
  const { user: _user, ...asked } = sent('xai').json as Record<string, unknown>;
  assert.deepEqual(asked, {
    model: 'grok-imagine-image',
    prompt: 'Earth',
    n: 1,
    response_format: 'b64_json',
    aspect_ratio: '4:3',
    resolution: '2k',
  });
});

test('an image is charged at the most specific variant, and every image counts', async () => {
  upstream.script('xai', [drawn(PNG, PNG, PNG), drawn(PNG)]);
  assert.equal((await made(await make('xai', { n: 5, resolution: '2K' }))).usage['cost'], 0.24);
  assert.equal((await made(await make('xai'))).usage['cost'], 0.04);
});
