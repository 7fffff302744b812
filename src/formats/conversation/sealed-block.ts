/**
 * A vendor's block as text, for formats with a text member that clients send back unchanged: on the next turn the block
 * returns to its origin.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { OpaquePart } from './conversation.ts';
import { isFields } from './fields.ts';
import { isFormatId } from './registry.ts';

/** Vendors' encrypted content cannot begin like this: it is base64. */
const PREFIX = 'sealed-block-1:';

export function sealBlock(part: OpaquePart): string {
  return PREFIX + stringifyJson({ origin: part.origin, value: part.value });
}

/** Returns undefined for anything that `sealBlock` did not write. */
export function unsealBlock(text: string): OpaquePart | undefined {
  if (!isSealedBlock(text)) return undefined;
  let value: unknown;
  try {
    value = parseJson(text.slice(PREFIX.length));
  } catch {
    return undefined;
  }
  if (!isFields(value)) return undefined;
  const { origin } = value;
  return isFormatId(origin) ? { type: 'opaque', origin, value: value['value'] } : undefined;
}

/** Whether the text is a sealed block, which only this gateway can read. */
export function isSealedBlock(text: unknown): text is string {
  return typeof text === 'string' && text.startsWith(PREFIX);
}
