import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../base/errors.ts';
import { parseJson, readDocument, stringifyJson } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import { documentCheck } from '../../http/validate.ts';
import { readChatStream, readRecordedChat, readWholeChat, type SeenAnswer } from '../../testing/clients/chat-client.ts';
import { corpusMissing, type Recording, recordings } from '../../testing/recordings/corpus.ts';
import type { Turn, TurnEvent, Usage } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import type { Stamp, StreamEncoder } from '../conversation/format.ts';
import { collect, eventsOf } from '../conversation/replay.ts';
import { chat } from './index.ts';

const all = recordings(['chat'], /^(?!cohere$)/);
const answers = all.filter((one) => one.status === 200 && one.text.trimStart().startsWith('{'));
const whole = answers.filter((one) => !one.stream);
const streams = answers.filter((one) => one.stream);
const complete = streams.filter((one) => !one.events.some((event) => event.data.includes('"error":{')));

const MODES = ['chunk', 'finish', 'none'] as const;
const COST = {
  cost: 0.25,
  is_byok: false,
  cost_details: {
    upstream_inference_cost: null,
    upstream_inference_prompt_cost: 0.1,
    upstream_inference_completions_cost: 0.15,
  },
};
const FALLBACK: Usage = { input: 3, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 4, reasoning: 0 };

function stamp(usage: Stamp['usage']): Stamp {
  return { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1_700_000_000, usage };
}

interface Streamed {
  text: string;
  failure: UpstreamFailure | undefined;
  events: TurnEvent[];
}

/** Passes a recorded stream through the decoder and to the client, event by event like the gateway. */
function run(recording: Recording, mode: Stamp['usage'], way: 'relay' | 'encode'): Streamed {
  const decoder = chat.decoder({});
  const relay = chat.relay.stream(stamp(mode), {});
  const encoder: StreamEncoder = chat.encoder(stamp(mode));
  const streamed: Streamed = { text: '', failure: undefined, events: [] };
  let usage: Usage | undefined;
  const take = (name: string, data: string, value: unknown, events: TurnEvent[]) => {
    streamed.events.push(...events);
    for (const event of events) {
      if (event.type === 'usage') usage = event.usage;
      if (event.type === 'failure') streamed.failure = event.failure;
    }
    if (streamed.failure !== undefined) return;
    if (way === 'relay') streamed.text += relay.event(name, data, value, events);
    else for (const event of events) streamed.text += encoder.event(event);
  };
  for (const { name, data } of recording.events) {
    const value = data === '[DONE]' ? undefined : parseJson(data);
    take(name, data, value, decoder.read(name, data, value));
  }
  take('', '', undefined, decoder.close());
  const closing = { usage: usage ?? FALLBACK, cost: COST, metadata: { key: 'svc_metadata', value: { attempt: 1 } } };
  const writer = way === 'relay' ? relay : encoder;
  const error = new GatewayError('provider_unavailable', 'it broke', { metadata: { provider_code: 'x' } });
  streamed.text += streamed.failure === undefined ? writer.end(closing) : writer.failure(error, closing);
  return streamed;
}

function wordOf(native: string | null, calls: number): string[] {
  const words: Record<string, string[]> = {
    stop: calls > 0 ? ['stop', 'tool_calls'] : ['stop'],
    length: ['length'],
    function_call: ['function_call', 'tool_calls'],
  };
  return words[native ?? ''] ?? [native ?? (calls > 0 ? 'tool_calls' : 'stop')];
}

function assertSame(seen: SeenAnswer, expected: SeenAnswer, id: string): void {
  assert.equal(seen.choices.length, expected.choices.length, id);
  expected.choices.forEach((want, index) => {
    const got = seen.choices[index]!;
    assert.equal(got.text, want.text, id);
    assert.equal(got.reasoning, want.reasoning, id);
    assert.equal(got.refusal, want.refusal, id);
    assert.equal(got.logprobs, want.logprobs, id);
    assert.ok(
      wordOf(want.finish, want.calls.length).includes(got.finish!),
      `${id}: ${want.finish} became ${got.finish}`,
    );
    assert.equal(got.calls.length, want.calls.length, id);
    want.calls.forEach((call, at) => {
      const { id: callId, name, arguments: written } = got.calls[at]!;
      assert.deepEqual([callId, name, written], [call.id ?? callId, call.name, call.arguments || '{}'], id);
    });
  });
}

/** Counts by hand: cached tokens are part of the prompt; only xAI reports reasoning separately from the completion. */
function assertUsage(
  shown: Record<string, unknown> | null,
  recorded: Record<string, unknown> | null,
  id: string,
): void {
  if (recorded === null) return;
  const details = recorded['completion_tokens_details'] as { reasoning_tokens?: number } | undefined;
  const extra = id.startsWith('xai/') ? (details?.reasoning_tokens ?? 0) : 0;
  assert.equal(shown?.['prompt_tokens'], recorded['prompt_tokens'], id);
  assert.equal(shown?.['completion_tokens'], Number(recorded['completion_tokens']) + extra, id);
  const read = recorded['prompt_tokens_details'] as { cached_tokens?: number } | undefined;
  const shownRead = shown?.['prompt_tokens_details'] as { cached_tokens?: number };
  assert.equal(shownRead.cached_tokens, read?.cached_tokens ?? 0, id);
  assert.equal(shown?.['cost'], COST.cost, id);
}

test('every recorded stream reads the same relayed and encoded, for every way to request usage', {
  skip: corpusMissing,
}, () => {
  assert.ok(complete.length >= 25);
  for (const recording of complete) {
    const expected = readRecordedChat(recording);
    for (const mode of MODES) {
      for (const way of ['relay', 'encode'] as const) {
        const { text } = run(recording, mode, way);
        const seen = readChatStream(text, mode);
        const id = `${recording.id} ${way} ${mode}`;
        assertSame(seen, expected, id);
        const told = new Set(seen.strange);
        if (way === 'relay')
          for (const strange of expected.strange) assert.ok(told.has(strange), `${id} lost ${strange}`);
        if (mode !== 'none') assertUsage(seen.usage, expected.usage, recording.id);
        assert.deepEqual(seen.chunks.filter((chunk) => 'svc_metadata' in chunk).length, 1, id);
      }
    }
  }
});

test('a recorded stream that fails keeps its content and ends in one error chunk', {
  skip: corpusMissing,
}, () => {
  const broken = streams.filter((one) => !complete.includes(one) && !one.id.includes('empty-choices'));
  assert.ok(broken.length >= 3);
  for (const recording of broken) {
    const expected = readRecordedChat(recording);
    for (const way of ['relay', 'encode'] as const) {
      const { text, failure } = run(recording, 'finish', way);
      assert.ok(failure !== undefined && failure.message === expected.error!['message'], recording.id);
      const seen = readChatStream(text, 'finish');
      assert.equal(seen.choices[0]!.text, expected.choices[0]!.text, recording.id);
      assert.equal(seen.choices[0]!.reasoning, expected.choices[0]!.reasoning, recording.id);
      assert.deepEqual(seen.error, {
        code: 502,
        message: 'it broke',
        metadata: { error_type: 'provider_unavailable', provider_code: 'x' },
      });
    }
  }
});

test('an error with empty choices before any content is a failure, not an empty answer (bug 10)', {
  skip: corpusMissing,
}, () => {
  const [recording] = streams.filter((one) => one.id.includes('empty-choices'));
  const { events, failure } = run(recording!, 'finish', 'relay');
  assert.deepEqual(
    events.map((event) => event.type),
    ['failure'],
  );
  assert.equal(failure!.status, 502);
});

test('a stream cut before its finish word is a failure, after it an end', {
  skip: corpusMissing,
}, () => {
  for (const recording of complete) {
    const { events } = recording;
    const finish = events.findIndex(({ data }) => /"finish_reason":"/.test(data));
    for (let length = 0; length < events.length; length += Math.max(1, Math.floor(events.length / 20))) {
      const decoder = chat.decoder({});
      for (const { name, data } of events.slice(0, length))
        decoder.read(name, data, data === '[DONE]' ? undefined : parseJson(data));
      const last = decoder.close().at(-1)!;
      const done = events.slice(0, length).some(({ data }) => data === '[DONE]');
      if (done) assert.equal(last, undefined);
      else if (finish !== -1 && length > finish) assert.equal(last.type, 'end', recording.id);
      else assert.ok(last.type === 'failure' && last.failure.kind === 'cut', `${recording.id} ${length}`);
    }
  }
});

test('stream events follow the contract: parts start, continue, stop, then finish, usage separate, end last', {
  skip: corpusMissing,
}, () => {
  for (const recording of complete) {
    const open = new Set<string>();
    const started = new Map<number, number>();
    const finished = new Set<number>();
    const { events } = run(recording, 'none', 'relay');
    assert.equal(events.filter((event) => event.type === 'start').length, 1, recording.id);
    for (const event of events) {
      if (!('choice' in event)) continue;
      assert.ok(!finished.has(event.choice), recording.id);
      const part = 'index' in event ? `${event.choice}/${event.index}` : '';
      if (event.type === 'partStart') {
        assert.equal(event.index, started.get(event.choice) ?? 0, recording.id);
        started.set(event.choice, event.index + 1);
        open.add(part);
      } else if (event.type === 'partDelta') assert.ok(open.has(part), recording.id);
      else if (event.type === 'partStop') assert.ok(open.delete(part), recording.id);
      else if (event.type === 'finish') {
        assert.ok(![...open].some((key) => key.startsWith(`${event.choice}/`)), recording.id);
        finished.add(event.choice);
      }
    }
    assert.equal(open.size, 0, recording.id);
    assert.equal(events.at(-1)!.type, 'end', recording.id);
  }
});

test('every recorded complete answer reads the same relayed, encoded and streamed', {
  skip: corpusMissing,
}, () => {
  assert.ok(whole.length >= 20);
  for (const recording of whole) {
    const expected = readRecordedChat(recording);
    const value = parseJson(recording.text);
    const result = chat.decodeReply(value, {});
    assert.ok('turn' in result, recording.id);
    const { turn } = result;
    const closing = { usage: turn.usage ?? FALLBACK, cost: COST };
    const relayed = readWholeChat(
      chat.relay.reply({ text: recording.text, value, turn, stamp: stamp('none'), closing }),
    );
    assertSame(relayed, expected, recording.id);
    assertUsage(relayed.usage, expected.usage, recording.id);
    assert.deepEqual(
      relayed.choices.map((choice) => choice.annotations),
      expected.choices.map((choice) => choice.annotations),
    );
    for (const [key, strange] of Object.entries(value as Record<string, unknown>)) {
      if (!OURS.includes(key)) assert.deepEqual(relayed.reply[key], strange, `${recording.id} ${key}`);
    }
    const asCustom = recording.text.includes('"type": "custom"');
    const encoded = readWholeChat(stringifyJson(chat.encodeReply(turn, stamp('none'), closing)));
    if (!asCustom) assertSame(encoded, expected, recording.id);
    const encoder = chat.encoder(stamp('chunk'));
    const text =
      eventsOf(turn)
        .map((event) => encoder.event(event))
        .join('') + encoder.end(closing);
    const streamed = readChatStream(text, 'chunk');
    if (!asCustom) assertSame(streamed, expected, recording.id);
    assert.deepEqual(collect(eventsOf(turn)).choices, turn.choices);
  }
});

const OURS = ['id', 'object', 'created', 'model', 'provider', 'choices', 'usage'];

test('every recorded request is accepted and relayed with all of its content', {
  skip: corpusMissing,
}, () => {
  const check = documentCheck(chat.schema);
  const asked = all.filter((one) => one.request?.['messages'] !== undefined);
  assert.ok(asked.length >= 40);
  for (const { id, request } of asked) {
    const document = readDocument(Buffer.from(JSON.stringify(request)));
    check(document);
    chat.check(document.value);
    const target = {
      model: 'up',
      stream: request!['stream'] === true,
      maxOutputTokens: null,
      origin: 'unknown',
      user: 'hash',
      dialect: { chat: { developerRole: true } },
    } as const;
    const sent = JSON.parse(applyEdits(document, chat.relay.edits(document, target)).toString());
    const expected = { ...request };
    for (const gone of ['user', 'reasoning', 'stream_options', 'max_completion_tokens']) delete expected[gone];
    assert.deepEqual(
      sent,
      {
        ...expected,
        model: 'up',
        user: 'hash',
        ...(request!['max_completion_tokens'] !== undefined && { max_tokens: request!['max_completion_tokens'] }),
        ...(request!['reasoning'] !== undefined && {
          reasoning_effort: (request!['reasoning'] as { effort: string }).effort ?? 'low',
        }),
        ...(target.stream && { stream_options: { include_usage: true } }),
      },
      id,
    );
  }
});

const FAILURES: Record<string, [UpstreamFailure['kind'], number?]> = {
  'azure/chat-err404': ['not_found'],
  'azure/chat-err429': ['rate_limit'],
  'deepseek/chat-err400': ['context_length'],
  'deepseek/chat-err401': ['auth'],
  'groq/chat-err400': ['invalid_request'],
  'mistral/chat-err401': ['auth'],
  'ollama/chat-err400': ['context_length'],
  'ollama/chat-err401': ['auth'],
  'openai/chat-err400-vision': ['invalid_request'],
  'openai/chat-err404': ['not_found'],
  'openrouter/chat-err401': ['auth'],
  'perplexity/chat-err400': ['context_length'],
  'errors-documented/groq-413': ['rate_limit'],
  'errors-documented/mistral-422': ['invalid_request'],
  'errors-documented/openai-429': ['rate_limit', 2],
  'errors-documented/proxy-502': ['server'],
};

test('every recorded error body is classified, with its message and retry delay', {
  skip: corpusMissing,
}, () => {
  const failed = all.filter((one) => one.status >= 400 && !one.id.includes('cohere'));
  assert.ok(failed.length >= 16);
  for (const recording of failed) {
    const key = Object.keys(FAILURES).find((prefix) => recording.id.startsWith(prefix));
    assert.ok(key !== undefined, `no expectation for ${recording.id}`);
    const failure = chat.decodeFailure(recording.status, recording.text);
    const [kind, wait] = FAILURES[key]!;
    assert.equal(failure.kind, kind, recording.id);
    assert.equal(failure.status, recording.status);
    if (wait !== undefined) assert.equal(failure.retryAfterSeconds, wait, recording.id);
    assert.ok(
      failure.message !== '' && !/<html|org[-_]0{8}/.test(failure.message),
      `${recording.id}: ${failure.message}`,
    );
  }
});

/** Detects a broken corpus reader: the recordings contain all of these. */
test('the recordings contain calls, reasoning, several choices, log probabilities and citations', {
  skip: corpusMissing,
}, () => {
  const turns: Turn[] = complete.map((one) => collect(run(one, 'none', 'relay').events));
  const parts = turns.flatMap((turn) => turn.choices.flatMap((choice) => choice.parts));
  assert.ok(parts.some((part) => part.type === 'toolCall') && parts.some((part) => part.type === 'reasoning'));
  assert.ok(turns.some((turn) => turn.choices.length > 1));
  assert.ok(turns.some((turn) => turn.choices.some((choice) => (choice.logprobs?.content?.length ?? 0) > 0)));
});
