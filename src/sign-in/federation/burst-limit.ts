/** Rate limit per name: a burst, and a sustained rate. Per process; no I/O. */
import ipaddr from 'ipaddr.js';

/** Beyond this number the least recently seen name is dropped. */
const MOST_NAMES = 10_000;
const NETWORK_BYTES = 8;

export class BurstLimit {
  readonly #everyMs: number;
  readonly #burstMs: number;
  /** Monotonic time at which everything taken so far is used up at the sustained rate. */
  readonly #usedUntil = new Map<string, number>();

  constructor({ perSecond, atOnce }: { perSecond: number; atOnce: number }) {
    this.#everyMs = 1000 / perSecond;
    this.#burstMs = this.#everyMs * atOnce;
  }

  /** @returns 0, or the milliseconds to wait */
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

/** The client's IPv4 address or IPv6 network, because a client owns all addresses of its network. */
export function clientOf(address: string | undefined): string {
  if (address === undefined || !ipaddr.isValid(address)) return '';
  const parsed = ipaddr.process(address);
  return parsed.kind() === 'ipv4' ? parsed.toString() : parsed.toByteArray().slice(0, NETWORK_BYTES).join('.');
}
