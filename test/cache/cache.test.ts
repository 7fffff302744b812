/** The response cache through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { begun } from '../../src/testing/gateway/sdk.ts';
import { answerOf, errorOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: {},
      messages: { kind: 'messages' },
      responses: { kind: 'responses' },
      vectors: { kind: 'openai', model: { output_modalities: ['embeddings'] } },
    },
  },
);
const { upstream } = gateway;

const CACHE = { 'x-svc-cache': 'true' };
const TOLD = {
  thinking: { text: 'let me see' },
  text: 'Grüße, 世界 "id":"gen-x"',
  calls: [{ id: 'call_1', name: 'look', arguments: '{"n":9007199254740993}' }],
  finish: 'tool_calls' as const,
  usage: { input: 12, output: 7 },
};
const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];

let asked = 0;
/** A request that no other test makes. */
const chatBody = (more: object = {}) => {
  asked += 1;
  return { model: 'test/chat', messages: [{ role: 'user', content: `question ${asked}` }], ...more };
};

interface Answered {
  status: number;
  headers: Headers;
  text: string;
  id: string;
  cache: string | null;
}

async function post(route: string, body: unknown, headers: Record<string, string> = CACHE): Promise<Answered> {
  const response = await gateway.post(route, body, headers);
  const text = await response.text();
  const id = response.headers.get('x-generation-id') ?? '';
  return {
    status: response.status,
    headers: response.headers,
    text,
    id,
    cache: response.headers.get('x-svc-cache-status'),
  };
}

const rowOf = async (id: string) =>
  ((await (await gateway.get(`/generation?id=${id}`, MANAGEMENT_KEY)).json()) as { data: Record<string, unknown> })
    .data;

/** The objects of an answer, a stream's in their order. */
function objectsOf(text: string): Record<string, unknown>[] {
  if (!text.includes('data: ')) return [JSON.parse(text)];
  return text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []));
}

/** Every usage in an answer. */
function usagesOf(value: unknown): unknown[] {
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => (key === 'usage' && item ? [item] : usagesOf(item)));
}

const numbersOf = (value: unknown): number[] =>
  typeof value === 'number'
    ? [value]
    : typeof value === 'object' && value
      ? Object.values(value).flatMap(numbersOf)
      : [];

/** The text with what must differ taken out. */
function bare(text: string, id: string): string {
  return text
    .replaceAll(id, 'ID')
    .replaceAll(id.replace('gen-', 'resp_'), 'ID')
    .replaceAll(/"(created|created_at|completed_at)":\d+/g, '"$1":0')
    .replaceAll(/"usage":\{(?:[^{}]|\{[^{}]*\})*\}/g, '"usage":{}');
}

const FORMATS: { route: string; model: string; stream: boolean; answer: Answer; body: object }[] = [
  false,
  true,
].flatMap((stream) => [
  {
    route: '/chat/completions',
    model: 'test/chat',
    stream,
    answer: answerOf('chat', stream, TOLD),
    body: { tools: TOOLS },
  },
  {
    route: '/chat/completions',
    model: 'test/messages',
    stream,
    answer: answerOf('messages', stream, TOLD),
    body: { tools: TOOLS },
  },
  {
    route: '/messages',
    model: 'test/messages',
    stream,
    answer: answerOf('messages', stream, TOLD),
    body: { max_tokens: 99 },
  },
  {
    route: '/messages',
    model: 'test/chat',
    stream,
    answer: answerOf('chat', stream, TOLD),
    body: { max_tokens: 99 },
  },
  { route: '/responses', model: 'test/responses', stream, answer: responsesAnswer(stream, TOLD), body: {} },
  { route: '/responses', model: 'test/chat', stream, answer: answerOf('chat', stream, TOLD), body: {} },
]);

for (const { route, model, stream, answer, body } of FORMATS) {
  test(`${route}, ${stream ? 'streamed' : 'whole'}, ${model}: served again with the same content, under a new id, at no cost`, async () => {
    const key = model.slice('test/'.length);
    upstream.script(key, [answer]);
    const before = upstream.requests(key).length;
    const content = { ...(route === '/responses' ? { input: 'hi' } : { messages: [{ role: 'user', content: 'hi' }] }) };
    const request = { model, stream, ...content, ...body };
    const first = await post(route, request);
    assert.deepEqual(
      [first.status, first.cache, first.headers.get('x-svc-cache-ttl')],
      [200, 'MISS', '300'],
      first.text,
    );
    gateway.clock.jump(7_000);
    const second = await post(route, request);
    assert.deepEqual([second.status, second.cache], [200, 'HIT'], second.text);
    assert.equal(upstream.requests(key).length, before + 1);
    assert.notEqual(second.id, first.id);
    assert.equal(bare(second.text, second.id), bare(first.text, first.id));
    assert.ok(!second.text.includes(first.id) && !second.text.includes(first.id.replace('gen-', 'resp_')));
    assert.equal(second.headers.get('content-type'), first.headers.get('content-type'));
    assert.equal(second.headers.get('x-svc-cache-source-id'), first.id);
    assert.equal(second.headers.get('x-svc-cache-ttl'), '300');
    assert.ok(Number(second.headers.get('x-svc-cache-age')) >= 7);
    const usages = usagesOf(objectsOf(second.text));
    assert.ok(usages.length > 0 && usages.every((usage) => numbersOf(usage).every((count) => count === 0)));
    assert.ok(usagesOf(objectsOf(first.text)).some((usage) => numbersOf(usage).some((count) => count > 0)));

    const [made, given] = [await rowOf(first.id), await rowOf(second.id)];
    assert.deepEqual([given['response_cache_source_id'], given['total_cost'], given['usage']], [first.id, 0, 0]);
    assert.deepEqual([given['native_tokens_prompt'], given['native_tokens_completion']], [0, 0]);
    for (const name of ['model', 'provider_name', 'finish_reason', 'native_finish_reason', 'streamed', 'api_type']) {
      assert.equal(given[name], made[name], name);
    }
    assert.equal(made['response_cache_source_id'], null);
    assert.ok((made['total_cost'] as number) > 0);
  });
}

test('vectors are served again, and so are text completions, which use the chat format', async () => {
  const body = {
    object: 'list',
    data: [{ object: 'embedding', index: 0, embedding: [0.25, -1] }],
    usage: { prompt_tokens: 2, total_tokens: 2 },
  };
  upstream.script('vectors', [wholeOf(body)]);
  const first = await post('/embeddings', { model: 'test/vectors', input: 'a' });
  const second = await post('/embeddings', { model: 'test/vectors', input: 'a' });
  assert.deepEqual([first.cache, second.cache], ['MISS', 'HIT'], second.text);
  assert.equal(bare(second.text, second.id), bare(first.text, first.id));
  assert.equal((await rowOf(second.id))['response_cache_source_id'], first.id);

  for (const stream of [false, true]) {
    upstream.script('chat', [answerOf('chat', stream, { text: 'to be continued' })]);
    const prompt = { model: 'test/chat', prompt: 'once', stream };
    const [one, two] = [await post('/completions', prompt), await post('/completions', prompt)];
    assert.equal(two.cache, 'HIT');
    assert.equal(bare(two.text, two.id), bare(one.text, one.id));
  }
});

test('nothing is looked up or kept for a request that does not ask, whatever it says instead of true', async () => {
  const body = chatBody();
  for (const headers of [
    {},
    { 'x-svc-cache': 'false' },
    { 'x-svc-cache': '1' },
    { 'x-svc-cache-clear': 'true' },
  ] as Record<string, string>[]) {
    upstream.script('chat', [answerOf('chat', false, { text: 'anew' })]);
    const { status, cache } = await post('/chat/completions', body, headers);
    assert.deepEqual([status, cache], [200, null]);
  }
  upstream.script('chat', [answerOf('chat', false, { text: 'anew' })]);
  assert.equal((await post('/chat/completions', body)).cache, 'MISS');
  upstream.script('chat', [answerOf('chat', false, { text: 'and anew' })]);
  assert.match((await post('/chat/completions', body, {})).text, /and anew/);
  assert.equal((await post('/chat/completions', body, { 'x-openrouter-cache': 'TRUE' })).cache, 'HIT');
});

test('the time to live: leading digits count, clamped to a second and a day, and an answer is gone after it', async () => {
  for (const [ttl, told] of [
    ['60', '60'],
    ['0', '1'],
    ['-5', '300'],
    ['999999', '86400'],
    ['90s', '90'],
    ['soon', '300'],
  ]) {
    upstream.script('chat', [answerOf('chat', false, { text: 'a' })]);
    const body = chatBody();
    const first = await post('/chat/completions', body, { ...CACHE, 'x-svc-cache-ttl': ttl! });
    assert.deepEqual([first.cache, first.headers.get('x-svc-cache-ttl')], ['MISS', told]);
    // Real time passes too, so the shortest one is not requested in the middle of its lifetime.
    gateway.clock.jump(Number(told) * 500);
    if (told !== '1') assert.equal((await post('/chat/completions', body)).headers.get('x-svc-cache-ttl'), told);
    gateway.clock.jump(Number(told) * 500 + 1);
    upstream.script('chat', [answerOf('chat', false, { text: 'b' })]);
    assert.equal((await post('/chat/completions', body)).cache, 'MISS');
  }
});

test('a clearing request gets a new response, which is served from then on', async () => {
  const body = chatBody();
  upstream.script(
    'chat',
    ['old', 'new'].map((text) => answerOf('chat', false, { text })),
  );
  await post('/chat/completions', body);
  const cleared = await post('/chat/completions', body, { ...CACHE, 'x-svc-cache-clear': 'true' });
  assert.deepEqual([cleared.cache, cleared.text.includes('new')], ['MISS', true]);
  const third = await post('/chat/completions', body);
  assert.deepEqual([third.cache, third.headers.get('x-svc-cache-source-id')], ['HIT', cleared.id]);
});

test('the same key, bytes, streaming and betas, or it is another request', async () => {
  const made = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'another' }),
  });
  const { key } = (await made.json()) as { key: string };
  const { model, messages } = chatBody();
  const text = JSON.stringify({ model, messages });
  upstream.script('chat', [answerOf('chat', false, { text: 'kept' })]);
  assert.equal((await post('/chat/completions', text)).cache, 'MISS');
  const others: [string, Record<string, string>][] = [
    [text, { authorization: `Bearer ${key}` }],
    [JSON.stringify({ messages, model }), {}],
    [`${text} `, {}],
    [text, { 'anthropic-beta': 'other-2026' }],
    [JSON.stringify({ model, messages, stream: false }), {}],
  ];
  for (const [body, headers] of others) {
    upstream.script('chat', [answerOf('chat', false, { text: 'made' })]);
    assert.equal((await post('/chat/completions', body, { ...CACHE, ...headers })).cache, 'MISS', body);
  }
  assert.equal((await post('/chat/completions', text)).cache, 'HIT');
});

test('an answer that ended at a limit is kept where the client has set it, and one that ended in an error nowhere', async () => {
  const asks = async (body: object, finish: 'length' | 'content_filter') => {
    upstream.script('chat', [
      answerOf('chat', true, { text: 'so far', finish }),
      answerOf('chat', true, { text: 'more' }),
    ]);
    await post('/chat/completions', body);
    return (await post('/chat/completions', body)).cache;
  };
  assert.equal(await asks(chatBody({ stream: true, max_tokens: 5 }), 'length'), 'HIT');
  assert.equal(await asks(chatBody({ stream: true }), 'length'), 'MISS');
  assert.equal(await asks(chatBody({ stream: true }), 'content_filter'), 'HIT');
  const body = chatBody({ max_tokens: 9 });
  const ended = answerOf('chat', true, { text: 'so far' });
  const chunks = ended.chunks!.map((chunk) =>
    String(chunk).replace('"finish_reason":"stop"', '"finish_reason":"error"'),
  );
  upstream.script('chat', [{ ...ended, chunks }, answerOf('chat', true, { text: 'well' })]);
  assert.match((await post('/messages', { ...body, stream: true })).text, /event: error/);
  assert.equal((await post('/messages', { ...body, stream: true })).cache, 'MISS');
});

test('only the routed request reports routing metadata', async () => {
  const body = chatBody();
  upstream.script('chat', [answerOf('chat', false, { text: 'routed' })]);
  const headers = { ...CACHE, 'x-svc-metadata': 'enabled' };
  assert.match((await post('/chat/completions', body, headers)).text, /"svc_metadata"/);
  const again = await post('/chat/completions', body, headers);
  assert.deepEqual([again.cache, again.text.includes('svc_metadata')], ['HIT', false]);
});

test('errors, broken and abandoned answers are never kept', async () => {
  const failing = chatBody();
  upstream.script('chat', [errorOf('chat', 400, 'no')]);
  assert.equal((await post('/chat/completions', failing)).status, 400);
  const broken = chatBody({ stream: true });
  upstream.script('chat', [begun('chat', 'reset')]);
  assert.match((await post('/chat/completions', broken)).text, /Hal.*"error"/s);
  const left = chatBody({ stream: true });
  upstream.script('chat', [begun('chat', 'stall')]);
  const abort = new AbortController();
  const response = await fetch(`${gateway.api}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json', ...CACHE },
    body: JSON.stringify(left),
    signal: abort.signal,
  });
  await response.body!.getReader().read();
  abort.abort();
  for (const body of [failing, broken, left]) {
    const stream = 'stream' in body;
    upstream.script('chat', [answerOf('chat', stream, { text: 'well' })]);
    const second = await post('/chat/completions', body);
    assert.deepEqual([second.status, second.cache, /"error"/.test(second.text)], [200, 'MISS', false]);
  }
});

test('a model that its key may no longer use is refused also where its answer is kept', async () => {
  upstream.script('chat', [answerOf('chat', false, { text: 'kept' })]);
  const body = chatBody();
  assert.equal((await post('/chat/completions', body)).cache, 'MISS');
  const { providers, ...rest } = gateway.config;
  gateway.app.reload({ ...rest, providers: providers.filter(({ id }) => id !== 'chat') });
  assert.equal((await post('/chat/completions', body)).status, 400);
  gateway.app.reload(gateway.config);
  assert.equal((await post('/chat/completions', body)).cache, 'HIT');
});
