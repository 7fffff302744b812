/**
 * Blocks of other forms, carried through a client of the responses form: the form's clients send reasoning items back
 * unchanged, so such a block travels in one, as its encrypted content, and returns to its origin on the next turn.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { FormatId, OpaquePart } from '../conversation/conversation.ts';
import { isFields } from '../conversation/fields.ts';

/** No vendor's encrypted content can begin like this: it is base64. */
const PREFIX = 'sealed-block-1:';

const FORMATS: readonly FormatId[] = ['chat', 'messages', 'responses', 'gemini', 'converse', 'cohere'];

export function sealBlock(part: OpaquePart): string {
  return PREFIX + stringifyJson({ origin: part.origin, value: part.value });
}

/** Undefined for anything that `sealBlock` did not make. */
export function unsealBlock(text: string): OpaquePart | undefined {
  if (!isSealed(text)) return undefined;
  let value: unknown;
  try {
    value = parseJson(text.slice(PREFIX.length));
  } catch {
    return undefined;
  }
  if (!isFields(value)) return undefined;
  const origin = FORMATS.find((name) => name === value['origin']);
  return origin === undefined ? undefined : { type: 'opaque', origin, value: value['value'] };
}

export function isSealed(text: unknown): boolean {
  return typeof text === 'string' && text.startsWith(PREFIX);
}
