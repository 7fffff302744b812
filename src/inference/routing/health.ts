/**
 * Tracks endpoints and credentials in cooldown after a failure, and endpoints that are unhealthy by their statistics.
 * Both only lower the rank: such an endpoint is tried later, never refused, so the only endpoint of a model keeps being
 * tried. Cooldowns are in memory, per process; the statistics cover all processes.
 */
import type { Clock } from '../../base/clock.ts';
import type { Endpoint, EndpointFigures } from '../../catalog/index.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { Credentials } from './credentials.ts';

/** Cooldown after a failure without a `Retry-After`. */
const COOLDOWN_MS = 30_000;
/** How long one request probes an endpoint after its cooldown, before the next request may. */
const PROBE_MS = 30_000;
/** The longest cooldown that an upstream's `Retry-After` can cause. */
const MAX_COOLDOWN_MS = 10 * 60_000;
/** Bounds the table: endpoints whose names clients invent can fail too. */
const MAX_COOLDOWNS = 10_000;

export class Health {
  readonly #clock: Clock;
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** False if nothing is in cooldown, which spares the lookups. */
  get anyCooldown(): boolean {
    return this.#until.size > 0;
  }

  /** The remaining cooldown of `id` (an endpoint or a credential), in ms; 0 if it is not in cooldown. */
  cooldownMs(id: string): number {
    const until = this.#until.get(id);
    if (until === undefined) return 0;
    const leftMs = until - this.#clock.monotonic();
    if (leftMs > 0) return leftMs;
    if (leftMs < -MAX_COOLDOWN_MS) this.#until.delete(id);
    return 0;
  }

  /**
   * A request is sent to `id`. The first one after a cooldown is a probe: until it succeeds, other requests prefer
   * other endpoints, so a silent upstream delays one request per period instead of all of them.
   */
  attempted(id: string): void {
    const until = this.#until.get(id);
    if (until === undefined) return;
    const now = this.#clock.monotonic();
    if (until <= now) this.#until.set(id, now + PROBE_MS);
  }

  coolDown(id: string, failure: UpstreamFailure): void {
    const hintMs = failure.retryAfterSeconds === undefined ? COOLDOWN_MS : failure.retryAfterSeconds * 1000;
    this.#until.delete(id);
    if (this.#until.size >= MAX_COOLDOWNS) this.#until.delete(this.#until.keys().next().value!);
    this.#until.set(id, this.#clock.monotonic() + Math.min(hintMs, MAX_COOLDOWN_MS));
  }

  /** A successful response ends the cooldown. */
  recovered(id: string): void {
    if (this.#until.size > 0) this.#until.delete(id);
  }
}

/** An endpoint is unhealthy if its success rate is below this, with at least `MIN_ATTEMPTS` in five minutes. */
const UNHEALTHY_UPTIME = 80;
const MIN_ATTEMPTS = 10;

export function isUnhealthy({ uptime5m, requests5m }: EndpointFigures): boolean {
  return requests5m >= MIN_ATTEMPTS && uptime5m! < UNHEALTHY_UPTIME;
}

/** The endpoint's cooldown in this process, or that of all its credentials if longer. */
export function cooldownOf(
  endpoint: Endpoint,
  { health, credentials }: { health: Health; credentials: Credentials },
): number {
  if (!health.anyCooldown) return 0;
  return Math.max(health.cooldownMs(endpoint.id), credentials.cooldownMs(endpoint));
}
