/** Cache points of one request: separate blocks that follow the blocks they mark. */
import type { BreakpointLimit } from '../conversation/cache-breakpoints.ts';
import type { CacheMark } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';

export class CachePoints {
  readonly #breakpoints: BreakpointLimit;
  readonly #reported = new Set<string>();
  readonly #vendor: string | undefined;
  readonly #losses: Losses;

  constructor(breakpoints: BreakpointLimit, vendor: string | undefined, losses: Losses) {
    this.#breakpoints = breakpoints;
    this.#vendor = vendor;
    this.#losses = losses;
  }

  /**
   * The cache point after a marked part; empty without a mark, past the limit, or if the model does not cache there.
   */
  after(mark: CacheMark | undefined, place: 'tools' | 'content'): Fields[] {
    if (mark === undefined) return [];
    if (!this.#takes(place)) return this.#refuse('the model does not support cache points there');
    if (!this.#breakpoints.take()) return this.#refuse('the provider accepts fewer cache breakpoints');
    return this.#point(mark);
  }

  /** The cache point at the end of the prompt, for a request-level mark. The caller has counted it. */
  atEnd(mark: CacheMark | undefined): Fields[] {
    if (mark === undefined) return [];
    return this.#takes('content') ? this.#point(mark) : this.#refuse('the model does not support cache points there');
  }

  #point(mark: CacheMark): Fields[] {
    // Five minutes is the default, and only some models accept another TTL.
    const ttl = mark.ttl === '1h' ? this.#longTtl() : {};
    return [{ cachePoint: { type: 'default', ...ttl } }];
  }

  /** Models of other vendors reject the block. An unknown vendor is tried. */
  #takes(place: 'tools' | 'content'): boolean {
    if (this.#vendor === 'amazon') return place === 'content';
    return this.#vendor === undefined || this.#vendor === 'anthropic';
  }

  #longTtl(): Fields {
    if (this.#vendor !== 'amazon') return { ttl: '1h' };
    this.#report('cache_control.ttl', 'the model supports only the five minute cache');
    return {};
  }

  #refuse(why: string): Fields[] {
    this.#report('cache_control', why);
    return [];
  }

  #report(what: string, why: string): void {
    if (this.#reported.has(what)) return;
    this.#reported.add(what);
    this.#losses.drop(what, why);
  }
}
