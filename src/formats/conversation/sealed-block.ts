/**
 * A vendor's block as one text, for forms that have a place for such a text and clients that send it back unchanged: so it
 * returns to its origin on the next turn.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { FormatId, OpaquePart } from './conversation.ts';
import { isFields } from './fields.ts';

/** No vendor's encrypted content can begin like this: it is base64. */
const PREFIX = 'sealed-block-1:';

const FORMATS: readonly FormatId[] = ['chat', 'messages', 'responses', 'gemini', 'converse', 'cohere'];

/**
 * Forms that no client speaks: their blocks stand in a history only because an answer brought them, so a provider of
 * another form is asked without them.
 */
const SPOKEN_ONLY: readonly FormatId[] = ['gemini', 'converse', 'cohere'];

export function isSpokenOnly(origin: FormatId): boolean {
  return SPOKEN_ONLY.includes(origin);
}

export function sealBlock(part: OpaquePart): string {
  return PREFIX + stringifyJson({ origin: part.origin, value: part.value });
}

/** Undefined for anything that `sealBlock` did not make. */
export function unsealBlock(text: string): OpaquePart | undefined {
  if (!isSealedBlock(text)) return undefined;
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

/** Whether only this gateway can read it. */
export function isSealedBlock(text: unknown): text is string {
  return typeof text === 'string' && text.startsWith(PREFIX);
}
