/**
 * Chooses the credential of a provider for a call: round-robin, but always the same one for a session, because prompt
 * caches belong to an account. Credentials in cooldown are used only when all are. A refused or exhausted credential is
 * in cooldown for all models; one that is rate limited or lacks access to a model, for that model only.
 */
import type { Endpoint } from '../../catalog/index.ts';
import type { FailureKind, UpstreamFailure } from '../../formats/conversation/failure.ts';
import { byokTarget, type UpstreamTarget } from '../../providers/index.ts';
import { byokCredentialId } from './byok.ts';
import type { Health } from './health.ts';
import type { Candidate } from './route.ts';
import { fractionOf, type SessionKey } from './sessions.ts';

export interface Credential {
  /** Identifies the credential in `Health` and in logs; reveals nothing of its value. */
  id: string;
  value: string | null;
}

/** Failures that concern a credential as a whole. */
const OF_ALL_MODELS: ReadonlySet<FailureKind> = new Set(['auth', 'quota']);

export class Credentials {
  readonly #health: Health;
  readonly #turns = new Map<string, number>();

  constructor(health: Health) {
    this.#health = health;
  }

  choose({ endpoint, byok, credentialId }: Candidate, session?: SessionKey): Credential {
    if (byok !== undefined) return { id: byokCredentialId(byok), value: byok.value };
    const { provider } = endpoint;
    const { credentials } = provider;
    if (credentials.length < 2) return { id: idOf(provider.id, 0), value: credentials[0] ?? null };
    const required = credentials.findIndex((_, index) => idOf(provider.id, index) === credentialId);
    if (required >= 0) return { id: credentialId!, value: credentials[required]! };
    const start =
      session === undefined ? this.#turn(endpoint) : Math.floor(fractionOf(session, provider.id) * credentials.length);
    let index = start;
    for (let step = 0; step < credentials.length; step++) {
      index = (start + step) % credentials.length;
      if (!this.#health.anyCooldown || this.#cooldownOf(endpoint, index) === 0) break;
      if (step === credentials.length - 1) index = start;
    }
    return { id: idOf(provider.id, index), value: credentials[index]! };
  }

  /** Starts the credential's cooldown, for the endpoint's model or for all models depending on the failure. */
  coolDown({ id }: Credential, endpoint: Endpoint, failure: UpstreamFailure): void {
    this.#health.coolDown(OF_ALL_MODELS.has(failure.kind) ? id : `${id}:${endpoint.modelId}`, failure);
  }

  /** A request carries the credential: the first one after a cooldown probes it. */
  attempted({ id }: Credential, endpoint: Endpoint): void {
    this.#health.attempted(id);
    this.#health.attempted(`${id}:${endpoint.modelId}`);
  }

  /** A call with the credential succeeded: ends its cooldown. */
  recovered({ id }: Credential, endpoint: Endpoint): void {
    this.#health.recovered(id);
    this.#health.recovered(`${id}:${endpoint.modelId}`);
  }

  /** Time until some credential is out of cooldown, in ms; 0 if one is now. */
  cooldownMs(endpoint: Endpoint): number {
    let min = Number.POSITIVE_INFINITY;
    const count = Math.max(endpoint.provider.credentials.length, 1);
    for (let index = 0; index < count && min > 0; index++) min = Math.min(min, this.#cooldownOf(endpoint, index));
    return min;
  }

  #turn({ provider }: Endpoint): number {
    const turn = this.#turns.get(provider.id) ?? 0;
    this.#turns.set(provider.id, turn + 1);
    return turn % provider.credentials.length;
  }

  #cooldownOf({ provider, modelId }: Endpoint, index: number): number {
    const id = idOf(provider.id, index);
    return Math.max(this.#health.cooldownMs(id), this.#health.cooldownMs(`${id}:${modelId}`));
  }
}

/** The target of a call with this credential. A BYOK credential may have another base URL than the provider's. */
export function targetOf(
  { endpoint, byok }: Pick<Candidate, 'endpoint' | 'byok'>,
  { value }: Credential,
): UpstreamTarget {
  if (byok === undefined || value === null) return { provider: endpoint.provider, credential: value };
  return byokTarget(endpoint.provider, value);
}

function idOf(providerId: string, index: number): string {
  return `${providerId}#${index}`;
}
