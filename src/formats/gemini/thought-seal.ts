/**
 * Carries content that only other vendors can read through a Gemini client. Clients return `thoughtSignature`
 * unchanged, so signed or encrypted reasoning of other vendors, and blocks of their own tools, are stored in it with
 * their origin. They are base64, because SDKs decode the member.
 */
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { OpaquePart, ReasoningOrigin, ReasoningPart } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, textOf } from '../conversation/fields.ts';
import { isFormatId } from '../conversation/registry.ts';

export const GOOGLE: ReasoningOrigin = 'google-gemini-v1';

const KEY = 'svc_sealed';
/** `{"svc_sealed":` in base64. */
const PREFIX = 'eyJzdmNfc2VhbGVkIjp7';
const MEMBERS = ['text', 'signature', 'encrypted', 'id'] as const;

type Unsealed =
  /** Of a thought, or of the call that carries it. */
  { reasoning: ReasoningPart } | { block: OpaquePart };

/** @param part of another vendor than Google; its text is left out if `shown` says that the client has it */
export function sealReasoning(part: ReasoningPart, shown: boolean): string {
  const { origin, summary, text } = part;
  const kept = MEMBERS.map((name) => [name, name === 'text' && (shown || text === '') ? undefined : part[name]]);
  return seal({ origin, ...Object.fromEntries(kept), ...(summary === true && { summary }) });
}

export function sealCallSignature({ origin, value }: { origin: ReasoningOrigin; value: string }): string {
  return seal({ origin, signature: value });
}

export function sealBlock({ origin, value }: OpaquePart): string {
  return seal({ block: origin, value });
}

function seal(sealed: Fields): string {
  return Buffer.from(stringifyJson({ [KEY]: sealed })).toString('base64');
}

/** Whether this gateway wrote the signature, so that no service can read it. */
export function isSealed(signature: unknown): signature is string {
  return typeof signature === 'string' && signature.startsWith(PREFIX);
}

/** Undefined for a signature of Google, and for a seal that was changed. */
export function unseal(signature: string): Unsealed | undefined {
  const sealed = openedSeal(signature);
  if (sealed === undefined) return undefined;
  const { block, origin, summary } = sealed;
  if (isFormatId(block)) return { block: { type: 'opaque', origin: block, value: sealed['value'] } };
  if (!isOrigin(origin)) return undefined;
  const reasoning: ReasoningPart = { type: 'reasoning', text: textOf(sealed['text']), origin };
  for (const name of ['signature', 'encrypted', 'id'] as const) {
    const value = sealed[name];
    if (typeof value === 'string') reasoning[name] = value;
  }
  if (summary === true) reasoning.summary = true;
  return { reasoning };
}

/** The sealed members; filters read and replace the texts in them. */
export function openedSeal(signature: string): Fields | undefined {
  if (!isSealed(signature)) return undefined;
  try {
    const sealed = fieldsOf(parseJson(Buffer.from(signature, 'base64').toString()))[KEY];
    return isFields(sealed) ? sealed : undefined;
  } catch {
    return undefined;
  }
}

export { seal as resealed };

const ORIGINS: Readonly<Record<ReasoningOrigin, true>> = {
  unknown: true,
  'anthropic-claude-v1': true,
  'openai-responses-v1': true,
  'azure-openai-responses-v1': true,
  'bedrock-openai-responses-v1': true,
  'bedrock-xai-responses-v1': true,
  'xai-responses-v1': true,
  'meta-responses-v1': true,
  'google-gemini-v1': true,
};

function isOrigin(text: unknown): text is ReasoningOrigin {
  return typeof text === 'string' && Object.hasOwn(ORIGINS, text);
}
