/**
 * Evaluates the access rules of operations (`http/access-rule.ts`), in the only place. Authentication comes first, and
 * what a caller may do with a model or a resource comes later (`guardrails/`, the handlers).
 */
import { GatewayError } from '../base/errors.ts';
import type { AccessRule, CallerKind, Region } from '../http/access-rule.ts';
import type { Exchange } from '../http/operation.ts';
import type { Caller } from './caller.ts';

/** `caller` is undefined if the operation is open to this request. */
export type AccessRequest = Pick<Exchange<Caller | undefined>, 'caller' | 'params' | 'host'>;

/** What rules refer to by name. A name without an entry applies to no caller. */
export interface AccessChecks {
  /** Whether a caller takes part; called once per request, so it reads memory only. */
  programmes?: Readonly<Record<string, (caller: Caller) => boolean>>;
  /** Whether a caller may use the resources that the path names. */
  scopes?: Readonly<Record<string, (caller: Caller, params: Readonly<Record<string, string>>) => boolean>>;
  /** The root that a host name reaches. Default: always the global one. */
  regionOf?(host: string | undefined): Region;
}

/**
 * Throws GatewayError 404 outside of the operation's programme or scope, and 403 (or 401) for a caller of another kind, and 403 for a
 * request to a root that does not serve the operation.
 */
export type Permit = (request: AccessRequest, rule: AccessRule) => void;

export function createPermit({ programmes = {}, scopes = {}, regionOf = () => 'global' }: AccessChecks): Permit {
  // Nothing is destructured from the request: its `host` costs a look-up.
  return (request, { kinds, otherKinds, programme, scope, regions }) => {
    const { caller } = request;
    // First, so that callers outside cannot tell the operation from one that does not exist.
    if (programme !== undefined && !(caller && programmes[programme]?.(caller))) throw nothingHere();
    if (caller) checkKind(caller, kinds, otherKinds);
    if (scope !== undefined && !(caller && scopes[scope]?.(caller, request.params))) throw nothingHere();
    if (regions !== undefined && !regions.includes(regionOf(request.host))) throw notServedHere(regions);
  };
}

/**
 * A key of another kind gets 403. Clients discard a key on 401, so 401 is for credentials that are really invalid, and for
 * operations whose rule says `otherKinds`.
 */
export function checkKind(
  { kind }: Pick<Caller, 'kind'>,
  kinds: AccessRule['kinds'],
  otherKinds?: AccessRule['otherKinds'],
): void {
  if (kinds === 'anyone' || kinds.includes(kind)) return;
  const message = otherKind(kind, kinds);
  throw new GatewayError(otherKinds === 'unknown' ? 'authentication' : 'permission_denied', message);
}

const PLURALS: Readonly<Record<CallerKind, string>> = {
  inference: 'inference keys',
  management: 'management keys',
  scim: 'SCIM tokens',
};

function otherKind(kind: CallerKind, kinds: readonly CallerKind[]): string {
  if (kind === 'scim') return 'SCIM tokens can only be used on /scim/v2.';
  if (kind === 'management' && kinds.includes('inference')) {
    return 'Management keys cannot perform this operation; use an inference key.';
  }
  return `Only ${kinds.map((each) => PLURALS[each]).join(' and ')} can perform this operation.`;
}

/** Without metadata, as for a path that the gateway does not have. */
export function nothingHere(): GatewayError {
  return new GatewayError('not_found', 'There is no such resource.', { bare: true });
}

function notServedHere(regions: readonly Region[]): GatewayError {
  const roots = regions.length === 1 ? `the ${regions[0]} host` : `these hosts: ${regions.join(', ')}`;
  return new GatewayError('permission_denied', `This operation is only served by ${roots}.`);
}
