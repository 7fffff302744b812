/**
 * The three laws of a format, on generated conversations: relay keeps unknown members, translation is lossless, and an
 * added turn keeps the encoded prefix.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { parseJson, readDocument, stringifyJson } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import { type Abilities, arbitraryConversation, arbitraryRound, arbitraryTurn } from '../../testing/laws/arbitrary.ts';
import { samples } from '../../testing/laws/samples.ts';
import type { Conversation, Message, Turn } from '../conversation/conversation.ts';
import type { EncodeTarget, Stamp } from '../conversation/format.ts';
import { Losses } from '../conversation/losses.ts';
import { collect, eventsOf } from '../conversation/replay.ts';
import { responses } from './index.ts';

/** What this format can hold: everything generated with these settings survives the round trip. */
const ABILITIES: Abilities = {
  format: 'responses',
  instructions: ['system', 'developer'],
  userParts: ['text', 'image', 'file', 'audio', 'video'],
  reasoning: ['signed', 'encrypted', 'summary'],
  origins: ['openai-responses-v1'],
  sortedParts: false,
  refusals: true,
  resultImages: true,
  resultErrors: false,
  groupedResults: true,
  names: false,
  cacheMarks: false,
  settings: [
    'maxOutputTokens',
    'temperature',
    'topP',
    'topK',
    'frequencyPenalty',
    'presencePenalty',
    'parallelToolCalls',
    'serviceTier',
    'verbosity',
    'promptCacheKey',
  ],
  outputs: ['text', 'json', 'schema'],
  reasoningSettings: ['effort', 'summary'],
  severalChoices: false,
  strict: true,
};

const TARGET: EncodeTarget = {
  model: 'gpt-t',
  stream: true,
  maxOutputTokens: 32_000,
  origin: 'openai-responses-v1',
  user: 'u-hash',
  dialect: {},
};

const STAMP: Stamp = { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1, usage: 'none' };

// biome-ignore lint/suspicious/noExplicitAny: encoded bodies are read freely
type Json = any;

/** Encodes to text and parses it as the gateway parses a request. */
function sent(conversation: Conversation, losses = new Losses()): { text: string; body: Json } {
  const text = stringifyJson(responses.encode(conversation, TARGET, losses));
  return { text, body: readDocument(Buffer.from(text)).exact };
}

test('decode after encode is the identity on the conversation', () => {
  fc.assert(
    fc.property(arbitraryConversation(ABILITIES), (conversation) => {
      const losses = new Losses();
      const { body } = sent(conversation, losses);
      assert.deepEqual(
        losses.dropped.filter(({ what }) => what !== 'tool_choice'),
        [],
      );
      responses.check({ ...body, metadata: undefined });
      assert.deepEqual(plain(responses.decode(body)), plain(expected(conversation)));
    }),
    { numRuns: samples(300) },
  );
});

test('one more turn keeps the earlier encoding as its prefix', () => {
  fc.assert(
    fc.property(arbitraryConversation(ABILITIES), arbitraryRound(ABILITIES, 9), (conversation, round) => {
      const before = sent(conversation).body;
      const after = sent({ ...conversation, messages: [...conversation.messages, ...round] }).body;
      assert.equal(stringifyJson(after.tools), stringifyJson(before.tools));
      assert.equal(stringifyJson(after.input.slice(0, before.input.length)), stringifyJson(before.input));
    }),
    { numRuns: samples(200) },
  );
});

test('relay keeps unknown members with their spelling and removes the gateway’s own', () => {
  const literals = fc.constantFrom('1.0', '9007199254740993', '1e400', '[ 1 , 2 ]', '{"a":"\\u00e9"}', '"\\/"', 'null');
  fc.assert(
    fc.property(arbitraryConversation(ABILITIES), literals, (conversation, literal) => {
      const { text } = sent(conversation);
      const client = `{ "future_9" : ${literal},\n${text.slice(1, -1)},"metadata":{"a":"b"},"z":${literal} }`.replace(
        '"user":"u-hash"',
        '"user":"alice"',
      );
      const document = readDocument(Buffer.from(client));
      const relayed = applyEdits(document, responses.relay.edits(document, TARGET)).toString();
      assert.ok(relayed.startsWith(`{ "future_9" : ${literal},\n`));
      assert.ok(relayed.includes(`"z":${literal}`));
      assert.ok(!relayed.includes('alice') && !relayed.includes('metadata'));
      assert.match(relayed, /"store":false/);
      assert.equal(
        stringifyJson((parseJson(relayed) as Json).input.filter((item: Json) => item.type !== 'reasoning')),
        stringifyJson((parseJson(text) as Json).input.filter((item: Json) => item.type !== 'reasoning')),
      );
    }),
    { numRuns: samples(100) },
  );
});

test('a complete reply survives encoding and decoding', () => {
  fc.assert(
    fc.property(arbitraryTurn(ABILITIES), (turn) => {
      const reply = parseJson(stringifyJson(responses.encodeReply(turn, STAMP, {})));
      const read = responses.decodeReply(reply, {});
      assert.ok('turn' in read);
      assert.deepEqual(answer(read.turn), answer(turn));
    }),
    { numRuns: samples(300) },
  );
});

test('a streamed reply survives encoding and decoding', () => {
  fc.assert(
    fc.property(arbitraryTurn(ABILITIES), (turn) => {
      const encoder = responses.encoder(STAMP);
      let text = '';
      for (const event of eventsOf(turn)) text += encoder.event(event);
      text += encoder.end({ usage: turn.usage! });
      const decoder = responses.decoder({});
      const events = text
        .trim()
        .split('\n\n')
        .flatMap((block) => {
          const data = block.slice(block.indexOf('data: ') + 'data: '.length);
          return decoder.read('', data, data === '[DONE]' ? undefined : parseJson(data));
        });
      assert.deepEqual(answer(collect(events)), answer(turn));
    }),
    { numRuns: samples(300) },
  );
});

/** Normalizes values with two spellings: raw numbers and absent members. */
function plain(value: unknown): unknown {
  return JSON.parse(stringifyJson(value));
}

/** The conversation as this format expresses it. */
function expected(conversation: Conversation): Conversation {
  const { reasoning } = conversation;
  const whole: Conversation = { ...conversation, messages: joined(conversation.messages) };
  // This format shows reasoning as a summary.
  if (reasoning !== undefined && reasoning.effort !== 'none') whole.reasoning = { summary: 'auto', ...reasoning };
  whole.tools = conversation.tools?.map((tool) => (tool.type === 'function' ? { strict: false, ...tool } : tool));
  return whole;
}

/** Adjacent model messages, and adjacent results, are one message in this format. */
function joined(list: readonly Message[]): Message[] {
  const result: Message[] = [];
  for (const message of list) {
    const last = result.at(-1);
    const parts = [...message.parts];
    if (last?.role === message.role && message.role !== 'user') last.parts.push(...parts);
    else result.push({ ...message, parts });
  }
  return result;
}

function answer(turn: Turn): unknown {
  const [choice] = turn.choices;
  const parts = choice?.parts.map((part) => {
    const { extras: _, ...rest } = part;
    // Reasoning without an id gets one when encoded.
    return rest.type === 'reasoning' ? { ...rest, id: undefined } : rest;
  });
  const { input, cacheRead, cacheWrite5m, cacheWrite1h, output, reasoning } = turn.usage!;
  return plain([parts, choice?.finish.unified, input, cacheRead, cacheWrite5m, cacheWrite1h, output, reasoning]);
}
