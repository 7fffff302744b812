/**
 * Thought signatures. Those of Google are passed on as they are. Reasoning of other vendors travels in them too, so that it
 * returns to its origin: sealed as base64 of an entry of `reasoning_details`.
 */
import { type Fields, fieldsOf, isFields, textOf } from '../conversation/fields.ts';

export const GOOGLE = 'google-gemini-v1';
const SEAL = 'svc_reasoning';

function sealedEntry(entry: Fields): string {
  return Buffer.from(JSON.stringify({ [SEAL]: entry })).toString('base64');
}

/** Undefined for a signature of Google. */
function openedEntry(signature: string): Fields | undefined {
  // '{"svc_reasoning":' in base64.
  if (!signature.startsWith('eyJzdmNfcmVhc29uaW5nIjp7')) return undefined;
  try {
    const value: unknown = JSON.parse(Buffer.from(signature, 'base64').toString());
    const entry = fieldsOf(value)[SEAL];
    return isFields(entry) ? entry : undefined;
  } catch {
    return undefined;
  }
}

/** The signature that carries an entry of `reasoning_details`; undefined if it has nothing that must return. */
export function signatureOf(entry: Fields, text: string): string | undefined {
  const proof = textOf(entry['signature']) || textOf(entry['data']);
  if (entry['format'] === GOOGLE) return proof === '' ? undefined : proof;
  return proof === '' ? undefined : sealedEntry({ ...entry, ...(text !== '' && { text }) });
}

/** The entry of `reasoning_details` for a part. @param text its visible thought */
export function entryOf(signature: string | undefined, text: string, index: number): Fields {
  const opened = signature === undefined ? undefined : openedEntry(signature);
  if (opened !== undefined) return { ...opened, ...(text !== '' && { text }), index };
  return {
    ...{ type: 'reasoning.text', text, format: signature === undefined ? 'unknown' : GOOGLE, index },
    ...(signature !== undefined && { signature }),
  };
}

/** The entry for the signature of a call. */
export function callEntry(signature: string, id: string, index: number): Fields {
  const opened = openedEntry(signature);
  return { ...(opened ?? { type: 'reasoning.encrypted', data: signature, format: GOOGLE }), id, index };
}
