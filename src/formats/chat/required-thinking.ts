/**
 * DeepSeek, Moonshot and Z.AI reject a history whose tool calls have no `reasoning_content` while the model thinks
 * (api-docs.deepseek.com/guides/thinking_mode, platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model,
 * docs.z.ai/guides/capabilities/thinking-mode). Turns from another model, or from a client that kept no thinking, get a
 * blank one, so that the model can continue to think.
 */

import { fieldsOrUndefined, listOf, nonEmptyText } from '../conversation/fields.ts';
import type { ChatDialect } from './dialect.ts';

/** Not empty: some of the services treat an empty text as missing. */
const BLANK = ' ';

/**
 * @param read members of the request as it will be sent
 * @returns the same list when nothing changes
 */
export function withRequiredThinking(
  messages: readonly unknown[],
  read: (key: string) => unknown,
  { requiresThinking }: ChatDialect,
  model: string,
): readonly unknown[] {
  if (requiresThinking === undefined || !thinks(read, requiresThinking.unasked, model)) return messages;
  let changed = false;
  // The answer after the results belongs to the turn that made the calls.
  let called = false;
  const complete = messages.map((value) => {
    const message = fieldsOrUndefined(value);
    const role = message?.['role'];
    if (role === 'user') called = false;
    if (message === undefined || role !== 'assistant') return value;
    called ||= listOf(message['tool_calls']).length > 0;
    if (!called || nonEmptyText(message['reasoning_content']) !== undefined) return value;
    changed = true;
    return { ...message, reasoning_content: BLANK };
  });
  return changed ? complete : messages;
}

function thinks(read: (key: string) => unknown, unasked: RegExp, model: string): boolean {
  const type = fieldsOrUndefined(read('thinking'))?.['type'];
  if (type === 'disabled') return false;
  return type !== undefined || nonEmptyText(read('reasoning_effort')) !== undefined || unasked.test(model);
}
