/**
 * Turns the list of candidates into running calls: skips candidates that are full or cannot carry the request, reserves
 * the bound of an attempt, journals the intent, and sends. One instance per turn.
 */
import { GatewayError } from '../../base/errors.ts';
import type { Endpoint } from '../../catalog/index.ts';
import type { Stamp } from '../../formats/conversation/format.ts';
import { Uncarried } from '../../formats/conversation/losses.ts';
import type { Charge, Attempt as JournaledAttempt, OpenGeneration } from '../../spend/index.ts';
import { acceptedOf } from '../accounting/record.ts';
import type { RequestReservation } from '../admission/reservation.ts';
import type { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { AcceptedRequest } from '../request.ts';
import { type Candidate, type Credential, type Route, type SessionKey, targetOf } from '../routing/index.ts';
import type { AttemptOwner, Task } from '../task.ts';
import { type Dispatched, DispatchedCall } from './dispatched-call.ts';

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
    if (this.#context.hasJob) return undefined;
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
      if (this.#context.hasJob) return undefined;
      const candidate = this.#retry ?? this.#candidates[this.#position++];
      this.#retry = undefined;
      if (candidate === undefined) return undefined;
      const { endpoint } = candidate;
      if (this.#dropped.includes(candidate.rank)) {
        this.#context.addSkipped(endpoint.id, 'model_ruled_out');
        continue;
      }
      if (!this.#parts.concurrency.enter(endpoint.provider)) {
        this.#full = true;
        this.#context.addSkipped(endpoint.id, 'concurrency_limit');
        continue;
      }
      let dispatched: Dispatched | undefined;
      try {
        dispatched = await this.#prepare(candidate, owner, generation);
      } catch (error) {
        if (error instanceof Uncarried) {
          this.#uncarried.push({ endpoint, error });
          this.#context.addSkipped(endpoint.id, `feature:${error.feature}`);
        } else if (error instanceof GatewayError && error.status < 500) {
          // After a refusal for one endpoint (no price, too expensive) the others are tried; the first refusal is reported.
          this.#refused ??= error;
          this.#context.addSkipped(endpoint.id, `refused:${error.type}`);
        } else throw error;
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
      customTools: facts.customTools === true,
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
      earlierUsage: this.#reservation.earlierUsage,
    };
    let generation = open;
    if (generation === undefined) {
      generation = await this.#open(intent);
      if (generation === undefined) throw new Abandoned();
      this.#context.hasRow = true;
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
      apiType: this.#task.apiType,
    });
  }

  /** Journals the first attempt. Undefined when the request has ended meanwhile. */
  async #open(intent: JournaledAttempt): Promise<OpenGeneration | undefined> {
    const paid = this.#context.prepaid?.generation;
    if (paid !== undefined) {
      paid.attempt(intent);
      return paid;
    }
    const accepted = acceptedOf(this.#context, this.#task.apiType);
    return this.#parts.spend.begin(accepted, intent, this.#reservation.reservation, this.#stillWanted);
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
        requested_models: [...new Set(candidates.map(({ endpoint }) => endpoint.modelId))],
        retry_after: 1,
        affected_providers: [...new Set(candidates.map(({ endpoint }) => endpoint.provider.name))],
      },
    },
  );
}
