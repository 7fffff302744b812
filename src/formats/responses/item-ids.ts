/** Ids of input items. OpenAI rejects long ones ("Expected a string with maximum length 64"). */
import type { Fields } from '../conversation/fields.ts';
import { boundedId } from '../conversation/tool-ids.ts';

export const LONGEST_ID = 64;

/** Item types that the service accepts without an id. */
const FREE: ReadonlySet<unknown> = new Set([
  'message',
  'function_call',
  'function_call_output',
  'custom_tool_call',
  'custom_tool_call_output',
]);

/** An item, or its extra members, without an id that another service made too long. */
export function withoutLongId(members: Fields): Fields {
  if (!isLong(members['id'])) return members;
  const { id: _id, ...others } = members;
  return others;
}

export function hasLongIds(item: Fields): boolean {
  return isLong(item['call_id']) || (isLong(item['id']) && FREE.has(item['type'] ?? 'message'));
}

/** The item with ids short enough for the service; the same object if nothing changes. */
export function withShortIds(item: Fields, strict: boolean): Fields {
  const { call_id: given } = item;
  const callId = typeof given === 'string' ? boundedId(given, LONGEST_ID, strict) : undefined;
  const named = callId === undefined || callId === given ? item : { ...item, call_id: callId };
  return FREE.has(item['type'] ?? 'message') ? withoutLongId(named) : named;
}

function isLong(id: unknown): boolean {
  return typeof id === 'string' && id.length > LONGEST_ID;
}
