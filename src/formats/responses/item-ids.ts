/** Ids of input items. OpenAI refuses one that is too long ("Expected a string with maximum length 64"). */
import type { Fields } from '../conversation/fields.ts';
import { boundedId } from '../conversation/tool-ids.ts';

export const LONGEST_ID = 64;

/** Items that the service takes without an id. */
const FREE: ReadonlySet<unknown> = new Set([
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
]);

/** Members of an item or the item itself, without an id that another service made too long. */
export function withoutLongId(members: Fields): Fields {
  if (!isLong(members['id'])) return members;
  const { id: _id, ...others } = members;
  return others;
}

export function hasLongIds(item: Fields): boolean {
  return isLong(item['call_id']) || (isLong(item['id']) && FREE.has(item['type'] ?? 'message'));
}

/** The item with ids that the service takes; the same item when it has no others. */
export function withShortIds(item: Fields, strict: boolean): Fields {
  const { call_id: given } = item;
  const callId = typeof given === 'string' ? boundedId(given, LONGEST_ID, strict) : undefined;
  const named = callId === undefined || callId === given ? item : { ...item, call_id: callId };
  return FREE.has(item['type'] ?? 'message') ? withoutLongId(named) : named;
}

function isLong(id: unknown): boolean {
  return typeof id === 'string' && id.length > LONGEST_ID;
}
