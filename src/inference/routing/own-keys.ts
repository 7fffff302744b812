/**
 * Customers' own keys at providers (wire/keys.md, `/byok`): every endpoint that one fits is tried with it before any is
 * tried over the gateway's own credentials, whatever order the request wants; among themselves by sort order, fallback ones
 * last. A key that rests after a failure comes behind everything else.
 */
import type { OwnKey } from '../../byok/index.ts';
import type { Endpoint } from '../../catalog/index.ts';
import type { Health } from './health.ts';
import type { PreparedEndpoint } from './prepared.ts';
import type { Candidate } from './route.ts';
import type { Rule } from './rules.ts';

/** What the caller has of own keys. */
export interface CallersKeys {
  /** Those that may be used at an endpoint, in their order. */
  of(endpoint: Endpoint): readonly OwnKey[];
  /** Whether the gateway's own credentials may not. */
  closes(endpoint: Endpoint): boolean;
  /** Those that this machine cannot open. */
  unopened(endpoint: Endpoint): readonly OwnKey[];
}

/** An endpoint that is left, by whose credentials: a key's, the gateway's own, or both. */
export interface Owned extends Candidate {
  readonly keys: readonly OwnKey[];
  /** Whether the gateway's own credentials may be used. */
  readonly shared: boolean;
}

/** Excludes the gateway's own credentials where the caller's keys say so. */
export function ownKeysOnly(keys: CallersKeys): Rule {
  return {
    name: 'own_keys_only',
    kind: 'constraint',
    path: undefined,
    keeps: ({ endpoint }) => !keys.closes(endpoint),
  };
}

/** Those of an endpoint's keys that the rules leave, with what their owner declares of the provider's retention. */
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

/** Whose account retains nothing is not retained for safety either. */
function declaring(endpoint: Endpoint, zdr: boolean): Endpoint {
  const { dataPolicy } = endpoint;
  return { ...endpoint, dataPolicy: { ...dataPolicy, zdr, retainsForSafety: !zdr && dataPolicy.retainsForSafety } };
}

export function hasKey({ keys }: Owned): boolean {
  return keys.length > 0;
}

/** One candidate for each key of each endpoint, then those over the gateway's own credentials in the order that they had. */
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

/** Names the key in `Health` and in logs. */
export function ownCredentialId({ id }: OwnKey): string {
  return `own#${id}`;
}
