/**
 * Cache breakpoints of one request. The form takes a few of them (bug 44): the first ones in the order tools, system,
 * messages are kept, so that a conversation that grows keeps the marks of its beginning.
 */
import type { CacheMark } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';

export class CacheMarks {
  private left: number;
  private reported = false;
  private readonly losses: Losses;

  constructor(limit: number, losses: Losses) {
    this.left = limit;
    this.losses = losses;
  }

  /** `{ cache_control }` for a part that carries a mark, `{}` when it has none or none is left. */
  member(mark: CacheMark | undefined): { cache_control?: Fields } {
    if (mark === undefined || !this.take()) return {};
    return { cache_control: { type: 'ephemeral', ...mark } };
  }

  /** A vendor's block or tool as it is; its own mark counts and goes when none is left. */
  native(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || !('cache_control' in value)) return value;
    const { cache_control: mark, ...rest } = value;
    return mark === null || mark === undefined || this.take() ? value : rest;
  }

  private take(): boolean {
    if (this.left > 0) {
      this.left -= 1;
      return true;
    }
    if (!this.reported) this.losses.drop('cache_control', 'the provider takes fewer cache breakpoints');
    this.reported = true;
    return false;
  }
}
