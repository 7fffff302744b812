/**
 * Turns the list of candidates into running calls: skips candidates that are full or cannot carry the request, reserves
 * the bound of an attempt, journals the intent, and sends. One instance per turn.
 */
import { GatewayError } from '../../base/errors.ts';
import type { Endpoint } from '../../catalog/index.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Stamp } from '../../formats/conversation/format.ts';
import { Uncarried } from '../../formats/conversation/losses.ts';
import { type Delivery, deliver, type UpstreamCall, type UpstreamReceiver } from '../../providers/index.ts';
import type { Charge, OpenGeneration, Attempt as SpendAttempt } from '../../spend/index.ts';
import { acceptedOf } from '../accounting/record.ts';
import type { RequestReservation } from '../admission/reservation.ts';
import type { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { AcceptedRequest } from '../request.ts';
import { type Candidate, type Credential, type Route, type SessionKey, targetOf } from '../routing/index.ts';
import type { Attempt, AttemptCall, AttemptOwner, Task } from '../task.ts';
import { Grace } from './grace.ts';

/** A call that is ready to start, with the callbacks for its owner. */
export interface Dispatched {
  readonly candidate: Candidate;
  readonly attempt: Attempt;
  readonly stamp: Stamp;
  readonly generation: OpenGeneration;
  readonly credential: Credential;
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
}

/**
 * The request ended before its generation began, for example while a budget was checked. Nothing is owed to the client.
 */
export class Abandoned extends Error {}

const NO_RANKS: readonly number[] = [];

export class Dispatcher {
  readonly #context: RequestContext;
  readonly #request: AcceptedRequest;
  readonly #task: Task;
  readonly #candidates: readonly Candidate[];
  readonly #session: SessionKey | undefined;
  readonly #parts: InferenceParts;
  readonly #reservation: RequestReservation;
  readonly #uncarried: UncarriedBy[] = [];
  #position = 0;
  /** Ranks of the models that are ruled out. */
  #dropped: readonly number[] = NO_RANKS;
  #begun = false;
  #refused: GatewayError | undefined;
  #full = false;
  #cancelled = false;
  /** Aborts preparation; created when an attempt needs it. */
  #stop: AbortController | undefined;
  /** A candidate whose credential failed although its provider has others: tried next. */
  #retry: Candidate | undefined;

  constructor(
    context: RequestContext,
    task: Task,
    route: Route,
    parts: InferenceParts,
    reservation: RequestReservation,
  ) {
    this.#context = context;
    this.#request = context.request;
    this.#task = task;
    this.#candidates = route.candidates;
    this.#session = route.session;
    this.#parts = parts;
    this.#reservation = reservation;
  }

  /** Why no candidate is left, unless a failed attempt is the reason. */
  get refusal(): GatewayError | undefined {
    if (this.#refused) return this.#refused;
    if (this.#begun) return undefined;
    if (this.#uncarried.length > 0) return uncarriedError(this.#uncarried, this.#task);
    if (this.#full) return busyError(this.#candidates);
    return undefined;
  }

  /** Rules out the model with this rank: its other endpoints are skipped. */
  dropModel(rank: number): void {
    this.#dropped = [...this.#dropped, rank];
  }

  /** Whether a model with another rank is left to try. */
  hasOtherModel(rank: number): boolean {
    return this.#candidates.some(
      (one, at) => at >= this.#position && one.rank !== rank && !this.#dropped.includes(one.rank),
    );
  }

  /** The next candidate that can be tried; undefined when none is left. */
  async next(owner: AttemptOwner, generation: OpenGeneration | undefined): Promise<Dispatched | undefined> {
    for (;;) {
      const candidate = this.#retry ?? this.#candidates[this.#position++];
      this.#retry = undefined;
      if (candidate === undefined) return undefined;
      if (this.#dropped.includes(candidate.rank)) continue;
      const { endpoint } = candidate;
      if (!this.#parts.concurrency.enter(endpoint.provider)) {
        this.#full = true;
        continue;
      }
      let dispatched: Dispatched | undefined;
      try {
        dispatched = await this.#prepare(candidate, owner, generation);
      } catch (error) {
        if (error instanceof Uncarried) this.#uncarried.push({ endpoint, error });
        // A refusal for one endpoint (no price, too expensive) leaves the others; the first refusal is reported.
        else if (error instanceof GatewayError && error.status < 500) this.#refused ??= error;
        else throw error;
      } finally {
        if (dispatched === undefined) this.#parts.concurrency.leave(endpoint.provider);
      }
      if (dispatched !== undefined) return dispatched;
    }
  }

  /** The request has ended: nothing more is dispatched. */
  cancel(): void {
    this.#cancelled = true;
    this.#stop?.abort();
  }

  async #prepare(candidate: Candidate, owner: AttemptOwner, open: OpenGeneration | undefined): Promise<Dispatched> {
    const { endpoint } = candidate;
    const { facts, caller } = this.#request;
    const reserving = this.#reservation.hold(candidate);
    const capOutputTokens = reserving === undefined ? undefined : await reserving;
    if (!this.#stillWanted()) throw new Abandoned();
    let chosen: Credential | undefined;
    const choose = () => (chosen ??= this.#parts.credentials.choose(candidate, this.#warmSession(endpoint)));
    const preparing = this.#task.prepare?.(endpoint, {
      signal: () => this.#signal,
      target: () => ({ target: targetOf(candidate, choose()), byokId: candidate.byok?.id ?? null }),
    });
    if (preparing !== undefined) await this.#unlessCancelled(preparing);
    const estimate = this.#task.estimate(endpoint);
    const stamp: Stamp = {
      id: this.#request.id,
      model: endpoint.modelId,
      provider: endpoint.provider.name,
      created: Math.floor(this.#request.startedAt / 1000),
      promptTokens: estimate.promptTokens,
      usage: facts.includeUsage === undefined ? 'finish' : facts.includeUsage ? 'chunk' : 'none',
      echo: this.#task.echo,
    };
    const user = this.#parts.hashUser(caller, facts.user);
    const attempt = this.#task.attempt(endpoint, { stamp, owner, user, capOutputTokens });
    const intent = {
      model: endpoint.modelId,
      endpointId: endpoint.id,
      providerName: endpoint.provider.name,
      isByok: candidate.byok !== undefined,
      ...estimate,
      earlier: this.#reservation.earlier,
    };
    let generation = open;
    if (generation === undefined) {
      generation = await this.#parts.spend.begin(
        acceptedOf(this.#context, this.#task.apiType),
        intent,
        this.#reservation.reservation,
        this.#stillWanted,
      );
      if (generation === undefined) throw new Abandoned();
    } else {
      generation.attempt(intent);
    }
    this.#begun = true;
    const credential = choose();
    return new DispatchedCall(this, this.#parts, this.#context, {
      candidate,
      attempt,
      stamp,
      generation,
      credential,
      intent,
    });
  }

  readonly #stillWanted = (): boolean => !this.#cancelled && !this.#context.sink.closed;

  get #signal(): AbortSignal {
    this.#stop ??= new AbortController();
    return this.#stop.signal;
  }

  async #unlessCancelled(preparing: Promise<void>): Promise<void> {
    try {
      await preparing;
    } finally {
      // After a disconnect the outcome of the preparation does not matter.
      // biome-ignore lint/correctness/noUnsafeFinally: an abandoned request has no other outcome.
      if (!this.#stillWanted()) throw new Abandoned();
    }
  }

  /** Prompt caches belong to the provider account, so a warm session must keep its credential. */
  #warmSession(endpoint: Endpoint): SessionKey | undefined {
    const session = this.#session;
    if (session === undefined || session.named) return session;
    return this.#parts.sessions.endpointOf(session) === endpoint.id ? session : undefined;
  }

  get earlier(): Charge {
    return this.#reservation.earlier;
  }

  /** Keeps the bound of an attempt reserved that failed after the upstream may have worked on it. */
  keepBound(): void {
    this.#reservation.keep();
  }

  retry(candidate: Candidate): void {
    this.#retry = candidate;
  }
}

interface DispatchedCallSetup {
  candidate: Candidate;
  attempt: Attempt;
  stamp: Stamp;
  generation: OpenGeneration;
  credential: Credential;
  intent: SpendAttempt;
}

class DispatchedCall implements Dispatched {
  readonly candidate: Candidate;
  readonly attempt: Attempt;
  readonly stamp: Stamp;
  readonly generation: OpenGeneration;
  readonly #dispatcher: Dispatcher;
  readonly #parts: InferenceParts;
  readonly #context: RequestContext;
  readonly credential: Credential;
  readonly #intent: SpendAttempt;
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
    this.#intent = setup.intent;
  }

  start(): void {
    const { health, credentials } = this.#parts;
    this.startedAt = this.#parts.clock.monotonic();
    if (health.anyCooldown) {
      health.attempted(this.candidate.endpoint.id);
      credentials.attempted(this.credential, this.candidate.endpoint);
    }
    this.attempt.start((call, receiver) => this.#send(call, receiver));
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
    this.generation.attempt({ ...this.#intent, earlier: this.#dispatcher.earlier });
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

/** An endpoint whose format cannot carry some part of the request. */
interface UncarriedBy {
  endpoint: Endpoint;
  error: Uncarried;
}

function uncarriedError(uncarried: readonly UncarriedBy[], task: Task): GatewayError {
  const features = [...new Set(uncarried.map(({ error }) => error.feature))];
  return new GatewayError('invalid_request', `no endpoint can carry this request: ${uncarried[0]!.error.message}`, {
    path: task.pathOf?.(features[0]!) ?? features[0],
    metadata: {
      unsupported: features,
      excluded_endpoints: uncarried.map(({ endpoint, error }) => ({
        provider: endpoint.provider.id,
        model: endpoint.modelId,
        excluded_by: [`feature:${error.feature}`],
      })),
    },
  });
}

function busyError(candidates: readonly Candidate[]): GatewayError {
  return new GatewayError(
    'provider_overloaded',
    'every endpoint of this model is at its limit of concurrent requests',
    {
      status: 503,
      retryAfterSeconds: 1,
      availability: {
        code: 'temporarily_unavailable',
        retryable: true,
        retry_after: 1,
        affected_providers: [...new Set(candidates.map(({ endpoint }) => endpoint.provider.name))],
      },
    },
  );
}
