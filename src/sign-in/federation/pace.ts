/** How often somebody may come: so many at once, so many a second in the long run. Of one process; no I/O. */
import ipaddr from 'ipaddr.js';

/** Past this the one who came longest ago is forgotten. */
const MOST_NAMES = 10_000;
const NETWORK_BYTES = 8;

export class Pace {
  readonly #everyMs: number;
  readonly #burstMs: number;
  /** Monotonic time at which everything that was taken would have been used up at the lasting rate. */
  readonly #usedUntil = new Map<string, number>();

  constructor({ perSecond, atOnce }: { perSecond: number; atOnce: number }) {
    this.#everyMs = 1000 / perSecond;
    this.#burstMs = this.#everyMs * atOnce;
  }

  /** @returns 0, or how many milliseconds are to be waited */
  take(name: string, nowMs: number): number {
    const used = Math.max(this.#usedUntil.get(name) ?? 0, nowMs) + this.#everyMs;
    const waitMs = used - nowMs - this.#burstMs;
    if (waitMs > 0) return waitMs;
    this.#usedUntil.delete(name);
    if (this.#usedUntil.size >= MOST_NAMES) this.#usedUntil.delete(this.#usedUntil.keys().next().value!);
    this.#usedUntil.set(name, used);
    return 0;
  }
}

/** An address; of IPv6 the network, since whoever has one has all of its addresses. */
export function clientOf(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return '';
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4' ? parsed.toString() : parsed.toByteArray().slice(0, NETWORK_BYTES).join('.');
}
