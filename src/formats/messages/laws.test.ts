/**
 * The three laws of a format, on generated conversations: no loss in the relay, none in translation, stable prefixes.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import fc from 'fast-check';
import { parseJson, readDocument, stringifyJson } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import { type Abilities, arbitraryConversation, arbitraryRound, arbitraryTurn } from '../../testing/laws/arbitrary.ts';
import { samples } from '../../testing/laws/samples.ts';
import type { Conversation, Message, Part, Turn } from '../conversation/conversation.ts';
import type { EncodeTarget, Stamp } from '../conversation/format.ts';
import { Losses } from '../conversation/losses.ts';
import { messages } from './index.ts';

/** What this format can express: everything generated with these options survives a round trip. */
const ABILITIES: Abilities = {
  format: 'messages',
  instructions: ['system'],
  userParts: ['text', 'image', 'file'],
  reasoning: ['signed', 'encrypted'],
  origins: ['anthropic-claude-v1'],
  sortedParts: false,
  refusals: false,
  resultImages: true,
  resultErrors: true,
  groupedResults: true,
  names: false,
  cacheMarks: true,
  settings: ['maxOutputTokens', 'temperature', 'topP', 'topK', 'stop', 'serviceTier'],
  outputs: ['schema'],
  reasoningSettings: ['budget', 'adaptive'],
  severalChoices: false,
  strict: false,
};

const TARGET: EncodeTarget = {
  model: 'claude-t',
  stream: true,
  maxOutputTokens: 32_000,
  origin: 'anthropic-claude-v1',
  user: 'u-hash',
  dialect: { messages: { maxCacheMarks: 1000 } },
};

/** Texts of white space only are not sent; a request needs other content, and begins with a user message. */
const speaking = arbitraryConversation(ABILITIES).filter(({ messages: list }) => {
  const first = list.find(({ role, parts }) => role !== 'system' && said(parts).length > 0);
  return first !== undefined && first.role !== 'assistant';
});

const STAMP: Stamp = { id: 'gen-1', model: 'acme/large', provider: 'Acme', created: 1, usage: 'none' };

// biome-ignore lint/suspicious/noExplicitAny: encoded bodies are read freely
type Json = any;

/** The body sent over the wire: serialized, then parsed like a client's request. */
function sent(conversation: Conversation, losses = new Losses(), target = TARGET): { text: string; body: Json } {
  const text = stringifyJson(messages.encode(conversation, target, losses));
  return { text, body: readDocument(Buffer.from(text)).exact };
}

test('decoding an encoded conversation returns it, apart from reported losses', () => {
  fc.assert(
    fc.property(speaking, (conversation) => {
      const losses = new Losses();
      const { body } = sent(conversation, losses);
      messages.check(body);
      assert.deepEqual(plain(messages.decode(body)), plain(expected(conversation, losses)));
    }),
    { numRuns: samples(300) },
  );
});

test('a further turn keeps the earlier encoding as prefix, apart from moved breakpoints', () => {
  for (const maxCacheMarks of [1000, 4]) {
    const prompt = maxCacheMarks === 4 ? withoutMarks : <T>(body: T) => body;
    const target = { ...TARGET, dialect: { messages: { maxCacheMarks } } };
    fc.assert(
      fc.property(speaking, arbitraryRound(ABILITIES, 9), (conversation, round) => {
        const before = prompt(sent(conversation, undefined, target).body);
        const longer = { ...conversation, messages: [...conversation.messages, ...round] };
        const after = prompt(sent(longer, undefined, target).body);
        assert.equal(stringifyJson(before.system), stringifyJson(after.system));
        // Without client tools, the tools called in the history are declared; a further turn cannot call new ones then.
        if (conversation.tools !== undefined) assert.equal(stringifyJson(before.tools), stringifyJson(after.tools));
        const last = before.messages.length - 1;
        before.messages.forEach((message: Json, index: number) => {
          const same = after.messages[index];
          assert.equal(same.role, message.role);
          // The new turn may extend the last message: its blocks follow the existing ones.
          const blocks = index === last ? same.content.slice(0, message.content.length) : same.content;
          assert.equal(
            stringifyJson(index === last && same.role === 'assistant' ? begun(blocks) : blocks),
            stringifyJson(message.content),
          );
        });
      }),
      { numRuns: samples(150) },
    );
  }
});

/** The part of a prompt that the provider hashes: everything except breakpoints. */
function withoutMarks(body: Json): Json {
  return JSON.parse(JSON.stringify(body, (key, value) => (key === 'cache_control' ? undefined : value)));
}

test('an unknown member survives the relay with its spelling', () => {
  const literals = fc.constantFrom('1.0', '9007199254740993', '1e400', '[ 1 , 2 ]', '{"a":"\\u00e9"}', '"\\/"', 'null');
  fc.assert(
    fc.property(speaking, literals, (conversation, literal) => {
      const { text } = sent(conversation);
      const client = `{ "future_9" : ${literal},\n${text.slice(1, -1)},"user":"alice","z":${literal} }`;
      const document = readDocument(Buffer.from(client));
      const relayed = applyEdits(document, messages.relay.edits(document, TARGET)).toString();
      assert.ok(relayed.startsWith(`{ "future_9" : ${literal},\n`));
      assert.ok(relayed.includes(`"z":${literal}`));
      assert.ok(!relayed.includes('alice'));
      assert.equal(
        stringifyJson((parseJson(relayed) as Json).messages),
        stringifyJson((parseJson(text) as Json).messages),
      );
    }),
    { numRuns: samples(100) },
  );
});

test('a complete answer survives encoding and decoding', () => {
  fc.assert(
    fc.property(arbitraryTurn(ABILITIES), (turn) => {
      const reply = parseJson(stringifyJson(messages.encodeReply(turn, STAMP, {})));
      const read = messages.decodeReply(reply, {});
      assert.ok('turn' in read);
      assert.deepEqual(answer(read.turn), answer(turn));
    }),
    { numRuns: samples(300) },
  );
});

/** Normalizes equivalent spellings: raw numbers and absent members. */
function plain(value: unknown): unknown {
  return JSON.parse(stringifyJson(value));
}

/** The blocks of a last message as sent: trailing white space in text to be continued is removed. */
function begun(blocks: Json[]): Json[] {
  const last = blocks.at(-1);
  const own = blocks.every(({ type }) => ['text', 'thinking', 'redacted_thinking'].includes(type));
  return own && last?.type === 'text' ? [...blocks.slice(0, -1), { ...last, text: last.text.trimEnd() }] : blocks;
}

/** The conversation as this format can express it. */
function expected(conversation: Conversation, losses: Losses): Conversation {
  const lost = new Set(losses.dropped.map((loss) => loss.what));
  const { settings, reasoning, output } = conversation;
  const stop = settings.stop?.filter((text) => text.trim() !== '');
  const whole: Conversation = {
    ...conversation,
    messages: joined(conversation.messages),
    settings: {
      ...settings,
      maxOutputTokens: settings.maxOutputTokens ?? 32_000,
      stop: stop?.length ? stop : undefined,
    },
  };
  if (settings.serviceTier === 'priority') whole.settings.serviceTier = 'auto';
  if (conversation.tools === undefined) {
    const names = new Set(conversation.messages.flatMap(({ parts }) => parts.flatMap((part) => calledName(part))));
    if (names.size > 0) {
      whole.tools = [...names].map((name) => ({
        type: 'function',
        name,
        parameters: { type: 'object', properties: {} },
      }));
      whole.toolChoice = { mode: 'none' };
    }
  }
  if (lost.has('messages')) {
    const last = whole.messages.at(-1)!.parts.at(-1)!;
    assert.ok(last.type === 'text');
    last.text = last.text.trimEnd();
  }
  if (lost.has('temperature')) delete whole.settings.temperature;
  if (lost.has('top_p')) delete whole.settings.topP;
  if (lost.has('top_k')) delete whole.settings.topK;
  if (reasoning !== undefined) whole.reasoning = { ...reasoning, enabled: true };
  if (lost.has('reasoning')) delete whole.reasoning;
  if (output?.type === 'schema') whole.output = { type: 'schema', schema: output.schema };
  return whole;
}

/** Consecutive user messages format one message here; arguments lose their white space, and blank texts are left out. */
function joined(list: readonly Message[]): Message[] {
  const result: Message[] = [];
  for (const message of list) {
    const last = result.at(-1);
    const parts = said(message.parts).map(compact);
    if (parts.length === 0) continue;
    if (last?.role === message.role) last.parts.push(...parts);
    else result.push({ ...message, parts });
  }
  return result;
}

/** The parts without texts of white space only, which the vendor rejects. */
function said(parts: readonly Part[]): Part[] {
  return parts
    .filter((part) => part.type !== 'text' || part.text.trim() !== '')
    .map((part) => (part.type === 'toolResult' ? { ...part, parts: said(part.parts) } : part));
}

/** Tools that only the history calls are declared by name. */
function calledName(part: Part): string[] {
  return part.type === 'toolCall' ? [part.name] : [];
}

function compact(part: Part): Part {
  return part.type === 'toolCall' ? { ...part, arguments: stringifyJson(parseJson(part.arguments)) } : part;
}

function answer(turn: Turn): unknown {
  const [choice] = turn.choices;
  const parts = choice?.parts.map((part) => {
    const { extras: _, ...rest } = compact(part);
    return rest;
  });
  const { input, cacheRead, cacheWrite5m, cacheWrite1h, output, reasoning } = turn.usage!;
  return plain([parts, choice?.finish.unified, input, cacheRead, cacheWrite5m, cacheWrite1h, output, reasoning]);
}
