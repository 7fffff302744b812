/** Removes null members that the format allows only as absent: strictly validating clients fail on them. */
import { type Fields, fieldsOrUndefined, listOf } from '../conversation/fields.ts';

/** Members of messages and deltas; `content`, `refusal` and `reasoning` may be null. */
export const NEVER_NULL = ['role', 'audio', 'images', 'annotations', 'reasoning_details', 'tool_calls'] as const;
const NEVER_NULL_IN_CALL = ['id', 'type', 'function'] as const;
const NEVER_NULL_IN_FUNCTION = ['name', 'arguments'] as const;

/** Whether a delta, or a call in it, has such a null member. */
export function hasNulls(delta: Fields): boolean {
  return isNullIn(delta, NEVER_NULL) || (Array.isArray(delta['tool_calls']) && delta['tool_calls'].some(callHasNulls));
}

function callHasNulls(value: unknown): boolean {
  const call = fieldsOrUndefined(value);
  if (call === undefined) return false;
  const body = fieldsOrUndefined(call['function']);
  return isNullIn(call, NEVER_NULL_IN_CALL) || (body !== undefined && isNullIn(body, NEVER_NULL_IN_FUNCTION));
}

export function withoutNulls(delta: Fields): Fields {
  const result = without(delta, NEVER_NULL);
  if (Array.isArray(result['tool_calls'])) result['tool_calls'] = listOf(result['tool_calls']).map(callWithoutNulls);
  return result;
}

function callWithoutNulls(value: unknown): unknown {
  const call = fieldsOrUndefined(value);
  if (call === undefined) return value;
  const result = without(call, NEVER_NULL_IN_CALL);
  const body = fieldsOrUndefined(result['function']);
  if (body !== undefined) result['function'] = without(body, NEVER_NULL_IN_FUNCTION);
  return result;
}

function isNullIn(value: Fields, keys: readonly string[]): boolean {
  for (const key of keys) if (value[key] === null) return true;
  return false;
}

function without(value: Fields, keys: readonly string[]): Fields {
  const result = { ...value };
  for (const key of keys) if (result[key] === null) delete result[key];
  return result;
}

/**
 * The chunk text without `"usage":null` (OpenAI's hint that usage follows later); undefined if `usage` occurs twice or
 * elsewhere.
 */
export function withoutNullUsage(text: string): string | undefined {
  // In JSON text this is always a key: within a string the quotes would be escaped.
  const at = text.indexOf(',"usage":null');
  if (at === -1 || text.indexOf('"usage"', text.indexOf('"usage"') + 1) !== -1) return undefined;
  return text.slice(0, at) + text.slice(at + ',"usage":null'.length);
}
