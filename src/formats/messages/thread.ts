/**
 * Message threads (platform.claude.com, beta `message-threads`): the service stores the conversation under the id of
 * its answer, and the next request sends only the new messages. Pure.
 */
import { invalidField } from '../../base/errors.ts';
import { type Fields, fieldsOf, isFields, textOrUndefined } from '../conversation/fields.ts';
import type { EncodeTarget, RequestFacts } from '../conversation/format.ts';

const THREAD = 'thread';

/** Throws GatewayError 400 for an invalid thread. */
export function checkThread(request: Fields): void {
  const thread = request[THREAD];
  if (thread === undefined || thread === null) return;
  if (!isFields(thread)) throw invalidField(THREAD, 'must be an object');
  const { type, previous_message_id: previous } = thread;
  if (type !== 'create' && type !== 'continue') throw invalidField(`${THREAD}.type`, 'must be create or continue');
  if (type === 'continue' && (typeof previous !== 'string' || previous === '')) {
    throw invalidField(`${THREAD}.previous_message_id`, 'must be the id of the answer to continue');
  }
}

/** Returns undefined for a request without a thread. */
export function threadOf(request: Fields): RequestFacts['thread'] {
  const thread = request[THREAD];
  if (!isFields(thread)) return undefined;
  const previousId = textOrUndefined(thread['previous_message_id']);
  return thread['type'] === 'continue' && previousId !== undefined ? { previousId } : {};
}

/** Our id of the answer that `diagnostics` compares with; undefined if it names none. */
export function comparedIdOf(request: Fields): string | undefined {
  const { diagnostics } = request;
  return isFields(diagnostics) ? textOrUndefined(diagnostics['previous_message_id']) : undefined;
}

/** The members that reference earlier answers, with the upstream's ids. `member` returns a member of the request. */
export function upstreamIds(
  { previousId, comparedId }: Pick<EncodeTarget, 'previousId' | 'comparedId'>,
  member: (name: string) => unknown,
): Fields {
  const named = (name: string, id: string): Fields => ({ ...fieldsOf(member(name)), previous_message_id: id });
  return {
    ...(previousId !== undefined && { [THREAD]: named(THREAD, previousId) }),
    ...(comparedId !== undefined && { diagnostics: named('diagnostics', comparedId) }),
  };
}
