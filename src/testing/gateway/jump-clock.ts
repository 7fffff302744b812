/**
 * Real time that a test can advance or freeze: for whole gateways, whose database and sockets need running time.
 */
import { type Clock, systemClock, type Timer } from '../../base/clock.ts';

export class JumpClock implements Clock {
  #aheadMs = 0;
  /** The wall clock alone. */
  #setMs = 0;
  /** The real monotonic time at which the clock is frozen. */
  #stoodAt: number | undefined;
  readonly #pending = new Set<JumpTimer>();
  readonly #startedAt = systemClock.monotonic();
  readonly pace: number;

  /** @param pace below 1 every limit is as much further away in real time, for what a busy machine may take long over */
  constructor(pace = 1) {
    this.pace = pace;
  }

  now(): number {
    return Math.floor(systemClock.now() + this.#aheadMs + this.#setMs - this.#behind(systemClock.monotonic()));
  }

  monotonic(): number {
    // Read once: the time between two readings would set a frozen clock back.
    const real = systemClock.monotonic();
    return real + this.#aheadMs - this.#behind(real);
  }

  /** Sets the wall clock alone, as a time server does, or a machine that was suspended: no timer fires. */
  setWall(ms: number): void {
    this.#setMs += ms;
  }

  get standing(): boolean {
    return this.#stoodAt !== undefined;
  }

  /** From now on timers fire only in `jump`. */
  stand(): void {
    this.#stoodAt ??= systemClock.monotonic();
    for (const timer of this.#pending) timer.reschedule();
  }

  /** Goes on from where it stood. */
  goOn(): void {
    this.#aheadMs -= this.#stood(systemClock.monotonic());
    this.#stoodAt = undefined;
    for (const timer of this.#pending) timer.reschedule();
  }

  #behind(real: number): number {
    return (real - this.#startedAt) * (1 - this.pace) + this.#stood(real);
  }

  #stood(real: number): number {
    return this.#stoodAt === undefined ? 0 : (real - this.#stoodAt) * this.pace;
  }

  timer(delayMs: number, run: () => void): Timer {
    return new JumpTimer(this, this.#pending, delayMs, run);
  }

  /** Moves time on at once and fires what has become due, in the order in which it is due. */
  jump(ms: number): void {
    this.#aheadMs += ms;
    const now = this.monotonic();
    const due = [...this.#pending].filter((timer) => timer.dueAt <= now).sort((a, b) => a.dueAt - b.dueAt);
    for (const timer of due) timer.fire();
    for (const timer of this.#pending) timer.reschedule();
  }
}

class JumpTimer implements Timer {
  dueAt = 0;
  readonly #clock: JumpClock;
  readonly #pending: Set<JumpTimer>;
  readonly #delayMs: number;
  readonly #run: () => void;
  #real: Timer | undefined;
  #cancelled = false;

  constructor(clock: JumpClock, pending: Set<JumpTimer>, delayMs: number, run: () => void) {
    this.#clock = clock;
    this.#pending = pending;
    this.#delayMs = delayMs;
    this.#run = run;
    this.refresh();
  }

  refresh(): void {
    if (this.#cancelled) return;
    this.dueAt = this.#clock.monotonic() + this.#delayMs;
    this.#pending.add(this);
    this.reschedule();
  }

  cancel(): void {
    this.#cancelled = true;
    this.#pending.delete(this);
    this.#real?.cancel();
  }

  fire(): void {
    if (!this.#pending.delete(this)) return;
    this.#real?.cancel();
    this.#run();
  }

  reschedule(): void {
    this.#real?.cancel();
    if (this.#clock.standing) return;
    const delayMs = Math.max(0, this.dueAt - this.#clock.monotonic()) / this.#clock.pace;
    this.#real = systemClock.timer(delayMs, () => this.fire());
  }
}
