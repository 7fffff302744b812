/** Cache points of one request: blocks of their own, after the blocks that they mark. */
import type { BreakpointLimit } from '../conversation/cache-breakpoints.ts';
import type { CacheMark } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';

export class CachePoints {
  private readonly breakpoints: BreakpointLimit;
  private readonly reported = new Set<string>();
  private readonly vendor: string | undefined;
  private readonly losses: Losses;

  constructor(breakpoints: BreakpointLimit, vendor: string | undefined, losses: Losses) {
    this.breakpoints = breakpoints;
    this.vendor = vendor;
    this.losses = losses;
  }

  /** The block after a part with this mark; empty without a mark, past the limit, or where the model caches nothing. */
  after(mark: CacheMark | undefined, place: 'tools' | 'content'): Fields[] {
    if (mark === undefined) return [];
    if (!this.takes(place)) return this.refuse('the model has no cache points there');
    if (!this.breakpoints.take()) return this.refuse('the provider takes fewer cache breakpoints');
    return this.point(mark);
  }

  /** The point at the end of the prompt that the request asks for as a whole; its caller has counted it. */
  atEnd(mark: CacheMark | undefined): Fields[] {
    if (mark === undefined) return [];
    return this.takes('content') ? this.point(mark) : this.refuse('the model has no cache points there');
  }

  private point(mark: CacheMark): Fields[] {
    // Five minutes is what a point without a time means, and only some models know another.
    const ttl = mark.ttl === '1h' ? this.longTtl() : {};
    return [{ cachePoint: { type: 'default', ...ttl } }];
  }

  /** Models of other vendors than these refuse the block. One whose vendor is not known is asked. */
  private takes(place: 'tools' | 'content'): boolean {
    if (this.vendor === 'amazon') return place === 'content';
    return this.vendor === undefined || this.vendor === 'anthropic';
  }

  private longTtl(): Fields {
    if (this.vendor !== 'amazon') return { ttl: '1h' };
    this.report('cache_control.ttl', 'the model keeps its cache for five minutes');
    return {};
  }

  private refuse(why: string): Fields[] {
    this.report('cache_control', why);
    return [];
  }

  private report(what: string, why: string): void {
    if (this.reported.has(what)) return;
    this.reported.add(what);
    this.losses.drop(what, why);
  }
}
