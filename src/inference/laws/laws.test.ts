/**
 * Laws of translation on generated answers through the whole pipeline: the answer reaches a client of either format,
 * and what that client sends back on the next turn reaches the service as it was.
 */

import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { Part, Turn } from '../../formats/conversation/conversation.ts';
import type { Stamp } from '../../formats/conversation/format.ts';
import { eventsOf } from '../../formats/conversation/replay.ts';
import { chat, messages } from '../../formats/index.ts';
import { readMessageStream } from '../../testing/clients/messages-client.ts';
import { assertServed, readServedStream, readServedWhole } from '../../testing/clients/served-answer.ts';
import { type Abilities, arbitraryTurn } from '../../testing/laws/arbitrary.ts';
import { type PipelineAnswer, playThrough } from '../../testing/laws/pipeline.ts';
import { samples } from '../../testing/laws/samples.ts';
import { readServerSentEvents } from '../../testing/recordings/corpus.ts';
import { cutBytes } from '../../testing/recordings/cuts.ts';
import { exactText, parsedExactly, type RecordedAnswer } from '../../testing/recordings/recorded-answer.ts';
import { answerOf, type Told } from '../../testing/upstream/answers.ts';

const FORMATS = { chat, messages };
const FORMAT_IDS = ['chat', 'messages'] as const;
type FormatId = (typeof FORMAT_IDS)[number];
/** A provider kind that supports all of its format, signed and encrypted reasoning included. */
const KIND = { chat: 'openrouter', messages: 'messages' };
const RUNS = samples(150, 3000);

const COMMON: Abilities = {
  format: 'chat',
  instructions: ['system'],
  userParts: ['text'],
  reasoning: ['signed', 'encrypted'],
  origins: ['anthropic-claude-v1'],
  // Reasoning, then text, then calls: the only order that the chat format can express.
  sortedParts: true,
  refusals: false,
  resultImages: false,
  resultErrors: false,
  groupedResults: false,
  names: false,
  cacheMarks: false,
  settings: [],
  outputs: [],
  reasoningSettings: [],
  severalChoices: false,
  strict: false,
};

/** The parts that a service of each format can produce. */
const ABILITIES: Record<FormatId, Abilities> = {
  chat: {
    ...COMMON,
    reasoning: ['plain', 'signed', 'encrypted', 'summary'],
    origins: ['anthropic-claude-v1', 'openai-responses-v1', 'google-gemini-v1'],
  },
  messages: { ...COMMON, format: 'messages' },
};

const cuts = fc.array(fc.nat({ max: 4000 }), { maxLength: 8 });

// biome-ignore lint/suspicious/noExplicitAny: JSON of both formats
type Json = any;

for (const spoken of FORMAT_IDS) {
  for (const served of FORMAT_IDS) {
    test(`${spoken} to ${served}: a client reads exactly what the upstream writes, cut anywhere`, async () => {
      await fc.assert(
        fc.asyncProperty(arbitraryTold(), fc.boolean(), cuts, async (told, stream, positions) => {
          const answer = answerOf(spoken, stream, told);
          const bytes = Buffer.concat(answer.chunks!.map((chunk) => Buffer.from(chunk as string)));
          const played = { headers: answer.headers ?? {}, pieces: cutBytes(bytes, positions) };
          const seen = await playThrough({ served, kind: KIND[spoken], spoken, stream }, played);
          // The writer itself loses digits where arguments are an object.
          const loses = spoken === 'messages' && !stream;
          assertServed(served, read(served, seen, stream), expectedOf(loses ? withDoubles(told) : told), served);
        }),
        { numRuns: RUNS },
      );
    });

    test(`${spoken} to ${served}: an answer sent back on the next turn reaches the service unchanged`, async () => {
      await fc.assert(
        fc.asyncProperty(arbitraryAnswer(spoken), fc.boolean(), cuts, async (turn, stream, positions) => {
          const asked = { served, kind: KIND[spoken], spoken, stream };
          const headers = { 'content-type': stream ? 'text/event-stream' : 'application/json' };
          const pieces = cutBytes(Buffer.from(written(spoken, turn, stream)), positions);
          const seen = await playThrough(asked, { headers, pieces });
          const history = [{ role: 'user', content: 'hi' }, ...historyOf(served, seen, stream)];
          const second = await playThrough({ ...asked, messages: exactText(history) }, { headers, pieces });
          assert.deepEqual(saidBack(spoken, second), comparable(turn.choices[0]!.parts));
        }),
        { numRuns: RUNS },
      );
    });
  }
}

/** An answer for the writer of upstream bytes, which shares no code with the formats. */
function arbitraryTold(): fc.Arbitrary<Told> {
  const text = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 });
  const written = fc.constantFrom(
    '{}',
    '{"n":12345678901234567890,"f":1.0,"e":1e400}',
    '{"k":"\\u00e9\\n","l":[{"m":null}]}',
    '{"text":"東京 👩‍🚀"}',
  );
  const call = fc.record({ name: fc.stringMatching(/^[a-z][a-z0-9_]{0,11}$/), arguments: written });
  const tokens = fc.nat({ max: 100_000 });
  return fc
    .record({
      thinking: fc.option(fc.record({ text, signature: fc.constant('c2lnbmVk') }), { nil: undefined }),
      text: fc.option(text, { nil: undefined }),
      calls: fc.array(call, { maxLength: 3 }),
      length: fc.boolean(),
      usage: fc.record({ input: tokens, cacheRead: tokens, cacheWrite: tokens, output: tokens, reasoning: tokens }),
    })
    .map(({ thinking, text: said, calls, length, usage }) => ({
      ...(thinking && { thinking }),
      text: said ?? (thinking === undefined && calls.length === 0 ? 'something' : ''),
      calls: calls.map((one, at) => ({ id: `call_${at}`, ...one })),
      finish: length ? 'length' : calls.length > 0 ? 'tool_calls' : 'stop',
      usage: { ...usage, output: usage.output + usage.reasoning },
    }));
}

/** A whole answer. Summaries and encrypted parts are never from the one vendor that writes none. */
function arbitraryAnswer(spoken: FormatId): fc.Arbitrary<Turn> {
  return arbitraryTurn(ABILITIES[spoken]).map((turn) => {
    for (const part of turn.choices[0]!.parts) {
      if (part.type === 'reasoning' && part.summary) part.origin = 'openai-responses-v1';
    }
    return turn;
  });
}

function expectedOf({ thinking, text = '', calls = [], finish, usage }: Told): RecordedAnswer {
  const { input, cacheRead = 0, cacheWrite = 0, output, reasoning = 0 } = usage!;
  return {
    complete: true,
    choices: [
      {
        text,
        reasoning: thinking?.text ?? '',
        refusal: '',
        calls: calls.map((call) => ({ ...call, custom: false })),
        finish: finish ?? null,
      },
    ],
    usage: { input: input + cacheRead + cacheWrite, cacheRead, cacheWrite, output, reasoning },
    uncounted: 0,
    other: false,
  };
}

function withDoubles(told: Told): Told {
  const calls = (told.calls ?? []).map((call) => ({ ...call, arguments: JSON.stringify(JSON.parse(call.arguments)) }));
  return { ...told, calls };
}

function read(served: FormatId, seen: PipelineAnswer, stream: boolean) {
  assert.equal(seen.status, 200, seen.text);
  return stream ? readServedStream(served, seen.text, 'finish') : readServedWhole(served, seen.text);
}

/** A service's answer in bytes, by the gateway's own encoder, which covers the whole format. */
function written(spoken: FormatId, turn: Turn, stream: boolean): string {
  const stamp: Stamp = { id: 'answer-1', model: 'some/model', provider: 'Some', created: 1, usage: 'chunk' };
  const closing = { usage: turn.usage! };
  const format = FORMATS[spoken];
  if (!stream) return stringifyJson(format.encodeReply(turn, stamp, closing));
  const encoder = format.encoder(stamp);
  return (
    eventsOf(turn)
      .map((event) => encoder.event(event))
      .join('') + encoder.end(closing)
  );
}

/** The assistant's message as a client stores it, and its result for each call. */
function historyOf(served: FormatId, seen: PipelineAnswer, stream: boolean): Json[] {
  assert.equal(seen.status, 200, seen.text);
  if (served === 'messages') {
    const content = stream ? blocksOf(seen.text) : parsedExactly(seen.text).content;
    const results = content
      .filter((block: Json) => block.type === 'tool_use')
      .map(({ id }: Json) => ({ type: 'tool_result', tool_use_id: id, content: 'done' }));
    // An answer of empty parts only cannot be sent back in this format.
    const said = content.length > 0 ? [{ role: 'assistant', content }] : [];
    return [...said, { role: 'user', content: [...results, { type: 'text', text: 'go on' }] }];
  }
  const message = stream ? gathered(seen.text) : keptOf(parsedExactly(seen.text).choices[0].message);
  const results = (message.tool_calls ?? []).map(({ id }: Json) => ({
    role: 'tool',
    tool_call_id: id,
    content: 'done',
  }));
  return [message, ...results, { role: 'user', content: 'go on' }];
}

function blocksOf(text: string): Json[] {
  const { content, inputs } = readMessageStream(text);
  return content.map((block) => {
    const input = inputs.get(block);
    return input === undefined ? block : { ...block, input: parsedExactly(input) };
  });
}

function keptOf(message: Json): Json {
  const { role, content, reasoning_details: details, tool_calls: calls } = message;
  return { role, content, ...(details && { reasoning_details: details }), ...(calls && { tool_calls: calls }) };
}

/** As an SDK assembles a stream; the reasoning details are kept as the list that arrived. */
function gathered(text: string): Json {
  const message: Json = { role: 'assistant', content: '' };
  for (const { data } of readServerSentEvents(text)) {
    const delta = data === '[DONE]' ? {} : (parsedExactly(data).choices[0]?.delta ?? {});
    message.content += delta.content ?? '';
    if (delta.reasoning_details) {
      message.reasoning_details = [...(message.reasoning_details ?? []), ...delta.reasoning_details];
    }
    for (const call of delta.tool_calls ?? []) {
      message.tool_calls ??= [];
      const known = message.tool_calls[Number(call.index.written)];
      if (known === undefined)
        message.tool_calls.push({ id: call.id, type: call.type, function: { ...call.function } });
      else known.function.arguments += call.function.arguments;
    }
  }
  return message;
}

/** The parts of the assistant's message in the request sent upstream. */
function saidBack(spoken: FormatId, { sent, text }: PipelineAnswer): unknown {
  assert.notEqual(sent, '', text);
  const conversation = FORMATS[spoken].decode(parseJson(sent));
  const said = conversation.messages.filter(({ role }) => role === 'assistant');
  return comparable(said.flatMap(({ parts }) => parts));
}

/**
 * Several texts become one where the format has one, and none where it is blank (a service may refuse that); white
 * space in arguments is lost where they are an object; the messages format adds that the model itself made a call.
 */
function comparable(parts: readonly Part[]): unknown {
  const text = parts.map((part) => (part.type === 'text' ? part.text : '')).join('');
  const blank = text.trim() === '';
  const others = parts
    .filter((part) => part.type !== 'text')
    .map((part) => {
      if (part.type !== 'toolCall') return part;
      const { extras, ...call } = part;
      if (extras !== undefined) assert.deepEqual(extras, { messages: { caller: { type: 'direct' } } });
      return { ...call, arguments: exactText(parsedExactly(call.arguments)) };
    });
  return { text: blank ? '' : text, others };
}
