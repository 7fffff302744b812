/**
 * The attempts of one accepted request: tries one candidate after the other until one answers, and sends that answer to
 * the client. Decides what follows a failure (with `turns/verdict.ts`) and settles the request's row exactly once.
 */
import { GatewayError } from '../base/errors.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';
import type { Closing } from '../formats/conversation/format.ts';
import type { WholeBody } from '../formats/single/index.ts';
import type { OpenGeneration, ProviderResponse } from '../spend/index.ts';
import { type Metered, withLosses } from './accounting/meter.ts';
import { costOf, failureFields, keepSession, observe, responseOf } from './accounting/observe.ts';
import { type Ending, rowOf } from './accounting/record.ts';
import { settleTokens } from './admission/rate-limits.ts';
import { AnswerStream } from './answer/answer-stream.ts';
import { answerError, asGatewayError, faultOf, shuttingDown, unservedStamp } from './answer/error-response.ts';
import { type Ended, tellEnded } from './answer/listener.ts';
import { routingMetadata } from './answer/metadata.ts';
import { headersOf } from './answer/response-headers.ts';
import type { RequestContext } from './context.ts';
import type { InferenceParts } from './parts.ts';
import type { AcceptedRequest } from './request.ts';
import type { Route } from './routing/index.ts';
import type { Interruptible } from './running.ts';
import type { Attempt, AttemptOwner, Task } from './task.ts';
import { type Dispatched, Dispatcher } from './turns/dispatch.ts';
import { Hedge } from './turns/hedge.ts';
import { clientError, type FailedAttempt, failedAt, verdictOf } from './turns/verdict.ts';

/** How a request ended, for its row. */
type Outcome = Pick<Ending, 'status' | 'error' | 'cancelled' | 'metered'>;

export class Call implements AttemptOwner, Interruptible {
  readonly #context: RequestContext;
  readonly #request: AcceptedRequest;
  readonly #task: Task;
  readonly #route: Route;
  readonly #parts: InferenceParts;
  readonly #dispatcher: Dispatcher;
  readonly #failed: FailedAttempt[] = [];
  #lastFailed: Attempt | undefined;
  readonly #responses: ProviderResponse[] = [];
  /** Resolves with the reason why the client did not receive the end, which is a bug of the gateway. */
  readonly #finished = Promise.withResolvers<unknown>();
  readonly #race: Hedge;
  #generation: OpenGeneration | undefined;
  readonly #stream: AnswerStream;
  #over = false;
  /** The attempt has output that is not written yet. */
  #advances = false;
  #firstOutputAt: number | null = null;
  /** The cost of the last failed attempt; null when it cost nothing. */
  #lastCost: Metered | null = null;
  #ended: Ended | undefined;

  constructor(context: RequestContext, task: Task, route: Route, parts: InferenceParts) {
    this.#context = context;
    this.#request = context.request;
    this.#task = task;
    this.#route = route;
    this.#parts = parts;
    this.#stream = new AnswerStream(context, parts);
    this.#dispatcher = new Dispatcher(context, task, route, parts);
    this.#race = new Hedge({
      clock: parts.clock,
      hedgeAfterMs: context.request.facts.stream && route.candidates.length > 1 ? parts.hedgeAfterMs() : null,
      another: () => this.#dispatcher.next(this, this.#generation),
      meter: (dispatched) => costOf(dispatched, task, false),
      lost: (loser) => {
        this.#responses.push(responseOf(loser, loser.attempt.status, parts));
        // Its first token would have arrived even later. Without this sample, slow endpoints would look fast.
        observe(loser, 'none', parts.clock.monotonic(), parts);
        parts.attempted?.(loser.candidate.endpoint, 'given_up');
      },
      stranded: (reason) => this.#stranded(reason),
    });
  }

  /** Resolves once the client has its answer or has disconnected, and the row is settled. Rejects if sending threw. */
  async run(): Promise<void> {
    const { sink } = this.#context;
    sink.onClose(() => this.#abandoned());
    if (this.#request.facts.stream) {
      sink.onDrain(() => this.#current?.attempt.resume());
      this.#stream.keepAlive();
    }
    try {
      await this.#next();
    } catch (error) {
      this.#stream.quiet();
      this.#dispatcher.release();
      if (this.#over) return;
      this.#over = true;
      if (this.#generation === undefined) {
        if (!this.#stream.opened) throw error;
        this.#tellInBand(asGatewayError(error));
        return;
      }
      this.#giveUp(asGatewayError(error));
    }
    const untold = await this.#finished.promise;
    if (untold !== undefined) throw untold;
  }

  async #next(): Promise<void> {
    const dispatched = await this.#dispatcher.next(this, this.#generation);
    if (dispatched === undefined) {
      const error = this.#dispatcher.refusal ?? clientError(this.#failed, this.#task.silentStatus);
      if (this.#generation === undefined) throw error;
      this.#giveUp(error);
      return;
    }
    this.#generation = dispatched.generation;
    this.#race.start(dispatched);
  }

  #stranded(reason: unknown): void {
    if (this.#over) return;
    if (reason !== undefined) this.#giveUp(asGatewayError(reason));
    else this.#goOn();
  }

  #goOn(): void {
    this.#next().catch((error: unknown) => {
      if (!this.#over) this.#giveUp(asGatewayError(error));
    });
  }

  // Callbacks of the current attempt.

  attemptAdvanced(attempt: Attempt): void {
    this.#race.won(attempt);
    if (this.#firstOutputAt === null) {
      this.#firstOutputAt = this.#parts.clock.monotonic();
      this.#context.debug?.happened('first_token_received');
      this.#current!.recovered();
      // The first text goes out at once, since clients feel the time to first token. Later text is sent once per turn.
      this.#show(attempt);
      return;
    }
    if (this.#advances) return;
    this.#advances = true;
    this.#parts.endOfTurn(() => this.#show(attempt));
  }

  /** Writes the output of this turn, unless the end of the answer has already included it. */
  #show(attempt: Attempt): void {
    this.#advances = false;
    if (this.#over) return;
    try {
      this.#generation!.seen(attempt.outputBytes);
      if (!this.#stream.write(attempt.take(), this.#current!.stamp, attempt.encoding)) attempt.pause();
    } catch (cause) {
      attempt.abort();
      this.#unwritable(cause, attempt, this.#meterBroken(attempt));
    }
  }

  attemptCompleted(attempt: Attempt): void {
    const context = this.#context;
    const dispatched = this.#race.of(attempt);
    if (
      attempt.unseenRefusal &&
      this.#request.facts.fallbackOnRefusal &&
      this.#dispatcher.hasOtherModel(dispatched.candidate.rank)
    ) {
      this.attemptFailed(attempt, { kind: 'content_filter', status: 200, message: 'the model refused' }, true);
      return;
    }
    this.#answered(dispatched, attempt);
    keepSession(dispatched, this.#route, this.#parts);
    const metered = withLosses(costOf(dispatched, this.#task, true), this.#race.losses);
    const closing = this.#closing(metered);
    const whole = this.#stream.opened ? undefined : attempt.whole;
    const endedAt = this.#parts.clock.now();
    let shown = '';
    let answer: WholeBody;
    try {
      // A debug stream shows events in order with their times, also for an answer that arrived in one piece.
      if (context.debug && !whole) {
        if (attempt.visible && this.#firstOutputAt === null) context.debug.happened('first_token_received', endedAt);
        shown = attempt.take();
      }
      answer = whole ? whole.write(dispatched.stamp, closing) : attempt.take() + attempt.writer!.end(closing);
    } catch (cause) {
      this.#unwritable(cause, attempt, metered);
      return;
    }
    this.#settle({ status: 200, error: null, cancelled: false, metered }, attempt, () => {
      if (whole) {
        for (const listener of context.listeners ?? []) listener.wrote?.(answer);
        context.sink.reply(200, headersOf(context), answer, attempt.encoding);
      } else this.#stream.complete(shown, answer as string, dispatched.stamp, attempt.encoding, endedAt);
    });
  }

  #answered(dispatched: Dispatched, attempt: Attempt): void {
    this.#race.won(attempt);
    dispatched.recovered();
    this.#responses.push(responseOf(dispatched, attempt.status, this.#parts));
    observe(dispatched, 'answered', this.#firstOutputAt, this.#parts, this.#task.answersWhole);
    this.#parts.attempted?.(dispatched.candidate.endpoint, 'answered');
    this.#context.addHits(attempt.hits);
  }

  /** A filter blocked the answer. The upstream has done its work and is paid even so. */
  attemptBlocked(attempt: Attempt, error: GatewayError, complete: boolean): void {
    const dispatched = this.#race.of(attempt);
    this.#answered(dispatched, attempt);
    if (attempt.visible) {
      this.#breakOff(attempt, error);
      return;
    }
    const metered = costOf(dispatched, this.#task, complete);
    this.#giveUp(error, withLosses(metered, this.#race.losses));
  }

  /** Writing the answer threw, which is a bug of the gateway: reports an error to the client so that nothing hangs. */
  #unwritable(cause: unknown, attempt: Attempt, metered: Metered): void {
    this.#parts.log.error('writing an answer failed', { generation: this.#request.id, cause });
    const message = 'the upstream response could not be read';
    const error = new GatewayError('provider_unavailable', message, { status: 502 });
    if (attempt.visible) this.#breakOff(attempt, error);
    else this.#giveUp(error, metered);
  }

  attemptFailed(attempt: Attempt, failure: UpstreamFailure, sent: boolean): void {
    const dispatched = this.#race.of(attempt);
    const { endpoint, rank } = dispatched.candidate;
    // A refused connection, a redirect and an error status cost nothing; a call that breaks off may.
    const mayHaveCost = attempt.paid || (sent && (failure.status ?? 0) < 300);
    dispatched.ended(mayHaveCost);
    this.#lastCost = mayHaveCost ? costOf(dispatched, this.#task, false) : null;
    this.#responses.push(responseOf(dispatched, failure.status, this.#parts));
    this.#failed.push(failedAt(dispatched.candidate, failure));
    this.#lastFailed = attempt;
    const verdict = verdictOf(failure);
    observe(dispatched, verdict.outcome, attempt.visible ? this.#firstOutputAt : null, this.#parts);
    this.#parts.attempted?.(endpoint, failure.kind);
    if (this.#route.session && verdict.outcome !== 'none') this.#parts.sessions.letGo(this.#route.session, endpoint.id);
    if (verdict.cooldown) dispatched.rest(failure, verdict.credential);
    this.#parts.log.warn('attempt failed', failureFields(this.#request.id, endpoint, failure));
    if (attempt.visible) {
      this.#breakOff(attempt, clientError([this.#failed.at(-1)!], this.#task.silentStatus));
      return;
    }
    const goesOn = this.#race.failed(attempt);
    if (verdict.next === 'model') this.#dispatcher.dropModel(rank);
    if (goesOn) return;
    if (verdict.next === 'answer') {
      this.#giveUp(clientError(this.#failed, this.#task.silentStatus));
      return;
    }
    this.#goOn();
  }

  // Ways to end an answer.

  /** A failure after visible output: one error event ends the stream, and nothing is replayed. */
  #breakOff(attempt: Attempt, error: GatewayError): void {
    const metered = this.#meterBroken(attempt);
    this.#settle({ status: 200, error, cancelled: false, metered }, attempt, () => {
      const failure = attempt.writer!.failure(error, this.#closing(metered));
      this.#stream.end(attempt.take() + failure, this.#current!.stamp, attempt.encoding);
    });
  }

  /** No endpoint answered. Sends an error response, or an error event if the response head is already sent. */
  #giveUp(error: GatewayError, metered: Metered | null = this.#lastCost): void {
    this.#settle(
      { status: this.#stream.opened ? 200 : error.status, error, cancelled: false, metered },
      undefined,
      () => {
        if (this.#stream.opened) this.#tellInBand(error);
        else answerError(this.#context, error, this.#metadata());
      },
    );
  }

  #tellInBand(error: GatewayError): void {
    const { sink } = this.#context;
    if (sink.closed) return;
    const stamp = this.#current?.stamp ?? unservedStamp(this.#request);
    const metadata = this.#metadata();
    sink.write(this.#task.failureEvent(error, stamp, metadata ? { metadata } : {}));
    sink.end();
  }

  /** The client disconnected: aborts the upstream at once and charges for what it wrote. */
  #abandoned(): void {
    if (this.#over) return;
    const metered = this.#stop() ?? this.#lastCost;
    const current = this.#current;
    if (this.#generation === undefined || current === undefined) {
      this.#close();
      return;
    }
    this.#responses.push(responseOf(current, current.attempt.status, this.#parts));
    observe(current, 'none', this.#firstOutputAt, this.#parts);
    this.#parts.attempted?.(current.candidate.endpoint, 'given_up');
    const status = this.#stream.opened ? 200 : null;
    this.#settle({ status, error: null, cancelled: true, metered }, current.attempt, () => {});
  }

  /** The gateway shuts down: charges for what the upstream wrote, and ends the answer with an error. */
  interrupt(): void {
    if (this.#over) return;
    const error = shuttingDown();
    const metered = this.#stop() ?? this.#lastCost;
    const current = this.#current;
    if (this.#generation === undefined || current === undefined) {
      this.#close();
      if (this.#stream.opened) this.#tellInBand(error);
      else answerError(this.#context, error, undefined);
      this.#release();
      return;
    }
    this.#responses.push(responseOf(current, current.attempt.status, this.#parts));
    if (current.attempt.visible) this.#breakOff(current.attempt, error);
    else this.#giveUp(error, metered);
  }

  /** Aborts the upstream call and any that would follow. Returns its cost so far, as far as it is known. */
  #stop(): Metered | null {
    this.#dispatcher.cancel();
    this.#race.stop();
    const current = this.#current;
    if (current === undefined || current.attempt.over) return null;
    current.attempt.abort();
    return this.#meterBroken(current.attempt);
  }

  /** The cost of an incomplete answer: the usage reported, and an estimate for the output after the last report. */
  #meterBroken(attempt: Attempt): Metered {
    return withLosses(costOf(this.#race.of(attempt), this.#task, false), this.#race.losses);
  }

  /** Stops everything except sending the end of the answer. */
  #close(): void {
    this.#over = true;
    this.#dispatcher.cancel();
    this.#race.stop();
    this.#stream.quiet();
  }

  /** @param tell sends the end to the client once the row is in the journal; the client may be gone by then */
  #settle(outcome: Outcome, attempt: Attempt | undefined, tell: () => void): void {
    this.#close();
    const current = this.#current;
    current?.ended(true);
    const startedAt = current?.startedAt ?? 0;
    const row = rowOf(this.#context, this.#task.apiType, this.#route, {
      ...outcome,
      candidate: current?.candidate,
      attempt,
      responses: this.#responses,
      latencyMs: this.#firstOutputAt === null ? null : this.#firstOutputAt - startedAt,
      generationMs: this.#parts.clock.monotonic() - startedAt,
    });
    this.#ended = { row, said: attempt?.transcript, error: outcome.error };
    settleTokens(this.#context, row);
    if (this.#request.facts.thread !== undefined && current && !outcome.error && !outcome.cancelled) {
      this.#parts.threads.keep(row, current.credential.id);
    }
    this.#context.sink.entered?.(row);
    this.#generation!.settle(row, () => this.#release(faultOf(tell)));
  }

  /** The request is over: resolves `run` and notifies the listeners. */
  #release(untold?: unknown): void {
    this.#finished.resolve(untold);
    const { listeners } = this.#context;
    if (listeners && this.#ended) tellEnded(listeners, this.#ended, this.#parts.log);
  }

  #closing(metered: Metered): Closing {
    const metadata = this.#metadata();
    const completed = Math.floor(this.#parts.clock.now() / 1000);
    return { usage: metered.usage, cost: metered.cost, completed, ...(metadata && { metadata }) };
  }

  #metadata(): Closing['metadata'] {
    if (!this.#request.about.metadata) return undefined;
    const attempt = this.#current?.attempt;
    const hasFailed = attempt !== undefined && attempt === this.#lastFailed;
    return {
      key: this.#parts.metadataKey,
      value: routingMetadata(this.#context, this.#route, {
        candidate: this.#current?.candidate,
        serves: attempt !== undefined && (!hasFailed || attempt.visible),
        attempt: this.#failed.length + (attempt === undefined || hasFailed ? 0 : 1),
        failed: this.#failed,
        generationMs: this.#current ? this.#parts.clock.monotonic() - this.#current.startedAt : null,
      }),
    };
  }

  get #current(): Dispatched | undefined {
    return this.#race.current;
  }
}
