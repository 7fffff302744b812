/**
 * The laws of a spoken format, on generated conversations and replies: encoding is deterministic, prefixes stay,
 * nothing is lost.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { stringifyJson } from '../../base/json.ts';
import { type Abilities, arbitraryConversation, arbitraryRound } from '../../testing/laws/arbitrary.ts';
import { samples } from '../../testing/laws/samples.ts';
import { checkTurnEvents } from '../../testing/laws/turn-events.ts';
import type { Conversation, Part } from '../conversation/conversation.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { Losses, Uncarried } from '../conversation/losses.ts';
import { collect } from '../conversation/replay.ts';
import { gemini } from './index.ts';

const ABILITIES: Abilities = {
  format: 'gemini',
  instructions: ['system', 'developer'],
  userParts: ['text', 'image', 'file'],
  reasoning: ['signed', 'plain'],
  origins: ['google-gemini-v1'],
  sortedParts: false,
  refusals: false,
  resultImages: true,
  resultErrors: true,
  groupedResults: true,
  names: false,
  cacheMarks: false,
  settings: ['maxOutputTokens', 'temperature', 'topP', 'topK', 'seed'],
  outputs: [],
  reasoningSettings: ['effort', 'budget'],
  severalChoices: false,
  strict: true,
};

const MODELS = ['gemini-2.5-flash', 'gemini-3-pro-preview'] as const;

// biome-ignore lint/suspicious/noExplicitAny: encoded bodies are read freely
type Json = any;

function sent(conversation: Conversation, model: string): Json | undefined {
  const target: EncodeTarget = {
    model,
    stream: true,
    maxOutputTokens: 32_000,
    origin: 'google-gemini-v1',
    user: 'u',
    dialect: {},
  };
  try {
    return gemini.encode(conversation, target, new Losses());
  } catch (error) {
    // Media at another provider, for example, exclude the endpoint.
    if (error instanceof Uncarried) return undefined;
    throw error;
  }
}

test('encoding is deterministic, and an added turn keeps the earlier bytes as prefix', () => {
  let compared = 0;
  fc.assert(
    fc.property(
      arbitraryConversation(ABILITIES),
      arbitraryRound(ABILITIES, 9),
      fc.constantFrom(...MODELS),
      (conversation, round, model) => {
        const before = sent(conversation, model);
        const after = sent({ ...conversation, messages: [...conversation.messages, ...round] }, model);
        if (before === undefined || after === undefined) return;
        compared += 1;
        assert.equal(stringifyJson(before), stringifyJson(sent(conversation, model)));
        for (const name of ['systemInstruction', 'tools', 'toolConfig']) {
          assert.equal(stringifyJson(before[name] ?? null), stringifyJson(after[name] ?? null));
        }
        const last = before.contents.length - 1;
        before.contents.forEach((content: Json, index: number) => {
          const same = after.contents[index];
          assert.equal(same.role, content.role);
          // The new turn may merge into the last content: its parts then follow the earlier ones.
          const parts = index === last ? same.parts.slice(0, content.parts.length) : same.parts;
          assert.equal(stringifyJson(parts), stringifyJson(content.parts));
        });
      },
    ),
    { numRuns: samples(200) },
  );
  assert.ok(compared > samples(100), `only ${compared} could be compared`);
});

test('every text, call and signature of a history is in the body, byte for byte', () => {
  fc.assert(
    fc.property(arbitraryConversation(ABILITIES), fc.constantFrom(...MODELS), (conversation, model) => {
      const body = sent(conversation, model);
      if (body === undefined) return;
      const written = strings(JSON.parse(stringifyJson(body)));
      for (const text of conversation.messages.flatMap(({ parts }) => parts).flatMap(textsOf)) {
        assert.ok(written.has(text), `${JSON.stringify(text)} is missing`);
      }
    }),
    { numRuns: samples(200) },
  );
});

function textsOf(part: Part): string[] {
  switch (part.type) {
    case 'text':
      return part.text === '' ? [] : [part.text];
    case 'reasoning':
      // A signature without an origin is not sent.
      if (part.origin !== 'google-gemini-v1') return [];
      return [part.text, part.signature ?? ''].filter((text) => text !== '');
    case 'toolCall':
      return [part.id, part.name];
    case 'toolResult':
      return [part.callId, ...part.parts.flatMap(textsOf)];
    default:
      return [];
  }
}

function strings(value: unknown, into = new Set<string>()): Set<string> {
  if (typeof value === 'string') into.add(value);
  else if (typeof value === 'object' && value !== null) for (const inner of Object.values(value)) strings(inner, into);
  return into;
}

/** Replies of the service, as its documentation shows them. */
const piece = fc.oneof(
  fc.record({ text: fc.string({ minLength: 1, maxLength: 8 }) }),
  fc.record({ text: fc.string({ minLength: 1, maxLength: 8 }), thought: fc.constant(true) }),
  fc.record({ text: fc.constant(''), thoughtSignature: fc.constant('c2ln') }),
  fc.record({
    functionCall: fc.record({ name: fc.constantFrom('f', 'g'), args: fc.constantFrom({}, { a: [1, 'é'] }) }),
  }),
  fc.record({ inlineData: fc.constant({ mimeType: 'image/png', data: 'iVBORw0KGgo=' }) }),
  fc.record({ executableCode: fc.constant({ language: 'PYTHON', code: 'print(1)' }) }),
);

test('a streamed reply decodes to the same turn as the complete one, with well-formed events', () => {
  fc.assert(
    fc.property(fc.array(fc.array(piece, { maxLength: 4 }), { minLength: 1, maxLength: 5 }), (chunks) => {
      const about = { responseId: 'r1', modelVersion: 'm' };
      const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 4, totalTokenCount: 7 };
      const decoder = gemini.decoder({}, 'gen-1');
      const events = chunks.flatMap((parts, at) => {
        const last = at === chunks.length - 1;
        const value = {
          ...about,
          candidates: [{ content: { parts }, ...(last && { finishReason: 'STOP' }) }],
          ...(last && { usageMetadata }),
        };
        return decoder.read('', JSON.stringify(value), value);
      });
      events.push(...decoder.close());
      checkTurnEvents(events);
      const parts = chunks.flat();
      const reply = { ...about, candidates: [{ content: { parts }, finishReason: 'STOP' }], usageMetadata };
      const whole = gemini.decodeReply(reply, {}, 'gen-1');
      assert.ok('turn' in whole);
      assert.deepEqual(collect(events), whole.turn);
      const ids = whole.turn.choices[0]!.parts.flatMap((part) => (part.type === 'toolCall' ? part.id : []));
      assert.equal(new Set(ids).size, ids.length);
    }),
    { numRuns: samples(300) },
  );
});
