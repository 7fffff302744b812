/** A freshness that the test controls. */
import type { Clock } from '../../base/clock.ts';
import { ProvenFreshness } from '../../storage/freshness.ts';

export class TestFreshness extends ProvenFreshness {
  readonly #testClock: Clock;
  #stoppedAt: number | undefined;

  constructor(clock: Clock, database = { up: true }) {
    super(clock, database);
    this.#testClock = clock;
    this.arrive();
  }

  override get current(): boolean {
    if (this.#stoppedAt === undefined) this.arrive();
    return super.current;
  }

  /** From now on no change arrives. */
  stop(): void {
    if (this.#stoppedAt !== undefined) return;
    this.arrive();
    this.#stoppedAt = this.#testClock.monotonic();
    this.lost();
  }

  /** Changes arrive again. */
  arrive(): void {
    this.#stoppedAt = undefined;
    this.proven(this.now());
  }
}
