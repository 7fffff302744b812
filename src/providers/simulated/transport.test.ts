import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import { settle, TestClock, until } from '../../testing/clock/clock.ts';
import type { UpstreamCall } from '../send/transport.ts';
import { simulatedTransport } from './transport.ts';

interface Exchange {
  call: UpstreamCall;
  status?: number;
  headers?: Record<string, string>;
  chunks: Buffer[];
  ended: boolean;
  failure?: UpstreamFailure;
  /** The whole text so far. */
  text(): string;
  /** The data of every event so far. */
  events(): string[];
}

function setup() {
  const clock = new TestClock();
  const transport = simulatedTransport(clock);
  /** Sends a body; `onData` runs inside the receiver, like a consumer's own code. */
  const send = (body: unknown, onData?: (exchange: Exchange) => void): Exchange => {
    const exchange: Exchange = {
      call: { pause() {}, resume() {}, abort() {} },
      chunks: [],
      ended: false,
      text: () => Buffer.concat(exchange.chunks).toString(),
      events: () =>
        exchange
          .text()
          .split('\n\n')
          .filter((event) => event !== '')
          .map((event) => event.replace(/^data: /, '')),
    };
    const timeouts = { connect: 1_000, firstByte: 60_000, idle: 30_000, stall: 600_000, total: 600_000 };
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    exchange.call = transport.send(
      { url: 'in-process:simulated/chat/completions', headers: {}, body: Buffer.from(text), timeouts },
      {
        head: (status, headers) => void Object.assign(exchange, { status, headers }),
        data(chunk) {
          exchange.chunks.push(chunk);
          onData?.(exchange);
        },
        end() {
          assert.equal(exchange.ended, false);
          exchange.ended = true;
        },
        failed: (failure) => void Object.assign(exchange, { failure }),
      },
    );
    return exchange;
  };
  const done = (exchange: Exchange) => until(() => exchange.ended || exchange.failure, 'the exchange is over');
  return { clock, transport, send, done };
}

function script(value: unknown, more: Record<string, unknown> = {}) {
  return { model: 'script', messages: [{ role: 'user', content: JSON.stringify(value) }], ...more };
}

function textOf(events: string[]): string {
  return events
    .filter((data) => data !== '[DONE]')
    .map((data) => JSON.parse(data).choices[0]?.delta?.content ?? '')
    .join('');
}

test('echo replies with JSON of the schema, if the request has one', async () => {
  const { send, done } = setup();
  const schema = {
    type: 'object',
    properties: { q0: { type: 'string', enum: ['a', 'b'] }, q1: { type: 'integer' }, q2: { type: 'string' } },
  };
  const response_format = { type: 'json_schema', json_schema: { name: 'x', schema } };
  const exchange = send({ model: 'echo', messages: [{ role: 'user', content: 'hi' }], response_format });
  await done(exchange);
  const { choices } = JSON.parse(exchange.text());
  assert.deepEqual(JSON.parse(choices[0].message.content), { q0: 'a', q1: 0, q2: 'hi' });
});

test('echo replies with the last user message and counts a token per four bytes', async () => {
  const { send, done, clock } = setup();
  const messages = [
    { role: 'system', content: 'be kind' },
    { role: 'user', content: 'first' },
    { role: 'assistant', content: 'ok' },
    {
      role: 'user',
      content: [
        { type: 'text', text: 'Grüße, ' },
        { type: 'text', text: 'Welt 🌍' },
      ],
    },
  ];
  const exchange = send({ model: 'echo', messages });
  await done(exchange);
  const reply = JSON.parse(exchange.text());
  assert.equal(exchange.status, 200);
  assert.equal(exchange.headers!['content-type'], 'application/json');
  assert.equal(reply.object, 'chat.completion');
  assert.equal(reply.created, Math.floor(clock.now() / 1000));
  assert.deepEqual(reply.choices, [
    {
      index: 0,
      message: { role: 'assistant', content: 'Grüße, Welt 🌍', refusal: null },
      logprobs: null,
      finish_reason: 'stop',
    },
  ]);
  // 7, 5, 2 and 18 bytes are 2, 2, 1 and 5 tokens, and every message costs one more.
  assert.equal(reply.usage.prompt_tokens, 14);
  assert.equal(reply.usage.completion_tokens, 5);
  assert.equal(reply.usage.total_tokens, 19);
});

test('the same request gets the same bytes', async () => {
  const { send, done } = setup();
  const body = script({ text: 'twice', reasoning: 'why' }, { stream: true });
  const [first, second] = [send(body), send(body)];
  await Promise.all([done(first), done(second)]);
  assert.equal(first.text(), second.text());
});

test('a stream is in the chat format: role, content, finish, usage on request, end marker', async () => {
  const { send, done } = setup();
  const wanted = {
    text: 'Hallo 🌍!',
    chunk_size: 7,
    reasoning: 'hm',
    tool_calls: [{ name: 'f', arguments: { a: [1] } }],
  };
  const exchange = send(script(wanted, { stream: true, stream_options: { include_usage: true } }));
  await done(exchange);
  const events = exchange.events();
  assert.equal(exchange.headers!['content-type'], 'text/event-stream; charset=utf-8');
  assert.equal(events.pop(), '[DONE]');
  const chunks = events.map((data) => JSON.parse(data));
  assert.ok(
    chunks.every(
      ({ object, id, model }) => object === 'chat.completion.chunk' && id === chunks[0].id && model === 'script',
    ),
  );
  assert.deepEqual(
    chunks.slice(0, -1).map(({ choices }) => choices[0].delta),
    [
      { role: 'assistant', content: '', refusal: null },
      { reasoning_content: 'hm' },
      { content: 'Hallo 🌍' },
      { content: '!' },
      { tool_calls: [{ index: 0, id: 'call_0', type: 'function', function: { name: 'f', arguments: '' } }] },
      { tool_calls: [{ index: 0, function: { arguments: '{"a":[1' } }] },
      { tool_calls: [{ index: 0, function: { arguments: ']}' } }] },
      {},
    ],
  );
  assert.equal(chunks.at(-2).choices[0].finish_reason, 'tool_calls');
  assert.ok(chunks.slice(0, -1).every(({ usage }) => usage === null));
  assert.deepEqual(chunks.at(-1).choices, []);
  // 1 of thinking, 3 of text, 1 of the name, 3 of the arguments.
  assert.equal(chunks.at(-1).usage.completion_tokens, 8);
  assert.equal(chunks.at(-1).usage.completion_tokens_details.reasoning_tokens, 1);
});

test('usage is sent only on request, and never if the script disables it', async () => {
  const { send, done } = setup();
  const unasked = send(script({ text: 'a' }, { stream: true }));
  const without = send(script({ text: 'a', usage: null }, { stream: true, stream_options: { include_usage: true } }));
  const whole = send(script({ text: 'a', usage: null }));
  await Promise.all([unasked, without, whole].map(done));
  assert.ok(!unasked.text().includes('usage'));
  assert.ok(!without.text().includes('_tokens'));
  assert.ok(!whole.text().includes('usage'));
});

test('scripted counts are reported as they are', async () => {
  const { send, done } = setup();
  const usage = {
    prompt_tokens: 100,
    completion_tokens: 7,
    cached_tokens: 60,
    cache_write_tokens: 5,
    reasoning_tokens: 3,
  };
  const exchange = send(script({ text: 'a', usage }));
  await done(exchange);
  assert.deepEqual(JSON.parse(exchange.text()).usage, {
    prompt_tokens: 100,
    completion_tokens: 7,
    total_tokens: 107,
    prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 5 },
    completion_tokens_details: { reasoning_tokens: 3 },
  });
});

test('the output cap cuts between characters, ends with length and is never exceeded by the count', async () => {
  const { send, done } = setup();
  for (const cap of [1, 2, 3, 5]) {
    for (const body of [script({ reasoning: 'abcde', text: '🌍🌍🌍🌍' }), script({ text: '🌍x', repeat: 40 })]) {
      const exchange = send({ ...body, max_completion_tokens: cap });
      await done(exchange);
      const { choices, usage } = JSON.parse(exchange.text());
      const said = `${choices[0].message.reasoning_content ?? ''}${choices[0].message.content ?? ''}`;
      assert.equal(choices[0].finish_reason, 'length');
      assert.ok(usage.completion_tokens <= cap, `${usage.completion_tokens} of ${cap}`);
      assert.ok(!said.includes('\ufffd'), said);
    }
  }
});

test('a text that just fits ends with stop', async () => {
  const { send, done } = setup();
  const exchange = send({ model: 'echo', messages: [{ role: 'user', content: '12345678' }], max_tokens: 2 });
  await done(exchange);
  assert.equal(JSON.parse(exchange.text()).choices[0].finish_reason, 'stop');
});

test('n returns as many choices and bills each', async () => {
  const { send, done } = setup();
  const whole = send(script({ text: '1234' }, { n: 3 }));
  const stream = send(script({ text: '1234' }, { n: 3, stream: true }));
  await Promise.all([whole, stream].map(done));
  const reply = JSON.parse(whole.text());
  assert.deepEqual(
    reply.choices.map(({ index }: { index: number }) => index),
    [0, 1, 2],
  );
  assert.equal(reply.usage.completion_tokens, 3);
  const finished = stream
    .events()
    .slice(0, -1)
    .map((data) => JSON.parse(data).choices[0])
    .filter(({ finish_reason }) => finish_reason !== null);
  assert.deepEqual(
    finished.map(({ index }) => index),
    [0, 1, 2],
  );
});

test('a scripted error is returned with its status, headers and body', async () => {
  const { send, done } = setup();
  const limited = send(
    script({ error: { status: 429, headers: { 'retry-after': '7' }, body: { error: { message: 'slow' } } } }),
  );
  const broken = send(script({ error: { status: 503, body: '<html>' } }, { stream: true }));
  await Promise.all([limited, broken].map(done));
  assert.equal(limited.status, 429);
  assert.equal(limited.headers!['retry-after'], '7');
  assert.deepEqual(JSON.parse(limited.text()), { error: { message: 'slow' } });
  assert.equal(broken.status, 503);
  assert.equal(broken.text(), '<html>');
});

test('a stream can fail midway in each way', async () => {
  const { send, done } = setup();
  const long = { text: 'abcdefghij', chunk_size: 1 };
  const cut = send(script({ ...long, cut_after: 4 }, { stream: true }));
  const ended = send(script({ ...long, end_after: 4 }, { stream: true }));
  const error = send(script({ ...long, error_event: { after: 4, body: { error: { code: 502 } } } }, { stream: true }));
  const malformed = send(script({ ...long, malformed_after: 4 }, { stream: true }));
  await Promise.all([cut, ended, error, malformed].map(done));
  assert.equal(cut.failure!.kind, 'cut');
  assert.equal(textOf(cut.events()), 'abc');
  assert.equal(ended.ended, true);
  assert.equal(textOf(ended.events()), 'abc');
  assert.ok(!ended.text().includes('[DONE]'));
  assert.equal(error.events().at(-1), '{"error":{"code":502}}');
  assert.equal(error.ended, true);
  assert.throws(() => textOf(malformed.events()), SyntaxError);
  assert.equal(malformed.events().at(-1), '[DONE]');
});

test('a complete reply can fail midway too', async () => {
  const { send, done } = setup();
  const cut = send(script({ text: 'abc', cut_after: 0 }));
  const ended = send(script({ text: 'abc', end_after: 0 }));
  const malformed = send(script({ text: 'abc', malformed_after: 0 }));
  await Promise.all([cut, ended, malformed].map(done));
  assert.equal(cut.failure!.kind, 'cut');
  for (const { text } of [cut, ended, malformed]) assert.throws(() => JSON.parse(text()), SyntaxError);
});

test('delays follow the clock', async () => {
  const { clock, send, done } = setup();
  const exchange = send(
    script({ text: 'ab', chunk_size: 1, delay_ms: { headers: 1000, chunks: 100 } }, { stream: true }),
  );
  await settle();
  clock.advance(999);
  await settle();
  assert.equal(exchange.status, undefined);
  clock.advance(1);
  await settle();
  assert.equal(exchange.status, 200);
  assert.equal(exchange.chunks.length, 0);
  for (let count = 1; count <= 5; count++) {
    clock.advance(99);
    await settle();
    assert.equal(exchange.chunks.length, count - 1);
    clock.advance(1);
    await until(() => exchange.chunks.length === count, `event ${count}`);
  }
  clock.advance(100);
  await done(exchange);
  assert.equal(clock.timers, 0);
});

test('a stall ends by the idle timeout, silence by the first byte timeout, everything by the total', async () => {
  const { clock, send, done } = setup();
  const stalled = send(script({ text: 'abc', stall_after: 2 }, { stream: true }));
  const silent = send(script({ text: 'abc', stall_after: 0 }, { stream: true }));
  const late = send(script({ text: 'abc', delay_ms: { headers: 60_001 } }));
  const slow = send(script({ text: 'x'.repeat(100), chunk_size: 1, delay_ms: { chunks: 20_000 } }, { stream: true }));
  await until(() => stalled.chunks.length === 2, 'two events');
  await settle();
  clock.advance(29_999);
  await settle();
  assert.equal(stalled.failure, undefined);
  clock.advance(1);
  await done(stalled);
  assert.equal(stalled.failure!.kind, 'timeout');
  assert.equal(silent.failure, undefined);
  clock.advance(30_000);
  await Promise.all([silent, late].map(done));
  assert.equal(silent.failure!.status, 200);
  assert.equal(late.failure!.status, null);
  while (slow.failure === undefined) {
    clock.advance(20_000);
    await settle(3);
  }
  assert.equal(slow.failure.kind, 'timeout');
  assert.ok(slow.chunks.length > 10);
  assert.equal(clock.timers, 0);
});

test('a pause stops delivery and loses nothing', async () => {
  const { send, done } = setup();
  const text = Array.from({ length: 200 }, (_, index) => String.fromCharCode(97 + (index % 26))).join('');
  let pauses = 0;
  const exchange = send(script({ text, chunk_size: 3 }, { stream: true }), ({ call, chunks }) => {
    if (chunks.length % 7 === 0) {
      call.pause();
      call.pause();
      pauses += 1;
    }
  });
  for (let seen = 0; !exchange.ended; ) {
    await until(() => exchange.ended || exchange.chunks.length >= seen + 7, 'the next seven events');
    if (exchange.ended) break;
    seen = exchange.chunks.length;
    await settle();
    assert.equal(exchange.chunks.length, seen);
    exchange.call.resume();
    exchange.call.resume();
  }
  await done(exchange);
  assert.ok(pauses > 8);
  assert.equal(textOf(exchange.events()), text);
});

test('a pause before the head delays the body, and a pause at the end delays the end', async () => {
  const { send, done } = setup();
  const exchange = send(script({ text: 'ab' }));
  exchange.call.pause();
  await settle();
  assert.equal(exchange.chunks.length, 0);
  exchange.call.resume();
  await done(exchange);
  const last = send(script({ text: 'ab' }), ({ call }) => call.pause());
  await until(() => last.chunks.length === 1, 'the body');
  await settle();
  assert.equal(last.ended, false);
  last.call.resume();
  await done(last);
});

test('after an abort nothing arrives and no timer remains', async () => {
  for (const at of [0, 1, 2, 5]) {
    const { clock, send } = setup();
    const body = script({ text: 'abcdefgh', chunk_size: 1, delay_ms: { headers: 10, chunks: 10 } }, { stream: true });
    const exchange = send(body, ({ call, chunks }) => {
      if (chunks.length === at) call.abort();
    });
    if (at === 0) exchange.call.abort();
    for (let step = 0; step < 20; step++) {
      clock.advance(10);
      await settle(3);
    }
    assert.equal(exchange.chunks.length, at);
    assert.equal(exchange.ended, false);
    assert.equal(exchange.failure, undefined);
    assert.equal(clock.timers, 0);
    exchange.call.abort();
    exchange.call.resume();
  }
});

test('closing the transport ends open calls', async () => {
  const { clock, transport, send } = setup();
  const exchange = send(script({ text: 'a', stall_after: 0 }, { stream: true }));
  await until(() => exchange.status, 'the head');
  await transport.close();
  assert.equal(clock.timers, 0);
});

test('a long stream is generated on demand, so a pause holds no undelivered data', async () => {
  const { send } = setup();
  const exchange = send(
    script({ text: 'x'.repeat(1000), repeat: 100_000, chunk_size: 1000 }, { stream: true }),
    ({ call, chunks }) => {
      if (chunks.length === 10) call.pause();
    },
  );
  await until(() => exchange.chunks.length === 10, 'ten events');
  await settle();
  assert.equal(exchange.chunks.length, 10);
  exchange.call.abort();
});

const REFUSED: [what: string, body: unknown, status: number, message: RegExp][] = [
  ['a body that is not JSON', '{', 400, /must be JSON/],
  ['a body without messages', { model: 'echo' }, 400, /messages must be/],
  ['messages that are empty', { model: 'echo', messages: [] }, 400, /messages must be/],
  ['an unknown model', { model: 'large', messages: [{}] }, 404, /no such simulated model/],
  ['an output cap of zero', { model: 'echo', messages: [{}], max_tokens: 0 }, 400, /max_tokens must be/],
  ['too many choices', { model: 'echo', messages: [{}], n: 1000 }, 400, /n must be/],
  [
    'a script that is not JSON',
    { model: 'script', messages: [{ role: 'user', content: 'hi' }] },
    400,
    /must be a script in JSON/,
  ],
  ['a script with an unknown member', script({ txt: 'a' }), 400, /txt/],
  ['a script with a wrong member', script({ chunk_size: 0 }), 400, /chunk_size/],
  ['a header that would end the headers', script({ error: { status: 400, headers: { a: 'x\r\ny' } } }), 400, /headers/],
  ['an unstreamed reply of gigabytes', script({ text: 'x'.repeat(1000), repeat: 100_000 }), 400, /must be streamed/],
];

for (const [what, body, status, message] of REFUSED) {
  test(`${what} is refused with an error in the chat format`, async () => {
    const { send, done } = setup();
    const exchange = send(body);
    await done(exchange);
    assert.equal(exchange.status, status);
    assert.match(JSON.parse(exchange.text()).error.message, message);
  });
}
