/** Rate limit hold: the requests and tokens that one request has taken from its limits. */
import type { Limiter } from './limiter.ts';
import { type RateRefusal, rateHeaders } from './limits.ts';
import type { RateWindow, RateWindows } from './window.ts';

export class RateLimitHold {
  readonly windows: RateWindows;
  readonly #limiter: Limiter;
  #heldTokens = 0;
  #open = true;

  constructor(limiter: Limiter, windows: RateWindows) {
    this.#limiter = limiter;
    this.windows = windows;
  }

  /** True if any of the limits counts tokens. */
  get countsTokens(): boolean {
    return this.windows.tokens.length > 0;
  }

  get heldTokens(): number {
    return this.#heldTokens;
  }

  /**
   * Raises the hold to `tokens` in total, in all windows or in none; a refusal leaves it as it is. May reject with
   * GatewayError 503.
   */
  raiseTo(tokens: number): undefined | RateRefusal | Promise<RateRefusal | undefined> {
    const more = tokens - this.#heldTokens;
    if (more <= 0 || !this.#open) return undefined;
    const { tokens: windows } = this.windows;
    if (!this.#limiter.takeNow(windows, more)) return this.#limiter.takeLater(windows, more, () => this.#grow(more));
    this.#heldTokens += more;
    return undefined;
  }

  /** Replaces the hold by the actual usage. Later calls do nothing. */
  settle(tokens: number): void {
    if (!this.#open) return;
    this.#open = false;
    this.#limiter.settle(this.windows.tokens, tokens - this.#heldTokens);
  }

  /** Headers of the limit with the smallest remaining share. */
  get headers(): Record<string, string> {
    let nearest: RateWindow | undefined;
    let share = Number.POSITIVE_INFINITY;
    for (const window of this.windows.all) {
      const remainingShare = window.remaining / window.limit.amount;
      if (remainingShare >= share) continue;
      share = remainingShare;
      nearest = window;
    }
    return nearest === undefined ? {} : rateHeaders(nearest.state);
  }

  /** Called when the tokens are granted, possibly after the request has ended. */
  #grow(more: number): void {
    if (!this.#open) return;
    this.#heldTokens += more;
    for (const window of this.windows.tokens) window.taken += more;
  }
}
