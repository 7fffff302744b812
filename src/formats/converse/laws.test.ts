/**
 * The laws of a spoken format, on generated conversations: encoding is deterministic, and an added turn changes nothing
 * before it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { stringifyJson } from '../../base/json.ts';
import { type Abilities, arbitraryConversation, arbitraryRound } from '../../testing/laws/arbitrary.ts';
import { samples } from '../../testing/laws/samples.ts';
import { type Json, type SentRequest, sent } from '../../testing/laws/spoken-requests.ts';
import type { Conversation } from '../conversation/conversation.ts';
import { Uncarried } from '../conversation/losses.ts';
import { converse } from './index.ts';

const ABILITIES: Abilities = {
  format: 'converse',
  instructions: ['system'],
  userParts: ['text'],
  reasoning: ['plain', 'signed', 'encrypted'],
  origins: ['anthropic-claude-v1', 'openai-responses-v1'],
  sortedParts: false,
  refusals: true,
  resultImages: false,
  resultErrors: true,
  groupedResults: true,
  names: true,
  cacheMarks: true,
  settings: ['maxOutputTokens', 'temperature', 'topP', 'topK', 'stop', 'seed'],
  outputs: ['schema'],
  reasoningSettings: ['effort', 'budget'],
  severalChoices: false,
  strict: true,
};

/** Some generated media are URLs, which this format does not accept: those conversations are skipped. */
const WITH_MEDIA: Abilities = {
  ...ABILITIES,
  resultImages: true,
  userParts: ['text', 'text', 'text', 'image', 'file', 'audio'],
};

/** Undefined if the endpoint cannot carry the conversation. */
function carried(conversation: Conversation): SentRequest | undefined {
  try {
    return sent(converse, conversation, { model: 'anthropic.claude-x' });
  } catch (error) {
    if (error instanceof Uncarried) return undefined;
    throw error;
  }
}

test('an added turn keeps the earlier encoding as its prefix, except for cache points beyond the limit', () => {
  let tried = 0;
  fc.assert(
    fc.property(
      fc.oneof(arbitraryConversation(ABILITIES), arbitraryConversation(WITH_MEDIA)),
      arbitraryRound(ABILITIES, 9),
      (conversation, round) => {
        const before = withoutPoints(carried(conversation)?.body);
        const after = withoutPoints(carried({ ...conversation, messages: [...conversation.messages, ...round] })?.body);
        if (before === undefined || after === undefined || conversation.cache !== undefined) return;
        tried += 1;
        assert.equal(stringifyJson(before.system), stringifyJson(after.system));
        if (conversation.tools !== undefined) assert.deepEqual(before.toolConfig, after.toolConfig);
        const last = before.messages.length - 1;
        before.messages.forEach((message: Json, index: number) => {
          const same = after.messages[index];
          assert.equal(same.role, message.role);
          // The new turn may merge into the last message: its blocks then follow the earlier ones.
          const blocks = index === last ? same.content.slice(0, message.content.length) : same.content;
          assert.equal(
            stringifyJson(index === last && same.role === 'assistant' ? begun(blocks) : blocks),
            stringifyJson(message.content),
          );
        });
      },
    ),
    { numRuns: samples(300) },
  );
  // A third can be carried: chance makes it 3 of 100 less often than once in 10^10 runs.
  assert.ok(tried > samples(9), `${tried} conversations were carried`);
});

/** What the provider hashes of a prompt: everything except cache points. */
function withoutPoints(body: Json): Json {
  if (body === undefined) return undefined;
  const isPrompt = (block: Json) => !(typeof block === 'object' && block !== null && 'cachePoint' in block);
  return JSON.parse(stringifyJson(body), (_, value) => (Array.isArray(value) ? value.filter(isPrompt) : value));
}

/** The blocks of a last message as sent: the service rejects trailing white space in a prefill. */
function begun(blocks: Json[]): Json[] {
  const at = blocks.findLastIndex((block) => !('cachePoint' in block));
  return blocks.map((block, index) => (index === at && 'text' in block ? { text: block.text.trimEnd() } : block));
}

test('encoded requests obey the service: alternating roles, no blank text, unique names', () => {
  fc.assert(
    fc.property(arbitraryConversation(WITH_MEDIA), (conversation) => {
      const body = carried(conversation)?.body;
      if (body === undefined) return;
      body.messages.forEach(({ role, content }: Json, index: number) => {
        assert.equal(role, index % 2 === 0 ? 'user' : 'assistant');
        assert.ok(content.length > 0);
        for (const block of content) if ('text' in block) assert.notEqual(block.text.trim(), '');
      });
      const names = body.messages.flatMap(({ content }: Json) =>
        content.flatMap(({ document }: Json) => document?.name ?? []),
      );
      assert.equal(new Set(names).size, names.length);
    }),
    { numRuns: samples(200) },
  );
});
