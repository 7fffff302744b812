/**
 * BYOK: every endpoint that fits a customer's credential is tried with it before any endpoint is tried with the
 * gateway's own credentials, whatever order the request wants. BYOK credentials go by their sort order, fallback ones
 * last. One in cooldown goes after everything else.
 */
import type { ByokCredential } from '../../byok/index.ts';
import type { Endpoint } from '../../catalog/index.ts';
import type { Health } from './health.ts';
import type { PreparedEndpoint } from './prepared.ts';
import type { Candidate } from './route.ts';
import type { Rule } from './rules.ts';

/** The caller's BYOK credentials. */
export interface CallerByok {
  /** The credentials that may be used at an endpoint, in their order. */
  of(endpoint: Endpoint): readonly ByokCredential[];
  /** True if the gateway's own credentials must not be used. */
  closes(endpoint: Endpoint): boolean;
  /** The credentials that this machine cannot decrypt. */
  undecrypted(endpoint: Endpoint): readonly ByokCredential[];
}

/** An endpoint that passed the rules, with the credentials for it: BYOK, the gateway's own, or both. */
export interface ByokChoice extends Candidate {
  readonly keys: readonly ByokCredential[];
  /** True if the gateway's own credentials may be used. */
  readonly shared: boolean;
}

/** Excludes the gateway's own credentials where the caller's BYOK settings demand it. */
export function byokOnly(keys: CallerByok): Rule {
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
  keys: readonly ByokCredential[],
  rules: readonly Rule[],
): readonly ByokCredential[] {
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

export function hasByok({ keys }: ByokChoice): boolean {
  return keys.length > 0;
}

/**
 * One candidate per BYOK credential and endpoint, then the endpoints with the gateway's own credentials in their order.
 */
export function expanded(choices: readonly ByokChoice[], health: Health): readonly Candidate[] {
  if (!choices.some(hasByok)) return choices;
  const byok = choices.flatMap(({ endpoint, rank, keys }) => keys.map((key) => ({ endpoint, rank, byok: key })));
  const isInCooldown = (candidate: { byok: ByokCredential; endpoint: Endpoint }) =>
    isByokInCooldown(candidate.byok, candidate.endpoint, health);
  const ready = byok.filter((candidate) => !isInCooldown(candidate));
  return [
    ...ready.filter((candidate) => !candidate.byok.isFallback),
    ...ready.filter((candidate) => candidate.byok.isFallback),
    ...choices.filter(({ shared }) => shared),
    ...byok.filter(isInCooldown),
  ];
}

export function isByokInCooldown(key: ByokCredential, { modelId }: Endpoint, health: Health): boolean {
  if (!health.anyCooldown) return false;
  const id = byokCredentialId(key);
  return health.cooldownMs(id) > 0 || health.cooldownMs(`${id}:${modelId}`) > 0;
}

/** Identifies the credential in `Health` and in logs. */
export function byokCredentialId({ id }: ByokCredential): string {
  return `byok#${id}`;
}
