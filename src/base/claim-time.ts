/** The wall time by which claims of processes on shared work have ended. */
import type { Clock } from './clock.ts';

/**
 * Processes renew their claims in time, and a claim that has ended belongs to a dead one. But when the wall clock jumps ahead,
 * because it was set or the machine was suspended, every claim seems to have ended. Then this is the time without the jump, until
 * living processes have renewed theirs.
 */
export class ClaimTime {
  readonly #clock: Clock;
  readonly #renewMs: number;
  /** How far the wall clock is ahead of the monotonic one, which no jump moves. */
  #ahead: number;
  #jump = { ms: 0, until: Number.NEGATIVE_INFINITY };

  /** @param renewMs the interval at which claims are renewed */
  constructor(clock: Clock, renewMs: number) {
    this.#clock = clock;
    this.#renewMs = renewMs;
    this.#ahead = clock.now() - clock.monotonic();
  }

  now(): number {
    const [wall, monotonic] = [this.#clock.now(), this.#clock.monotonic()];
    const ms = wall - monotonic - this.#ahead;
    this.#ahead = wall - monotonic;
    if (ms > this.#renewMs) this.#jump = { ms, until: monotonic + 2 * this.#renewMs };
    return monotonic < this.#jump.until ? wall - this.#jump.ms : wall;
  }
}
