/**
 * Every served format against every spoken format, both ways. Spoken formats take part once they are registered, served
 * ones need a reader of their answers. Requests are generated and must arrive; answers are generated or recorded, and
 * clients of all formats must read the same in them.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readDocument, stringifyJson } from '../../base/json.ts';
import type { Conversation, FormatId, Part, Turn } from '../../formats/conversation/conversation.ts';
import type { EncodeTarget, ServedFormat, SpokenFormat, Stamp } from '../../formats/conversation/format.ts';
import { Losses, Uncarried } from '../../formats/conversation/losses.ts';
import { eventsOf } from '../../formats/conversation/replay.ts';
import {
  chat,
  gemini,
  messages,
  responses,
  SERVED_FORMATS,
  SPOKEN_FORMATS,
  spokenFormat,
} from '../../formats/index.ts';
import {
  CLIENT_FORMATS,
  type ClientFormat,
  readServedStream,
  readServedWhole,
} from '../../testing/clients/served-answer.ts';
import { type Abilities, arbitraryConversation, arbitraryTurn } from '../../testing/laws/arbitrary.ts';
import { type PipelineAnswer, playThrough } from '../../testing/laws/pipeline.ts';
import { samples } from '../../testing/laws/samples.ts';
import { corpusMissing, type Recording, recordings } from '../../testing/recordings/corpus.ts';
import { exactText, parsedExactly } from '../../testing/recordings/recorded-answer.ts';

const SERVED: Record<ClientFormat, ServedFormat & SpokenFormat> = { chat, messages, responses, gemini };
const RUNS = samples(60, 2000);

/** The parts that all formats can express. */
const COMMON: Abilities = {
  format: 'chat',
  instructions: ['system'],
  userParts: ['text'],
  reasoning: [],
  origins: ['unknown'],
  sortedParts: true,
  refusals: false,
  resultImages: false,
  resultErrors: false,
  groupedResults: false,
  names: false,
  cacheMarks: false,
  settings: ['maxOutputTokens', 'temperature', 'topP'],
  outputs: [],
  reasoningSettings: [],
  severalChoices: false,
  strict: false,
};

const TARGET: EncodeTarget = {
  model: 'some-model',
  stream: false,
  maxOutputTokens: 32_000,
  origin: 'unknown',
  user: 'u-hash',
  dialect: {},
};

const STAMP: Stamp = { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1, usage: 'finish' };

// biome-ignore lint/suspicious/noExplicitAny: bodies of every format are read freely
type Json = any;

/**
 * Removes what some services refuse and their formats leave out: blank texts, and white space at the end of a prefill.
 */
const plainlySaid = arbitraryConversation(COMMON).filter(({ messages: list }) => {
  const last = list.at(-1)!;
  const end = last.parts.at(-1);
  const begun = last.role === 'assistant' && end?.type === 'text' && end.text !== end.text.trimEnd();
  return !begun && list.every(({ parts }) => parts.every((part) => part.type !== 'text' || part.text.trim() !== ''));
});

test('every served format has a strict reader of its answers', () => {
  assert.deepEqual([...CLIENT_FORMATS].toSorted(), SERVED_FORMATS.map(({ id }) => id).toSorted());
});

for (const served of CLIENT_FORMATS) {
  for (const spoken of SPOKEN_FORMATS) {
    test(`${served} to ${spoken}: whatever a client sends reaches the service`, () => {
      let carried = 0;
      fc.assert(
        fc.property(plainlySaid, fc.boolean(), (conversation, stream) => {
          const request = stringifyJson(SERVED[served].encode(conversation, TARGET, new Losses()));
          const { exact } = readDocument(Buffer.from(request));
          SERVED[served].check(exact);
          const decoded = SERVED[served].decode(exact);
          let sent: string;
          try {
            const target = { ...TARGET, stream };
            sent = stringifyJson(spokenFormat(spoken).encode(decoded, target, new Losses()));
          } catch (error) {
            // A part that a format cannot carry is refused by name, which sends the request elsewhere.
            assert.ok(error instanceof Uncarried, String(error));
            return;
          }
          carried += 1;
          // Where calls are forbidden, those of the history become texts, and their arguments a text within a text.
          if (spoken === 'converse' && decoded.toolChoice?.mode === 'none') return;
          assertArrived(conversation, sent);
        }),
        { numRuns: RUNS },
      );
      assert.ok(carried > RUNS / 4, `${carried} of ${RUNS} were carried`);
    });
  }
}

for (const served of CLIENT_FORMATS) {
  test(`any service to ${served}: an answer is read as it was written, streamed and not`, () => {
    const abilities: Abilities = {
      ...COMMON,
      reasoning: ['plain', 'signed', 'encrypted'],
      origins: ['google-gemini-v1'],
    };
    fc.assert(
      fc.property(arbitraryTurn(abilities), fc.boolean(), (turn, stream) => {
        const closing = { usage: turn.usage! };
        const format = SERVED[served];
        const encoder = format.encoder(STAMP);
        const read = stream
          ? readServedStream(
              served,
              eventsOf(turn)
                .map((event) => encoder.event(event))
                .join('') + encoder.end(closing),
              'finish',
            )
          : readServedWhole(served, stringifyJson(format.encodeReply(turn, STAMP, closing)));
        assert.equal(read.error, null);
        assert.deepEqual(comparable(read.choices[0]!), saidBy(turn));
      }),
      { numRuns: RUNS * 3 },
    );
  });
}

describe('recorded answers', { skip: corpusMissing }, () => {
  for (const spoken of SPOKEN_FORMATS) {
    test(`${spoken}: clients of all formats read the same in every recorded answer`, async () => {
      const own = recordings().filter((recording) => formOf(recording) === spoken);
      assert.ok(own.length > 0, 'no recordings');
      for (const recording of own) {
        for (const stream of recording.stream ? [true] : [true, false]) {
          const readings = new Map<ClientFormat, unknown>();
          for (const served of CLIENT_FORMATS) {
            readings.set(served, reading(served, await play(recording, spoken, served, stream), stream));
          }
          for (const [served, read] of readings) {
            assert.deepEqual(read, readings.get('chat'), `${recording.id} as ${served}`);
          }
        }
      }
    });
  }
});

const API_FORMATS: Record<string, FormatId> = {
  chat: 'chat',
  messages: 'messages',
  responses: 'responses',
  generate: 'gemini',
  converse: 'converse',
  'converse-stream': 'converse',
};

/** The spoken format of a recording; undefined for other operations and for older formats of a vendor. */
function formOf({ api, provider, text, id }: Recording): FormatId | undefined {
  if (provider === 'cohere') return api === 'chat' && !/"generation_id"/.test(text) ? 'cohere' : undefined;
  if (/^\s*\{\s*"completion"/.test(text)) return undefined;
  // Shortened by hand: its deltas differ from its end.
  if (id.includes('shell-container')) return undefined;
  return API_FORMATS[api];
}

function play(recording: Recording, spoken: FormatId, served: ClientFormat, stream: boolean): Promise<PipelineAnswer> {
  const { status, headers, bytes } = recording;
  const reasoning = served === 'chat' ? { reasoning: { effort: 'low' } } : {};
  return playThrough({ served, kind: spoken, spoken, stream, more: reasoning }, { status, headers, pieces: [bytes] });
}

/** The client's view of an answer, in terms that all formats share. */
function reading(served: ClientFormat, answer: PipelineAnswer, stream: boolean): unknown {
  if (answer.status !== 200) return { refused: answer.status };
  const read =
    stream && answer.streamed ? readServedStream(served, answer.text, 'finish') : readServedWhole(served, answer.text);
  const choice = read.choices[0];
  if (read.error !== null) return { failed: true };
  // An estimate depends on the size of the request, which differs between formats.
  return { ...comparable(choice!), usage: answer.row.estimated ? null : read.usage };
}

function comparable({ text, refusal, reasoning, calls }: Json) {
  return {
    text: text + refusal,
    reasoning,
    // The older function calls, and some of Gemini, have no id in their own format.
    calls: calls.map((call: Json) => ({
      id: /^call_[A-Za-z0-9]{15,}_\d+$|^call_[\w-]+_\d+_\d+$|^unnamed \d+$/.test(call.id) ? null : call.id,
      name: call.name,
      arguments: spelled(call.arguments),
    })),
  };
}

/** A normal format of arguments: JSON without white space, or the free text itself. */
function spelled(text: string): string {
  let value: Json;
  try {
    value = parsedExactly(text || '{}');
  } catch {
    return text;
  }
  const keys = Object.keys(value ?? {});
  return keys.length === 1 && keys[0] === 'input' && typeof value.input === 'string' ? value.input : exactText(value);
}

function saidBy(turn: Turn) {
  const parts = turn.choices[0]!.parts;
  const joined = (type: Part['type']) =>
    parts.map((part) => (part.type === type && 'text' in part ? part.text : '')).join('');
  return {
    text: joined('text') + joined('refusal'),
    reasoning: joined('reasoning'),
    calls: parts.flatMap((part) =>
      part.type === 'toolCall' ? [{ id: part.id, name: part.name, arguments: spelled(part.arguments) }] : [],
    ),
  };
}

/** Every text, call, argument and result of the conversation, and every tool, is in the request that was sent. */
function assertArrived(conversation: Conversation, sent: string): void {
  const found: string[] = [];
  leaves(parsedExactly(sent), found);
  const all = found.join('\u0000');
  const expect = (text: string) => assert.ok(all.includes(text), `${JSON.stringify(text)} is not in ${sent}`);
  for (const { parts } of conversation.messages) {
    for (const part of parts) {
      if (part.type === 'text' && part.text.trim() !== '') expect(part.text);
      if (part.type === 'toolResult') {
        for (const inner of part.parts) if (inner.type === 'text' && inner.text.trim() !== '') expect(inner.text);
      }
      if (part.type !== 'toolCall') continue;
      expect(part.name);
      const written: string[] = [];
      leaves(parsedExactly(part.arguments), written);
      for (const value of written) expect(value);
    }
  }
  // A format that cannot express "none" leaves the tools out.
  const { toolChoice, tools = [] } = conversation;
  if (toolChoice?.mode === 'none') return;
  // If a format can force a tool only by making it the only one, the others are left out.
  const forced = toolChoice?.mode === 'tool' ? toolChoice.name : undefined;
  for (const tool of tools) if (tool.type === 'function' && tool.name === (forced ?? tool.name)) expect(tool.name);
}

/** Texts and numbers as written, including those inside a JSON text. */
function leaves(value: Json, into: string[]): void {
  if (typeof value === 'string') {
    into.push(value);
    if (/^[[{]/.test(value)) {
      try {
        leaves(parsedExactly(value), into);
      } catch {
        // Not JSON after all.
      }
    }
  } else if (Array.isArray(value)) for (const inner of value) leaves(inner, into);
  else if (value !== null && typeof value === 'object' && !('written' in value)) {
    for (const inner of Object.values(value)) leaves(inner, into);
  } else into.push(exactText(value));
}
