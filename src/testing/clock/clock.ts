/**
 * Time for tests: frozen until the test moves it. Also the one way in which a test waits for something elsewhere, such as on
 * a socket: by polling a condition, never by sleeping for a guessed time.
 */
import type { Clock, Timer } from '../../base/clock.ts';

interface Pending {
  dueAt: number;
  /** Timers that are due at the same moment fire in the order in which they were set. */
  order: number;
}

/** A clock that only `advance` and `set` move. Time starts at 2026-01-01 by default. */
export class TestClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  #orders = 0;
  readonly #pending = new Map<TestTimer, Pending>();

  constructor(nowMs: number = Date.UTC(2026, 0, 1)) {
    this.#wallMs = nowMs;
  }

  now(): number {
    return this.#wallMs;
  }

  monotonic(): number {
    return this.#monotonicMs;
  }

  timer(delayMs: number, run: () => void): Timer {
    const timer = new TestTimer(this, delayMs, run);
    timer.refresh();
    return timer;
  }

  /** How many timers are pending. */
  get timers(): number {
    return this.#pending.size;
  }

  /**
   * Moves time on and fires what becomes due, in order, each at its own moment; timers that are set by those included. A
   * timer that throws leaves the clock at that moment.
   */
  advance(ms: number): void {
    const until = this.#monotonicMs + ms;
    for (let next = this.#next(until); next !== undefined; next = this.#next(until)) {
      this.#moveTo(Math.max(this.#monotonicMs, this.#pending.get(next)!.dueAt));
      this.#pending.delete(next);
      next.run();
    }
    this.#moveTo(until);
  }

  /** Sets the wall clock alone, as an administrator or a time server does: no timer fires. */
  set(nowMs: number): void {
    this.#wallMs = nowMs;
  }

  /** For TestTimer. */
  schedule(timer: TestTimer, delayMs: number): void {
    this.#pending.set(timer, { dueAt: this.#monotonicMs + Math.max(0, delayMs), order: this.#orders++ });
  }

  /** For TestTimer. */
  forget(timer: TestTimer): void {
    this.#pending.delete(timer);
  }

  #next(until: number): TestTimer | undefined {
    let found: TestTimer | undefined;
    let best: Pending | undefined;
    for (const [timer, pending] of this.#pending) {
      if (pending.dueAt > until) continue;
      if (
        best === undefined ||
        pending.dueAt < best.dueAt ||
        (pending.dueAt === best.dueAt && pending.order < best.order)
      ) {
        found = timer;
        best = pending;
      }
    }
    return found;
  }

  #moveTo(monotonicMs: number): void {
    this.#wallMs += monotonicMs - this.#monotonicMs;
    this.#monotonicMs = monotonicMs;
  }
}

class TestTimer implements Timer {
  readonly run: () => void;
  readonly #clock: TestClock;
  readonly #delayMs: number;
  #cancelled = false;

  constructor(clock: TestClock, delayMs: number, run: () => void) {
    this.#clock = clock;
    this.#delayMs = delayMs;
    this.run = run;
  }

  /** As the platform's: also restarts a timer that has fired, but not one that was cancelled. */
  refresh(): void {
    if (!this.#cancelled) this.#clock.schedule(this, this.#delayMs);
  }

  cancel(): void {
    this.#cancelled = true;
    this.#clock.forget(this);
  }
}

/**
 * Resolves when `condition` holds (its value is truthy) and yields that value. Looks on every turn of the event loop at
 * first, if a look costs nothing, and then the more rarely the longer it waits: what looks all the time takes the processor
 * from what it waits for. Fails after `deadlineMs` of real time, naming `what`; the default is for the slowest machine.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  what: string,
  deadlineMs = 120_000,
): Promise<NonNullable<T>> {
  const startedAt = performance.now();
  for (let turn = 0; ; turn++) {
    const looked = condition();
    const value = await looked;
    if (value) return value as NonNullable<T>;
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > deadlineMs) throw new Error(`after ${Math.round(waitedMs)} ms still not true: ${what}`);
    const pauseMs = Math.min(50, Math.max(2, waitedMs / 8));
    const isFree = turn < 50 && !(looked instanceof Promise);
    await new Promise<void>((resolve) => (isFree ? setImmediate(resolve) : setTimeout(resolve, pauseMs)));
  }
}

/** Lets everything that is ready happen: `turns` turns of the event loop. For showing that something does not happen. */
export async function settle(turns = 20): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}
