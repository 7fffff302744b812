/** Which stored state a request uses, and whether that is allowed. Pure. */
import type { Caller } from '../access/index.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { type JsonDocument, readDocument } from '../base/json.ts';
import { applyEdits } from '../base/json-edits.ts';
import { storable } from '../base/storable.ts';
import type { Catalog } from '../catalog/index.ts';
import { type Fields, fieldsOf, isFields } from '../formats/conversation/fields.ts';
import type { RequestFacts, ServedFormat } from '../formats/conversation/format.ts';
import { responses } from '../formats/index.ts';
import { policyOf } from '../guardrails/index.ts';

export interface Wanted {
  /** The response is kept. */
  store: boolean;
  /** It is answered later, in the background. */
  background: boolean;
  /** A response whose input and output come before the request's own input. */
  previousId: string | null;
  /** A conversation whose items come before the request's own input, and which gets that and the output. */
  conversationId: string | null;
}

/** Members that only this folder reads; without them a request needs no state. */
const MEMBERS = ['store', 'background', 'previous_response_id', 'conversation'] as const;

/** Undefined for a stateless request, the usual case. @throws GatewayError 400 */
export function wantedOf({ structure }: JsonDocument): Wanted | undefined {
  const { store, background, previous_response_id: previous = null, conversation = null } = structure;
  if (store !== true && background !== true && previous === null && conversation === null) return undefined;
  if (background === true && store === false) {
    throw invalidField('store', 'must not be false with background: the response could not be retrieved later');
  }
  const conversationId = conversation === null ? null : conversationIdOf(conversation);
  if (conversationId !== null && previous !== null) {
    throw invalidField('previous_response_id', 'cannot be used together with conversation');
  }
  if (previous !== null && (typeof previous !== 'string' || previous === '')) {
    throw invalidField('previous_response_id', 'must be the id of a stored response');
  }
  storable('previous_response_id', previous);
  const inBackground = background === true;
  return { store: store === true || inBackground, background: inBackground, previousId: previous, conversationId };
}

/** As `"conv_1"` or `{"id": "conv_1"}`. */
function conversationIdOf(conversation: unknown): string {
  const path = isFields(conversation) ? 'conversation.id' : 'conversation';
  const id = isFields(conversation) ? conversation['id'] : conversation;
  if (typeof id !== 'string' || id === '') throw invalidField(path, 'must be the id of a conversation');
  return storable(path, id);
}

/** The request without the members that this folder reads. */
export function withoutState(document: JsonDocument): JsonDocument {
  return readDocument(
    applyEdits(
      document,
      MEMBERS.map((key) => ({ key, json: undefined })),
    ),
  );
}

/** The members about state that the response repeats. */
export function stateMembers({ store, background, previousId, conversationId }: Wanted): Fields {
  return {
    ...{ store, background, previous_response_id: previousId },
    ...(conversationId !== null && { conversation: { id: conversationId } }),
  };
}

/** The format, with responses that repeat these members. */
export function echoing(members: Fields): ServedFormat {
  return { ...responses, echo: (document) => ({ ...responses.echo!(document), ...members }) };
}

interface Terms {
  caller: Caller;
  facts: RequestFacts;
  /** Of the account. */
  zdr: boolean;
  catalog: Pick<Catalog, 'find'>;
}

/**
 * A request under zero data retention stores nothing.
 * @param field that asks for it @throws GatewayError 403 that says who demands zero data retention
 */
export function refuseUnderZdr(field: string, document: JsonDocument, { caller, facts, zdr, catalog }: Terms): void {
  const provider = document.structure['provider'];
  const source = zdr
    ? 'the settings of the gateway'
    : isFields(provider) && fieldsOf(provider)['zdr'] === true
      ? 'provider.zdr'
      : guardrailWantsZdr(caller, facts, catalog)
        ? 'a guardrail of this key'
        : undefined;
  if (source === undefined) return;
  const problem = `must be ${field === 'store' ? 'false or ' : ''}absent: ${source} demands zero data retention`;
  throw new GatewayError('permission_denied', `${field} ${problem}`, { path: field });
}

/** A guardrail names vendors. A request whose models are not known yet may be for any of them. */
function guardrailWantsZdr(
  caller: Caller,
  { model, fallbackModels }: RequestFacts,
  catalog: Terms['catalog'],
): boolean {
  const policy = policyOf(caller);
  if (policy.compiled.zdr.size === 0) return false;
  const names = [...(model === undefined ? [] : [model]), ...fallbackModels];
  const found = names.map((name) => catalog.find(name));
  return names.length === 0 || found.some((entry) => entry === undefined || policy.wantsZdr(entry.id));
}
