/**
 * What only another vendor can read, carried through a messages client. The form has two opaque places, the signature of
 * a thinking block and the data of a redacted one, which its clients send back unchanged. What another vendor signed or
 * encrypted, and its blocks without a name here, travel there together with the name of their origin, so that they can
 * return to that origin on the next turn.
 */
import { parseJson } from '../../base/json.ts';
import type { ReasoningOrigin, ReasoningPart } from '../conversation/conversation.ts';
import { type Fields, isFields } from '../conversation/fields.ts';
import { isSealedBlock } from '../conversation/sealed-block.ts';

/** No signature of this form's own vendor can begin like this: they are base64. */
const PREFIX = 'sealed-reasoning-1:';

const ORIGINS: readonly ReasoningOrigin[] = [
  'unknown',
  'anthropic-claude-v1',
  'openai-responses-v1',
  'azure-openai-responses-v1',
  'bedrock-openai-responses-v1',
  'bedrock-xai-responses-v1',
  'xai-responses-v1',
  'meta-responses-v1',
  'google-gemini-v1',
];

export interface Sealed {
  origin: ReasoningOrigin;
  signature?: string;
  encrypted?: string;
  id?: string;
  summary?: boolean;
  /** The signature belongs to the call with this id, not to a reasoning part. */
  callId?: string;
}

/** One text that holds the members; base64 values stand in it as they are. */
export function seal(sealed: Sealed): string {
  const { origin, signature, encrypted, id, summary, callId } = sealed;
  return PREFIX + JSON.stringify({ origin, id, callId, summary, signature, encrypted });
}

/** What a reasoning part of another origin needs back, or undefined when its text says everything. */
export function sealOf(part: ReasoningPart): string | undefined {
  if (part.origin === 'anthropic-claude-v1') return undefined;
  if (part.origin === 'unknown' && !part.signature && !part.encrypted && !part.id && !part.summary) return undefined;
  return seal(part);
}

/** Undefined for anything that `seal` did not make; such a text is a signature of this form's own vendor. */
export function unseal(text: string): Sealed | undefined {
  const value = text.startsWith(PREFIX) ? parseObject(text.slice(PREFIX.length)) : undefined;
  if (value === undefined) return undefined;
  const origin = ORIGINS.find((name) => name === value['origin']);
  if (origin === undefined) return undefined;
  const sealed: Sealed = { origin };
  for (const key of ['signature', 'encrypted', 'id', 'callId'] as const) {
    const member = value[key];
    if (typeof member === 'string') sealed[key] = member;
  }
  if (value['summary'] === true) sealed.summary = true;
  return sealed;
}

/** Whether `seal` or `sealBlock` made it, so that only this gateway can read it. */
export function isSealed(text: unknown): boolean {
  return isSealedBlock(text) || (typeof text === 'string' && text.startsWith(PREFIX));
}

function parseObject(text: string): Fields | undefined {
  try {
    const value = parseJson(text);
    return isFields(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
