/**
 * Which endpoints and credentials rest after a failure. A rest is advice: a resting endpoint is tried last, never
 * refused, so a model with one endpoint keeps being asked. Kept per process and in memory; at most one entry an
 * endpoint or credential.
 */
import type { Clock } from '../base/clock.ts';
import type { UpstreamFailure } from '../formats/conversation/failure.ts';

/** After an outage without a hint (wire/chat.md: "recent outages, about 30 s"). */
const REST_MS = 30_000;
/** No hint of an upstream rests an endpoint longer. */
const MAX_REST_MS = 10 * 60_000;

export class Health {
  readonly #clock: Clock;
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True while `id` (an endpoint's, or a provider's credential's) should be tried after the others. */
  resting(id: string): boolean {
    const until = this.#until.get(id);
    if (until === undefined) return false;
    if (this.#clock.monotonic() < until) return true;
    this.#until.delete(id);
    return false;
  }

  rest(id: string, failure: UpstreamFailure): void {
    const hintMs = failure.retryAfterSeconds === undefined ? REST_MS : failure.retryAfterSeconds * 1000;
    this.#until.set(id, this.#clock.monotonic() + Math.min(hintMs, MAX_REST_MS));
  }

  /** A good answer ends the rest. */
  recovered(id: string): void {
    if (this.#until.size > 0) this.#until.delete(id);
  }
}
