/** `GET /generation/content` and `POST /generation/feedback` through a whole gateway. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { type Log, silentLog } from '../../src/base/log.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { connectOnce } from '../../src/testing/database/database.ts';
import { type Gateway, INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { begun } from '../../src/testing/gateway/sdk.ts';
import { answerOf, errorOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';

const LOGGING = { io_logging: { enabled: true } };
const PROVIDERS = {
  chat: {},
  spare: {},
  messages: { kind: 'messages' },
  responses: { kind: 'responses' },
  vectors: { kind: 'openai', model: { output_modalities: ['embeddings'] } },
  ranks: { kind: 'cohere', model: { output_modalities: ['rerank'] } },
};
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: PROVIDERS, yaml: LOGGING },
);
const { upstream } = gateway;

interface Content {
  input: { prompt?: string; messages?: { role: string; content: unknown }[] };
  output: { completion: string | null; reasoning: string | null; tool_calls?: unknown[]; truncated?: true };
  error: Record<string, unknown> | null;
}

async function ask(route: string, body: unknown, headers: Record<string, string> = {}, at: Gateway = gateway) {
  const response = await at.post(route, body, headers);
  const text = await response.text();
  return { status: response.status, text, id: response.headers.get('x-generation-id') ?? '' };
}

async function contentOf(id: string, key = INFERENCE_KEY, at: Gateway = gateway): Promise<Content> {
  const response = await at.get(`/generation/content?id=${id}`, key);
  const body = (await response.json()) as { data: Content };
  assert.equal(response.status, 200, JSON.stringify(body));
  return body.data;
}

const statusOf = async (id: string, key = INFERENCE_KEY, at: Gateway = gateway) =>
  (await at.get(`/generation/content?id=${id}`, key)).status;

const MESSAGES = [
  { role: 'system', content: 'be brief' },
  { role: 'user', content: [{ type: 'text', text: 'Grüße \u0000 世界 \ud83d\ude00', extra: 9007199254740991 }] },
];
const TOLD = {
  thinking: { text: 'let me see' },
  text: 'Answer \u0000 世界',
  calls: [{ id: 'call_1', name: 'look', arguments: '{"n":1}' }],
  finish: 'tool_calls' as const,
};
const OUTPUT = { completion: TOLD.text, reasoning: 'let me see', tool_calls: TOLD.calls };
const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];

for (const stream of [false, true]) {
  const how = stream ? 'streamed' : 'whole';

  test(`chat, ${how}: messages as they were sent, what was said, thought and called, relayed and translated`, async () => {
    for (const format of ['chat', 'messages'] as const) {
      upstream.script(format, [answerOf(format, stream, TOLD)]);
      const { id, text } = await ask('/chat/completions', {
        model: `test/${format}`,
        messages: MESSAGES,
        stream,
        tools: TOOLS,
      });
      const { input, output, error } = await contentOf(id);
      assert.deepEqual(input, { messages: MESSAGES }, text);
      assert.deepEqual(output, OUTPUT);
      assert.equal(error, null);
    }
  });

  test(`messages, ${how}: the system prompt leads the messages`, async () => {
    for (const format of ['messages', 'chat'] as const) {
      upstream.script(format, [answerOf(format, stream, TOLD)]);
      const body = {
        model: `test/${format}`,
        system: [{ type: 'text', text: 'be brief' }],
        messages: MESSAGES.slice(1),
        max_tokens: 99,
        stream,
      };
      const { id } = await ask('/messages', body);
      const { input, output } = await contentOf(id);
      assert.deepEqual(input, { messages: [{ role: 'system', content: body.system }, ...MESSAGES.slice(1)] });
      assert.deepEqual(output, OUTPUT);
    }
  });

  test(`responses, ${how}: instructions lead the input, whose text is a message, and the format's own id finds it`, async () => {
    upstream.script('responses', [responsesAnswer(stream, TOLD)]);
    const { id } = await ask('/responses', { model: 'test/responses', instructions: 'be brief', input: 'hi', stream });
    const { input, output } = await contentOf(id.replace('gen-', 'resp_'));
    assert.deepEqual(input, {
      messages: [
        { role: 'system', content: 'be brief' },
        { role: 'user', content: 'hi' },
      ],
    });
    assert.deepEqual([output.completion, output.reasoning], [OUTPUT.completion, OUTPUT.reasoning]);
    upstream.script('responses', [responsesAnswer(stream, { text: 'ok' })]);
    const bare = await ask('/responses', { model: 'test/responses', input: [], stream });
    if (bare.status === 200) assert.deepEqual((await contentOf(bare.id)).input, { messages: [] });
  });

  test(`an answer from the response cache is logged under its own id, ${how}`, async () => {
    upstream.script('chat', [answerOf('chat', stream, TOLD)]);
    const body = { model: 'test/chat', messages: MESSAGES, stream, tools: TOOLS };
    const cached = { 'x-svc-cache': 'true' };
    const [first, second] = [
      await ask('/chat/completions', body, cached),
      await ask('/chat/completions', body, cached),
    ];
    assert.notEqual(first.id, second.id);
    assert.deepEqual(await contentOf(second.id), await contentOf(first.id));
    assert.deepEqual((await contentOf(second.id)).output, OUTPUT);
  });
}

test('vectors, rankings and text completions: the prompt', async () => {
  const vectors = {
    object: 'list',
    data: [{ object: 'embedding', index: 0, embedding: [1] }],
    usage: { prompt_tokens: 1, total_tokens: 1 },
  };
  upstream.script('vectors', [
    wholeOf(vectors),
    wholeOf({ ...vectors, data: [...vectors.data, { ...vectors.data[0], index: 1 }] }),
  ]);
  const one = await ask('/embeddings', { model: 'test/vectors', input: 'a text' });
  const two = await ask('/embeddings', { model: 'test/vectors', input: ['a', 'b'] });
  const nothing = { completion: null, reasoning: null };
  assert.deepEqual(await contentOf(one.id), { input: { prompt: 'a text' }, output: nothing, error: null });
  assert.deepEqual((await contentOf(two.id)).input, { prompt: '["a","b"]' });
  upstream.script('ranks', [
    wholeOf({ id: 'r', results: [{ index: 0, relevance_score: 0.9 }], meta: { billed_units: { search_units: 1 } } }),
  ]);
  const rank = await ask('/rerank', { model: 'test/ranks', query: 'which', documents: ['this'] });
  assert.deepEqual((await contentOf(rank.id)).input, { prompt: 'which\n["this"]' });
});

test('a failed request: what was asked, and the failure with the attempts before it', async () => {
  upstream.script('chat', [errorOf('chat', 500, 'it broke')]);
  upstream.script('spare', [errorOf('chat', 400, 'not that')]);
  const { id, status } = await ask('/chat/completions', { models: ['test/chat', 'test/spare'], messages: MESSAGES });
  assert.equal(status, 400);
  const { input, output, error } = await contentOf(id);
  assert.deepEqual([input.messages, output], [MESSAGES, { completion: null, reasoning: null }]);
  const { raw, previous_errors: earlier, ...rest } = error!;
  assert.deepEqual(rest, { message: 'not that', status: 400, provider_name: 'Provider spare' });
  assert.match(String(raw), /not that/);
  assert.deepEqual(earlier, [{ code: 502, message: 'it broke', provider_name: 'Provider chat', raw: null }]);
});

test('of a broken and an abandoned answer, the part that was sent is kept', async () => {
  const body = { model: 'test/chat', messages: MESSAGES, stream: true };
  upstream.script('chat', [begun('chat', 'reset')]);
  const broken = await ask('/chat/completions', body);
  const cut = await contentOf(broken.id);
  assert.match(cut.output.completion!, /^Half an/);
  assert.equal(cut.error?.['status'], 502);
  upstream.script('chat', [begun('chat', 'stall')]);
  const abort = new AbortController();
  const response = await fetch(`${gateway.api}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: abort.signal,
  });
  await response.body!.getReader().read();
  abort.abort();
  const id = response.headers.get('x-generation-id')!;
  await until(async () => (await statusOf(id)) === 200, 'it is logged');
  const left = await contentOf(id);
  assert.match(left.output.completion!, /^Hal/);
  assert.equal(left.error, null);
});

test('a key sees its own, management keys those of the organization, and what is not stored is 404', async () => {
  upstream.script('chat', [answerOf('chat', false, { text: 'mine' })]);
  const { id } = await ask('/chat/completions', { model: 'test/chat', messages: MESSAGES });
  const made = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'another' }),
  });
  const { key } = (await made.json()) as { key: string };
  assert.deepEqual([await statusOf(id), await statusOf(id, MANAGEMENT_KEY), await statusOf(id, key)], [200, 200, 403]);
  assert.deepEqual([await statusOf('gen-none'), await statusOf(id, 'sk-unknown')], [404, 401]);
  assert.equal((await gateway.get('/generation/content')).status, 400);
});

test('what is too large loses its middle, its oldest messages, its end, and says so', async (t) => {
  const small = await startGateway(t, {
    providers: PROVIDERS,
    yaml: { io_logging: { enabled: true, max_bytes: 8192 } },
  });
  small.upstream.script('chat', [answerOf('chat', true, { text: 'w'.repeat(20_000) })]);
  const image = { type: 'image_url', image_url: { url: `data:image/png;base64,iVBORw0KGgo${'A'.repeat(500_000)}` } };
  const messages = [{ role: 'user', content: [{ type: 'text', text: 'what is it?' }, image] }];
  const one = await ask('/chat/completions', { model: 'test/chat', messages, stream: true }, {}, small);
  const { input, output } = await contentOf(one.id, INFERENCE_KEY, small);
  assert.ok(JSON.stringify(input).length < 8192);
  assert.match(JSON.stringify(input), /what is it\?.*base64,iVBORw0KGgoAAA.*\[\d+ characters are left out\]/);
  assert.equal(output.truncated, true);
  assert.equal(output.completion, 'w'.repeat(8192));

  small.upstream.script('chat', [answerOf('chat', false, { text: 'ok' })]);
  const many = Array.from({ length: 2_000 }, (_, index) => ({ role: 'user', content: `message ${index}` }));
  const two = await ask('/chat/completions', { model: 'test/chat', messages: many }, {}, small);
  const kept = (await contentOf(two.id, INFERENCE_KEY, small)).input.messages!;
  assert.ok(JSON.stringify(kept).length < 8_400);
  assert.deepEqual(kept.at(-1), many.at(-1));
  assert.match(
    String(kept[0]!.content),
    new RegExp(`^\\[${2_000 - (kept.length - 1)} earlier messages are left out\\]$`),
  );
});

const countIn = async (t: TestContext, at: Gateway) => {
  const client = await connectOnce(t, at.target);
  return async () =>
    (await client.query<{ count: number }>('select count(*)::int as count from transcripts')).rows[0]!.count;
};

test('off, and outside of the sample, nothing is stored; a reload switches', async (t) => {
  const off = await startGateway(t, { providers: PROVIDERS });
  const count = await countIn(t, off);
  const body = { model: 'test/chat', messages: MESSAGES };
  off.upstream.script('chat', [{ ...answerOf('chat', false, { text: 'ok' }), repeat: true }]);
  const first = await ask('/chat/completions', body, {}, off);
  assert.equal(await statusOf(first.id, INFERENCE_KEY, off), 404);
  const on = { enabled: true, sampleRate: 1, retentionDays: 30, maxBytes: 8192 };
  // The gateway of a test draws 0.5 every time.
  off.app.reload({ ...off.config, ioLogging: { ...on, sampleRate: 0.5 } });
  const second = await ask('/chat/completions', body, {}, off);
  assert.equal(await statusOf(second.id, INFERENCE_KEY, off), 404);
  off.app.reload({ ...off.config, ioLogging: { ...on, sampleRate: 0.51 } });
  const third = await ask('/chat/completions', body, {}, off);
  assert.equal(await statusOf(third.id, INFERENCE_KEY, off), 200);
  off.clock.jump(1_000);
  await until(async () => (await count()) === 1, 'the row is written');
});

test('another process shows it once it is written, and the end of a process writes what is left', async (t) => {
  const first = await startGateway(t, { providers: PROVIDERS, yaml: LOGGING });
  const second = await startGateway(t, { providers: PROVIDERS, target: first.target });
  first.upstream.script('chat', [answerOf('chat', false, { text: 'ok' })]);
  const { id } = await ask('/chat/completions', { model: 'test/chat', messages: MESSAGES }, {}, first);
  await first.close();
  assert.deepEqual((await contentOf(id, MANAGEMENT_KEY, second)).output.completion, 'ok');
});

test('a stalled database delays no request, memory is bounded, and dropped contents are counted', async (t) => {
  const lines: string[] = [];
  const log: Log = { ...silentLog, warn: (event) => void lines.push(event), with: () => log };
  const slow = await startGateway(t, { providers: PROVIDERS, yaml: LOGGING, log });
  const locker = await connectOnce(t, slow.target);
  await locker.query('begin; lock table transcripts in access exclusive mode');
  slow.upstream.script('chat', [{ ...answerOf('chat', false, { text: 'ok' }), repeat: true }]);
  const body = { model: 'test/chat', messages: [{ role: 'user', content: 'm'.repeat(900_000) }] };
  const ids: string[] = [];
  for (let count = 0; count < 45; count += 1) {
    const { status, id } = await ask('/chat/completions', body, {}, slow);
    assert.equal(status, 200);
    ids.push(id);
  }
  assert.equal(lines.filter((line) => line.includes('content log full')).length, 1);
  await locker.query('rollback');
  const count = await countIn(t, slow);
  await until(async () => {
    slow.clock.jump(1_000);
    return (await count()) > 30;
  }, 'the rest is written');
  assert.ok((await count()) < 45);
  assert.equal(await statusOf(ids[0]!, INFERENCE_KEY, slow), 200);
  assert.equal(await statusOf(ids.at(-1)!, INFERENCE_KEY, slow), 404);
});

test('contents are let go when they are old', async (t) => {
  const aging = await startGateway(t, {
    providers: PROVIDERS,
    jobs: 'now',
    yaml: { io_logging: { enabled: true, retention_days: 2 } },
  });
  const count = await countIn(t, aging);
  aging.upstream.script('chat', [{ ...answerOf('chat', false, { text: 'ok' }), repeat: true }]);
  const { id } = await ask('/chat/completions', { model: 'test/chat', messages: MESSAGES }, {}, aging);
  aging.clock.jump(1_000);
  await until(async () => (await count()) === 1, 'the row is written');
  aging.clock.jump(47 * 3_600_000);
  assert.equal(await statusOf(id, INFERENCE_KEY, aging), 200);
  // A jump in the middle of a write may have it written once more, and then the next hour removes it.
  await until(async () => {
    aging.clock.jump(3_600_001);
    return (await count()) === 0 && (await statusOf(id, INFERENCE_KEY, aging)) === 404;
  }, 'it is removed');
});

test('feedback is taken for generations of the organization, in the categories of the wire, the last word standing', async (t) => {
  upstream.script('chat', [answerOf('chat', false, { text: 'ok' })]);
  const { id } = await ask('/chat/completions', { model: 'test/chat', messages: MESSAGES });
  const send = async (body: unknown, key = MANAGEMENT_KEY) => {
    const response = await fetch(`${gateway.api}/generation/feedback`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: response.status, text: await response.text() };
  };
  const good = { generation_id: id, category: 'latency' };
  assert.deepEqual(await send(good), { status: 200, text: '{"data":{"success":true}}' });
  assert.equal((await send({ ...good, comment: 'x'.repeat(1000) })).status, 200);
  assert.equal((await send({ ...good, generation_id: id.replace('gen-', 'resp_'), comment: 'too slow' })).status, 200);
  assert.match((await send({ ...good, comment: 'x'.repeat(1001) })).text, /comment/);
  assert.equal((await send({ ...good, comment: 'x'.repeat(1001) })).status, 400);
  assert.equal((await send({ ...good, comment: 'a\u0000b' })).status, 400);
  assert.match((await send({ ...good, category: 'boring' })).text, /category/);
  assert.equal((await send({ generation_id: 'gen-none', category: 'other' })).status, 404);
  assert.equal((await send(good, INFERENCE_KEY)).status, 403);
  const client = await connectOnce(t, gateway.target);
  const { rows } = await client.query('select category, comment from generation_feedback where generation_id = $1', [
    id,
  ]);
  assert.deepEqual(rows, [{ category: 'latency', comment: 'too slow' }]);
});
