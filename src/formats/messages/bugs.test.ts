/**
 * Failures reported for other gateways that concern the messages format. Numbers are those of docs/reported-bugs.md.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { GatewayError } from '../../base/errors.ts';
import { parseJson, stringifyJson } from '../../base/json.ts';
import { readMessageStream } from '../../testing/clients/messages-client.ts';
import type { Conversation, Message, Part, TurnEvent } from '../conversation/conversation.ts';
import type { EncodeTarget, Stamp } from '../conversation/format.ts';
import { Losses, Uncarried } from '../conversation/losses.ts';
import { collect } from '../conversation/replay.ts';
import { messages } from './index.ts';

// biome-ignore lint/suspicious/noExplicitAny: encoded bodies are read freely
type Json = any;

const STAMP: Stamp = { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1, usage: 'none' };

const TARGET: EncodeTarget = {
  model: 'claude-t',
  stream: false,
  maxOutputTokens: 8000,
  origin: 'anthropic-claude-v1',
  user: 'u-hash',
  dialect: {},
};

const text = (words: string): Part => ({ type: 'text', text: words });
const user = (...parts: Part[]): Message => ({ role: 'user', parts });
const call = (id: string, args = '{}', name = 'f'): Part => ({ type: 'toolCall', id, name, arguments: args });
const result = (callId: string, ...parts: Part[]): Message => ({
  role: 'tool',
  parts: [{ type: 'toolResult', callId, parts }],
});
const assistant = (...parts: Part[]): Message => ({ role: 'assistant', parts });

function encode(conversation: Partial<Conversation>, target: Partial<EncodeTarget> = {}, losses = new Losses()): Json {
  const whole: Conversation = { messages: [user(text('hi'))], settings: {}, ...conversation };
  return messages.encode(whole, { ...TARGET, ...target }, losses);
}

function send(events: readonly TurnEvent[]): string {
  const encoder = messages.encoder(STAMP);
  return events.map((event) => encoder.event(event)).join('') + encoder.end({});
}

const usage = { input: 1, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 1, reasoning: 0 };
const ending: TurnEvent[] = [
  { type: 'finish', choice: 0, finish: { unified: 'tool_calls', native: 'tool_calls' } },
  { type: 'usage', usage },
  { type: 'end' },
];

test('13 | an overload within a stream is 529 and overloaded_error', () => {
  const decoder = messages.decoder({});
  const overload = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
  const [event] = decoder.read('error', JSON.stringify(overload), overload);
  assert.ok(event?.type === 'failure');
  assert.deepEqual([event.failure.kind, event.failure.status], ['overloaded', 529]);
  const encoder = messages.encoder(STAMP);
  const begun =
    encoder.event({ type: 'start' }) +
    encoder.event({ type: 'partStart', choice: 0, index: 0, part: text('') }) +
    encoder.event({ type: 'partDelta', choice: 0, index: 0, delta: { text: 'Half' } });
  const read = readMessageStream(
    begun + encoder.failure(new GatewayError('provider_overloaded', 'Overloaded', { status: 529 }), {}),
  );
  assert.equal(read.content[0]?.['text'], 'Half');
  assert.deepEqual(read.error, { type: 'overloaded_error', message: 'Overloaded', error_type: 'provider_overloaded' });
});

test('22 | fragments of interleaved calls reach their own blocks, one block after the other', () => {
  const piece = (index: number, args: string): TurnEvent => ({
    type: 'partDelta',
    choice: 0,
    index,
    delta: { arguments: args },
  });
  const read = readMessageStream(
    send([
      { type: 'start' },
      { type: 'partStart', choice: 0, index: 0, part: call('call_0', '') },
      { type: 'partStart', choice: 0, index: 1, part: call('call_1', '') },
      piece(0, '{"a":'),
      piece(1, '{"b":'),
      piece(0, '1}'),
      piece(1, '2}'),
      { type: 'partStop', choice: 0, index: 0 },
      { type: 'partStop', choice: 0, index: 1 },
      ...ending,
    ]),
  );
  assert.deepEqual(
    read.content.map((block) => [block['id'], block['input']]),
    [
      ['call_0', { a: 1 }],
      ['call_1', { b: 2 }],
    ],
  );
  assert.equal(read.stop.stop_reason, 'tool_use');
});

test('23 | a call without input has the arguments {}, streamed or not', () => {
  const block = { type: 'tool_use', id: 't', name: 'now', input: {} };
  const decoder = messages.decoder({});
  const events = [
    { type: 'message_start', message: { id: 'm', content: [], usage: { input_tokens: 1, output_tokens: 1 } } },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '' } },
    { type: 'content_block_stop', index: 0 },
  ].flatMap((event) => decoder.read(event.type, JSON.stringify(event), event));
  assert.deepEqual(collect(events).choices[0]?.parts, [call('t', '{}', 'now')]);
  const whole = messages.decodeReply({ content: [block], stop_reason: 'tool_use', usage: {} }, {});
  assert.deepEqual('turn' in whole && whole.turn.choices[0]?.parts, [call('t', '{}', 'now')]);
});

test('27 | tool_use without a call is a plain stop, and the native word is kept', () => {
  const reply = messages.decodeReply({ content: [], stop_reason: 'tool_use', usage: {} }, {});
  assert.ok('turn' in reply);
  assert.deepEqual(reply.turn.choices[0]?.finish, { unified: 'stop', native: 'tool_use' });
});

test('28 | ids of other vendors are rewritten one-to-one and consistently, on calls and results', () => {
  const history = [
    user(text('run')),
    assistant(call('functions.Bash:0'), call('functions.Bash.0'), call('toolu_1'), call('enc_ZnVuY3Rpb25zLkJhc2g6MA')),
    result('functions.Bash:0', text('A')),
    result('functions.Bash.0', text('B')),
    result('toolu_1', text('C')),
    // The id that the first one is rewritten to.
    result('enc_ZnVuY3Rpb25zLkJhc2g6MA', text('D')),
  ];
  const body = encode({ messages: history });
  const ids = body.messages[1].content.map((block: Json) => block.id);
  assert.deepEqual(
    body.messages[2].content.map((block: Json) => block.tool_use_id),
    ids,
  );
  assert.equal(new Set(ids).size, 4);
  for (const id of ids) assert.match(id, /^[a-zA-Z0-9_-]+$/);
  assert.equal(ids[2], 'toolu_1');
  assert.deepEqual(encode({ messages: [...history, user(text('more'))] }).messages[1], body.messages[1]);
});

test('28 | an id that a vendor reuses in a later turn stays unique', () => {
  const turn = (answer: string) => [user(text('go')), assistant(call('call_0')), result('call_0', text(answer))];
  const body = encode({ messages: [...turn('A'), assistant(text('ok')), ...turn('B')] });
  const blocks = body.messages.flatMap((message: Json) => message.content);
  const calls = blocks.filter((block: Json) => block.type === 'tool_use').map((block: Json) => block.id);
  assert.equal(new Set(calls).size, 2);
  const answers = blocks.filter((block: Json) => block.type === 'tool_result').map((block: Json) => block.tool_use_id);
  assert.deepEqual(answers, calls);
});

test('30, 38, 39 | results of parallel calls and the text after them form one user message without empty blocks', () => {
  const body = encode({
    messages: [
      { role: 'system', parts: [text('')] },
      user(text('2 calcs')),
      assistant(text(''), call('t1'), call('t2')),
      result('t1', text('1')),
      result('t2', text('')),
      user(text(''), text('and now?')),
      user(text('quick')),
    ],
  });
  assert.equal('system' in body, false);
  assert.deepEqual(
    body.messages.map((message: Json) => message.role),
    ['user', 'assistant', 'user'],
  );
  assert.deepEqual(body.messages[2].content, [
    { type: 'tool_result', tool_use_id: 't1', content: [{ type: 'text', text: '1' }] },
    { type: 'tool_result', tool_use_id: 't2' },
    { type: 'text', text: 'and now?' },
    { type: 'text', text: 'quick' },
  ]);
  assert.equal(body.messages[1].content.length, 2);
});

test('31, 32 | images in tool results survive, as bytes and as URLs', () => {
  const png = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' };
  const url = { type: 'url', url: 'https://img.example/x.png' };
  const turn = {
    role: 'user',
    content: [
      {
        type: 'tool_result',
        tool_use_id: 'toolu_1',
        content: [
          { type: 'image', source: png },
          { type: 'image', source: url },
        ],
      },
    ],
  };
  const conversation = messages.decode({ messages: [turn] });
  assert.deepEqual(conversation.messages[0]?.role, 'tool');
  assert.deepEqual(encode(conversation).messages[0], turn);
});

test('34 | integers above 2^53 in arguments keep their digits in the input object, and back', () => {
  const args = '{"id":7203685477580700123,"ratio":0.1000000000000000055511151231257827}';
  const body = encode({ messages: [user(text('x')), assistant(call('t', args)), result('t', text('ok'))] });
  assert.ok(stringifyJson(body).includes(`"input":${args}`));
  const read = messages.decode(parseJson(stringifyJson({ ...body })));
  const part = read.messages[1]?.parts[0];
  assert.equal(part?.type === 'toolCall' && part.arguments, args);
});

test('an impossible token count is ignored', () => {
  const usage = (counts: object) => {
    const reply = messages.decodeReply({ content: [], stop_reason: 'end_turn', usage: counts }, {});
    return 'turn' in reply ? reply.turn.usage : 'failed';
  };
  assert.equal(usage({ input_tokens: 1e300, output_tokens: 2 }), undefined);
  assert.equal(usage({ input_tokens: 3, output_tokens: 9e18 }), undefined);
  const cached = usage({ input_tokens: 3, output_tokens: 2, cache_read_input_tokens: 1e300 });
  assert.equal((cached as { cacheRead: number }).cacheRead, 0);
});

test('tools that only the history calls are declared, and none can be called', () => {
  const call: Part = { type: 'toolCall', id: 'c1', name: 'look', arguments: '{}' };
  const conversation: Conversation = {
    settings: {},
    messages: [
      { role: 'user', parts: [{ type: 'text', text: 'a' }] },
      { role: 'assistant', parts: [call, { ...call, id: 'c2' }] },
      { role: 'tool', parts: [{ type: 'toolResult', callId: 'c1', parts: [] }] },
    ],
  };
  for (const tools of [undefined, []]) {
    const body = messages.encode({ ...conversation, ...(tools && { tools }) }, TARGET, new Losses()) as Json;
    assert.deepEqual(body.tools, [{ name: 'look', input_schema: { type: 'object', properties: {} } }]);
    assert.deepEqual(body.tool_choice, { type: 'none' });
  }
});

test('a conversation with no message besides the system prompt excludes the endpoint', () => {
  for (const parts of [[], [{ type: 'text' as const, text: '' }]]) {
    const conversation: Conversation = {
      settings: {},
      messages: [
        { role: 'system', parts: [{ type: 'text', text: 'Be brief.' }] },
        { role: 'user', parts },
      ],
    };
    assert.throws(() => messages.encode(conversation, TARGET, new Losses()), {
      name: 'Uncarried',
      feature: 'messages',
    });
  }
});

test('40 | every tool choice has one meaning, and parallel calls are disabled where the format supports it', () => {
  const tools = [{ type: 'function' as const, name: 'f', parameters: { type: 'object' } }];
  const choice = (toolChoice: Conversation['toolChoice'], parallelToolCalls?: boolean) =>
    encode({ tools, toolChoice, settings: { parallelToolCalls } }).tool_choice;
  assert.deepEqual(choice({ mode: 'auto' }), { type: 'auto' });
  assert.deepEqual(choice({ mode: 'none' }), { type: 'none' });
  assert.deepEqual(choice({ mode: 'required' }), { type: 'any' });
  assert.deepEqual(choice({ mode: 'tool', name: 'f' }), { type: 'tool', name: 'f' });
  assert.deepEqual(choice({ mode: 'required' }, false), { type: 'any', disable_parallel_tool_use: true });
  assert.deepEqual(choice({ mode: 'none' }, false), { type: 'none' });
  assert.deepEqual(choice(undefined, false), { type: 'auto', disable_parallel_tool_use: true });
  assert.equal(choice(undefined), undefined);
  assert.equal(encode({ toolChoice: { mode: 'none' } }).tool_choice, undefined);
});

test('41, 43 | thinking is returned block by block, byte for byte, even with empty text', () => {
  const content = [
    { type: 'thinking', thinking: 'line1\n\n  line2 é  ', signature: 'EqQBCg==' },
    { type: 'thinking', thinking: '', signature: 'EqQB==' },
    { type: 'redacted_thinking', data: 'Em0K' },
    { type: 'text', text: 'let me see' },
    { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
  ];
  const answer = { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'text', text: 'r' }] };
  const conversation = messages.decode({
    max_tokens: 4000,
    thinking: { type: 'enabled', budget_tokens: 1024 },
    messages: [
      { role: 'user', content: 'x' },
      { role: 'assistant', content },
      { role: 'user', content: [answer] },
    ],
  });
  const body = encode(conversation);
  assert.deepEqual(body.messages[1].content, content);
  assert.deepEqual(body.thinking, { type: 'enabled', budget_tokens: 1024 });
});

test('41 | thinking of another vendor is dropped and reported', () => {
  const losses = new Losses();
  const foreign: Part = { type: 'reasoning', text: 'hm', encrypted: 'gAAA', origin: 'openai-responses-v1' };
  const body = encode({ messages: [user(text('x')), assistant(foreign, text('y')), user(text('z'))] }, {}, losses);
  assert.deepEqual(body.messages[1].content, [{ type: 'text', text: 'y' }]);
  assert.deepEqual(
    losses.dropped.map((loss) => loss.what),
    ['reasoning'],
  );
});

test('44 | cache marks on system, tools, messages and tool results are sent, at most four', () => {
  const cache = { ttl: '1h' as const };
  const marked = (words: string): Part => ({ ...text(words), cache: {} }) as Part;
  const losses = new Losses();
  const conversation: Partial<Conversation> = {
    tools: [{ type: 'function', name: 'f', parameters: { type: 'object' }, cache }],
    messages: [
      { role: 'system', parts: [marked('s')] },
      user(marked('a')),
      assistant(call('t')),
      { role: 'tool', parts: [{ type: 'toolResult', callId: 't', parts: [text('r')], cache: {} }] },
      user(marked('b')),
    ],
  };
  const body = encode(conversation, {}, losses);
  assert.deepEqual(body.tools[0].cache_control, { type: 'ephemeral', ttl: '1h' });
  assert.deepEqual(body.system[0].cache_control, { type: 'ephemeral' });
  assert.deepEqual(body.messages[2].content[0].cache_control, { type: 'ephemeral' });
  assert.equal(stringifyJson(body).split('cache_control').length - 1, 4);
  assert.ok(body.messages[2].content[1].cache_control);
  assert.equal(body.messages[0].content[0].cache_control, undefined, 'the middle one is dropped');
  assert.equal(losses.dropped[0]?.what, 'cache_control');
  const fewer = encode(conversation, { dialect: { messages: { maxCacheMarks: 1 } } });
  assert.equal(stringifyJson(fewer).split('cache_control').length - 1, 1);
  assert.ok(fewer.messages[2].content[1].cache_control, 'the newest one stays: it covers the longest prefix');
});

test('45 | a stop sequence is reported only where the upstream named it', () => {
  const finish = (stopSequence: string | undefined, native: string): Json =>
    messages.encodeReply(
      { choices: [{ parts: [text('x')], finish: { unified: 'stop', native, stopSequence } }], usage },
      STAMP,
      {},
    );
  const named = finish('END', 'stop');
  assert.deepEqual([named.stop_reason, named.stop_sequence], ['stop_sequence', 'END']);
  for (const native of ['stop', 'stop_sequence']) {
    const unnamed = finish(undefined, native);
    assert.deepEqual([unnamed.stop_reason, unnamed.stop_sequence], ['end_turn', null]);
  }
});

test('45 | the stop reasons of this format have their unified meaning', () => {
  const unified = (reason: string) => {
    const reply = messages.decodeReply({ content: [{ type: 'text', text: 'x' }], stop_reason: reason, usage: {} }, {});
    return 'turn' in reply && reply.turn.choices[0]?.finish.unified;
  };
  assert.deepEqual(
    [
      'end_turn',
      'stop_sequence',
      'pause_turn',
      'compaction',
      'max_tokens',
      'model_context_window_exceeded',
      'refusal',
    ].map(unified),
    ['stop', 'stop', 'stop', 'stop', 'length', 'length', 'content_filter'],
  );
  // Names of inherited object members are treated like any other word.
  assert.deepEqual(['constructor', '__proto__', 'toString'].map(unified), ['stop', 'stop', 'stop']);
});

test('46 | the output cap defaults to that of the endpoint and never exceeds it', () => {
  assert.equal(encode({}).max_tokens, 8000);
  assert.equal(encode({ settings: { maxOutputTokens: 100 } }).max_tokens, 100);
  const losses = new Losses();
  assert.equal(encode({ settings: { maxOutputTokens: 99_999 } }, {}, losses).max_tokens, 8000);
  assert.equal(losses.dropped[0]?.what, 'max_tokens');
  assert.equal(encode({}, { capOutputTokens: 1500 }).max_tokens, 1500);
});

test('46 | a thinking budget is always below the cap, or there is no thinking', () => {
  const budget = (reasoning: Conversation['reasoning'], maxOutputTokens: number): Json =>
    encode({ reasoning, settings: { maxOutputTokens } }).thinking;
  assert.deepEqual(budget({ effort: 'high' }, 4000), { type: 'enabled', budget_tokens: 3200 });
  assert.deepEqual(budget({ budgetTokens: 5000 }, 4000), { type: 'enabled', budget_tokens: 3999 });
  assert.deepEqual(budget({ effort: 'max' }, 1025), { type: 'enabled', budget_tokens: 1024 });
  assert.equal(budget({ effort: 'max' }, 1024), undefined);
  assert.deepEqual(budget({ effort: 'none' }, 1024), { type: 'disabled' });
  assert.deepEqual(
    encode({ reasoning: { effort: 'low' } }, { dialect: { messages: { thinking: 'adaptive' } } }).thinking,
    {
      type: 'adaptive',
    },
  );
});

test('48 | a data URL is parsed, its bytes give its type, and an unknown type excludes the endpoint by name', () => {
  const image = (url: string): Json =>
    encode({ messages: [user({ type: 'image', source: { kind: 'url', url } })] }).messages[0].content[0];
  assert.deepEqual(image('data:image/*;base64,/9j/4AAQSkZJRg=='), {
    type: 'image',
    source: { type: 'base64', media_type: 'image/jpeg', data: '/9j/4AAQSkZJRg==' },
  });
  assert.throws(() => image('data:image/tiff;base64,SUkqAAgAAAA='), /image\/tiff/);
  assert.throws(() => image('data:image/svg+xml,%3Csvg/%3E'), Uncarried);
});

test('50 | a PDF in a file part is a document block', () => {
  const source = { kind: 'bytes' as const, mediaType: 'application/pdf', data: 'JVBERi0xLjQK' };
  const body = encode({ messages: [user({ type: 'file', source, filename: 'a.pdf' })] });
  assert.deepEqual(body.messages[0].content[0], {
    type: 'document',
    source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0xLjQK' },
    title: 'a.pdf',
  });
});

test('52 | cache tokens are counted once, separate from the input', () => {
  const reply = messages.decodeReply(
    {
      content: [],
      stop_reason: 'end_turn',
      usage: {
        input_tokens: 4,
        output_tokens: 500,
        cache_creation_input_tokens: 10_000,
        cache_read_input_tokens: 7,
        cache_creation: { ephemeral_5m_input_tokens: 4000, ephemeral_1h_input_tokens: 6000 },
      },
    },
    {},
  );
  assert.ok('turn' in reply && reply.turn.usage);
  const { input, cacheRead, cacheWrite5m, cacheWrite1h, output } = reply.turn.usage;
  assert.deepEqual([input, cacheRead, cacheWrite5m, cacheWrite1h, output], [4, 7, 4000, 6000, 500]);
});
