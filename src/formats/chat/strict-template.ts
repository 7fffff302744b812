/**
 * Rewrites messages for chat templates that accept only one leading system message followed by strict alternation, and
 * answer 400 otherwise (some vLLM servers, suitenumerique/conversations#197). Neighbors are merged; nothing is dropped,
 * moved or invented.
 */
import { type Fields, listOf } from '../conversation/fields.ts';

export function mergeStrictly(messages: readonly Fields[]): Fields[] {
  const merged: Fields[] = [];
  for (const original of messages) {
    const message = { ...original };
    const leading = merged.every((before) => before['role'] === 'system');
    // After the head of the conversation, the template accepts system text only in user messages.
    if (message['role'] === 'system' && !leading) message['role'] = 'user';
    const last = merged.at(-1);
    if (last !== undefined && last['role'] === message['role'] && message['role'] !== 'tool') join(last, message);
    else merged.push(message);
  }
  return merged;
}

function join(into: Fields, message: Fields): void {
  into['content'] = joinedContent(into['content'], message['content']);
  for (const [key, value] of Object.entries(message)) {
    if (key === 'role' || key === 'content') continue;
    const before = into[key];
    if (Array.isArray(before) && Array.isArray(value)) into[key] = [...before, ...value];
    else if (typeof before === 'string' && typeof value === 'string' && key !== 'name')
      into[key] = `${before}\n\n${value}`;
    else if (before === undefined) into[key] = value;
  }
}

function joinedContent(first: unknown, second: unknown): unknown {
  if (second === null || second === undefined || second === '') return first;
  if (first === null || first === undefined || first === '') return second;
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n\n${second}`;
  return [...asList(first), ...asList(second)];
}

function asList(content: unknown): readonly unknown[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content);
}
