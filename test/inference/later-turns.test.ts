/** What may go wrong in a later turn of an answer: each failure is handled as in the first one, and nothing is shown twice. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ConversationTask } from '../../src/inference/conversation-task.ts';
import {
  BODY_FORMATS,
  type BodyFormat,
  readServedStream,
  readServedWhole,
} from '../../src/testing/clients/served-answer.ts';
import { rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import {
  answerOf,
  CHAT_DONE,
  chatChunk,
  chatFinish,
  chatUsageChunk,
  streamOf,
  type Told,
} from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: { kind: 'chat' }, other: { kind: 'chat' } } },
);

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const ROUTES = { chat: '/chat/completions', messages: '/messages', responses: '/responses' } as const;
const USAGE = { input: 10, output: 5 };
const SEARCH = { id: 'call_1', name: 'search_tools', arguments: '{"query":"create invoice"}' };

function bodyOf(format: BodyFormat, stream: boolean, more: Json = {}): Json {
  const tool = { name: 'create_invoice', description: 'Bills a customer' };
  const schema = { type: 'object' };
  const turns = [{ role: 'user', content: 'Bill Ada' }];
  return {
    model: 'test/chat',
    stream,
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: turns } : { messages: turns }),
    tools: [
      format === 'messages'
        ? { ...tool, input_schema: schema, defer_loading: true }
        : format === 'responses'
          ? { type: 'function', ...tool, parameters: schema, defer_loading: true }
          : { type: 'function', function: { ...tool, parameters: schema }, defer_loading: true },
    ],
    deferred_tools: { protocol: 'v1', profile: 'portable', validation: 'runtime', search: { type: 'bm25' } },
    ...more,
  };
}

/** Asks with the endpoint of `first`, and with that of `second` after it. */
async function ask(format: BodyFormat, body: Json, first: readonly Answer[], second: readonly Answer[]) {
  // The cooldowns of earlier tests are over.
  gateway.clock.jump(60_000);
  gateway.upstream.script('chat', first);
  gateway.upstream.script('other', second);
  const reply = await gateway.post(ROUTES[format], body);
  const text = await reply.text();
  const row = await rowOf(gateway, reply.headers.get('x-generation-id')!);
  const statuses = (row['provider_responses'] as Json[]).map(({ status }) => status);
  return { status: reply.status, text, row, statuses };
}

const answers = (stream: boolean, ...all: Told[]) =>
  all.map((told) => answerOf('chat', stream, { usage: USAGE, ...told }));

/** The client streams or not, and the upstream does or does not, whatever it was asked for. */
const WAYS = [false, true].flatMap((stream) => [false, true].map((upstream) => ({ stream, upstream })));

for (const format of BODY_FORMATS) {
  for (const { stream, upstream } of WAYS) {
    const way = `${format}, ${stream ? 'streamed' : 'whole'} from ${upstream ? 'a stream' : 'a whole answer'}`;
    const read = (text: string) =>
      (stream ? readServedStream(format, text, 'finish') : readServedWhole(format, text)).choices[0]!;

    test(`a later turn without any content fails over, and is shown once | ${way}`, async () => {
      for (const text of [undefined, 'Looking.']) {
        const { text: answer, statuses } = await ask(
          format,
          bodyOf(format, stream, { models: ['test/other'] }),
          answers(
            upstream,
            { calls: [SEARCH], ...(text !== undefined && { text }) },
            { finish: 'stop', usage: { input: 0, output: 0 } },
          ),
          answers(upstream, { text: 'Found.' }),
        );
        assert.deepEqual(statuses, [200, 200, 200]);
        assert.equal(read(answer).text, `${text ?? ''}Found.`);
      }
    });
  }

  test(`arguments for the gateway that are too long fail the turn, and none of them are run | ${format}`, async () => {
    const call = { ...SEARCH, arguments: JSON.stringify({ query: 'x'.repeat(4 * 1024 * 1024) }) };
    const piece = (index: number, part: Json) => chatChunk({ tool_calls: [{ index, function: part }] });
    const head = chatChunk({
      tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: call.name } }],
    });
    const parts = call.arguments.match(/.{1,100000}/g)!.map((text) => piece(0, { arguments: text }));
    const long = streamOf([head, ...parts, chatFinish('tool_calls'), chatUsageChunk(USAGE), CHAT_DONE]);
    for (const stream of [false, true]) {
      for (const failed of [long, ...answers(false, { calls: [call] })]) {
        const { text, statuses } = await ask(
          format,
          bodyOf(format, stream, { models: ['test/other'] }),
          [...answers(stream, { text: 'Looking.', calls: [SEARCH] }), failed],
          answers(stream, { text: 'Found.' }),
        );
        assert.equal(statuses.length, 3, text.slice(0, 1000));
        const read = stream ? readServedStream(format, text, 'finish') : readServedWhole(format, text);
        assert.equal(read.choices[0]!.text, 'Looking.Found.');
      }
    }
  });
}

test('a refusal in a later turn falls back to another model, which answers in its place', async () => {
  for (const { stream, upstream } of WAYS) {
    // The client of a stream has seen the refusal's text by then.
    if (stream && upstream) continue;
    const { text, row } = await ask(
      'messages',
      bodyOf('messages', stream, { fallbacks: [{ model: 'test/other' }] }),
      answers(upstream, { text: 'Looking.', calls: [SEARCH] }, { text: 'I will not.', finish: 'content_filter' }),
      answers(upstream, { text: 'Found.' }),
    );
    const read = stream ? readServedStream('messages', text, 'finish') : readServedWhole('messages', text);
    assert.deepEqual([read.choices[0]!.text, read.choices[0]!.finish], ['Looking.Found.', 'end_turn']);
    assert.equal(row['model'], 'test/other');
  }
});

test('an answer whose end cannot be handled ends with an error, however the upstream ended', async (t) => {
  const failed = t.mock.method(ConversationTask.prototype, 'meter', () => {
    throw new Error('no meter');
  });
  for (const stream of [false, true]) {
    for (const end of ['close', 'cut'] as const) {
      for (const text of [undefined, 'Looking.']) {
        const [told] = answers(stream, { calls: [SEARCH], ...(text !== undefined && { text }) });
        const chunks = end === 'cut' ? told!.chunks!.slice(0, 4) : told!.chunks!;
        const plain = { model: 'test/chat', stream, messages: [{ role: 'user', content: 'Bill Ada' }] };
        for (const body of [plain, bodyOf('chat', stream)]) {
          const called = failed.mock.callCount();
          gateway.clock.jump(60_000);
          gateway.upstream.script('chat', [{ ...told!, chunks, end: stream ? end : 'close' }]);
          const reply = await gateway.post('/chat/completions', body);
          assert.match(await reply.text(), /"error"/);
          assert.ok(failed.mock.callCount() > called);
        }
      }
    }
  }
});

test('routing metadata counts an attempt of each turn once, also when the gateway ends the answer', async () => {
  for (const stream of [false, true]) {
    const searches = answers(stream, ...Array.from({ length: 6 }, () => ({ calls: [SEARCH] })));
    gateway.clock.jump(60_000);
    gateway.upstream.script('chat', searches);
    const reply = await gateway.post('/chat/completions', bodyOf('chat', stream), { 'x-svc-metadata': 'enabled' });
    assert.match(await reply.text(), /after 6 turns.*"attempt":6,/s);
  }
});
