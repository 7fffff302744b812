/**
 * The provider account that started some work. Only its credential can fetch the result, which another process may do.
 */
import { createHash } from 'node:crypto';
import { GatewayError, invalidField } from '../../base/errors.ts';
import type { ByokCaller, ByokCredentials } from '../../byok/index.ts';
import type { Endpoint } from '../../catalog/index.ts';
import type { Candidate, Route } from './route.ts';

export interface ProviderAccount {
  /** Fingerprint of the gateway's own credential; '' for none. */
  credential: string;
  /** The BYOK credential that was used instead. */
  byokId: string | null;
}

/** Of a credential; '' for null. */
export function fingerprint(credential: string | null): string {
  return credential === null ? '' : createHash('sha256').update(credential).digest('hex').slice(0, 32);
}

/**
 * The credential of an account, as it is configured now.
 * @param caller undefined: no BYOK credential can be used
 * @throws GatewayError 503 while it is not configured
 */
export function credentialOf(
  { credential, byokId }: ProviderAccount,
  { provider, modelId }: Endpoint,
  caller: ByokCaller | undefined,
  byok: ByokCredentials | undefined,
): Pick<Candidate, 'byok' | 'credentialId'> {
  if (byokId !== null) {
    const ids = { id: provider.id, kindId: provider.kind.id };
    const found = caller && byok?.of(caller, ids, modelId).find(({ id }) => id === byokId);
    if (found === undefined) throw notConfigured('the BYOK credential');
    return { byok: found };
  }
  if (credential === '') return {};
  const at = provider.credentials.findIndex((each) => fingerprint(each) === credential);
  if (at < 0) throw notConfigured(`the credential of ${provider.id}`);
  return { credentialId: `${provider.id}#${at}` };
}

/** Work that a provider has done and that a request continues. */
export interface ContinuedWork {
  /** The request's field that names it. */
  readonly path: string;
  readonly endpointId: string;
  readonly account: ProviderAccount;
}

/**
 * The one candidate that can continue the work: its endpoint, with the credential that did it.
 * @throws GatewayError 400 if the request may not use them
 */
export function continuing(route: Route, { path, endpointId, account }: ContinuedWork): Route {
  const candidate = route.candidates.find(
    ({ endpoint, byok }) => endpoint.id === endpointId && (byok?.id ?? null) === account.byokId,
  );
  if (candidate === undefined) {
    throw invalidField(path, 'can be continued only by the model, endpoint and credential that made it');
  }
  const credential = account.byokId === null ? credentialOf(account, candidate.endpoint, undefined, undefined) : {};
  return { ...route, candidates: [{ ...candidate, ...credential }] };
}

export function notConfigured(what: string): GatewayError {
  return new GatewayError('server', `${what} that was used is not configured`, { status: 503 });
}
