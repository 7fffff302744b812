/** The laws of a spoken form on generated conversations: the same in, the same out, and a turn more changes nothing before it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { stringifyJson } from '../../base/json.ts';
import { type Json, type SentRequest, sent } from '../../testing/spoken-requests.ts';
import { type Abilities, arbitraryConversation, arbitraryRound } from '../conversation/arbitrary.ts';
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

/** Of the media some stand at addresses, which the form does not take: those conversations are no candidates. */
const WITH_MEDIA: Abilities = {
  ...ABILITIES,
  resultImages: true,
  userParts: ['text', 'text', 'text', 'image', 'file', 'audio'],
};

/** Undefined where the endpoint is no candidate. */
function carried(conversation: Conversation): SentRequest | undefined {
  try {
    return sent(converse, conversation, { model: 'anthropic.claude-x' });
  } catch (error) {
    if (error instanceof Uncarried) return undefined;
    throw error;
  }
}

test('one more turn keeps the earlier encoding as its prefix, but for cache points that move past their limit', () => {
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
          // The new turn may go on in the last message: its blocks come behind those that were there.
          const blocks = index === last ? same.content.slice(0, message.content.length) : same.content;
          assert.equal(
            stringifyJson(index === last && same.role === 'assistant' ? begun(blocks) : blocks),
            stringifyJson(message.content),
          );
        });
      },
    ),
    { numRuns: 300 },
  );
  assert.ok(tried > 30, `${tried} conversations were carried`);
});

/** What the provider hashes of a prompt: all but the cache points. */
function withoutPoints(body: Json): Json {
  if (body === undefined) return undefined;
  const isPrompt = (block: Json) => !(typeof block === 'object' && block !== null && 'cachePoint' in block);
  return JSON.parse(stringifyJson(body), (_, value) => (Array.isArray(value) ? value.filter(isPrompt) : value));
}

/** The blocks of a last message as it goes out: white space at the end of what the model shall go on with is refused. */
function begun(blocks: Json[]): Json[] {
  const at = blocks.findLastIndex((block) => !('cachePoint' in block));
  return blocks.map((block, index) => (index === at && 'text' in block ? { text: block.text.trimEnd() } : block));
}

test('what goes out keeps the rules of the service: turns by turns, no blank text, names of their own', () => {
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
    { numRuns: 200 },
  );
});
