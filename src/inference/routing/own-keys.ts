/**
 * BYOK: every endpoint that fits a customer's credential is tried with it before any endpoint is tried with the
 * gateway's own credentials, whatever order the request wants. BYOK credentials go by their sort order, fallback ones
 * last. One in cooldown goes after everything else.
 */
import type { OwnKey } from '../../byok/index.ts';
import type { Endpoint } from '../../catalog/index.ts';
import type { Health } from './health.ts';
import type { PreparedEndpoint } from './prepared.ts';
import type { Candidate } from './route.ts';
import type { Rule } from './rules.ts';

/** The caller's BYOK credentials. */
export interface CallersKeys {
  /** The credentials that may be used at an endpoint, in their order. */
  of(endpoint: Endpoint): readonly OwnKey[];
  /** True if the gateway's own credentials must not be used. */
  closes(endpoint: Endpoint): boolean;
  /** The credentials that this machine cannot decrypt. */
  unopened(endpoint: Endpoint): readonly OwnKey[];
}

/** An endpoint that passed the rules, with the credentials for it: BYOK, the gateway's own, or both. */
export interface Owned extends Candidate {
  readonly keys: readonly OwnKey[];
  /** True if the gateway's own credentials may be used. */
  readonly shared: boolean;
}

/** Excludes the gateway's own credentials where the caller's BYOK settings demand it. */
export function ownKeysOnly(keys: CallersKeys): Rule {
  return {
    name: 'own_keys_only',
    kind: 'constraint',
    path: undefined,
    keeps: ({ endpoint }) => !keys.closes(endpoint),
  };
}

/** The BYOK credentials of an endpoint that pass the rules, given what their owner declares about data retention. */
export function fittingKeys(
  prepared: PreparedEndpoint,
  keys: readonly OwnKey[],
  rules: readonly Rule[],
): readonly OwnKey[] {
  return keys.filter(({ declaredZdr }) => {
    const declared =
      declaredZdr === null ? prepared : { ...prepared, endpoint: declaring(prepared.endpoint, declaredZdr) };
    return rules.every((rule) => rule.keeps(declared));
  });
}

/** An account with zero data retention does not retain for safety either. */
function declaring(endpoint: Endpoint, zdr: boolean): Endpoint {
  const { dataPolicy } = endpoint;
  return { ...endpoint, dataPolicy: { ...dataPolicy, zdr, retainsForSafety: !zdr && dataPolicy.retainsForSafety } };
}

export function hasKey({ keys }: Owned): boolean {
  return keys.length > 0;
}

/**
 * One candidate per BYOK credential and endpoint, then the endpoints with the gateway's own credentials in their order.
 */
export function expanded(choices: readonly Owned[], health: Health): readonly Candidate[] {
  if (!choices.some(hasKey)) return choices;
  const own = choices.flatMap(({ endpoint, rank, keys }) => keys.map((key) => ({ endpoint, rank, own: key })));
  const rests = ({ own: key, endpoint }: { own: OwnKey; endpoint: Endpoint }) => ownKeyRests(key, endpoint, health);
  const ready = own.filter((candidate) => !rests(candidate));
  return [
    ...ready.filter((candidate) => !candidate.own.isFallback),
    ...ready.filter((candidate) => candidate.own.isFallback),
    ...choices.filter(({ shared }) => shared),
    ...own.filter(rests),
  ];
}

export function ownKeyRests(key: OwnKey, { modelId }: Endpoint, health: Health): boolean {
  if (!health.anyRests) return false;
  const id = ownCredentialId(key);
  return health.restMs(id) > 0 || health.restMs(`${id}:${modelId}`) > 0;
}

/** Identifies the credential in `Health` and in logs. */
export function ownCredentialId({ id }: OwnKey): string {
  return `own#${id}`;
}
