/**
 * DeepSeek, Moonshot and Z.AI refuse a history whose tool calls come without `reasoning_content` while the model thinks
 * (api-docs.deepseek.com/guides/thinking_mode, platform.moonshot.ai/docs/guide/use-kimi-k2-thinking-model,
 * docs.z.ai/guides/capabilities/thinking-mode). Turns that another model made, or whose client kept no thinking, have none:
 * they get a blank one, which says nothing and lets the model go on thinking.
 */
import type { ChatDialect } from './dialect.ts';
import { list, object, someText } from './read.ts';

/** Not empty: some of the services take an empty text for a missing one. */
const BLANK = ' ';

/**
 * @param read members of the request as it goes out
 * @returns the same list when nothing in it has to change
 */
export function withRequiredThinking(
  messages: readonly unknown[],
  read: (key: string) => unknown,
  { requiresThinking }: ChatDialect,
  model: string,
): readonly unknown[] {
  if (requiresThinking === undefined || !thinks(read, requiresThinking.unasked, model)) return messages;
  let changed = false;
  // The answer behind the results belongs to the turn that called.
  let called = false;
  const complete = messages.map((value) => {
    const message = object(value);
    const role = message?.['role'];
    if (role === 'user') called = false;
    if (message === undefined || role !== 'assistant') return value;
    called ||= list(message['tool_calls']).length > 0;
    if (!called || someText(message['reasoning_content']) !== undefined) return value;
    changed = true;
    return { ...message, reasoning_content: BLANK };
  });
  return changed ? complete : messages;
}

function thinks(read: (key: string) => unknown, unasked: RegExp, model: string): boolean {
  const type = object(read('thinking'))?.['type'];
  if (type === 'disabled') return false;
  return type !== undefined || someText(read('reasoning_effort')) !== undefined || unasked.test(model);
}
