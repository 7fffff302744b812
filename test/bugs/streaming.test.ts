/** Failures of streams that users of other gateways met, each asked of every way through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import {
  ask,
  FINISHES,
  FORMAT_PAIRS,
  FORMATS,
  PATHS,
  readStreamed,
  requestOf,
  rowOf,
} from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import {
  answerOf,
  CHAT_DONE,
  chatChunk,
  chatData,
  chatFinish,
  chatUsageChunk,
  errorEvent,
  type Format,
  messagesData,
  messagesEnd,
  messagesStart,
  messagesText,
  streamOf,
  wholeOf,
} from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: {},
      messages: { kind: 'messages' },
      // Two endpoints of one model, for what falls over.
      'chat-a': { model: { id: 'pair/chat' } },
      'chat-b': { model: { id: 'pair/chat' } },
      'messages-a': { kind: 'messages', model: { id: 'pair/messages' } },
      'messages-b': { kind: 'messages', model: { id: 'pair/messages' } },
    },
  },
);
const exhaustive = process.env['GATEHOUSE_TEST_EXHAUSTIVE'] === '1';

const TEXT = 'Ж 東京 👩‍🚀 e\u0301 €';

function bytesOf(answer: Answer): Buffer {
  return Buffer.from((answer.chunks as string[]).join(''));
}

async function streamed(served: Format, spoken: Format, answer: Answer) {
  gateway.upstream.script(spoken, answer);
  return ask(gateway, served, `test/${spoken}`, { stream: true });
}

for (const { served, spoken, name } of FORMAT_PAIRS) {
  test(`1 | ${name} | a multi-byte character survives a network split at every position`, async () => {
    const answer = answerOf(spoken, true, { text: TEXT });
    const bytes = bytesOf(answer);
    const inside = [...bytes.keys()].filter((at) => (bytes[at]! & 0xc0) === 0x80);
    const cuts = exhaustive ? [...bytes.keys()].map((at) => [at]) : [inside, ...inside.slice(0, 6).map((at) => [at])];
    for (const pieces of [1, ...cuts]) {
      const { text } = await streamed(served, spoken, { ...answer, pieces });
      assert.ok(!text.includes('\ufffd'));
      assert.equal(readStreamed(served, text).text, TEXT);
    }
  });

  test(`2 | ${name} | every kind of line end works, also split in two, and events are passed on at once`, async () => {
    const events = answerOf(spoken, true, { text: 'Hello' }).chunks as string[];
    for (const end of ['\r\n', '\r', '\n']) {
      const answer = streamOf([events.join('').replaceAll('\n', end)]);
      for (const pieces of [1, 7, 64]) {
        const { text } = await streamed(served, spoken, { ...answer, pieces });
        assert.equal(readStreamed(served, text).text, 'Hello', `${JSON.stringify(end)} ${pieces}`);
      }
    }
    // The first text is with the client while the upstream still keeps the second event back.
    const first = events.findIndex((event) => event.includes('Hel'));
    const windows = events.map((event) => event.replaceAll('\n', '\r\n'));
    const gate = `${name}-second`;
    gateway.upstream.script(spoken, streamOf([...windows.slice(0, first + 1), { gate }, ...windows.slice(first + 1)]));
    const reply = await gateway.post(PATHS[served], requestOf(served, `test/${spoken}`, { stream: true }));
    let text = '';
    const decoder = new TextDecoder();
    for await (const piece of reply.body!) {
      text += decoder.decode(piece, { stream: true });
      if (text.includes('Hel')) gateway.upstream.open(gate);
    }
    assert.equal(readStreamed(served, text).text, 'Hello');
  });

  test(`8 | ${name} | a stream that ends before its finish is an error, after every event and in every way`, async () => {
    const events = answerOf(spoken, true, { text: 'Once upon', calls: [{ id: 'c1', name: 'f', arguments: '{"a":1}' }] })
      .chunks as string[];
    const finish = events.findIndex((event) => /"finish_reason":"|"stop_reason":"/.test(event));
    const first = events.findIndex((event) => event.includes('Onc'));
    for (let count = first + 1; count <= finish; count += 1) {
      for (const end of ['reset', 'close', 'cut'] as const) {
        const { status, text, headers } = await streamed(served, spoken, streamOf(events.slice(0, count), { end }));
        const where = `${end} after ${count} events`;
        if (status !== 200) {
          // Nothing had reached the gateway when the connection broke.
          assert.equal(status, 502, where);
          continue;
        }
        const read = readStreamed(served, text);
        assert.ok(read.error !== undefined, where);
        assert.ok(!text.includes('[DONE]') && !text.includes('message_stop'), where);
        // A client may run a call whose block is closed.
        if (served === 'messages' && count < finish) {
          const call = text.indexOf('"tool_use"');
          assert.ok(call === -1 || !text.includes('content_block_stop', call), `${where}: ${text}`);
        }
        if (end === 'close' && count === finish) {
          const row = await rowOf(gateway, headers.get('x-generation-id')!);
          assert.ok(Number(row['tokens_completion']) > 0, 'the tokens seen are not recorded');
          assert.equal(row['cancelled'], false);
          assert.notEqual(row['finish_reason'], 'stop');
        }
      }
    }
  });

  test(`13 | ${name} | an overload in the middle is an error event in the client's format, and the part before it is billed`, async () => {
    const events = answerOf(spoken, true, { text: 'Half' }).chunks as string[];
    const overload =
      spoken === 'chat'
        ? chatData({ error: { message: 'busy', code: 529, type: 'overloaded_error' } })
        : messagesData({ type: 'error', error: { type: 'overloaded_error', message: 'busy' } });
    const upTo = events.findLastIndex((event) => /"content":"f"|"text":"f"/.test(event)) + 1;
    const { text, headers } = await streamed(served, spoken, streamOf([...events.slice(0, upTo), overload]));
    const read = readStreamed(served, text);
    assert.equal(read.text, 'Half');
    assert.equal(read.error, served === 'chat' ? 529 : 'overloaded_error');
    const row = await rowOf(gateway, headers.get('x-generation-id')!);
    assert.ok(Number(row['total_cost']) > 0);
  });

  test(`16 | ${name} | an event of 3 MB arrives whole`, async () => {
    const long = 'A'.repeat(3_000_000);
    const events =
      spoken === 'chat'
        ? [chatChunk({ content: long }), chatFinish(), chatUsageChunk({ input: 1, output: 1 }), CHAT_DONE]
        : [
            messagesStart(),
            messagesData({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
            messagesData({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: long } }),
            messagesData({ type: 'content_block_stop', index: 0 }),
            ...messagesEnd('end_turn', { output_tokens: 1 }),
          ];
    const { text } = await streamed(served, spoken, streamOf(events, { pieces: 16_384 }));
    assert.equal(readStreamed(served, text).text.length, long.length);
  });

  test(`17 | ${name} | keep-alive comments are sent during a silent wait, and an error can still follow`, async () => {
    for (const failing of [false, true]) {
      const gate = `${name}-${failing}`;
      const count = gateway.upstream.requests(spoken).length + 1;
      const events = answerOf(spoken, true, { text: 'ok' }).chunks as string[];
      gateway.upstream.script(spoken, streamOf([{ gate }, ...(failing ? [errorEvent(spoken, 'broken')] : events)]));
      const pending = gateway.post(PATHS[served], requestOf(served, `test/${spoken}`, { stream: true }));
      await gateway.upstream.request(spoken, count);
      gateway.clock.jump(10_001);
      const reply = await pending;
      gateway.clock.jump(10_001);
      gateway.upstream.open(gate);
      const text = await reply.text();
      assert.match(text, /^: SVC PROCESSING\n\n/);
      const read = readStreamed(served, text);
      if (failing) assert.ok(read.error !== undefined);
      else assert.equal(read.text, 'ok');
    }
  });
}

/** Streams of status 200 that hold nothing but an error, in the shapes of several services. */
const ERROR_STREAMS: [string, Format, Answer][] = [
  [
    'an error beside empty choices',
    'chat',
    streamOf([chatData({ id: 'x', choices: [], error: { code: 502, message: 'unavailable' } }), CHAT_DONE]),
  ],
  ['an error as a text', 'chat', streamOf([chatData({ error: 'model crashed' })])],
  ['an error with a status as text', 'chat', streamOf([chatData({ error: { message: 'x', code: '503' } })])],
  [
    'an error object of vLLM',
    'chat',
    streamOf([
      chatData({ object: 'error', message: 'engine died', type: 'InternalServerError', code: 500 }),
      CHAT_DONE,
    ]),
  ],
  ['an error event with a name', 'chat', streamOf(['event: error\ndata: {"message":"broken"}\n\n'])],
  [
    'an error behind the role',
    'chat',
    streamOf([chatChunk({ role: 'assistant', content: '' }), chatData({ error: { message: 'x' } })]),
  ],
  [
    'the finish word error',
    'chat',
    streamOf([chatChunk({ role: 'assistant', content: '' }), chatFinish('error'), CHAT_DONE]),
  ],
  ['a whole answer that is an error', 'chat', wholeOf({ error: { message: 'x', code: 500 } })],
  ['a plain text', 'chat', { headers: { 'content-type': 'text/plain' }, chunks: ['upstream connect error'] }],
  ['a page', 'chat', { headers: { 'content-type': 'text/html' }, chunks: ['<html><body>502</body></html>'] }],
  ['only the end marker', 'chat', streamOf([CHAT_DONE])],
  ['nothing at all', 'chat', streamOf([])],
  [
    'an error without the name of its event',
    'messages',
    streamOf([messagesStart(), 'data: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n']),
  ],
  [
    'an error behind start and ping',
    'messages',
    streamOf([messagesStart(), messagesData({ type: 'ping' }), errorEvent('messages', 'x')]),
  ],
  ['an error before the start', 'messages', streamOf([errorEvent('messages', 'x')])],
  [
    'an empty block and an error',
    'messages',
    streamOf([
      messagesStart(),
      messagesData({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } }),
      errorEvent('messages', 'x'),
    ]),
  ],
  ['an error of the chat format', 'messages', streamOf(['data: {"error":{"message":"x","code":500}}\n\n'])],
  [
    'a whole answer that is an error',
    'messages',
    wholeOf({ type: 'error', error: { type: 'api_error', message: 'x' } }),
  ],
  ['nothing at all', 'messages', streamOf([])],
];

for (const [what, spoken, failing] of ERROR_STREAMS) {
  test(`10, 12 | ${spoken} | ${what} is a failure: another endpoint answers, and without one the client gets the error`, async () => {
    for (const served of FORMATS) {
      gateway.upstream.script(`${spoken}-a`, failing);
      gateway.upstream.script(`${spoken}-b`, answerOf(spoken, true, { text: 'hi' }));
      const { status, text } = await ask(gateway, served, `pair/${spoken}`, { stream: true });
      assert.equal(status, 200, text);
      const read = readStreamed(served, text);
      assert.deepEqual([read.text, read.error], ['hi', undefined]);
      if (served === 'messages') assert.equal(text.split('"message_start"').length, 2 + 0, 'one message_start only');
      gateway.clock.jump(600_000);
      const alone = await streamed(served, spoken, failing);
      assert.ok(alone.status >= 500, `alone: ${alone.status} ${alone.text}`);
    }
  });
}

test('19 | metadata chunks with empty names or without a delta are ignored', async () => {
  const metadata = { id: '', object: '', created: 0, model: '' };
  const events = [
    chatData({ ...metadata, choices: [], prompt_filter_results: [{ prompt_index: 0 }] }),
    chatChunk({ role: 'assistant', content: 'Blue' }),
    chatData({
      ...metadata,
      choices: [{ index: 0, finish_reason: null, content_filter_offsets: { check_offset: 4 } }],
    }),
    chatData({ ...metadata, choices: null }),
    chatData(metadata),
    chatData({ ...metadata, choices: [{ index: 0, delta: null, finish_reason: null }] }),
    chatFinish(),
    chatUsageChunk({ input: 3, output: 1 }),
    CHAT_DONE,
  ];
  for (const served of FORMATS) {
    const { text } = await streamed(served, 'chat', streamOf(events));
    // The reader insists on one id, on `object`, on `created` and on a delta in every choice.
    const read = readStreamed(served, text);
    assert.deepEqual([read.text, read.finish], ['Blue', FINISHES[served]['stop']]);
  }
});

/** Good streams in unusual dress. */
const ODD: [string, Format, Answer][] = [
  [
    'a byte order mark first',
    'chat',
    streamOf([`\ufeff${(answerOf('chat', true, { text: 'Hello' }).chunks as string[]).join('')}`]),
  ],
  [
    'fields without the space, ids and retries',
    'chat',
    streamOf(
      (answerOf('chat', true, { text: 'Hello' }).chunks as string[]).map(
        (event, index) => `id: ${index}\nretry: 3000\n${event.replace('data: ', 'data:')}`,
      ),
    ),
  ],
  [
    'comments between and inside events',
    'chat',
    streamOf(
      (answerOf('chat', true, { text: 'Hello' }).chunks as string[]).map((event) => `: PROCESSING\n\n: x\n${event}`),
    ),
  ],
  [
    'no blank line behind the end marker',
    'chat',
    streamOf([chatChunk({ content: 'Hello' }), chatFinish(), chatUsageChunk({ input: 1, output: 2 }), 'data: [DONE]']),
  ],
  [
    'no end marker after the finish and the usage',
    'chat',
    streamOf([chatChunk({ content: 'Hello' }), chatFinish(), chatUsageChunk({ input: 1, output: 2 })]),
  ],
  [
    'the finish together with the last text',
    'chat',
    streamOf([
      chatChunk({ content: 'Hel' }),
      chatChunk({ content: 'lo' }, { finish_reason: 'stop' }),
      chatUsageChunk({ input: 1, output: 2 }),
      CHAT_DONE,
    ]),
  ],
  [
    'the finish told twice',
    'chat',
    streamOf([
      chatChunk({ content: 'Hello' }),
      chatFinish(),
      chatFinish(),
      chatUsageChunk({ input: 1, output: 2 }),
      CHAT_DONE,
    ]),
  ],
  [
    'an empty finish word in every chunk',
    'chat',
    streamOf([
      chatChunk({ content: 'Hello' }, { finish_reason: '' }),
      chatFinish(),
      chatUsageChunk({ input: 1, output: 2 }),
      CHAT_DONE,
    ]),
  ],
  [
    'the role in every chunk',
    'chat',
    streamOf([
      ...['Hel', 'lo'].map((content) => chatChunk({ role: 'assistant', content })),
      chatFinish(),
      chatUsageChunk({ input: 1, output: 2 }),
      CHAT_DONE,
    ]),
  ],
  ['a whole answer to a streamed request', 'chat', answerOf('chat', false, { text: 'Hello' })],
  [
    'the events of another content type',
    'chat',
    {
      headers: { 'content-type': 'text/plain; charset=utf-8' },
      chunks: answerOf('chat', true, { text: 'Hello' }).chunks!,
    },
  ],
  [
    'no names of events',
    'messages',
    streamOf(
      (answerOf('messages', true, { text: 'Hello' }).chunks as string[]).map((event) =>
        event.replace(/^event: .*\n/, ''),
      ),
    ),
  ],
  [
    'pings everywhere',
    'messages',
    streamOf(
      (answerOf('messages', true, { text: 'Hello' }).chunks as string[]).flatMap((event, index) =>
        index === 0 ? [event] : [messagesData({ type: 'ping' }), event],
      ),
    ),
  ],
  [
    'events that nobody knows',
    'messages',
    streamOf(
      (answerOf('messages', true, { text: 'Hello' }).chunks as string[]).flatMap((event, index) =>
        index === 1 ? [messagesData({ type: 'later_invention', x: 1 }), event] : [event],
      ),
    ),
  ],
  [
    'the text in the start of its block',
    'messages',
    streamOf([
      messagesStart(),
      messagesData({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'Hello' } }),
      messagesData({ type: 'content_block_stop', index: 0 }),
      ...messagesEnd('end_turn', { output_tokens: 2 }),
    ]),
  ],
  [
    'an empty block before the text',
    'messages',
    streamOf([
      messagesStart(),
      ...messagesText(0, ''),
      ...messagesText(1, 'Hello'),
      ...messagesEnd('end_turn', { output_tokens: 2 }),
    ]),
  ],
  ['a whole answer to a streamed request', 'messages', answerOf('messages', false, { text: 'Hello' })],
];

for (const [what, spoken, answer] of ODD) {
  test(`2 and its kind | ${spoken} | ${what}: the answer is whole`, async () => {
    for (const served of FORMATS) {
      const { status, text } = await streamed(served, spoken, answer);
      assert.equal(status, 200, text);
      const read = readStreamed(served, text);
      assert.deepEqual([read.text, read.finish, read.error], ['Hello', FINISHES[served]['stop'], undefined], text);
      assert.equal(text.split('[DONE]').length - 1, served === 'chat' ? 1 : 0);
    }
  });
}
