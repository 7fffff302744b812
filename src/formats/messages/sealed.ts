/**
 * Carries content that only another vendor can read through a messages client. Clients return two opaque members
 * unchanged: the signature of a thinking block and the data of a redacted one. Other vendors' signatures, encrypted
 * reasoning and unknown blocks are stored there with their origin, so that the next turn can send them back to it.
 */
import { parseJson } from '../../base/json.ts';
import type { ReasoningOrigin, ReasoningPart } from '../conversation/conversation.ts';
import { type Fields, isFields } from '../conversation/fields.ts';
import { isSealedBlock } from '../conversation/sealed-block.ts';

/** Signatures of this format's own vendor cannot begin like this: they are base64. */
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
  /** The id of the call that the signature belongs to, when it does not belong to a reasoning part. */
  callId?: string;
}

/** Serializes the members as one text; base64 values are not encoded again. */
export function seal(sealed: Sealed): string {
  const { origin, signature, encrypted, id, summary, callId } = sealed;
  return PREFIX + JSON.stringify({ origin, id, callId, summary, signature, encrypted });
}

/** The sealed text of a reasoning part of another origin; undefined when its text is all there is. */
export function sealOf(part: ReasoningPart): string | undefined {
  if (part.origin === 'anthropic-claude-v1') return undefined;
  if (part.origin === 'unknown' && !part.signature && !part.encrypted && !part.id && !part.summary) return undefined;
  return seal(part);
}

/** Returns undefined for anything not made by `seal`: a signature of this format's own vendor. */
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

/** Whether `seal` or `sealBlock` made the text, so that only this gateway can read it. */
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
