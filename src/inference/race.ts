/**
 * The attempt that runs, and a second one beside it when the first stays silent for too long (`routing.hedge_after`). The
 * first of the two that shows something has won; the other is aborted at once, and what it has cost by then is charged
 * too, as an estimate: somebody pays for it. The second one's bound is reserved on top of the first one's, so no budget is
 * exceeded by a race; where that does not fit there is none.
 */
import type { Clock, Timer } from '../base/clock.ts';
import type { Dispatched } from './dispatch.ts';
import type { Metered } from './meter.ts';
import type { Attempt } from './task.ts';

export interface RaceOptions {
  clock: Clock;
  /** Silence after which a second attempt starts; null: never. */
  hedgeAfterMs: number | null;
  /** The next candidate, ready to start; undefined when there is none. */
  another(): Promise<Dispatched | undefined>;
  /** What an attempt has cost so far. */
  meter(dispatched: Dispatched): Metered;
  /** A loser was aborted. */
  lost(dispatched: Dispatched): void;
  /** The first attempt has failed while a second one was sought, and there is none: with the reason, when it is one. */
  stranded(reason?: unknown): void;
}

export class Race {
  readonly #options: RaceOptions;
  #first: Dispatched | undefined;
  #second: Dispatched | undefined;
  #timer: Timer | undefined;
  #seeking = false;
  #stranded = false;
  #stopped = false;
  /** What the losers have cost. */
  readonly losses: Metered[] = [];

  constructor(options: RaceOptions) {
    this.#options = options;
  }

  /** Whose answer the request gets, as far as is known; after a failure the one that failed last. */
  get current(): Dispatched | undefined {
    return this.#first;
  }

  /** Starts an attempt of which something is expected soon. */
  start(dispatched: Dispatched): void {
    this.#first = dispatched;
    dispatched.start();
    const { clock, hedgeAfterMs } = this.#options;
    if (hedgeAfterMs !== null) this.#timer = clock.timer(hedgeAfterMs, () => void this.#hedge());
  }

  of(attempt: Attempt): Dispatched {
    return this.#second?.attempt === attempt ? this.#second : this.#first!;
  }

  /** The attempt shows something, or is complete: nobody runs beside it any more. Cheap enough for every event. */
  won(attempt: Attempt): void {
    if (this.#timer === undefined && this.#second === undefined) return;
    this.#timer?.cancel();
    this.#timer = undefined;
    const overtaken = this.#second?.attempt === attempt;
    const [winner, loser] = overtaken ? [this.#second, this.#first] : [this.#first, this.#second];
    this.#first = winner;
    this.#second = undefined;
    if (loser === undefined) return;
    if (!overtaken) winner!.again();
    this.#abort(loser);
  }

  /** The attempt has failed. True: another one runs, or is being sought, and the request goes on by itself. */
  failed(attempt: Attempt): boolean {
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#second !== undefined) {
      if (this.#second.attempt !== attempt) this.#first = this.#second;
      this.#second = undefined;
      return true;
    }
    this.#stranded = this.#seeking;
    return this.#seeking;
  }

  /** Ends everything that runs; the costs of all but the current one are in `losses`. */
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
    this.#seeking = true;
    silent.keep();
    let second: Dispatched | undefined;
    let reason: unknown;
    try {
      second = await this.#options.another();
    } catch (error) {
      reason = error;
    }
    this.#seeking = false;
    if (this.#stopped) {
      second?.ended(false);
    } else if (this.#stranded) {
      this.#stranded = false;
      if (second === undefined) this.#options.stranded(reason);
      else this.start(second);
    } else if (second !== undefined) {
      this.#join(silent, second);
    }
  }

  #join(silent: Dispatched, second: Dispatched): void {
    if (silent.attempt.over || silent.attempt.visible) {
      silent.again();
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
