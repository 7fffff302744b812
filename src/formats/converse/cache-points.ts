/**
 * Cache points of one request: blocks of their own behind what they mark. A model takes a few of them (bug 44): the first
 * ones in the order tools, system, messages are kept, so that a conversation that grows keeps the marks of its beginning.
 */
import type { CacheMark } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';

export class CachePoints {
  private left: number;
  private readonly reported = new Set<string>();
  private readonly vendor: string | undefined;
  private readonly losses: Losses;

  constructor(limit: number, vendor: string | undefined, losses: Losses) {
    this.left = limit;
    this.vendor = vendor;
    this.losses = losses;
  }

  /** The block behind what carries the mark; none when it has no mark, or none is left, or the model caches nothing. */
  after(mark: CacheMark | undefined, place: 'tools' | 'content'): Fields[] {
    if (mark === undefined) return [];
    if (!this.takes(place)) return this.refuse('the model has no cache points there');
    if (this.left === 0) return this.refuse('the provider takes fewer cache breakpoints');
    this.left -= 1;
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
