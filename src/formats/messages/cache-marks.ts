/** Cache breakpoints of one request body. */
import type { BreakpointLimit } from '../conversation/cache-breakpoints.ts';
import type { CacheMark } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';

export class CacheMarks {
  #reported = false;
  readonly #breakpoints: BreakpointLimit;
  readonly #losses: Losses;

  constructor(breakpoints: BreakpointLimit, losses: Losses) {
    this.#breakpoints = breakpoints;
    this.#losses = losses;
  }

  /** `{ cache_control }` for a part with a breakpoint; `{}` when it has none or the limit drops it. */
  member(mark: CacheMark | undefined): { cache_control?: Fields } {
    if (mark === undefined || !this.#take()) return {};
    return { cache_control: { type: 'ephemeral', ...mark } };
  }

  /** A vendor's block or tool, unchanged; its breakpoint counts and is removed when the limit drops it. */
  native(value: unknown): unknown {
    if (typeof value !== 'object' || value === null || !('cache_control' in value)) return value;
    const { cache_control: mark, ...rest } = value;
    return mark === null || mark === undefined || this.#take() ? value : rest;
  }

  #take(): boolean {
    if (this.#breakpoints.take()) return true;
    if (!this.#reported) this.#losses.drop('cache_control', 'the provider accepts fewer cache breakpoints');
    this.#reported = true;
    return false;
  }
}
