import assert from 'node:assert/strict';
import test from 'node:test';
import { parseJson } from '../../base/json.ts';
import { type Block, readMessageStream, readRecordedEvents } from '../../testing/clients/messages-client.ts';
import { corpusMissing, type Recording, recordings } from '../../testing/recordings/corpus.ts';
import type { Part, TurnEvent, Usage } from '../conversation/conversation.ts';
import type { Closing, Stamp, TurnDecoder } from '../conversation/format.ts';
import { collect, eventsOf } from '../conversation/replay.ts';
import { messages } from './index.ts';

const STAMP: Stamp = { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1, usage: 'none' };
const COST = {
  cost: 0.25,
  is_byok: false,
  cost_details: {
    upstream_inference_cost: null,
    upstream_inference_prompt_cost: 0.1,
    upstream_inference_completions_cost: 0.15,
  },
};
const CLOSING: Closing = { cost: COST, metadata: { key: 'svc_metadata', value: { attempt: 1 } } };

/** Excluded: the vendor's legacy text completion, and a recording joined from two answers. */
const answers = recordings(['messages']).filter((one) => one.status === 200 && !one.text.startsWith('{"completion"'));
const whole = answers.filter((one) => !one.stream && one.text.includes('"content"'));
const streams = answers.filter((one) => one.stream && !one.id.includes('spliced') && !one.id.startsWith('errors'));

test('a recorded stream is decoded block by block into its parts', { skip: corpusMissing }, () => {
  assert.ok(streams.length > 25);
  for (const recording of streams) {
    const expected = readRecordedEvents(recording.events);
    const turn = collect(decodeStream(recording));
    assert.deepEqual(turn.choices[0]?.parts.map(told), expected.content.map(expectedPart), recording.id);
    assert.equal(turn.choices[0]?.finish.native, expected.stop.stop_reason, recording.id);
    if ('input_tokens' in expected.usage)
      assert.deepEqual(counts(turn.usage), expectedCounts(expected.usage), recording.id);
    assert.equal(turn.id, expected.start['id']);
    assert.equal(turn.model, expected.start['model']);
  }
});

test('a complete recording is decoded block by block into its parts', { skip: corpusMissing }, () => {
  assert.ok(whole.length >= 8);
  for (const recording of whole) {
    const recorded = JSON.parse(recording.text);
    const result = messages.decodeReply(parseJson(recording.text), {});
    assert.ok('turn' in result, recording.id);
    const choice = result.turn.choices[0];
    assert.deepEqual(choice?.parts.map(told), recorded.content.map(expectedPart), recording.id);
    assert.equal(choice?.finish.native, recorded.stop_reason);
    assert.deepEqual(counts(result.turn.usage), expectedCounts(recorded.usage), recording.id);
  }
});

test('a decoded recording reaches a messages client with every block unchanged', { skip: corpusMissing }, () => {
  for (const recording of streams) {
    const expected = readRecordedEvents(recording.events);
    const read = readMessageStream(translate(decodeStream(recording)));
    assert.deepEqual(read.content.map(plain), expected.content.map(plain), recording.id);
    assert.equal(read.start['id'], STAMP.id);
    assert.equal(read.usage['cost'], COST.cost);
    assert.deepEqual(read.last, { type: 'message_stop', svc_metadata: { attempt: 1 } });
  }
  for (const recording of whole) {
    const result = messages.decodeReply(parseJson(recording.text), {});
    assert.ok('turn' in result);
    const recorded = JSON.parse(recording.text);
    const reply = messages.encodeReply(result.turn, STAMP, CLOSING) as Record<string, Block[]>;
    assert.deepEqual(reply['content']?.map(plain), recorded.content.map(plain), recording.id);
    const streamed = readMessageStream(translate(eventsOf(result.turn)));
    assert.deepEqual(streamed.content.map(plain), recorded.content.map(plain), recording.id);
  }
});

test('a relayed stream is the recorded one, with the gateway members in the opening and closing events', {
  skip: corpusMissing,
}, () => {
  for (const recording of streams) {
    const expected = readRecordedEvents(recording.events);
    const text = relay(recording);
    const read = readMessageStream(text);
    assertHolds(read.content, expected.content, recording.id);
    assert.equal(read.start['id'], STAMP.id);
    assert.equal(read.start['model'], STAMP.model);
    assert.equal(read.start['provider'], STAMP.provider);
    assert.equal(read.stop.stop_reason, expected.stop.stop_reason, recording.id);
    const { cost, is_byok: byok, cost_details: details, ...usage } = read.usage;
    assert.deepEqual({ cost, is_byok: byok, cost_details: details }, COST);
    // If the upstream has no closing event, the added one carries the complete record.
    const own = !recording.events.some((event) => event.name === 'message_delta');
    for (const [key, value] of Object.entries(expected.usage)) {
      if (!own) assert.deepEqual(usage[key], value, recording.id);
    }
    for (const { data } of recording.events) {
      if (/"type": ?"content_block_(delta|stop)/.test(data))
        assert.ok(text.includes(`data: ${data}\n`), `changed: ${data}`);
    }
  }
});

test('a relayed answer keeps every byte except the gateway members', { skip: corpusMissing }, () => {
  for (const recording of whole) {
    const value = parseJson(recording.text);
    const result = messages.decodeReply(value, {});
    assert.ok('turn' in result);
    const text = messages.relay.reply({
      text: recording.text,
      value,
      turn: result.turn,
      stamp: STAMP,
      closing: CLOSING,
    });
    const read = JSON.parse(text);
    const recorded = JSON.parse(recording.text);
    assertHolds(read.usage, { ...recorded.usage, ...COST }, recording.id);
    assertHolds(
      { ...read, id: recorded.id, model: recorded.model },
      { ...recorded, provider: STAMP.provider, svc_metadata: { attempt: 1 } },
      recording.id,
    );
  }
});

test('a stream that ends early never looks complete: at every event without a stop reason it is cut', {
  skip: corpusMissing,
}, () => {
  for (const recording of streams) {
    const decoder = messages.decoder({});
    for (const { name, data } of recording.events) {
      const value = parseJson(data);
      for (const event of decoder.read(name, data, value)) {
        assert.ok(event.type !== 'end' && event.type !== 'failure', recording.id);
      }
      const reason = JSON.stringify(value).includes('"stop_reason":"');
      if (reason) break;
      assert.equal(closedCopy(recording, data).at(-1)?.type, 'failure', recording.id);
      if (recording.events.length > 100) break;
    }
  }
});

test('an upstream that restarts its message within the stream has failed', { skip: corpusMissing }, () => {
  const spliced = answers.find((one) => one.id.includes('spliced'));
  assert.ok(spliced);
  const events = decodeStream(spliced);
  const last = events.at(-1);
  assert.equal(last?.type === 'failure' && last.failure.kind, 'malformed');
  assert.ok(!events.some((event) => event.type === 'finish' || event.type === 'end'));
  const call = collect(events).choices[0]?.parts.find((part) => part.type === 'toolCall');
  assert.equal(call?.type === 'toolCall' && call.arguments, '{"value":"Spark');
});

test('recorded and documented errors are classified', { skip: corpusMissing }, () => {
  const kinds = Object.fromEntries(
    recordings(['messages'])
      .filter((one) => one.status >= 400)
      .map((one) => [one.id.split('/')[1]?.slice(0, 22), messages.decodeFailure(one.status, one.text).kind]),
  );
  assert.deepEqual(kinds, {
    'messages-err401-comple': 'auth',
    'messages-err401-error-': 'auth',
    'messages-err404-model-': 'not_found',
    'anthropic-529-overload': 'overloaded',
  });
  for (const recording of answers.filter((one) => one.id.includes('overloaded-'))) {
    const last = decodeStream(recording).at(-1);
    assert.ok(last?.type === 'failure');
    assert.equal(last.failure.kind, 'overloaded');
    assert.equal(last.failure.status, 529);
  }
});

function feed(decoder: TurnDecoder, recording: Recording): TurnEvent[] {
  return recording.events.flatMap(({ name, data }) => decoder.read(name, data, parseJson(data)));
}

function decodeStream(recording: Recording): TurnEvent[] {
  const decoder = messages.decoder({});
  return [...feed(decoder, recording), ...decoder.close()];
}

/** The events when the connection closes after the event with this data. */
function closedCopy(recording: Recording, lastData: string): TurnEvent[] {
  const end = recording.events.findIndex((event) => event.data === lastData) + 1;
  return decodeStream({ ...recording, events: recording.events.slice(0, end) });
}

function translate(events: readonly TurnEvent[]): string {
  const encoder = messages.encoder(STAMP);
  return events.map((event) => encoder.event(event)).join('') + encoder.end(CLOSING);
}

function relay(recording: Recording): string {
  const decoder = messages.decoder({});
  const stream = messages.relay.stream(STAMP, {});
  let text = '';
  for (const { name, data } of recording.events) {
    const value = parseJson(data);
    text += stream.event(name, data, value, decoder.read(name, data, value));
  }
  return text + stream.end(CLOSING);
}

/** A part as its native block. */
function told(part: Part): unknown {
  switch (part.type) {
    case 'text':
      return ['text', part.text, (part.citations ?? []).map((citation) => citation.native?.value)];
    case 'reasoning':
      assert.equal(part.origin, 'anthropic-claude-v1');
      return part.encrypted === undefined
        ? ['thinking', part.text, part.signature ?? '']
        : ['redacted', part.encrypted];
    case 'toolCall':
      return ['call', part.id, part.name, JSON.parse(part.arguments)];
    case 'opaque':
      assert.equal(part.origin, 'messages');
      return part.value;
    default:
      return part;
  }
}

function expectedPart(block: Block): unknown {
  switch (block.type) {
    case 'text':
      return ['text', block['text'], block['citations'] ?? []];
    case 'thinking':
      return ['thinking', block['thinking'], block['signature'] ?? ''];
    case 'redacted_thinking':
      return ['redacted', block['data']];
    case 'tool_use':
      return ['call', block['id'], block['name'], block['input']];
    default:
      return block;
  }
}

/** A block without the format's default members: null citations and the direct caller. */
function plain(block: Block): unknown {
  const { caller, citations, ...rest } = block;
  const direct = (caller as { type?: string } | undefined)?.type === 'direct';
  const list = citations as unknown[] | null | undefined;
  return { ...rest, ...(caller !== undefined && !direct && { caller }), ...(list?.length && { citations: list }) };
}

function counts(usage: Usage | undefined): number[] {
  assert.ok(usage);
  return [usage.input, usage.cacheRead, usage.cacheWrite5m + usage.cacheWrite1h, usage.output, usage.reasoning];
}

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON
function expectedCounts(usage: any): number[] {
  // An answer of several calls is billed for all of them, except calls declined before any output; the top-level counts
  // are those of the last call.
  const iterations: (typeof usage)[] = (usage.iterations ?? []).filter((call: typeof usage) => call.output_tokens > 0);
  const calls = iterations.length > 0 ? iterations : [usage];
  const sum = (name: string) => calls.reduce((total, call) => total + (call[name] ?? 0), 0);
  return [
    sum('input_tokens'),
    sum('cache_read_input_tokens'),
    sum('cache_creation_input_tokens'),
    sum('output_tokens'),
    usage.output_tokens_details?.thinking_tokens ?? 0,
  ];
}

/** Required members that services leave out: an answer may only have these in addition to the recorded ones. */
const PROMISED = ['stop_sequence', 'stop_details', 'container', 'citations', 'caller', 'signature', 'input'];

/** Everything recorded was read; additional members are required members, counts or costs. */
function assertHolds(read: unknown, recorded: unknown, where: string): void {
  if (typeof recorded !== 'object' || recorded === null) {
    assert.deepEqual(read, recorded, where);
    return;
  }
  assert.ok(typeof read === 'object' && read !== null, where);
  for (const [key, value] of Object.entries(recorded)) {
    assertHolds((read as Record<string, unknown>)[key], value, `${where} ${key}`);
  }
  const counts = / usage/.test(where) || 'input_tokens' in recorded;
  for (const key of Object.keys(read)) {
    assert.ok(key in recorded || counts || PROMISED.includes(key), `${where}: ${key} was added`);
  }
}
