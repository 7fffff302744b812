/**
 * One accepted request on its way to upstreams and back: runs its turns, usually one, sends the answer to the client,
 * and settles the request's row exactly once.
 */
import { GatewayError } from '../base/errors.ts';
import type { Closing } from '../formats/conversation/format.ts';
import type { WholeBody } from '../formats/direct/index.ts';
import type { OpenGeneration } from '../spend/index.ts';
import type { Metered } from './accounting/meter.ts';
import { type Ending, rowOf } from './accounting/record.ts';
import { settleTokens } from './admission/rate-limits.ts';
import { RequestReservation } from './admission/reservation.ts';
import type { AnswerStream } from './answer/answer-stream.ts';
import { answerError, asGatewayError, faultOf, shuttingDown, unservedStamp } from './answer/error-response.ts';
import { type Ended, notifyEnded } from './answer/listener.ts';
import { routingMetadata } from './answer/metadata.ts';
import { headersOf } from './answer/response-headers.ts';
import type { RequestContext } from './context.ts';
import type { Serve } from './nested.ts';
import type { InferenceParts } from './parts.ts';
import type { Interruptible } from './requests-in-flight.ts';
import type { Route } from './routing/index.ts';
import type { Attempt, Task } from './task.ts';
import { type Dispatched, startingWith } from './turns/dispatched-call.ts';
import { EarlierTurns } from './turns/earlier-turns.ts';
import type { LoopRunning } from './turns/turn-loop.ts';
import { type AttemptLog, type TurnOwner, UpstreamTurn } from './turns/upstream-turn.ts';

/** How a request ended, for its row. */
type Outcome = Pick<Ending, 'status' | 'error' | 'cancelled' | 'metered'>;

export class Call implements TurnOwner, Interruptible {
  readonly #context: RequestContext;
  readonly #task: Task;
  readonly #route: Route;
  readonly #parts: InferenceParts;
  readonly #reservation: RequestReservation;
  readonly #log: AttemptLog = { failed: [], responses: [] };
  readonly #stream: AnswerStream;
  /** Resolves with the reason why the client did not receive the end, which is a bug of the gateway. */
  readonly #finished = Promise.withResolvers<unknown>();
  #turn: UpstreamTurn;
  /** The turns that are complete, except the last of the answer. */
  readonly #earlier: EarlierTurns;
  /** The last turn whose cost is in `#earlier`: the current one, until the next is dispatched. */
  #last: Dispatched | undefined;
  /** The attempt of the last complete turn, while the next one has shown nothing. */
  #lastAttempt: Attempt | undefined;
  #over = false;
  /** The attempt has output that is not written yet. */
  #writeScheduled = false;
  /** Monotonic. */
  #startedAt: number | undefined;
  #firstOutputAt: number | null = null;
  #ended: Ended | undefined;

  /** @param serve sends the requests that tools make */
  constructor(context: RequestContext, task: Task, route: Route, parts: InferenceParts, serve: Serve) {
    this.#context = context;
    this.#task = task;
    this.#route = route;
    this.#parts = parts;
    this.#reservation = context.prepaid?.reservation.ofTask(task) ?? new RequestReservation(context, task, parts);
    this.#earlier = new EarlierTurns(this.#reservation, serve, context.prepaid?.tools);
    this.#stream = context.answerStream(parts);
    this.#turn = this.#newTurn(route, undefined);
  }

  /** Resolves once the client has its answer or has disconnected, and the row is settled. Rejects if sending threw. */
  async run(): Promise<void> {
    const { sink, request } = this.#context;
    sink.onClose(() => this.#disconnected());
    if (request.facts.stream) {
      sink.onDrain(() => this.#current?.attempt.resume());
      if (this.#task.streamsBytes !== true) this.#stream.keepAlive();
    }
    try {
      await this.#turn.begin();
    } catch (error) {
      this.#stream.quiet();
      // What was paid before the first turn stays reserved until the request's row settles it.
      if (this.#generation === undefined && this.#context.prepaid === undefined) this.#reservation.release();
      if (this.#over) return;
      if (this.#generation === undefined) {
        this.#over = true;
        if (!this.#stream.opened) throw error;
        this.#sendErrorEvent(asGatewayError(error));
        return;
      }
      this.turnFailed(asGatewayError(error), null);
    }
    const fault = await this.#finished.promise;
    if (fault !== undefined) throw fault;
  }

  #newTurn(route: Route, generation: OpenGeneration | undefined): UpstreamTurn {
    return new UpstreamTurn({
      owner: this,
      context: this.#context,
      task: this.#task,
      route,
      parts: this.#parts,
      reservation: this.#reservation,
      log: this.#log,
      generation,
    });
  }

  // Callbacks of the current turn.

  turnAdvanced(attempt: Attempt): void {
    this.#lastAttempt = undefined;
    if (this.#firstOutputAt === null) {
      this.#firstOutputAt = this.#turn.firstOutputAt ?? this.#parts.clock.monotonic();
      this.#startedAt ??= this.#current!.startedAt;
      this.#stream.mediaType = attempt.mediaType;
      this.#context.debug?.record('first_token_received');
      // The first text goes out at once, since clients feel the time to first token. Later text is sent once per turn.
      this.#writeOutput(attempt);
      return;
    }
    if (this.#writeScheduled) return;
    this.#writeScheduled = true;
    this.#parts.endOfTurn(() => this.#writeOutput(attempt));
  }

  /** Writes the output of this turn of the event loop, unless the end of the answer has already included it. */
  #writeOutput(attempt: Attempt): void {
    this.#writeScheduled = false;
    if (this.#over) return;
    try {
      // A complete turn has been reported with its cost.
      if (attempt === this.#turn.current?.attempt && !attempt.over) this.#generation!.seen(attempt.outputBytes);
      if (!this.#stream.write(attempt.take(), this.#current!.stamp, attempt.encoding)) attempt.pause();
    } catch (cause) {
      this.#unwritable(cause, attempt, this.#turn.stop());
    }
  }

  turnCompleted(dispatched: Dispatched): void {
    const { attempt } = dispatched;
    let metered: Metered | null = null;
    try {
      metered = this.#turn.meter(attempt, true);
      if (attempt.calls === undefined) this.#complete(dispatched, metered);
      else void this.#runTools(dispatched, metered);
    } catch (cause) {
      this.#unwritable(cause, attempt, metered);
    }
  }

  /** Runs the tools that the model called, then the next turn. The turn's own cost is settled in the reservation. */
  async #runTools(dispatched: Dispatched, metered: Metered): Promise<void> {
    const { attempt } = dispatched;
    this.#earlier.add(metered);
    this.#last = dispatched;
    this.#startedAt ??= dispatched.startedAt;
    try {
      this.#turnEnded(dispatched, metered);
      const continues = await this.#task.next!(attempt, this.#running(attempt));
      if (this.#over) return;
      if (!continues) {
        this.#earlier.takeBack();
        this.#last = undefined;
        this.#complete(dispatched, metered);
        return;
      }
      this.#context.request.about.trace?.passed('tools');
      if (attempt.visible) this.turnAdvanced(attempt);
      this.#lastAttempt = attempt;
      this.#turn = this.#newTurn(startingWith(dispatched, this.#route), this.#generation);
      await this.#turn.begin();
    } catch (thrown) {
      if (this.#over) return;
      const error = asGatewayError(thrown);
      if (error.status === 500)
        this.#parts.log.error('a tool failed', { generation: this.#context.request.id, cause: thrown });
      this.#endWith(error, attempt, null);
    }
  }

  #turnEnded(dispatched: Dispatched, { costNano, byokNano, usage }: Metered): void {
    dispatched.ended(false);
    this.#reservation.turnEnded({ creditNano: costNano, byokNano }, usage);
    this.#reportCost();
  }

  /** For the case that the process dies: the cost of the turns and tools so far. */
  #reportCost(): void {
    const sum = this.#earlier.with(null)!;
    this.#generation!.reported(sum.usage, { creditNano: sum.costNano, byokNano: sum.byokNano });
  }

  #running(attempt: Attempt): LoopRunning {
    return this.#earlier.running(this.#context, this.#parts, {
      advanced: () => {
        if (!this.#over && this.#context.request.facts.stream && attempt.visible) this.turnAdvanced(attempt);
      },
      changed: () => {
        if (!this.#over) this.#reportCost();
      },
    });
  }

  #complete(dispatched: Dispatched, last: Metered): void {
    const { attempt } = dispatched;
    const context = this.#context;
    const metered = this.#earlier.with(last)!;
    context.addHits(attempt.hits);
    const closing = this.#closing(metered);
    const whole = this.#stream.opened ? undefined : attempt.whole;
    const endedAt = this.#parts.clock.now();
    let output = '';
    let answer: WholeBody;
    try {
      // A debug stream shows events in order with their times, also for an answer that arrived in one piece.
      if (context.debug && !whole) {
        if (attempt.visible && this.#firstOutputAt === null) context.debug.record('first_token_received', endedAt);
        output = attempt.take();
      }
      answer = whole ? whole.write(dispatched.stamp, closing) : attempt.take() + attempt.writer!.end(closing);
    } catch (cause) {
      this.#unwritable(cause, attempt, last);
      return;
    }
    this.#settle({ status: 200, error: null, cancelled: false, metered }, attempt, () => {
      if (whole) {
        for (const listener of context.listeners ?? []) listener.wrote?.(answer);
        const headers = { ...headersOf(context), ...(whole.mediaType && { 'content-type': whole.mediaType }) };
        context.sink.reply(200, headers, answer, attempt.encoding);
      } else this.#stream.complete(output, answer as string, dispatched.stamp, attempt.encoding, endedAt);
    });
  }

  /** Writing the answer threw, which is a bug of the gateway: reports an error to the client so that nothing hangs. */
  #unwritable(cause: unknown, attempt: Attempt, metered: Metered | null): void {
    this.#parts.log.error('writing an answer failed', { generation: this.#context.request.id, cause });
    const message = 'the upstream response could not be read';
    const error = new GatewayError('provider_unavailable', message, { status: 502 });
    this.#endWith(error, attempt, metered);
  }

  turnBroke(attempt: Attempt, error: GatewayError): void {
    this.#breakOff(attempt, error, this.#turn.meter(attempt, false));
  }

  turnThrew(attempt: Attempt, cause: unknown): void {
    this.#turn.close();
    if (this.#over) this.#parts.log.error('ending an answer failed', { generation: this.#context.request.id, cause });
    else this.#unwritable(cause, attempt, null);
  }

  turnFailed(error: GatewayError, metered: Metered | null): void {
    this.#endWith(error, undefined, metered);
  }

  // Ways to end an answer. `last` is the cost of the last turn, whose usage may be estimated.

  /** @param attempt what the client may have seen of the current turn; otherwise it may have seen an earlier one */
  #endWith(error: GatewayError, attempt: Attempt | undefined, last: Metered | null): void {
    const seen = attempt?.visible ? attempt : this.#lastAttempt;
    if (seen?.visible) {
      this.#breakOff(seen, error, last);
      return;
    }
    this.#context.addHits(attempt?.hits);
    this.#giveUp(error, last);
  }

  /** A failure after visible output: one error event, or a closed connection where the format has none, ends the stream. Nothing is replayed. */
  #breakOff(attempt: Attempt, error: GatewayError, last: Metered | null): void {
    const metered = this.#earlier.with(last);
    this.#context.addHits(attempt.hits);
    this.#settle({ status: 200, error, cancelled: false, metered }, attempt, () => {
      const failure = attempt.writer!.failure(error, metered === null ? {} : this.#closing(metered));
      this.#stream.breakOff(attempt.take() + failure, this.#current!.stamp, attempt.encoding);
    });
  }

  /** No endpoint answered. Sends an error response, or an error event if the response head is already sent. */
  #giveUp(error: GatewayError, last: Metered | null): void {
    const status = this.#stream.opened ? 200 : error.status;
    const metered = this.#earlier.with(last);
    this.#settle({ status, error, cancelled: false, metered }, undefined, () => {
      if (this.#stream.opened) this.#sendErrorEvent(error);
      else answerError(this.#context, error, this.#metadata());
    });
  }

  #sendErrorEvent(error: GatewayError): void {
    const { sink, request } = this.#context;
    if (sink.closed) return;
    const stamp = this.#current?.stamp ?? unservedStamp(request);
    const metadata = this.#metadata();
    sink.write(this.#task.failureEvent(error, stamp, metadata ? { metadata } : {}), 'utf8');
    sink.end();
  }

  /** The client disconnected: aborts the upstream at once and charges for what it wrote. */
  #disconnected(): void {
    if (this.#over) return;
    const last = this.#turn.stop();
    const current = this.#current;
    if (this.#generation === undefined || current === undefined) {
      this.#close();
      return;
    }
    this.#turn.abandon();
    const status = this.#stream.opened ? 200 : null;
    this.#context.addHits(current.attempt.hits);
    const metered = this.#earlier.with(last);
    this.#settle({ status, error: null, cancelled: true, metered }, current.attempt, () => {});
  }

  /** The gateway shuts down: charges for what the upstream wrote, and ends the answer with an error. */
  interrupt(): void {
    if (this.#over) return;
    const error = shuttingDown();
    const last = this.#turn.stop();
    const current = this.#current;
    if (this.#generation === undefined || current === undefined) {
      this.#close();
      if (this.#stream.opened) this.#sendErrorEvent(error);
      else answerError(this.#context, error, undefined);
      this.#release();
      return;
    }
    this.#turn.abandon();
    this.#endWith(error, current.attempt, last);
  }

  /** Stops everything except sending the end of the answer. */
  #close(): void {
    this.#over = true;
    this.#earlier.stop();
    this.#turn.close();
    this.#stream.quiet();
  }

  /** @param send sends the end to the client once the row is in the journal; the client may have disconnected by then */
  #settle(outcome: Outcome, attempt: Attempt | undefined, send: () => void): void {
    this.#close();
    const current = this.#current;
    current?.ended(true);
    const startedAt = this.#startedAt ?? current?.startedAt ?? 0;
    const row = rowOf(this.#context, this.#task.apiType, this.#route, {
      ...outcome,
      candidate: current?.candidate,
      attempt,
      responses: this.#log.responses,
      latencyMs: this.#firstOutputAt === null ? null : this.#firstOutputAt - startedAt,
      generationMs: this.#parts.clock.monotonic() - startedAt,
    });
    this.#ended = { row, transcript: attempt?.transcript, error: outcome.error };
    settleTokens(this.#context, row);
    if (this.#context.request.facts.thread !== undefined && current && !outcome.error && !outcome.cancelled) {
      this.#parts.threads.keep(row, current.credential.id);
    }
    this.#context.sink.entered?.(row, outcome.metered ?? undefined);
    this.#generation!.settle(row, () => this.#release(faultOf(send)));
  }

  /** The request is over: resolves `run` and notifies the listeners. */
  #release(fault?: unknown): void {
    this.#context.request.about.trace?.passed('settle');
    this.#finished.resolve(fault);
    if (this.#context.listeners && this.#ended) notifyEnded(this.#context.listeners, this.#ended, this.#parts.log);
  }

  #closing({ usage, cost }: Metered): Closing {
    const completed = Math.floor(this.#parts.clock.now() / 1000);
    return { usage, cost, completed, metadata: this.#metadata(), alignment: this.#context.alignment };
  }

  #metadata(): Closing['metadata'] {
    if (!this.#context.request.about.metadata) return undefined;
    const { current, serves, hasFailed } = this.#turn;
    const { failed } = this.#log;
    const isCounted = current === undefined || hasFailed || current === this.#last;
    return {
      key: this.#parts.metadataKey,
      value: routingMetadata(this.#context, this.#route, {
        candidate: current?.candidate,
        serves,
        attempt: failed.length + this.#earlier.count + (isCounted ? 0 : 1),
        failed,
        generationMs: current ? this.#parts.clock.monotonic() - (this.#startedAt ?? current.startedAt) : null,
        tools: this.#earlier.stage,
      }),
    };
  }

  get #generation(): OpenGeneration | undefined {
    return this.#turn.generation;
  }

  get #current(): Dispatched | undefined {
    return this.#turn.current ?? this.#last;
  }
}
