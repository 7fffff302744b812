/**
 * Runs the current attempt, and hedges it with a second one if it stays silent too long (`routing.hedge_after`). The
 * first to show output wins. The other is aborted at once, and its cost so far is charged as an estimate, because the
 * provider charges for it. The second attempt's bound is reserved on top of the first one's; if that does not fit,
 * there is no hedge.
 */
import type { Clock, Timer } from '../../base/clock.ts';
import type { Metered } from '../accounting/meter.ts';
import type { Attempt } from '../task.ts';
import type { Dispatched } from './dispatched-call.ts';

interface HedgeOptions {
  clock: Clock;
  /** Silence after which a second attempt starts; null: never. */
  hedgeAfterMs: number | null;
  /** The next candidate, ready to start; undefined when none is left. */
  nextCandidate(): Promise<Dispatched | undefined>;
  /** The cost of an attempt so far. */
  meter(dispatched: Dispatched): Metered;
  /** Called after a loser was aborted. */
  lost(dispatched: Dispatched): void;
  /** The first attempt failed during the search for a second, and there is none; `reason` is what the search threw. */
  exhausted(reason?: unknown): void;
}

export class Hedge {
  readonly #options: HedgeOptions;
  #first: Dispatched | undefined;
  #second: Dispatched | undefined;
  #timer: Timer | undefined;
  #searching = false;
  #firstFailed = false;
  #stopped = false;
  /** The costs of the losers. */
  readonly losses: Metered[] = [];

  constructor(options: HedgeOptions) {
    this.#options = options;
  }

  /** The attempt whose answer the client gets, as far as is known; after a failure, the one that failed last. */
  get current(): Dispatched | undefined {
    return this.#first;
  }

  /** Starts an attempt, and the timer for its hedge. */
  start(dispatched: Dispatched): void {
    this.#first = dispatched;
    dispatched.start();
    const { clock, hedgeAfterMs } = this.#options;
    if (hedgeAfterMs !== null) this.#timer = clock.timer(hedgeAfterMs, () => void this.#hedge());
  }

  of(attempt: Attempt): Dispatched {
    return this.#second?.attempt === attempt ? this.#second : this.#first!;
  }

  /** The attempt shows output or is complete: aborts the other one. Cheap enough to call for every event. */
  won(attempt: Attempt): void {
    if (this.#timer === undefined && this.#second === undefined) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    const overtaken = this.#second?.attempt === attempt;
    const [winner, loser] = overtaken ? [this.#second, this.#first] : [this.#first, this.#second];
    this.#first = winner;
    this.#second = undefined;
    if (loser === undefined) return;
    if (!overtaken) winner!.rejournal();
    this.#abort(loser);
  }

  /** The attempt has failed. Returns true if another one runs or is being prepared, so the caller need not act. */
  failed(attempt: Attempt): boolean {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#second !== undefined) {
      if (this.#second.attempt !== attempt) this.#first = this.#second;
      this.#second = undefined;
      return true;
    }
    this.#firstFailed = this.#searching;
    return this.#searching;
  }

  /** Aborts the second attempt and the search for one; `losses` has the costs of all but the current attempt. */
  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#second !== undefined) this.#abort(this.#second);
    this.#second = undefined;
  }

  async #hedge(): Promise<void> {
    this.#timer = undefined;
    const silent = this.#first!;
    if (this.#stopped || silent.attempt.over || silent.attempt.visible) return;
    this.#searching = true;
    silent.keepBound();
    let second: Dispatched | undefined;
    let reason: unknown;
    try {
      second = await this.#options.nextCandidate();
    } catch (error) {
      reason = error;
    }
    this.#searching = false;
    if (this.#stopped) {
      second?.ended(false);
    } else if (this.#firstFailed) {
      this.#firstFailed = false;
      if (second === undefined) this.#options.exhausted(reason);
      else this.start(second);
    } else if (second !== undefined) {
      this.#join(silent, second);
    }
  }

  #join(silent: Dispatched, second: Dispatched): void {
    if (silent.attempt.over || silent.attempt.visible) {
      silent.rejournal();
      second.ended(false);
      return;
    }
    this.#second = second;
    second.start();
  }

  #abort(loser: Dispatched): void {
    if (loser.attempt.over) return;
    loser.attempt.abort();
    loser.ended(true);
    this.losses.push(this.#options.meter(loser));
    this.#options.lost(loser);
  }
}
