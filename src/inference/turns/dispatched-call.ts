/** Sends one call to an endpoint, and applies its outcome to slots, cooldowns and the trace. */
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Stamp } from '../../formats/conversation/format.ts';
import { OPERATION_NAMES } from '../../otlp/index.ts';
import { type Delivery, deliver, type UpstreamCall, type UpstreamReceiver } from '../../providers/index.ts';
import type { ApiType, OpenGeneration, Attempt as SpendAttempt } from '../../spend/index.ts';
import type { AttemptTrace } from '../../tracing/index.ts';
import type { RequestContext } from '../context.ts';
import type { AttemptOutcome, InferenceParts } from '../parts.ts';
import { type Candidate, type Credential, type Route, targetOf } from '../routing/index.ts';
import type { Attempt, AttemptCall } from '../task.ts';
import type { Dispatcher } from './dispatch.ts';
import { Grace } from './grace.ts';

/** A call that is ready to start, with the callbacks for its owner. */
export interface Dispatched {
  readonly candidate: Candidate;
  readonly attempt: Attempt;
  readonly stamp: Stamp;
  readonly generation: OpenGeneration;
  readonly credential: Credential;
  /** As it was journaled. */
  readonly intent: SpendAttempt;
  /** Monotonic; 0 before `start`. */
  readonly startedAt: number;
  start(): void;
  /** Keeps the call's bound reserved whatever the outcome: another attempt starts in parallel. */
  keepBound(): void;
  /** Journals the intent again after a later attempt was dropped: if the process dies, this one is charged. */
  rejournal(): void;
  /**
   * The call is over and frees its slot at the provider. `mayHaveCost` keeps its bound reserved until the request is
   * settled; a refused connection or an error status costs nothing. Idempotent.
   */
  ended(mayHaveCost: boolean): void;
  /**
   * Starts the cooldown of the endpoint after a failure, or of the credential (`ofCredential`) so that another is
   * tried.
   */
  coolDown(failure: UpstreamFailure, ofCredential: boolean): void;
  /** The endpoint answers: ends its cooldown and its credential's. */
  recovered(): void;
  /** Its candidate is tried next. */
  again(): void;
  /** The call has ended in this way. */
  attempted(outcome: AttemptOutcome): void;
}

interface DispatchedCallSetup {
  candidate: Candidate;
  attempt: Attempt;
  stamp: Stamp;
  generation: OpenGeneration;
  credential: Credential;
  intent: SpendAttempt;
  apiType: ApiType;
}

export class DispatchedCall implements Dispatched {
  readonly candidate: Candidate;
  readonly attempt: Attempt;
  readonly stamp: Stamp;
  readonly generation: OpenGeneration;
  readonly #dispatcher: Dispatcher;
  readonly #parts: InferenceParts;
  readonly #context: RequestContext;
  readonly credential: Credential;
  readonly intent: SpendAttempt;
  readonly #apiType: ApiType;
  #trace: AttemptTrace | undefined;
  startedAt = 0;
  #hasSlot = true;

  constructor(dispatcher: Dispatcher, parts: InferenceParts, context: RequestContext, setup: DispatchedCallSetup) {
    this.candidate = setup.candidate;
    this.attempt = setup.attempt;
    this.stamp = setup.stamp;
    this.generation = setup.generation;
    this.#dispatcher = dispatcher;
    this.#parts = parts;
    this.#context = context;
    this.credential = setup.credential;
    this.intent = setup.intent;
    this.#apiType = setup.apiType;
  }

  start(): void {
    const { health, credentials } = this.#parts;
    this.startedAt = this.#parts.clock.monotonic();
    this.#trace = this.#traced();
    if (health.anyCooldown) {
      health.attempted(this.candidate.endpoint.id);
      credentials.attempted(this.credential, this.candidate.endpoint);
    }
    this.attempt.start((call, receiver) => this.#send(call, receiver));
  }

  #traced(): AttemptTrace | undefined {
    const { provider, modelId, upstreamId } = this.candidate.endpoint;
    return this.#context.request.about.trace?.attempt({
      operation: OPERATION_NAMES[this.#apiType],
      provider: provider.name,
      model: modelId,
      upstreamModel: upstreamId,
    });
  }

  #send(call: AttemptCall, receiver: UpstreamReceiver): UpstreamCall {
    const { provider, credential } = targetOf(this.candidate, this.credential);
    const { debug, request } = this.#context;
    const delivery: Delivery = {
      provider,
      credential,
      model: this.candidate.endpoint.upstreamId,
      clientHeaders: withBetas(request.about.headers, this.attempt.betas),
      ...call,
      ...(this.#trace && { headers: this.#trace.headers }),
    };
    const observed = debug === undefined ? receiver : debug.watch(call.body, receiver);
    // With several choices, nothing shows whether another one is still to begin.
    if (!call.stream || request.facts.choices > 1) return deliver(delivery, observed, this.#parts);
    const grace = new Grace(observed, this.attempt, this.#parts.clock, provider.timeouts.stall);
    grace.call = deliver(delivery, grace, this.#parts);
    return grace.call;
  }

  keepBound(): void {
    this.#dispatcher.keepBound();
  }

  rejournal(): void {
    this.generation.attempt({ ...this.intent, earlier: this.#dispatcher.earlier });
  }

  ended(mayHaveCost: boolean): void {
    if (!this.#hasSlot) return;
    this.#hasSlot = false;
    this.#parts.concurrency.leave(this.candidate.endpoint.provider);
    if (mayHaveCost) this.#dispatcher.keepBound();
  }

  coolDown(failure: UpstreamFailure, ofCredential: boolean): void {
    const { endpoint } = this.candidate;
    const { health, credentials } = this.#parts;
    if (failure.kind === 'auth') {
      const { provider, credential } = targetOf(this.candidate, this.credential);
      provider.signer?.refused?.(credential);
    }
    if (!ofCredential) {
      health.coolDown(endpoint.id, failure);
      return;
    }
    credentials.coolDown(this.credential, endpoint, failure);
    // A BYOK credential has no alternatives: the next candidate is another BYOK credential, or the gateway's own.
    if (this.candidate.byok === undefined && credentials.cooldownMs(endpoint) === 0)
      this.#dispatcher.retry(this.candidate);
  }

  attempted(outcome: AttemptOutcome): void {
    this.#parts.attempted?.(this.candidate.endpoint, outcome);
    this.#trace?.ended(outcome, this.attempt.status, this.attempt.usage ?? undefined);
  }

  again(): void {
    this.#dispatcher.retry(this.candidate);
  }

  recovered(): void {
    const { health, credentials } = this.#parts;
    if (!health.anyCooldown) return;
    health.recovered(this.candidate.endpoint.id);
    credentials.recovered(this.credential, this.candidate.endpoint);
  }
}

/** Client headers with further beta features. */
function withBetas(headers: Delivery['clientHeaders'], betas: readonly string[] = []): Delivery['clientHeaders'] {
  if (betas.length === 0) return headers;
  const own = headers?.['anthropic-beta'];
  const names = typeof own === 'string' ? own.split(',').map((name) => name.trim()) : [];
  return { ...headers, 'anthropic-beta': [...new Set([...names, ...betas])].filter(Boolean).join(',') };
}

/** The endpoint that answered comes first: it has the prompt cached, and can read its own reasoning. */
export function startingWith({ candidate }: Dispatched, route: Route): Route {
  return { ...route, candidates: [candidate, ...route.candidates.filter((other) => other !== candidate)] };
}
