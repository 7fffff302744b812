/** What one request has taken of its limits. */
import type { Limiter } from './limiter.ts';
import { type RateRefusal, type RateState, rateHeaders } from './limits.ts';
import type { Part, RateWindow } from './window.ts';

export class Standing {
  readonly windows: readonly RateWindow[];
  /** Whether tokens are limited at all. */
  readonly countsTokens: boolean;
  readonly #limiter: Limiter;
  #heldTokens = 0;
  #open = true;

  constructor(limiter: Limiter, windows: readonly RateWindow[]) {
    this.#limiter = limiter;
    this.windows = windows;
    this.countsTokens = windows.some(({ limit }) => limit.unit === 'tokens');
  }

  get heldTokens(): number {
    return this.#heldTokens;
  }

  /** Holds `tokens` in total, in all windows or none; what is held stands either way. May reject with GatewayError 503. */
  hold(tokens: number): undefined | RateRefusal | Promise<RateRefusal | undefined> {
    const more = tokens - this.#heldTokens;
    if (more <= 0 || !this.#open) return undefined;
    return this.#limiter.take(this.#tokenParts(more), () => this.#grow(more));
  }

  /** Turns what is held into what was used. Does nothing the second time. */
  settle(tokens: number): void {
    if (!this.#open) return;
    this.#open = false;
    if (this.countsTokens) this.#limiter.settle(this.#tokenParts(tokens - this.#heldTokens));
  }

  /** Of the limit that is nearest to its end. */
  get headers(): Record<string, string> {
    let nearest: RateState | undefined;
    let share = Number.POSITIVE_INFINITY;
    for (const { state } of this.windows) {
      const its = state.remaining / state.limit.amount;
      if (its >= share) continue;
      share = its;
      nearest = state;
    }
    return nearest === undefined ? {} : rateHeaders(nearest);
  }

  #tokenParts(amount: number): Part[] {
    const parts: Part[] = [];
    for (const window of this.windows) if (window.limit.unit === 'tokens') parts.push({ window, amount });
    return parts;
  }

  /** Called when there is room, which may be after the request has ended. */
  #grow(more: number): void {
    if (!this.#open) return;
    this.#heldTokens += more;
    for (const { window, amount } of this.#tokenParts(more)) window.taken += amount;
  }
}
