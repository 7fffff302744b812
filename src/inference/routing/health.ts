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
/** How long one request probes an endpoint whose cooldown is over, before the next one may. */
const PROBE_MS = 30_000;
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

  /** For how long `id` (an endpoint's, or a provider's credential's) should be tried after the others; 0: it need not. */
  restMs(id: string): number {
    const until = this.#until.get(id);
    if (until === undefined) return 0;
    const leftMs = until - this.#clock.monotonic();
    if (leftMs > 0) return leftMs;
    if (leftMs < -MAX_REST_MS) this.#until.delete(id);
    return 0;
  }

  /**
   * A request is sent to `id`. The first one after a cooldown is a probe: until it succeeds, other requests prefer other
   * endpoints, so a silent upstream delays one request per period instead of all of them.
   */
  asked(id: string): void {
    const until = this.#until.get(id);
    if (until === undefined) return;
    const now = this.#clock.monotonic();
    if (until <= now) this.#until.set(id, now + PROBE_MS);
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

export function isAiling({ uptime5m, requests5m }: EndpointFigures): boolean {
  return requests5m >= AILING_TRIES && uptime5m! < AILING_UPTIME;
}

/** How long the endpoint rests in this process, or all credentials for it. */
export function restOf(
  endpoint: Endpoint,
  { health, credentials }: { health: Health; credentials: Credentials },
): number {
  if (!health.anyRests) return 0;
  return Math.max(health.restMs(endpoint.id), credentials.restMs(endpoint));
}
