/** Failures reported for other gateways that concern the chat format. Numbers are those of docs/reported-bugs.md. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseJson } from '../../base/json.ts';
import { readChatStream, readWholeChat } from '../../testing/clients/chat-client.ts';
import type { Conversation, Part, TurnEvent, Usage } from '../conversation/conversation.ts';
import type { EncodeTarget, Stamp } from '../conversation/format.ts';
import { Losses, Uncarried } from '../conversation/losses.ts';
import { collect } from '../conversation/replay.ts';
import type { ChatDialect } from './dialect.ts';
import { chat } from './index.ts';

const STAMP: Stamp = { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1_700_000_000, usage: 'finish' };
const USAGE: Usage = { input: 13, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 20, reasoning: 0 };

function target(dialect: ChatDialect = {}, more: Partial<EncodeTarget> = {}): EncodeTarget {
  return {
    model: 'up',
    stream: false,
    maxOutputTokens: null,
    origin: 'unknown',
    user: 'hash',
    dialect: { chat: dialect },
    ...more,
  };
}

function encode(conversation: Partial<Conversation>, dialect: ChatDialect = {}, more: Partial<EncodeTarget> = {}) {
  const losses = new Losses();
  const body = chat.encode({ messages: [], settings: {}, ...conversation }, target(dialect, more), losses);
  return { body: body as Record<string, unknown> & { messages: Record<string, unknown>[] }, losses: losses.dropped };
}

function chunk(choices: unknown[], more: object = {}): string {
  return JSON.stringify({ id: 'u1', object: 'chat.completion.chunk', created: 5, model: 'm', choices, ...more });
}

function delta(value: unknown, finish: string | null = null): unknown {
  return { index: 0, delta: value, finish_reason: finish };
}

function feed(lines: readonly string[], usage: Stamp['usage'] = 'finish') {
  const decoder = chat.decoder({});
  const relay = chat.relay.stream({ ...STAMP, usage }, {});
  const events: TurnEvent[] = [];
  let text = '';
  for (const data of lines) {
    const value = data === '[DONE]' ? undefined : parseJson(data);
    const read = decoder.read('', data, value);
    events.push(...read);
    text += relay.event('', data, value, read);
  }
  const counted = events.findLast((event) => event.type === 'usage')?.usage ?? USAGE;
  return { events, turn: collect(events), text: text + relay.end({ usage: counted }) };
}

const call = (index: number | undefined, id: string | undefined, name: string | undefined, written: string) => ({
  ...(index !== undefined && { index }),
  ...(id !== undefined && { id, type: 'function' }),
  function: { ...(name !== undefined && { name }), arguments: written },
});

test('5 | requested usage is in one last chunk without choices and in no other', () => {
  const encoder = chat.encoder({ ...STAMP, usage: 'chunk' });
  let text = encoder.event({ type: 'start', id: 'x' });
  text += encoder.event({ type: 'partStart', choice: 0, index: 0, part: { type: 'text', text: 'Hello' } });
  text += encoder.event({ type: 'partStop', choice: 0, index: 0 });
  text += encoder.event({ type: 'finish', choice: 0, finish: { unified: 'stop', native: 'end_turn' } });
  text += encoder.event({ type: 'usage', usage: USAGE });
  text += encoder.end({ usage: USAGE });
  const seen = readChatStream(text, 'chunk');
  const { prompt_tokens, completion_tokens, total_tokens } = seen.usage!;
  assert.deepEqual([prompt_tokens, completion_tokens, total_tokens], [13, 20, 33]);
  assert.equal(seen.chunks.filter((one) => one['usage']).length, 1);
});

test('6 | unrequested usage is read, and no extra chunk is forwarded', () => {
  const lines = [
    chunk([delta({ role: 'assistant', content: 'hey' })]),
    chunk([delta({ content: '' }, 'stop')]),
    chunk([], { usage: { prompt_tokens: 26, completion_tokens: 9, total_tokens: 35 } }),
    '[DONE]',
  ];
  for (const mode of ['finish', 'none'] as const) {
    const { turn, text } = feed(lines, mode);
    assert.equal(turn.usage!.input, 26);
    assert.equal(turn.usage!.output, 9);
    assert.ok(readChatStream(text, mode).chunks.every((one) => (one['choices'] as unknown[]).length > 0));
  }
});

test('19 | metadata chunks with empty names and a choice without delta are tolerated', () => {
  const lines = [
    '{"choices":[],"created":0,"id":"","model":"","object":"","prompt_filter_results":[{"prompt_index":0}]}',
    chunk([delta({ role: 'assistant', content: 'Blue' })]),
    '{"id":"","object":"","created":0,"model":"","choices":[{"index":0,"finish_reason":null,"content_filter_offsets":{"check_offset":44}}],"usage":null}',
    chunk([delta({}, 'stop')]),
    '[DONE]',
  ];
  const seen = readChatStream(feed(lines).text, 'finish');
  assert.equal(seen.choices[0]!.text, 'Blue');
  assert.match(feed(lines).text, /prompt_filter_results.*check_offset/s);
});

test('23 | the arguments of a call without any join to {}', () => {
  const lines = [
    chunk([delta({ role: 'assistant', tool_calls: [call(0, 'c1', 'now', '')] })]),
    chunk([delta({ tool_calls: [call(0, undefined, undefined, '')] })]),
    chunk([delta({}, 'tool_calls')]),
    '[DONE]',
  ];
  const { events, text, turn } = feed(lines);
  assert.equal(readChatStream(text, 'finish').choices[0]!.calls[0]!.arguments, '{}');
  const encoder = chat.encoder(STAMP);
  const encoded = events.map((event) => encoder.event(event)).join('') + encoder.end({ usage: USAGE });
  assert.equal(readChatStream(encoded, 'finish').choices[0]!.calls[0]!.arguments, '{}');
  const whole = readWholeChat(JSON.stringify(chat.encodeReply(turn, STAMP, {})));
  assert.equal(whole.choices[0]!.calls[0]!.arguments, '{}');
});

test('27 | tool_calls without any call becomes stop, and the upstream word is kept', () => {
  const reply =
    '{"id":"u","choices":[{"index":0,"message":{"role":"assistant","content":"no"},"finish_reason":"tool_calls"}]}';
  const read = chat.decodeReply(parseJson(reply), {});
  assert.ok('turn' in read);
  const relayed = readWholeChat(
    chat.relay.reply({ text: reply, value: parseJson(reply), turn: read.turn, stamp: STAMP, closing: {} }),
  );
  assert.equal(relayed.choices[0]!.finish, 'stop');
  assert.equal((relayed.reply['choices'] as { native_finish_reason: string }[])[0]!.native_finish_reason, 'tool_calls');
});

test('31 | images of tool results follow the run of tool messages', () => {
  const result = (callId: string, parts: Part[]): Part => ({ type: 'toolResult', callId, parts });
  const picture: Part = { type: 'image', source: { kind: 'bytes', mediaType: 'image/png', data: 'iVBORw0KGgo=' } };
  const { body } = encode({
    messages: [
      {
        role: 'assistant',
        parts: ['a', 'b'].map((id): Part => ({ type: 'toolCall', id, name: 'f', arguments: '{}' })),
      },
      {
        role: 'tool',
        parts: [result('a', [{ type: 'text', text: 'see' }, picture]), result('b', [{ type: 'text', text: 'ok' }])],
      },
      { role: 'user', parts: [{ type: 'text', text: 'and?' }] },
    ],
  });
  assert.deepEqual(
    body.messages.map((message) => message['role']),
    ['assistant', 'tool', 'tool', 'user', 'user'],
  );
  assert.deepEqual(body.messages[1]!['content'], 'see');
  assert.deepEqual(body.messages[3]!['content'], [
    { type: 'image_url', image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' } },
  ]);
});

test('34 | arguments stay the same text in every direction', () => {
  const written = '{"id":7203685477580700123,"f":1.0,"e":1e400}';
  const message = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'q', arguments: written } }],
  };
  const { body } = encode(chat.decode({ messages: [message] }));
  assert.deepEqual(body.messages, [message]);
  const seen = readChatStream(
    feed([
      chunk([delta({ role: 'assistant', tool_calls: [call(0, 'c1', 'q', written)] })]),
      chunk([delta({}, 'tool_calls')]),
      '[DONE]',
    ]).text,
    'finish',
  );
  assert.equal(seen.choices[0]!.calls[0]!.arguments, written);
});

test('35 | calls with a shared index, no index or no id stay separate and in order', () => {
  const ways = [
    [call(0, 'c1', 'a', '{"x":1}'), call(0, 'c2', 'b', '{"y":2}')],
    [call(undefined, 'c1', 'a', '{"x":1}'), call(undefined, 'c2', 'b', '{"y":2}')],
    [call(0, undefined, 'a', '{"x":1}'), call(1, undefined, 'b', '{"y":2}')],
  ];
  for (const calls of ways) {
    for (const together of [true, false]) {
      const lines = together
        ? [chunk([delta({ role: 'assistant', tool_calls: calls })])]
        : calls.map((one) => chunk([delta({ role: 'assistant', tool_calls: [one] })]));
      const { text } = feed([...lines, chunk([delta({}, 'tool_calls')]), '[DONE]']);
      const { calls: seen, finish } = readChatStream(text, 'finish').choices[0]!;
      assert.deepEqual(
        seen.map((one) => [one.name, one.arguments]),
        [
          ['a', '{"x":1}'],
          ['b', '{"y":2}'],
        ],
      );
      assert.equal(finish, 'tool_calls');
      assert.equal(new Set(seen.map((one) => one.id)).size, 2);
      assert.equal(
        feed([...lines, chunk([delta({}, 'tool_calls')]), '[DONE]']).text,
        text,
        'invented ids are the same each time',
      );
    }
  }
});

test('35 | fragments with a shared index are added to the latest call of that index', () => {
  const lines = [
    chunk([delta({ role: 'assistant', tool_calls: [call(0, 'c1', 'a', '{}')] })]),
    chunk([delta({ tool_calls: [call(0, 'c2', 'b', '{"y"')] })]),
    chunk([delta({ tool_calls: [call(0, undefined, undefined, ':2}')] })]),
    chunk([delta({}, 'tool_calls')]),
    '[DONE]',
  ];
  assert.deepEqual(
    readChatStream(feed(lines).text, 'finish').choices[0]!.calls.map((one) => one.arguments),
    ['{}', '{"y":2}'],
  );
});

test('37 | a strict template gets one system message and alternating roles, nothing dropped or invented', () => {
  const conversation = chat.decode({
    messages: [
      { role: 'system', content: 'A' },
      { role: 'developer', content: 'B' },
      { role: 'user', content: 'x' },
      { role: 'user', content: 'y' },
    ],
  });
  assert.deepEqual(encode(conversation, { strictTemplate: true }).body.messages, [
    { role: 'system', content: 'A\n\nB' },
    { role: 'user', content: 'x\n\ny' },
  ]);
  assert.deepEqual(
    encode(conversation).body.messages.map((message) => message['role']),
    ['system', 'system', 'user', 'user'],
  );
});

test('40 | each tool choice has one meaning', () => {
  const tools = [{ type: 'function' as const, name: 'f' }];
  for (const mode of ['auto', 'none', 'required'] as const)
    assert.equal(encode({ tools, toolChoice: { mode } }).body['tool_choice'], mode);
  const named = encode({ tools, toolChoice: { mode: 'tool', name: 'f' }, settings: { parallelToolCalls: false } }).body;
  assert.deepEqual(named['tool_choice'], { type: 'function', function: { name: 'f' } });
  assert.equal(named['parallel_tool_calls'], false);
});

test('43 | signed reasoning without text is kept', () => {
  const details = [{ type: 'reasoning.text', text: '', signature: 'c2ln', format: 'anthropic-claude-v1', index: 0 }];
  const [message] = chat.decode({
    messages: [{ role: 'assistant', content: 'x', reasoning_details: details }],
  }).messages;
  assert.deepEqual(message!.parts[0], {
    type: 'reasoning',
    text: '',
    signature: 'c2ln',
    origin: 'anthropic-claude-v1',
  });
});

test('44 | cache marks on system parts, tools and tool results are read, and sent only to services that accept them', () => {
  const cache_control = { type: 'ephemeral', ttl: '1h' };
  const conversation = chat.decode({
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'big', cache_control }] },
      { role: 'tool', tool_call_id: 't1', content: [{ type: 'text', text: 'r', cache_control }] },
    ],
    tools: [{ type: 'function', function: { name: 'f' }, cache_control }],
  });
  assert.deepEqual(conversation.messages[0]!.parts[0]!.cache, { ttl: '1h' });
  assert.deepEqual(conversation.messages[1]!.parts[0]!.cache, { ttl: '1h' });
  assert.deepEqual((conversation.tools![0] as { cache: unknown }).cache, { ttl: '1h' });
  assert.equal(JSON.stringify(encode(conversation).body).includes('cache_control'), false);
  assert.equal(
    JSON.stringify(encode(conversation, { cacheControl: true }).body).split('"cache_control"').length - 1,
    3,
  );
});

test('45 | the stop sequence is reported when the upstream names it, and never guessed', () => {
  const reply = (more: object) => ({
    id: 'c',
    choices: [{ index: 0, message: { role: 'assistant', content: 'abc' }, finish_reason: 'stop', ...more }],
  });
  for (const [more, expected] of [
    [{ stop_reason: 'END' }, 'END'],
    [{}, undefined],
    [{ stop_reason: 128009 }, undefined],
    [{ stop_reason: null }, undefined],
  ] as const) {
    const read = chat.decodeReply(reply(more), {});
    assert.ok('turn' in read);
    assert.equal(read.turn.choices[0]!.finish.stopSequence, expected);
  }
});

test('46 | the newer cap wins, is sent under the name the upstream uses, and never exceeds its limit', () => {
  const conversation = chat.decode({ messages: [], max_tokens: 50, max_completion_tokens: 5_000 });
  assert.equal(conversation.settings.maxOutputTokens, 5_000);
  assert.equal(encode(conversation, {}, { maxOutputTokens: 4_096 }).body['max_tokens'], 4_096);
  assert.equal(
    encode(conversation, { maxTokens: 'max_completion_tokens' }, { capOutputTokens: 100 }).body[
      'max_completion_tokens'
    ],
    100,
  );
  assert.equal(encode({ settings: { maxOutputTokens: 3 } }, { minMaxTokens: 16 }).body['max_tokens'], 16);
  assert.equal('max_tokens' in encode({}).body, false);
});

test('48, 50 | data URLs are parsed in every kind of part', () => {
  const data = (url: string) => [
    { type: 'image_url', image_url: { url } },
    { type: 'file', file: { filename: 'a.pdf', file_data: url } },
  ];
  const [message] = chat.decode({
    messages: [{ role: 'user', content: data('data:application/pdf;base64,JVBERi0xLjQK') }],
  }).messages;
  for (const part of message!.parts) {
    assert.deepEqual((part as { source: unknown }).source, {
      kind: 'bytes',
      mediaType: 'application/pdf',
      data: 'JVBERi0xLjQK',
    });
  }
});

test('52, 54 | each token is counted once, caches within the prompt, reasoning within the completion', () => {
  const usage: Usage = { input: 4, cacheRead: 8, cacheWrite5m: 10_000, cacheWrite1h: 2, output: 1_000, reasoning: 700 };
  const reply = chat.encodeReply({ choices: [] }, STAMP, { usage }) as { usage: Record<string, unknown> };
  assert.deepEqual(reply.usage, {
    prompt_tokens: 10_014,
    completion_tokens: 1_000,
    total_tokens: 11_014,
    prompt_tokens_details: { cached_tokens: 8, cache_write_tokens: 10_002 },
    completion_tokens_details: { reasoning_tokens: 700 },
  });
});

test('60 | the wait is read wherever the body gives it, and account ids are removed', () => {
  const wait = (message: string) =>
    chat.decodeFailure(429, JSON.stringify({ error: { message, code: 'rate_limit_exceeded' } }));
  assert.equal(wait('Please try again in 1.72s.').retryAfterSeconds, 2);
  assert.equal(wait('Please try again in 6m0s').retryAfterSeconds, 360);
  assert.equal(wait('try again in 250ms').retryAfterSeconds, 1);
  assert.equal(wait('slow down').retryAfterSeconds, undefined);
  assert.equal(
    chat.decodeFailure(429, '{"error":{"code":429,"details":[{"retryDelay":"41s"}]}}').retryAfterSeconds,
    41,
  );
  assert.equal(wait('limit in organization org-abcdefghijklmnop').message, 'limit in organization org-***');
});

test('reasoning of another origin is neither sent nor silently lost', () => {
  const messages: Conversation['messages'] = [
    {
      role: 'assistant',
      parts: [
        { type: 'reasoning', text: 'secret', signature: 's', origin: 'anthropic-claude-v1' },
        { type: 'text', text: 'x' },
      ],
    },
  ];
  const { body, losses } = encode({ messages }, { reasoningReplay: 'reasoning_content' });
  assert.deepEqual(body.messages, [{ role: 'assistant', content: 'x' }]);
  assert.equal(losses[0]!.what, 'reasoning');
});

test('tools of another format exclude the endpoint, earlier blocks of a model are left out and reported', () => {
  const opaque = { type: 'opaque', origin: 'messages', value: { type: 'server_tool_use' } } as const;
  const { body, losses } = encode({
    messages: [{ role: 'assistant', parts: [opaque, { type: 'text', text: 'x' }] }],
  });
  assert.deepEqual(body.messages, [{ role: 'assistant', content: 'x' }]);
  assert.equal(losses[0]!.what, 'messages blocks');
  assert.throws(() => encode({ tools: [opaque] }), Uncarried);
});

test('repeated, unknown, early and missing finish words and usage are handled', () => {
  const told = [
    [
      chunk([delta({ role: 'assistant', content: 'a' }, 'length')]),
      chunk([delta({ content: 'b' }, 'length')]),
      '[DONE]',
    ],
    [chunk([delta({ role: 'assistant', content: 'ab' })]), chunk([delta({}, 'eos')]), '[DONE]'],
    [
      chunk([delta({ role: 'assistant', content: 'ab' })], { usage: { prompt_tokens: 1, completion_tokens: null } }),
      '[DONE]',
    ],
    [
      chunk([delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }] })]),
      chunk([delta({ content: [{ type: 'text', text: 'ab' }] }, '')]),
      '[DONE]',
    ],
  ];
  const finishes = ['length', 'stop', 'stop', 'stop'];
  told.forEach((lines, index) => {
    for (const mode of ['chunk', 'finish', 'none'] as const) {
      const seen = readChatStream(feed(lines, mode).text, mode);
      assert.equal(seen.choices[0]!.text, 'ab');
      assert.equal(seen.choices[0]!.finish, finishes[index]);
      assert.equal(seen.choices[0]!.reasoning, index === 3 ? 'hm' : '');
    }
  });
});

test('too many stop sequences exclude the endpoint, and the error names the field', () => {
  const conversation = (count: number): Conversation => ({
    messages: [{ role: 'user', parts: [{ type: 'text', text: 'x' }] }],
    settings: { stop: Array.from({ length: count }, (_, index) => `stop ${index}`) },
  });
  const encode = (count: number) => chat.encode(conversation(count), target({}), new Losses()) as { stop: string[] };
  assert.equal(encode(4).stop.length, 4);
  assert.throws(() => encode(5), { name: 'Uncarried', feature: 'stop_sequences' });
});
