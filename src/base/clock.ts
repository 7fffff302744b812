/**
 * Time as a parameter. Nothing else in the project reads the system time or sets timers, so every deadline can be tested
 * without waiting (`testing/clock/clock.ts`).
 */

/** A pending call. `refresh` restarts the delay, `cancel` drops the call; both may be called at any time. */
export interface Timer {
  refresh(): void;
  cancel(): void;
}

export interface Clock {
  /** Wall time in milliseconds since 1970-01-01 UTC. */
  now(): number;
  /** Milliseconds since an arbitrary moment, with fractions; never goes backwards. */
  monotonic(): number;
  /** Calls `run` once, `delayMs` from now. A pending timer does not keep the process alive. */
  timer(delayMs: number, run: () => void): Timer;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer(delayMs, run) {
    const handle = setTimeout(run, delayMs);
    handle.unref();
    return { refresh: () => void handle.refresh(), cancel: () => clearTimeout(handle) };
  },
};

/** Milliseconds that the event loop of this process has worked since the process began; the rest of the time it waited. */
export function loopBusyMs(): number {
  return performance.eventLoopUtilization().active;
}

const LONGEST_DELAY_MS = 2 ** 31 - 1;

/** Keeps the process alive until the returned function is called, for work that waits for nothing but a timer. */
export function stayAlive(): () => void {
  const handle = setInterval(() => {}, LONGEST_DELAY_MS);
  return () => clearInterval(handle);
}

/** Resolves after `delayMs` of the given clock. */
export function sleep(clock: Clock, delayMs: number): Promise<void> {
  return new Promise((resolve) => void clock.timer(delayMs, resolve));
}

/** Waits for `work`, at most `delayMs`; a later result is ignored. Rejects if `work` does. */
export async function waitAtMost(clock: Clock, delayMs: number, work: Promise<unknown>): Promise<void> {
  let timer: Timer | undefined;
  const timeout = new Promise<void>((resolve) => {
    timer = clock.timer(delayMs, resolve);
  });
  try {
    await Promise.race([work, timeout]);
  } finally {
    timer?.cancel();
  }
}

/** A delay that other code can end early. */
export class Pause {
  readonly #clock: Clock;
  #end: (() => void) | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves after `delayMs`, or when `end` is called. */
  wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#clock.timer(delayMs, () => this.end());
      this.#end = () => {
        this.#end = undefined;
        timer.cancel();
        resolve();
      };
    });
  }

  /** Does nothing if there is no pending wait. */
  end(): void {
    this.#end?.();
  }
}
