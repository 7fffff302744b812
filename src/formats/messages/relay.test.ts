import assert from 'node:assert/strict';
import test from 'node:test';
import { readDocument } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import { readMessageStream } from '../../testing/clients/messages-client.ts';
import type { EncodeTarget, Stamp } from '../conversation/format.ts';
import { messages } from './index.ts';

const STAMP: Stamp = { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1, usage: 'none' };
const TARGET: EncodeTarget = {
  model: 'claude-t',
  stream: false,
  maxOutputTokens: 8000,
  origin: 'anthropic-claude-v1',
  user: 'u-hash',
  dialect: {},
};

function edited(body: string, target: Partial<EncodeTarget> = {}): string {
  const document = readDocument(Buffer.from(body));
  return applyEdits(document, messages.relay.edits(document, { ...TARGET, ...target })).toString();
}

test('a relayed request keeps unknown members, number literals and white space, and loses the gateway members', () => {
  const kept =
    '"messages": [{"role":"user","content":[{"type":"text","text":"é 🌤","x":1.0}]}],\n "future_9": {"n": 9007199254740993, "f": 1.50},' +
    ' "max_tokens": 10, "speed": "fast", "service_tier": "auto", "cache_control": {"type":"ephemeral"}';
  const ours =
    '"provider": {"only":["a"]}, "models": ["b"], "fallbacks": [], "route": "fallback", "plugins": [], "session_id": "s", "trace": {}, "user": "alice"';
  const text = edited(`{"model": "acme/large", ${kept}, ${ours}, "metadata": {"user_id": "alice", "team": "x"}}`);
  assert.ok(text.includes(kept), text);
  const read = JSON.parse(text);
  assert.equal(read.model, 'claude-t');
  assert.deepEqual(read.metadata, { user_id: 'u-hash', team: 'x' });
  for (const name of ['provider', 'models', 'fallbacks', 'route', 'plugins', 'session_id', 'trace', 'user']) {
    assert.equal(name in read, false, name);
  }
  assert.equal(text.includes('alice'), false);
});

test('a missing output cap is added and a larger one lowered, and thinking stays below it', () => {
  const body = (rest: string) => `{"model":"m","messages":[]${rest}}`;
  assert.equal(JSON.parse(edited(body(''))).max_tokens, 8000);
  assert.equal(JSON.parse(edited(body(',"max_tokens":20'))).max_tokens, 20);
  const capped = { capOutputTokens: 2000 };
  assert.equal(JSON.parse(edited(body(',"max_tokens":20'), capped)).max_tokens, 20);
  const thinking = ',"thinking":{"type":"enabled","budget_tokens":3000},"max_tokens":4000';
  const read = JSON.parse(edited(body(thinking), capped));
  assert.deepEqual([read.max_tokens, read.thinking.budget_tokens], [2000, 1999]);
  assert.deepEqual(JSON.parse(edited(body(thinking), { capOutputTokens: 1024 })).thinking, { type: 'disabled' });
});

test('parameters that a provider rejects are removed', () => {
  const dialect = { messages: { refuses: ['service_tier', 'metadata'] } };
  const read = JSON.parse(edited('{"model":"m","messages":[],"service_tier":"auto"}', { dialect }));
  assert.deepEqual(Object.keys(read).sort(), ['max_tokens', 'messages', 'model']);
});

/** The client's text for these upstream events, with the readers' results. */
function relayed(lines: readonly string[]) {
  const decoder = messages.decoder({});
  const stream = messages.relay.stream(STAMP, {});
  let text = '';
  for (const data of lines) {
    const value = JSON.parse(data);
    text += stream.event('', data, value, decoder.read('', data, value));
  }
  return { text, stream, decoder };
}

test('a relayed stream forwards pings and unknown events, sends a repeated start once and adds a missing end', () => {
  const start =
    '{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"x"}}';
  const lines = [
    start,
    '{"type":"ping"}',
    start,
    '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""},"future":1.0}',
    '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"},"n":9007199254740993}',
    '{"type":"content_block_stop","index":0}',
    '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}',
  ];
  const { text, stream, decoder } = relayed(lines);
  assert.equal(decoder.close().at(-1)?.type, 'end');
  assert.ok(text.includes('event: ping\ndata: {"type":"ping"}\n\n'));
  assert.ok(text.includes('"future":1.0') && text.includes('9007199254740993'));
  assert.ok(!text.includes('message_delta'), 'the closing event waits for the cost');
  const read = readMessageStream(text + stream.end({}));
  assert.equal(read.content[0]?.['text'], 'hi');
  assert.deepEqual([read.usage['input_tokens'], read.usage['output_tokens']], [0, 2]);
  assert.equal(read.start['id'], 'gen-1');
});

test('blocks are numbered from 0 without gaps, and missing events of the upstream are added', () => {
  const block = (index: number, text: string) => [
    `{"type":"content_block_start","index":${index},"content_block":{"type":"text","text":""}}`,
    `{"type":"content_block_delta","index":${index},"delta":{"type":"text_delta","text":"${text}"},"n":1.0}`,
  ];
  const stop = (index: number) => `{"type":"content_block_stop","index":${index}}`;
  for (const [first, second] of [
    [1, 2],
    [0, 3],
    [0, 0],
  ] as const) {
    const lines = [
      ...block(first, 'one'),
      stop(first),
      ...block(second, 'two'),
      '{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}',
      '{"type":"message_stop"}',
    ];
    const { text: before, stream } = relayed(lines);
    const text = before + stream.end({});
    const read = readMessageStream(text);
    assert.deepEqual(
      read.content.map((one) => one['text']),
      ['one', 'two'],
    );
    assert.deepEqual([read.start['id'], read.start['role']], ['gen-1', 'assistant']);
    assert.equal(text.match(/"n":1\.0/g)?.length, 2);
  }
});

test('a failed upstream event is not forwarded, and nothing follows the end', () => {
  const stream = messages.relay.stream(STAMP, {});
  const error = { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
  const events = messages.decoder({}).read('error', JSON.stringify(error), error);
  assert.equal(stream.event('error', JSON.stringify(error), error, events), '');
  stream.event('message_stop', '{"type":"message_stop"}', { type: 'message_stop' }, []);
  assert.equal(stream.event('ping', '{"type":"ping"}', { type: 'ping' }, []), '');
});

test('the last of duplicate members in an answer counts, and the answer stays JSON', () => {
  const text =
    '{"type":"message","role":"assistant","content":"x","usage":null,"stop_reason":"end_turn",' +
    '"content":[{"type":"text","text":"a"}],"usage":{"input_tokens":3,"output_tokens":5,"vendor":7}}';
  const value = JSON.parse(text);
  const read = messages.decodeReply(value, {});
  assert.ok('turn' in read);
  const seen = JSON.parse(messages.relay.reply({ text, value, turn: read.turn, stamp: STAMP, closing: {} }));
  assert.deepEqual(seen.content, [{ type: 'text', text: 'a', citations: [] }]);
  assert.deepEqual([seen.usage.input_tokens, seen.usage.output_tokens, seen.usage.vendor], [3, 5, 7]);
});

test('null pieces are left out of a relayed stream', () => {
  const delta = (json: string) =>
    `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta",${json}}}`;
  const { text, stream } = relayed([
    '{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}',
    delta('"partial_json":null'),
    delta('"partial_json":"{\\"x\\":1}"'),
    '{"type":"content_block_stop","index":0}',
    '{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":2}}',
    '{"type":"message_stop"}',
  ]);
  assert.doesNotMatch(text, /partial_json":null/);
  assert.deepEqual(readMessageStream(text + stream.end({})).content[0]?.['input'], { x: 1 });
});
