/**
 * Which endpoints and credentials rest after a failure, and which are ailing by their statistics. Both are advice: such an
 * endpoint is tried later, never refused, so a model with one endpoint keeps being asked. Rests are kept per process and
 * in memory; the statistics are everybody's.
 */
import type { Clock } from '../../base/clock.ts';
import type { Endpoint, EndpointFigures } from '../../catalog/index.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Credentials } from './credentials.ts';

/** After an outage without a hint (wire/chat.md: "recent outages, about 30 s"). */
const REST_MS = 30_000;
/** No hint of an upstream rests an endpoint longer. */
const MAX_REST_MS = 10 * 60_000;
/** Names that clients make up can fail too. */
const MOST_RESTING = 10_000;

export class Health {
  readonly #clock: Clock;
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** False: every question for a rest has the answer no. */
  get anyRests(): boolean {
    return this.#until.size > 0;
  }

  /** True while `id` (an endpoint's, or a provider's credential's) should be tried after the others. */
  resting(id: string): boolean {
    if (this.#until.size === 0) return false;
    const until = this.#until.get(id);
    if (until === undefined) return false;
    if (this.#clock.monotonic() < until) return true;
    this.#until.delete(id);
    return false;
  }

  rest(id: string, failure: UpstreamFailure): void {
    const hintMs = failure.retryAfterSeconds === undefined ? REST_MS : failure.retryAfterSeconds * 1000;
    this.#until.delete(id);
    if (this.#until.size >= MOST_RESTING) this.#until.delete(this.#until.keys().next().value!);
    this.#until.set(id, this.#clock.monotonic() + Math.min(hintMs, MAX_REST_MS));
  }

  /** A good answer ends the rest. */
  recovered(id: string): void {
    if (this.#until.size > 0) this.#until.delete(id);
  }
}

/** An endpoint that has answered less than this share of at least so many tries in five minutes is ailing. */
const AILING_UPTIME = 80;
const AILING_TRIES = 10;

/** 0 sound; 1 ailing by the statistics of all processes; 2 resting in this one, or without a credential that does not. */
export function ailmentOf(
  endpoint: Endpoint,
  figures: EndpointFigures,
  { health, credentials }: { health: Health; credentials: Credentials },
): 0 | 1 | 2 {
  if (health.resting(endpoint.id) || credentials.allRest(endpoint)) return 2;
  return figures.requests5m >= AILING_TRIES && figures.uptime5m! < AILING_UPTIME ? 1 : 0;
}
