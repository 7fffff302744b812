/**
 * The stages and calls of one request in their order, as times and a few facts, which become spans once the request is over.
 * A request that is not sampled has a trace too, but only for the headers to upstreams.
 */
import type { Clock } from '../base/clock.ts';
import type { Usage } from '../formats/conversation/conversation.ts';
import type { Ids } from './ids.ts';
import { type RemoteParent, traceparent } from './trace-context.ts';

/** Beyond it, stages and calls are counted only. */
const MOST_PASSED = 100;
/** The last two digits of span ids. */
const NUMBERS = Array.from({ length: 256 }, (_, number) => number.toString(16).padStart(2, '0'));

interface Stage {
  readonly stage: string;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** The endpoint that a call goes to. */
interface Called {
  readonly operation: string;
  readonly provider: string;
  readonly model: string;
  /** The provider's name of the model. */
  readonly upstreamModel: string;
}

export class RequestTrace {
  readonly traceId: string;
  readonly spanId: string;
  readonly parent: RemoteParent | undefined;
  readonly sampled: boolean;
  /** Wall time in ms, as all times here. */
  readonly startedAt: number;
  readonly stages: Stage[] = [];
  readonly attempts: AttemptTrace[] = [];
  omitted = 0;
  readonly #family: string;
  #spans = 0;
  readonly #clock: Clock;
  /** The wall time at 0 of the monotonic clock. */
  readonly #origin: number;
  #since: number;

  constructor(
    ids: Ids,
    clock: Clock,
    { parent, sampled, startedAt, ageMs }: Pick<RequestTrace, 'parent' | 'sampled' | 'startedAt'> & { ageMs: number },
    traceId: string,
  ) {
    this.#clock = clock;
    this.traceId = traceId;
    this.#family = ids.family();
    this.spanId = this.newSpanId();
    this.parent = parent;
    this.sampled = sampled;
    this.startedAt = startedAt;
    this.#origin = startedAt + ageMs - clock.monotonic();
    this.#since = startedAt;
  }

  /** Unique in this trace: random digits that all spans of this request begin with, and a number. */
  newSpanId(): string {
    this.#spans += 1;
    return this.#family + NUMBERS[this.#spans % NUMBERS.length];
  }

  now(): number {
    return this.#origin + this.#clock.monotonic();
  }

  /** A stage has ended. It began when the one before it did, or the last call. */
  passed(stage: string): void {
    if (!this.sampled) return;
    const endedAt = this.now();
    if (this.stages.length < MOST_PASSED) this.stages.push({ stage, startedAt: this.#since, endedAt });
    else this.omitted += 1;
    this.#since = endedAt;
  }

  /** A call to an upstream begins. */
  attempt(called: Called): AttemptTrace {
    this.passed('prepare');
    const attempt = new AttemptTrace(this, this.newSpanId(), called, this.#since);
    if (!this.sampled) return attempt;
    if (this.attempts.length < MOST_PASSED) this.attempts.push(attempt);
    else this.omitted += 1;
    return attempt;
  }

  attemptEnded(at: number): void {
    this.#since = at;
  }
}

export class AttemptTrace {
  readonly spanId: string;
  readonly called: Called;
  readonly startedAt: number;
  /** Undefined while it runs. */
  endedAt: number | undefined;
  /** `answered`, `given_up`, or the kind of the failure. */
  outcome = 'given_up';
  status: number | null = null;
  usage: Usage | undefined;
  readonly #trace: RequestTrace;

  constructor(trace: RequestTrace, spanId: string, called: Called, startedAt: number) {
    this.#trace = trace;
    this.spanId = spanId;
    this.called = called;
    this.startedAt = startedAt;
  }

  /** For the request to the upstream. */
  get headers(): Record<string, string> {
    const { traceId, sampled, parent } = this.#trace;
    const own = { traceparent: traceparent(traceId, this.spanId, sampled) };
    return parent?.state === undefined ? own : { ...own, tracestate: parent.state };
  }

  /** Only the first call counts. */
  ended(outcome: string, status: number | null, usage: Usage | undefined): void {
    if (this.endedAt !== undefined || !this.#trace.sampled) return;
    this.endedAt = this.#trace.now();
    this.outcome = outcome;
    this.status = status;
    this.usage = usage;
    this.#trace.attemptEnded(this.endedAt);
  }
}
