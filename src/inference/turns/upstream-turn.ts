/**
 * One turn of the upstream, governed: tries one candidate after the other until one answers, each with its own
 * reservation, journaled intent and credential. After a failure it decides what follows (`verdict.ts`). Most answers
 * are one turn.
 */
import type { GatewayError } from '../../base/errors.ts';
import { REFUSALS, type UpstreamFailure } from '../../formats/conversation/failure.ts';
import { estimatedRow, type OpenGeneration, type ProviderResponse } from '../../spend/index.ts';
import { type Metered, withLosses } from '../accounting/meter.ts';
import { costOf, enterResponse, failureFields, keepSession, observe } from '../accounting/observe.ts';
import { acceptedOf } from '../accounting/record.ts';
import type { RequestReservation } from '../admission/reservation.ts';
import { asGatewayError } from '../answer/error-response.ts';
import type { RequestContext } from '../context.ts';
import type { AttemptOutcome, InferenceParts } from '../parts.ts';
import type { Route } from '../routing/index.ts';
import type { Attempt, AttemptOwner, Task } from '../task.ts';
import { Dispatcher } from './dispatch.ts';
import type { Dispatched } from './dispatched-call.ts';
import { Hedge } from './hedge.ts';
import { clientError, type FailedAttempt, failedAt, verdictOf } from './verdict.ts';

/** The attempts of one answer, in all of its turns: for its row and its routing metadata. */
export interface AttemptLog {
  readonly failed: FailedAttempt[];
  readonly responses: ProviderResponse[];
}

/** Exactly one of the last four is called, once. */
export interface TurnOwner {
  /** The attempt has visible output in `attempt.take()`. */
  turnAdvanced(attempt: Attempt): void;
  turnCompleted(dispatched: Dispatched): void;
  /** A failure, or a filter, after visible output: nothing is replayed. */
  turnBroke(attempt: Attempt, error: GatewayError): void;
  /** No endpoint answered. @param metered the cost so far; null when nothing was charged */
  turnFailed(error: GatewayError, metered: Metered | null): void;
  /** The end of an attempt could not be handled, which is a bug of the gateway. */
  turnThrew(attempt: Attempt, cause: unknown): void;
}

interface TurnSetup {
  owner: TurnOwner;
  context: RequestContext;
  task: Task;
  /** The candidates in the order in which this turn tries them. */
  route: Route;
  parts: InferenceParts;
  reservation: RequestReservation;
  log: AttemptLog;
  /** Of an earlier turn. */
  generation: OpenGeneration | undefined;
}

export class UpstreamTurn implements AttemptOwner {
  readonly #setup: TurnSetup;
  readonly #dispatcher: Dispatcher;
  readonly #hedge: Hedge;
  #lastFailed: Attempt | undefined;
  /** The cost of the last failed attempt; null when it cost nothing. */
  #lastCost: Metered | null = null;
  #hasAnswered = false;
  #over = false;
  generation: OpenGeneration | undefined;
  /** Monotonic time of the turn's first visible output. */
  firstOutputAt: number | null = null;

  constructor(setup: TurnSetup) {
    const { context, task, route, parts, reservation } = setup;
    this.#setup = setup;
    this.generation = setup.generation;
    this.#dispatcher = new Dispatcher(context, task, route, parts, reservation);
    this.#hedge = new Hedge({
      clock: parts.clock,
      hedgeAfterMs: context.request.facts.stream && route.candidates.length > 1 ? parts.hedgeAfterMs() : null,
      nextCandidate: () => this.#dispatcher.next(this, this.generation),
      meter: (dispatched) => costOf(dispatched, task, false),
      lost: (loser) => {
        this.#enter(loser, 'given_up');
        // Its first token would have arrived even later. Without this sample, slow endpoints would look fast.
        observe(loser, 'none', parts.clock.monotonic(), parts);
        loser.attempted('given_up');
      },
      exhausted: (reason) => this.#hedgeExhausted(reason),
    });
  }

  /** The attempt whose answer the client gets, as far as is known; after a failure, the one that failed last. */
  get current(): Dispatched | undefined {
    return this.#hedge.current;
  }

  /** False once the current attempt has failed without having shown anything. */
  get serves(): boolean {
    const attempt = this.current?.attempt;
    return attempt !== undefined && (attempt !== this.#lastFailed || attempt.visible);
  }

  /** Whether the current attempt is the one that failed last. */
  get hasFailed(): boolean {
    const attempt = this.current?.attempt;
    return attempt !== undefined && attempt === this.#lastFailed;
  }

  /** Dispatches the next candidate. Throws when none can be tried and nothing was journaled before. */
  async begin(): Promise<void> {
    const { log, task } = this.#setup;
    const dispatched = await this.#dispatcher.next(this, this.generation);
    if (dispatched === undefined) {
      const error = this.#dispatcher.refusal ?? clientError(log.failed, task.timeoutStatus);
      if (this.generation === undefined) throw error;
      this.#fail(error);
      return;
    }
    this.generation = dispatched.generation;
    this.#hedge.start(dispatched);
  }

  /**
   * Ends the turn: aborts the running attempts, and starts no further one. Returns the cost so far, as far as it is
   * known.
   */
  stop(): Metered | null {
    this.close();
    const current = this.current;
    if (current === undefined || current.attempt.over) return this.#lastCost;
    current.attempt.abort();
    try {
      return this.meter(current.attempt, false);
    } catch (cause) {
      this.#setup.parts.log.error('metering failed', { generation: this.#setup.context.request.id, cause });
      return this.#lastCost;
    }
  }

  /** Ends the turn without aborting the attempt that answered. */
  close(): void {
    this.#over = true;
    this.#dispatcher.cancel();
    this.#hedge.stop();
  }

  /** @param complete false for an answer that broke off: output after the last report is estimated */
  meter(attempt: Attempt, complete: boolean): Metered {
    return withLosses(costOf(this.#hedge.of(attempt), this.#setup.task, complete), this.#hedge.losses);
  }

  /** The client or the gateway ends the answer: enters the current attempt in statistics and log. */
  abandon(): void {
    const { parts } = this.#setup;
    const current = this.current;
    if (current === undefined || this.#hasAnswered || this.hasFailed) return;
    this.#enter(current, 'given_up');
    observe(current, 'none', this.firstOutputAt, parts);
    current.attempted('given_up');
  }

  // Callbacks of the current attempt.

  attemptAdvanced(attempt: Attempt): void {
    this.#hedge.won(attempt);
    if (this.firstOutputAt === null) {
      this.firstOutputAt = this.#setup.parts.clock.monotonic();
      this.current!.recovered();
    }
    this.#setup.owner.turnAdvanced(attempt);
  }

  attemptAccepted(attempt: Attempt): void {
    const { context, task } = this.#setup;
    if (context.accepted === undefined) return;
    const { candidate, credential, generation, intent } = this.#hedge.of(attempt);
    context.hasJob = true;
    const estimate = estimatedRow(acceptedOf(context, task.apiType), intent);
    context.accepted({ id: attempt.upstreamId!, candidate, credential, generation, estimate });
  }

  attemptCompleted(attempt: Attempt): void {
    this.#ends(attempt, () => {
      const { owner, route, parts } = this.#setup;
      const dispatched = this.#hedge.of(attempt);
      this.#answered(dispatched);
      keepSession(dispatched, route, parts);
      owner.turnCompleted(dispatched);
    });
  }

  fallsBack(attempt: Attempt): boolean {
    const { rank } = this.#hedge.of(attempt).candidate;
    return this.#setup.context.request.facts.fallbackOnRefusal && this.#dispatcher.hasOtherModel(rank);
  }

  /** A filter blocked the answer. The upstream has done its work and is charged nevertheless. */
  attemptBlocked(attempt: Attempt, error: GatewayError, complete: boolean): void {
    this.#ends(attempt, () => {
      this.#answered(this.#hedge.of(attempt));
      if (attempt.visible) {
        this.#setup.owner.turnBroke(attempt, error);
        return;
      }
      this.#setup.context.addHits(attempt.hits);
      this.#fail(error, this.meter(attempt, complete));
    });
  }

  attemptFailed(attempt: Attempt, failure: UpstreamFailure, sent: boolean): void {
    this.#ends(attempt, () => this.#failed(attempt, failure, sent));
  }

  /** An attempt ends once, so what this throws has to end the request. */
  #ends(attempt: Attempt, handle: () => void): void {
    try {
      handle();
    } catch (cause) {
      this.#setup.owner.turnThrew(attempt, cause);
    }
  }

  #failed(attempt: Attempt, reported: UpstreamFailure, sent: boolean): void {
    const failure = withStatusOf(attempt, reported);
    const { log, parts, route, task, context, owner } = this.#setup;
    const dispatched = this.#hedge.of(attempt);
    const { endpoint, rank } = dispatched.candidate;
    const mayHaveCost = attempt.paid === true || (sent && costs(attempt, failure));
    dispatched.ended(mayHaveCost);
    this.#lastCost = mayHaveCost ? costOf(dispatched, task, false) : null;
    this.#enter(dispatched, failure.kind, failure.status);
    log.failed.push(failedAt(dispatched.candidate, failure));
    this.#lastFailed = attempt;
    const verdict = verdictOf(failure);
    const recovering = attempt.visible ? undefined : task.recover?.(attempt, failure);
    const outcome = recovering === undefined ? verdict.outcome : 'none';
    observe(dispatched, outcome, attempt.visible ? this.firstOutputAt : null, parts);
    dispatched.attempted(failure.kind);
    if (route.session && outcome !== 'none') parts.sessions.release(route.session, endpoint.id);
    if (verdict.cooldown && recovering === undefined) dispatched.coolDown(failure, verdict.credential);
    parts.log.warn('attempt failed', failureFields(context.request.id, endpoint, failure));
    if (attempt.visible) {
      owner.turnBroke(attempt, clientError([log.failed.at(-1)!], task.timeoutStatus));
      return;
    }
    const continues = this.#hedge.failed(attempt);
    if (recovering !== undefined) {
      if (!continues) this.#tryAgain(dispatched, recovering);
      return;
    }
    if (verdict.next === 'model') this.#dispatcher.dropModel(rank);
    if (continues) return;
    if (verdict.next === 'answer') this.#fail(clientError(log.failed, task.timeoutStatus));
    else this.#tryNext();
  }

  #answered(dispatched: Dispatched): void {
    const { parts, task } = this.#setup;
    this.#hasAnswered = true;
    // Only an answer that no endpoint gives is charged for what failed.
    this.#lastCost = null;
    this.#hedge.won(dispatched.attempt);
    dispatched.recovered();
    this.#enter(dispatched, 'answered');
    observe(dispatched, 'answered', this.firstOutputAt, parts, task.answersWhole);
    dispatched.attempted('answered');
  }

  #enter(dispatched: Dispatched, ended: AttemptOutcome, status: number | null = dispatched.attempt.status): void {
    const { log, context, parts } = this.#setup;
    enterResponse(log.responses, dispatched, { status, ended, acceptedAt: context.request.startedAt }, parts);
  }

  #tryNext(): void {
    this.begin().catch((error: unknown) => {
      if (!this.#over) this.#fail(asGatewayError(error));
    });
  }

  /** Tries the endpoint again once what the attempt lacked is prepared. */
  #tryAgain(dispatched: Dispatched, recovering: Promise<void>): void {
    dispatched.again();
    void recovering.then(() => {
      if (!this.#over) this.#tryNext();
    });
  }

  #hedgeExhausted(reason: unknown): void {
    if (this.#over) return;
    if (reason !== undefined) this.#fail(asGatewayError(reason));
    else this.#tryNext();
  }

  #fail(error: GatewayError, metered: Metered | null = this.#lastCost): void {
    this.#setup.owner.turnFailed(error, metered);
  }
}

/** Formats do not know the status of the response in which they found a failure. */
function withStatusOf({ status }: Attempt, failure: UpstreamFailure): UpstreamFailure {
  return failure.status === null && status > 0 ? { ...failure, status } : failure;
}

/** A redirect, an error status and a refusal inside an answer cost nothing; a call that breaks off may. */
function costs({ usage, outputBytes }: Attempt, failure: UpstreamFailure): boolean {
  if (failure.usage !== undefined) return true;
  if ((failure.status ?? 0) >= 300) return false;
  return !REFUSALS.has(failure.kind) || usage !== undefined || outputBytes > 0;
}
