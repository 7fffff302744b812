/** Media URLs in requests, and images and audio in responses, through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const PNG = Buffer.from('89504e470d0a1a0a0000000d4948445200000001000000010806000000', 'hex');
const JPEG = Buffer.concat([Buffer.from('ffd8ffe000104a464946', 'hex'), Buffer.alloc(40)]);
const PDF = Buffer.from('%PDF-1.4\n%%EOF');

const mixed = { output_modalities: ['text', 'image'] };
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    yaml: {
      egress: { networks: ['127.0.0.0/8'], ports: ['1-65535'] },
      limits: { fetched_media: 3, fetched_medium_bytes: 4096, fetched_media_bytes: 6000 },
    },
    providers: {
      gemini: { kind: 'gemini' },
      converse: { kind: 'converse' },
      pair: { kind: 'gemini' },
      other: { kind: 'converse', model: { id: 'test/pair' } },
      chat: { kind: 'chat' },
      open: { kind: 'chat', model: { id: 'test/either' } },
      either: { kind: 'gemini', model: { id: 'test/either' } },
      draws: { kind: 'openrouter', model: mixed },
      gemdraws: { kind: 'gemini', model: mixed },
      onlydraws: { kind: 'gemini', model: { output_modalities: ['image'] } },
      ollama: { kind: 'ollama' },
      speaks: { kind: 'openai', model: { output_modalities: ['text', 'audio'] } },
    },
  },
);
const { upstream } = gateway;
const json = (value: unknown, status = 200): Answer => ({
  status,
  headers: { 'content-type': 'application/json' },
  chunks: [JSON.stringify(value)],
});
const geminiText = json({
  candidates: [{ content: { role: 'model', parts: [{ text: 'ok' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
});
const converseText = json({
  output: { message: { role: 'assistant', content: [{ text: 'ok' }] } },
  stopReason: 'end_turn',
  usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
});
const chatText = json({
  id: 'c',
  object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
const bytes = (body: Buffer, type = 'application/octet-stream'): Answer => ({
  headers: { 'content-type': type },
  chunks: [body],
});
const at = (key: string, path = '') => `${upstream.url}/${key}${path}`;
const image = (url: string) => ({ type: 'image_url', image_url: { url } });
const ask = (model: string, content: unknown, more: Record<string, unknown> = {}) =>
  gateway.post('/chat/completions', { model: `test/${model}`, messages: [{ role: 'user', content }], ...more });
const sent = (key: string) => upstream.requests(key).at(-1)!;
async function refused(response: Response, status: number, problem: RegExp): Promise<void> {
  const text = await response.text();
  assert.equal(response.status, status, text);
  assert.match((JSON.parse(text) as { error: { message: string } }).error.message, problem);
}

test('image and document URLs reach Gemini as bytes, with the type of the bytes', async () => {
  upstream.script('files', [bytes(JPEG, 'image/png'), bytes(PDF, 'text/html')]);
  upstream.script('gemini', [geminiText]);
  const file = { type: 'file', file: { filename: 'a.pdf', file_data: at('files', '/a.pdf') } };
  const response = await ask('gemini', [{ type: 'text', text: 'what?' }, image(at('files', '/a.png')), file]);
  assert.equal(response.status, 200, await response.clone().text());
  const { contents } = sent('gemini').json as { contents: { parts: unknown[] }[] };
  assert.deepEqual(
    new Set(contents[0]!.parts.map((part) => JSON.stringify(part))),
    new Set(
      [
        { text: 'what?' },
        { inlineData: { mimeType: 'image/jpeg', data: JPEG.toString('base64') } },
        { inlineData: { mimeType: 'application/pdf', data: PDF.toString('base64') } },
      ].map((part) => JSON.stringify(part)),
    ),
  );
  assert.equal(upstream.requests('files').at(-1)!.headers.authorization, undefined);
});

test('a URL is fetched once, however often it occurs and however many endpoints are tried', async () => {
  upstream.script('once', bytes(PNG));
  upstream.script('pair', [json({ error: { code: 503, message: 'busy', status: 'UNAVAILABLE' } }, 503)]);
  upstream.script('other', [converseText]);
  const url = at('once', '/x.png');
  const response = await gateway.post('/messages', {
    model: 'test/pair',
    max_tokens: 10,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', source: { type: 'url', url } },
          { type: 'image', source: { type: 'url', url } },
        ],
      },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'image', source: { type: 'url', url } }] },
        ],
      },
    ],
    tools: [{ name: 'look', input_schema: { type: 'object' } }],
  });
  assert.equal(response.status, 200, await response.clone().text());
  assert.equal(upstream.requests('once').length, 1);
  assert.equal(JSON.stringify(sent('pair').json).split(PNG.toString('base64')).length, 4);
  assert.equal(JSON.stringify(sent('other').json).split(PNG.toString('base64')).length, 4);
});

test('an upstream that reads addresses gets the address, and nothing is fetched', async () => {
  upstream.script('chat', [chatText]);
  const before = upstream.requests('files').length;
  const response = await ask('chat', [image(at('files', '/b.png'))]);
  assert.equal(response.status, 200);
  assert.match(sent('chat').body.toString(), /files\/b\.png/);
  assert.equal(upstream.requests('files').length, before);
});

test('a chat service that reads only data URLs gets one, and the rest of the request unchanged', async () => {
  upstream.script('ollama', [chatText]);
  upstream.script('files', [bytes(PNG)]);
  const response = await ask('ollama', [{ type: 'text', text: 'what?' }, image(at('files', '/c.png'))], { seed: 5 });
  assert.equal(response.status, 200, await response.clone().text());
  const { messages, seed } = sent('ollama').json as { messages: { content: unknown[] }[]; seed: number };
  assert.equal(seed, 5);
  assert.deepEqual(messages[0]!.content, [
    { type: 'text', text: 'what?' },
    image(`data:image/png;base64,${PNG.toString('base64')}`),
  ]);
});

test('OpenAI gets a document as bytes and an image as a URL', async () => {
  upstream.script('speaks', [chatText]);
  upstream.script('files', [bytes(PDF)]);
  const before = upstream.requests('files').length;
  const file = { type: 'file', file: { filename: 'a.pdf', file_data: at('files', '/d.pdf') } };
  const response = await ask('speaks', [image(at('files', '/d.png')), file]);
  assert.equal(response.status, 200, await response.clone().text());
  assert.equal(upstream.requests('files').length, before + 1);
  const { messages } = sent('speaks').json as { messages: { content: unknown[] }[] };
  assert.deepEqual(messages[0]!.content, [
    image(at('files', '/d.png')),
    {
      type: 'file',
      file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${PDF.toString('base64')}` },
    },
  ]);
});

const PRIVATE = [
  ...['http://169.254.169.254/latest/meta-data/', 'http://10.0.0.1/x', 'http://172.16.0.1/x', 'http://192.168.0.1/x'],
  ...['http://100.64.0.1/x', 'http://0.0.0.0/x', 'http://[fd00::1]/x', 'http://[::]/x', 'http://[::ffff:10.0.0.1]/x'],
  ...[
    'http://[64:ff9b::a00:1]/x',
    'http://[2002:a00:1::]/x',
    'http://167772161/x',
    'http://0xa.1/x',
    'http://012.0.0.1/x',
  ],
];

for (const url of PRIVATE) {
  test(`${url} is 400 with the field, and no upstream call (bug 73)`, async () => {
    const before = upstream.requests('gemini').length;
    await refused(await ask('gemini', [image(url)]), 400, /messages\[0\]\.content\[0\]\.image_url\.url .*not public/);
    assert.equal(upstream.requests('gemini').length, before);
  });
}

for (const url of ['file:///etc/passwd', 'gopher://127.0.0.1:70/x', 'ftp://a.example/x.png']) {
  test(`${url} is 400 with the field (bug 73)`, async () => {
    await refused(await ask('converse', [image(url)]), 400, /messages\[0\]\.content\[0\]\.image_url\.url/);
  });
}

test('a redirect to a private address is refused, for documents too', async () => {
  upstream.script('away', { status: 302, headers: { location: 'http://10.0.0.1/secret' } });
  const file = { type: 'file', file: { file_data: at('away', '/a.pdf') } };
  await refused(await ask('gemini', [file]), 400, /messages\[0\]\.content\[0\]\.file\.file_data .*not public/);
  const document = { type: 'document', source: { type: 'url', url: at('away', '/b.pdf') } };
  const response = await gateway.post('/messages', {
    model: 'test/converse',
    max_tokens: 5,
    messages: [{ role: 'user', content: [document] }],
  });
  await refused(response, 400, /messages\[0\]\.content\[0\]\.source\.url .*not public/);
});

test('a URL that is not an image, too large or missing is 400 with the field', async () => {
  upstream.script('bad', [
    bytes(Buffer.from('<!doctype html><svg></svg>'), 'image/png'),
    bytes(Buffer.concat([PNG, Buffer.alloc(5000)])),
    { status: 404 },
  ]);
  await refused(await ask('gemini', [image(at('bad'))]), 400, /image_url\.url points to content that is not an image/);
  await refused(await ask('gemini', [image(at('bad'))]), 400, /image_url\.url is larger than the limit of 4096 bytes/);
  await refused(await ask('gemini', [image(at('bad'))]), 400, /image_url\.url answered 404/);
});

test('addresses of one request are bounded in number and in size together', async () => {
  upstream.script('many', bytes(Buffer.concat([PNG, Buffer.alloc(3000)])));
  const addresses = (count: number) => Array.from({ length: count }, (_, index) => image(at('many', `/${index}`)));
  const before = upstream.requests('many').length;
  await refused(await ask('gemini', addresses(4)), 400, /messages\[0\]\.content\[3\].* exceeds the limit of 3/);
  assert.equal(upstream.requests('many').length, before);
  await refused(await ask('gemini', addresses(2)), 400, /content\[[01]\]\.image_url\.url /);
});

test('a URL in several parts counts in the limit of the request as often as its bytes are sent', async () => {
  const large = Buffer.concat([PNG, Buffer.alloc(2500)]);
  upstream.script('large', bytes(large));
  upstream.script('gemini', [geminiText]);
  const parts = (count: number) => Array.from({ length: count }, () => image(at('large', '/x.png')));
  assert.equal((await ask('gemini', parts(2))).status, 200);
  await refused(
    await ask('gemini', parts(3)),
    400,
    /image_url\.url brings the media of this request over the limit of 6000/,
  );
});

test('an endpoint that reads the address answers where the gateway may not fetch it', async () => {
  upstream.script('open', [chatText]);
  const only = { provider: { order: ['either', 'open'] } };
  const response = await ask('either', [image('http://10.0.0.1/x.png')], only);
  assert.equal(response.status, 200, await response.clone().text());
  assert.equal(upstream.requests('either').length, 0);
  assert.equal(upstream.requests('open').length, 1);
});

test('a client disconnect during a fetch ends the fetch, without an upstream call or a row', async () => {
  upstream.script('hang', { end: 'stall-before-headers' });
  const controller = new AbortController();
  const before = upstream.requests('gemini').length;
  const pending = fetch(`${gateway.api}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'test/gemini', messages: [{ role: 'user', content: [image(at('hang'))] }] }),
    signal: controller.signal,
  });
  const received = await upstream.request('hang');
  controller.abort();
  await assert.rejects(pending);
  while (received.closedEarlyAt === undefined) await new Promise((resolve) => setImmediate(resolve));
  assert.equal(upstream.requests('gemini').length, before);
});

test('images of a chat upstream reach chat clients, whole and streamed', async () => {
  const images = [{ type: 'image_url', image_url: { url: `data:image/png;base64,${PNG.toString('base64')}` } }];
  const usage = {
    prompt_tokens: 3,
    completion_tokens: 1000,
    total_tokens: 1003,
    completion_tokens_details: { image_tokens: 990 },
  };
  const chunk = (value: Record<string, unknown>) =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', ...value })}\n\n`;
  upstream.script('draws', [
    json({
      id: 'c',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: '', images }, finish_reason: 'stop' }],
      usage,
    }),
    {
      headers: { 'content-type': 'text/event-stream' },
      chunks: [
        chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: '', images }, finish_reason: null }] }),
        chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }], usage }),
        'data: [DONE]\n\n',
      ],
    },
  ]);
  const wish = { modalities: ['image', 'text'], image_config: { aspect_ratio: '16:9' } };
  const whole = (await (await ask('draws', 'draw', wish)).json()) as {
    choices: { message: { images: unknown } }[];
    usage: { completion_tokens_details: { image_tokens: number } };
  };
  assert.deepEqual(whole.choices[0]?.message.images, images);
  assert.equal(whole.usage.completion_tokens_details.image_tokens, 990);
  const asked = sent('draws').json as Record<string, unknown>;
  assert.deepEqual([asked['modalities'], asked['image_config']], [wish.modalities, wish.image_config]);
  const text = await (await ask('draws', 'draw', { ...wish, stream: true })).text();
  assert.ok(text.includes(PNG.toString('base64')));
  assert.match(text, /data: \[DONE\]\n\n$/);
});

test('images of Gemini reach chat clients, whole and streamed', async () => {
  const parts = [{ text: 'Here: ' }, { inlineData: { mimeType: 'image/png', data: PNG.toString('base64') } }];
  const answer = {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }],
    usageMetadata: {
      promptTokenCount: 3,
      candidatesTokenCount: 1294,
      totalTokenCount: 1297,
      candidatesTokensDetails: [{ modality: 'IMAGE', tokenCount: 1290 }],
    },
  };
  upstream.script('gemdraws', [
    json(answer),
    { headers: { 'content-type': 'text/event-stream' }, chunks: [`data: ${JSON.stringify(answer)}\r\n\r\n`] },
  ]);
  const wish = { modalities: ['image', 'text'], image_config: { aspect_ratio: '16:9' } };
  const whole = (await (await ask('gemdraws', 'draw', wish)).json()) as {
    choices: { message: { content: string; images: { image_url: { url: string } }[] } }[];
    usage: { completion_tokens_details: { image_tokens: number } };
  };
  const { message } = whole.choices[0]!;
  assert.equal(message.content, 'Here: ');
  assert.equal(message.images[0]?.image_url.url, `data:image/png;base64,${PNG.toString('base64')}`);
  assert.equal(whole.usage.completion_tokens_details.image_tokens, 1290);
  const { generationConfig } = sent('gemdraws').json as { generationConfig: Record<string, unknown> };
  assert.deepEqual((generationConfig['responseModalities'] as string[]).toSorted(), ['IMAGE', 'TEXT']);
  assert.deepEqual(generationConfig['imageConfig'], { aspectRatio: '16:9' });
  const text = await (await ask('gemdraws', 'draw', { ...wish, stream: true })).text();
  assert.ok(text.includes(`data:image/png;base64,${PNG.toString('base64')}`));
});

test('audio of a chat upstream reaches chat clients, with its cost reported separately', async () => {
  const audio = { id: 'audio_1', data: 'AAAA', transcript: 'hi', expires_at: 1_900_000_000 };
  upstream.script('speaks', [
    json({
      id: 'c',
      object: 'chat.completion',
      choices: [{ index: 0, message: { role: 'assistant', content: null, audio }, finish_reason: 'stop' }],
      usage: {
        prompt_tokens: 3,
        completion_tokens: 20,
        total_tokens: 23,
        completion_tokens_details: { audio_tokens: 15 },
      },
    }),
  ]);
  const wish = { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } };
  const body = (await (await ask('speaks', 'talk', wish)).json()) as {
    choices: { message: { audio: unknown } }[];
    usage: { completion_tokens_details: { audio_tokens: number } };
  };
  assert.deepEqual(body.choices[0]?.message.audio, audio);
  assert.equal(body.usage.completion_tokens_details.audio_tokens, 15);
  assert.deepEqual((sent('speaks').json as Record<string, unknown>)['audio'], wish.audio);
});

test('a request for images is refused by name by endpoints whose format has none', async () => {
  const before = upstream.requests('converse').length;
  await refused(await ask('converse', 'draw', { modalities: ['image'] }), 400, /modalit|image/);
  assert.equal(upstream.requests('converse').length, before);
});

test('a messages client, whose format has no images, does not reach an image-only model', async () => {
  const before = upstream.requests('onlydraws').length;
  const body = { model: 'test/onlydraws', max_tokens: 10, messages: [{ role: 'user', content: 'hi' }] };
  await refused(await gateway.post('/messages', body), 400, /cannot carry the images/);
  assert.equal(upstream.requests('onlydraws').length, before);
});
