/**
 * Relays to an upstream of the client's own format: the original text passes through with a few members replaced.
 * Everything not named here (unknown members, items and events, number spelling, white space) arrives as sent.
 */
import { type JsonDocument, scanMembers, stringifyJson } from '../../base/json.ts';
import { type Edit, patchMembers } from '../../base/json-edits.ts';
import { type Fields, fieldsOf, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { EncodeTarget, Relay, RelayedAnswer } from '../conversation/format.ts';
import type { Losses } from '../conversation/losses.ts';
import { relayedTools } from '../conversation/plain-schema.ts';
import { isSealedBlock } from '../conversation/sealed-block.ts';
import { isShownId } from '../conversation/served-call.ts';
import { decodeReasoningSettings } from './decode.ts';
import { encodeReasoning, outputCap } from './encode.ts';
import { OWN_FIELDS, serviceTier } from './fields.ts';
import { hasLongIds, withShortIds } from './item-ids.ts';
import { patchResponse } from './patch-response.ts';
import { outputWithIds } from './relay-calls.ts';
import { ResponsesRelayStream } from './relay-stream.ts';

export const relay: Relay = { edits, reply, stream: (stamp) => new ResponsesRelayStream(stamp) };

function edits(document: JsonDocument, target: EncodeTarget, losses?: Losses): Edit[] {
  // The members read here are ASCII. Decoding a large body fully would cost more than parsing it.
  const body = document.structure;
  const dialect = target.dialect.responses ?? {};
  const changes = new Map<string, string | undefined>();
  for (const key of OWN_FIELDS) if (key in body) changes.set(key, undefined);
  changes.set('model', JSON.stringify(target.model));
  // The vendors store responses by default.
  changes.set('store', 'false');
  const userField = dialect.userField ?? 'user';
  if (userField !== 'none') changes.set(userField, JSON.stringify(target.user));
  if ((body['stream'] === true) !== target.stream) changes.set('stream', String(target.stream));
  const asked = typeof body['max_output_tokens'] === 'number' ? body['max_output_tokens'] : undefined;
  const cap = outputCap(asked, target);
  if (cap !== undefined && cap !== asked) changes.set('max_output_tokens', String(cap));
  const reasoning = editedReasoning(document, cap ?? target.maxOutputTokens);
  if (reasoning !== undefined) changes.set('reasoning', stringifyJson(reasoning));
  editTier(textOrUndefined(body['service_tier']), target.serviceTier, changes);
  const tools = relayedTools(document, 'parameters');
  if (tools !== undefined) changes.set('tools', tools);
  const input = editedInput(document, target);
  if (input !== undefined) changes.set('input', stringifyJson(input));
  for (const field of dialect.refuses ?? []) {
    if (!(field in body)) continue;
    changes.set(field, undefined);
    losses?.drop(field, 'the upstream does not accept it');
  }
  return [...changes].map(([key, json]) => ({ key, json }));
}

/** @param given tier to send instead of the client's; null for none, undefined to keep the client's */
function editTier(
  wish: string | undefined,
  given: string | null | undefined,
  changes: Map<string, string | undefined>,
) {
  const tier = given === undefined ? wish && serviceTier(wish) : (given ?? undefined);
  if (tier !== wish) changes.set('service_tier', tier === undefined ? undefined : JSON.stringify(tier));
}

/** Our own members of `reasoning` translated for the vendor; undefined if there are none. */
function editedReasoning(document: JsonDocument, cap: number | null): Fields | undefined {
  const asked = fieldsOf(document.structure['reasoning']);
  if (!('enabled' in asked) && !('max_tokens' in asked)) return undefined;
  const { summary, ...said } = encodeReasoning(decodeReasoningSettings(asked), cap) ?? {};
  return typeof asked['summary'] === 'string' ? { ...said, summary } : said;
}

/**
 * Removes reasoning that this upstream would reject: another vendor's, sealed blocks, and unencrypted reasoning where
 * only encrypted is accepted. Shortens or drops ids that are too long. Undefined if nothing changes, which is the usual
 * case.
 */
function editedInput(document: JsonDocument, target: EncodeTarget): unknown[] | undefined {
  const encryptedOnly = target.dialect.responses?.encryptedReasoningOnly === true;
  const input = listOf(document.structure['input']);
  let calls: Set<unknown> | undefined;
  /** A signature that another upstream bound to a call has that call's id. */
  const isBound = (id: unknown): boolean => {
    if (typeof id !== 'string' || id.startsWith('rs_')) return false;
    calls ??= new Set(input.map((entry) => fieldsOf(entry)['call_id']));
    return calls.has(id);
  };
  const isForeign = ({ id, encrypted_content: encrypted, format }: Fields): boolean => {
    if (isSealedBlock(encrypted) || isBound(id)) return true;
    if (typeof format === 'string' && format !== target.origin) return true;
    return encryptedOnly && (typeof encrypted !== 'string' || encrypted === '');
  };
  const strict = target.dialect.responses?.strictCallIds === true;
  const isChanged = (entry: unknown): boolean => {
    const item = fieldsOf(entry);
    if (hasLongIds(item) || isShownId(item['id'])) return true;
    return item['type'] === 'reasoning' && ('format' in item || 'signature' in item || isForeign(item));
  };
  // The members inspected are ASCII, so the undecoded view is exact for them.
  if (!input.some(isChanged)) return undefined;
  return listOf(document.exact['input']).flatMap((entry) => {
    if (!isChanged(entry)) return [entry];
    if (isShownId(fieldsOf(entry)['id'])) return [];
    if (fieldsOf(entry)['type'] !== 'reasoning') return [withShortIds(fieldsOf(entry), strict)];
    const { format: _format, signature: _signature, ...item } = fieldsOf(entry);
    return isForeign(fieldsOf(entry)) ? [] : [item];
  });
}

function reply({ text, value, turn, stamp, closing }: RelayedAnswer): string {
  const known = { ...closing, usage: closing.usage ?? turn.usage };
  const response = fieldsOf(value);
  const output = outputWithIds(listOf(response['output']), turn.choices[0]?.parts ?? []);
  const answer = output === undefined ? text : patchMembers(text, scanMembers(text), [{ key: 'output', json: output }]);
  return patchResponse(answer, response, stamp, known);
}
