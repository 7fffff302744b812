import '../index.ts';
import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../../base/errors.ts';
import { readMessageStream } from '../../testing/clients/messages-client.ts';
import { samples } from '../../testing/laws/samples.ts';
import type { Part, PartDelta, Turn, TurnEvent } from '../conversation/conversation.ts';
import type { Stamp } from '../conversation/format.ts';
import { eventsOf } from '../conversation/replay.ts';
import { messages } from './index.ts';

const STAMP: Stamp = { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1, usage: 'none' };
const USAGE = { input: 5, cacheRead: 2, cacheWrite5m: 3, cacheWrite1h: 4, output: 9, reasoning: 6, webSearches: 1 };

// biome-ignore lint/suspicious/noExplicitAny: encoded bodies are read freely
type Json = any;

function send(events: readonly TurnEvent[]): string {
  const encoder = messages.encoder(STAMP);
  return events.map((event) => encoder.event(event)).join('') + encoder.end({});
}

function turnOf(parts: Part[], finish: Turn['choices'][0]['finish'] = { unified: 'stop', native: 'stop' }): Turn {
  return { choices: [{ parts, finish }], usage: USAGE };
}

const whole = (turn: Turn): Json => messages.encodeReply(turn, STAMP, {});
const streamed = (turn: Turn) => readMessageStream(send(eventsOf(turn)));

const opaque = fc.stringMatching(/^[A-Za-z0-9+/]{1,12}={0,2}$/);
const words = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 });
const origin = fc.constantFrom('anthropic-claude-v1', 'openai-responses-v1', 'google-gemini-v1', 'unknown');

const anyPart: fc.Arbitrary<Part> = fc.oneof(
  fc.record({ type: fc.constant('text' as const), text: words }),
  fc.record({ type: fc.constant('refusal' as const), text: words }),
  fc.record(
    {
      type: fc.constant('reasoning' as const),
      text: fc.oneof(words, fc.constant('')),
      origin,
      signature: opaque,
      encrypted: opaque,
      id: opaque,
    },
    { requiredKeys: ['type', 'text', 'origin'] },
  ) as fc.Arbitrary<Part>,
  fc.record({
    type: fc.constant('toolCall' as const),
    id: opaque,
    name: fc.constantFrom('f', 'get_weather'),
    arguments: fc
      .dictionary(fc.stringMatching(/^[a-z]{1,4}$/), fc.integer(), { maxKeys: 3 })
      .map((o) => JSON.stringify(o)),
  }),
  fc.record({
    type: fc.constant('opaque' as const),
    origin: fc.constant('messages' as const),
    value: fc.record(
      { type: fc.constant('web_search_tool_result'), tool_use_id: opaque, content: fc.constant([]) },
      { noNullPrototype: true },
    ),
  }),
);

/** The events of a turn with interleaved parts in small pieces, in an order chosen by `random`. */
function interleaved(parts: readonly Part[], random: () => number): TurnEvent[] {
  const events: TurnEvent[] = [{ type: 'start' }];
  const queues = parts.map((part, index): TurnEvent[] => {
    const deltas: PartDelta[] = [];
    const start = structuredClone(part) as Part & Record<string, unknown>;
    for (const key of ['text', 'arguments', 'encrypted', 'signature'] as const) {
      const value = start[key];
      if (part.type === 'opaque' || typeof value !== 'string') continue;
      const at = Math.floor(random() * (value.length + 1));
      if (key === 'signature' || key === 'encrypted') delete start[key];
      else start[key] = '';
      for (const piece of [value.slice(0, at), value.slice(at)]) if (piece !== '') deltas.push({ [key]: piece });
    }
    return [
      { type: 'partStart', choice: 0, index, part: start },
      ...deltas.map((delta): TurnEvent => ({ type: 'partDelta', choice: 0, index, delta })),
      { type: 'partStop', choice: 0, index },
    ];
  });
  let begun = 0;
  while (queues.some((queue) => queue.length > 0)) {
    // Parts start in order; any started part may continue.
    if (begun < queues.length && random() < 0.4) events.push(queues[begun++]?.shift() as TurnEvent);
    const open = queues.slice(0, begun).filter((queue) => queue.length > 0);
    const next = open[Math.floor(random() * open.length)]?.shift();
    if (next !== undefined) events.push(next);
  }
  return events;
}

test('however parts interleave, a stream has the blocks of the complete answer, in sequence', () => {
  fc.assert(
    fc.property(
      fc.array(anyPart, { maxLength: 5 }),
      fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
      (parts, numbers) => {
        const random = () => numbers.next().value as number;
        const turn = turnOf(parts);
        const read = readMessageStream(
          send([
            ...interleaved(parts, random),
            { type: 'usage', usage: USAGE },
            { type: 'finish', choice: 0, finish: turn.choices[0]!.finish },
            { type: 'end' },
          ]),
        );
        const reply = whole(turn);
        assert.deepEqual(read.content, reply.content);
        assert.deepEqual(streamed(turn).content, reply.content);
        assert.equal(read.stop.stop_reason, reply.stop_reason);
      },
    ),
    { numRuns: samples(300) },
  );
});

test('signed or encrypted content of a vendor is in the answer and is returned unchanged', () => {
  const parts: Part[] = [
    {
      type: 'reasoning',
      text: 'sum',
      summary: true,
      encrypted: 'gAAAA/+1==',
      id: 'rs_1',
      origin: 'openai-responses-v1',
    },
    { type: 'reasoning', text: '', encrypted: 'gBBBB', id: 'rs_2', origin: 'openai-responses-v1' },
    { type: 'reasoning', text: 'thought', signature: 'CvcQ/abc==', origin: 'google-gemini-v1' },
    { type: 'reasoning', text: 'own', signature: 'EqQB', origin: 'anthropic-claude-v1' },
    { type: 'reasoning', text: '', encrypted: 'Em0K', origin: 'anthropic-claude-v1' },
    {
      type: 'toolCall',
      id: 'c1',
      name: 'f',
      arguments: '{}',
      signature: { value: 'Cgk+sig/', origin: 'google-gemini-v1' },
    },
  ];
  const turn = turnOf(parts, { unified: 'tool_calls', native: 'STOP' });
  for (const content of [whole(turn).content, streamed(turn).content] as Json[]) {
    const shown = JSON.stringify(content);
    for (const secret of ['gAAAA/+1==', 'gBBBB', 'CvcQ/abc==', 'EqQB', 'Em0K', 'Cgk+sig/']) {
      assert.ok(shown.includes(secret), secret);
    }
    for (const block of content) if (block.type === 'thinking') assert.equal(typeof block.signature, 'string');
    const replayed = messages.decode({ messages: [{ role: 'assistant', content }] }).messages[0]?.parts as Json[];
    const { extras: _, ...call } = replayed.at(-1);
    assert.deepEqual([...replayed.slice(0, -1), call], parts);
  }
});

test('a block of another format travels through the client and back to its origin', () => {
  const value = { type: 'code_interpreter_call', id: 'ci_1', code: 'n', outputs: null };
  const parts: Part[] = [
    { type: 'opaque', origin: 'responses', value },
    { type: 'text', text: 'done' },
  ];
  for (const content of [whole(turnOf(parts)).content, streamed(turnOf(parts)).content] as Json[]) {
    assert.equal(content[0].type, 'redacted_thinking');
    assert.deepEqual(messages.decode({ messages: [{ role: 'assistant', content }] }).messages[0]?.parts, parts);
  }
});

test('thinking without a signature has an empty one', () => {
  const turn = turnOf([{ type: 'reasoning', text: 'plain', origin: 'unknown' }]);
  assert.deepEqual(whole(turn).content, [{ type: 'thinking', thinking: 'plain', signature: '' }]);
  assert.deepEqual(streamed(turn).content, whole(turn).content);
});

test('a refusal given as text is a text block and ends as a refusal', () => {
  const turn = turnOf([{ type: 'refusal', text: 'I cannot help with that.' }]);
  for (const answer of [whole(turn), { ...streamed(turn).stop, content: streamed(turn).content }] as Json[]) {
    assert.deepEqual(answer.content, [{ type: 'text', text: 'I cannot help with that.', citations: [] }]);
    assert.equal(answer.stop_reason, 'refusal');
    assert.deepEqual(answer.stop_details, { type: 'refusal', category: null, explanation: null });
  }
});

test('a URL citation of any format is a web search result location', () => {
  const citations = [{ url: 'https://a.example', title: 'A', citedText: 'quote', start: 0, end: 3 }];
  const turn = turnOf([{ type: 'text', text: 'yes', citations }]);
  const location = {
    type: 'web_search_result_location',
    cited_text: 'quote',
    encrypted_index: '',
    title: 'A',
    url: 'https://a.example',
  };
  assert.deepEqual(whole(turn).content[0].citations, [location]);
  assert.deepEqual(streamed(turn).content[0]?.['citations'], [location]);
});

test('the free text of a custom tool becomes the member input of an object', () => {
  const turn = turnOf([{ type: 'toolCall', id: 'c', name: 'sh', arguments: 'echo "1\n2"', custom: true }]);
  assert.deepEqual(whole(turn).content[0].input, { input: 'echo "1\n2"' });
  assert.deepEqual(streamed(turn).content[0]?.['input'], { input: 'echo "1\n2"' });
});

test('arguments that are not a JSON object are kept under INVALID_JSON', () => {
  const turn = turnOf([{ type: 'toolCall', id: 'c', name: 'f', arguments: '{"a": 1' }]);
  assert.deepEqual(whole(turn).content[0].input, { INVALID_JSON: '{"a": 1' });
});

test('only the first of several answers is shown', () => {
  const turn = turnOf([{ type: 'text', text: 'one' }]);
  turn.choices.push({ parts: [{ type: 'text', text: 'two' }], finish: { unified: 'length', native: 'length' } });
  assert.equal(whole(turn).content.length, 1);
  const read = streamed(turn);
  assert.deepEqual([read.content.length, read.stop.stop_reason], [1, 'end_turn']);
});

test('token counts add up as this format defines, and the opening event has the known ones', () => {
  const usage = {
    input_tokens: 5,
    output_tokens: 9,
    cache_read_input_tokens: 2,
    cache_creation_input_tokens: 7,
    cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 4 },
    output_tokens_details: { thinking_tokens: 6 },
    server_tool_use: { web_search_requests: 1, web_fetch_requests: 0 },
    inference_geo: null,
    service_tier: null,
  };
  assert.deepEqual(whole(turnOf([])).usage, usage);
  assert.deepEqual(messages.decodeReply({ content: [], usage }, {}), {
    turn: {
      choices: [{ parts: [], finish: { unified: 'stop', native: null } }],
      usage: { ...USAGE, webFetches: 0, native: { origin: 'messages', value: usage } },
    },
  });
  const encoder = messages.encoder(STAMP);
  assert.equal(encoder.event({ type: 'start', model: 'x' }), '');
  const first = JSON.parse(encoder.event({ type: 'usage', usage: USAGE }).split('data: ')[1] ?? '');
  assert.equal(first.message.usage.input_tokens, 5);
  assert.deepEqual(first.message.content, []);
});

test('a failed stream leaves unfinished calls open, sends other held blocks and ends in one typed error event', () => {
  const encoder = messages.encoder(STAMP);
  const call = (id: string): Part => ({ type: 'toolCall', id, name: 'f', arguments: '' });
  const begun = [
    { type: 'start' },
    { type: 'partStart', choice: 0, index: 0, part: call('a') },
    { type: 'partStart', choice: 0, index: 1, part: call('b') },
    { type: 'partDelta', choice: 0, index: 1, delta: { arguments: '{"x":1}' } },
  ] as const;
  const failure = encoder.failure.bind(encoder);
  const begin = begun.map((event) => encoder.event(event)).join('');
  const error = new GatewayError('provider_unavailable', 'the provider broke the connection');
  const text = begin + failure(error, { metadata: { key: 'svc_metadata', value: { attempt: 1 } } });
  const read = readMessageStream(text);
  assert.deepEqual(
    read.content.map((block) => [block['id'], block['input']]),
    [['a', {}]],
  );
  assert.ok(!text.includes('content_block_stop'), 'a client may run a call whose block is closed');
  assert.deepEqual(read.error, {
    type: 'api_error',
    message: 'the provider broke the connection',
    error_type: 'provider_unavailable',
  });
  assert.equal(read.last, undefined);
  const held = messages.encoder(STAMP);
  const texts = ['one', 'two'].map(
    (text, index): TurnEvent => ({ type: 'partStart', choice: 0, index, part: { type: 'text', text } }),
  );
  const told = texts.map((event) => held.event(event)).join('') + held.failure(error, {});
  assert.deepEqual(
    readMessageStream(told).content.map((block) => block['text']),
    ['one', 'two'],
  );
});

test('an answer that its provider ended with an error is rejected', () => {
  const turn = turnOf([{ type: 'text', text: 'x' }], { unified: 'error', native: 'error' });
  assert.throws(() => whole(turn), GatewayError);
  assert.equal(streamed(turn).error?.['type'], 'api_error');
});

test('every error fits the envelope', () => {
  const types = [400, 401, 402, 403, 404, 408, 413, 422, 429, 500, 502, 503, 504, 524, 529].map((status) => {
    const envelope = messages.encodeFailure(new GatewayError('unmapped', 'm', { status }), {
      generationId: null,
    }) as Json;
    assert.equal(envelope.type, 'error');
    assert.equal(envelope.request_id, null);
    return envelope.error.type.replace('_error', '');
  });
  assert.deepEqual(
    types.join(' '),
    'invalid_request authentication billing permission not_found timeout invalid_request invalid_request rate_limit ' +
      'api api overloaded timeout timeout overloaded',
  );
});
