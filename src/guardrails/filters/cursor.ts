/** Progress of one filter through a growing text: its matches, and where to search next. */
import type { Filter } from './filters.ts';
import { Readings, type Span } from './reading.ts';

/** Text before a match can decide what it is; no filter looks back further than this. */
export const CONTEXT = 160;
/** No filter looks further than this past a match, or past a character that no match contains. */
const AHEAD = 3;
const NONE: readonly Span[] = [];

/** One search of one filter. */
export interface Unit {
  readonly filter: Filter;
  readonly longest: number;
  /** Longest match in text that is not ASCII. */
  readonly longestBeyondAscii?: number;
  /** By code below 128: 1 if no match contains the character. */
  readonly borders: Uint8Array;
  /** True if a search that starts at `from` finds the same matches there as a search that starts earlier. */
  readonly exact: boolean;
  find(readings: Readings, from: number): readonly Span[];
  /** The first offset at or after `from` where an incomplete match may begin. */
  mayBegin?(text: string, from: number): number;
}

/** The progress of one unit. */
export class Cursor {
  readonly #unit: Unit;
  /** All matches that begin before this offset have been reported. */
  at = 0;

  constructor(unit: Unit) {
    this.#unit = unit;
  }

  get filter(): Filter {
    return this.#unit.filter;
  }

  advance(readings: Readings, base: number, ended: boolean): readonly Span[] {
    return this.#unit.exact ? this.#exactly(readings, base, ended) : this.#byWindows(readings.raw, base, ended);
  }

  /** For exact units: matches of one expression are consecutive, so only their end must be final. */
  #exactly(readings: Readings, base: number, ended: boolean): readonly Span[] {
    const text = readings.raw;
    const { find, mayBegin } = this.#unit;
    const from = this.at - base;
    const longest = this.#longestIn(text, from);
    let sure = ended ? text.length : Math.max(from, text.length - longest - AHEAD, this.#lastBorder(text, from));
    if (mayBegin !== undefined) sure = Math.max(sure, mayBegin(text, from));
    if (sure <= from) return NONE;
    const matches = find(readings, from);
    if (matches.length === 0) {
      this.at = sure + base;
      return NONE;
    }
    const spans: Span[] = [];
    let at = from;
    for (const { start, end } of matches) {
      if (start >= sure) break;
      spans.push({ start: start + base, end: end + base });
      at = end;
    }
    this.at = Math.max(at, sure) + base;
    return spans;
  }

  /**
   * Text between characters that no match contains is searched separately. A long run without such a character is
   * searched in windows whose offsets depend only on the text.
   */
  #byWindows(text: string, base: number, ended: boolean): readonly Span[] {
    const { longest, find } = this.#unit;
    const window = 2 * longest;
    const spans: Span[] = [];
    const accept = (within: string, start: number, before: number): number => {
      const offset = Math.max(0, start - CONTEXT);
      let at = before;
      for (const span of find(new Readings(within.slice(offset)), start - offset)) {
        if (span.start + offset >= before) break;
        spans.push({ start: span.start + offset + base, end: span.end + offset + base });
        at = Math.max(at, span.end + offset);
      }
      return at;
    };
    let from = this.at - base;
    while (from < text.length) {
      const border = this.#reachableBorder(text, from, window);
      if (border > from) {
        accept(text, from, border);
        from = border;
      } else if (text.length - from >= window + AHEAD) {
        from = accept(text.slice(0, from + window + AHEAD), from, from + longest);
      } else if (ended) {
        accept(text, from, text.length);
        from = text.length;
      } else break;
    }
    this.at = from + base;
    return spans;
  }

  #longestIn(text: string, from: number): number {
    const { longest, longestBeyondAscii } = this.#unit;
    if (longestBeyondAscii === undefined) return longest;
    for (let at = from; at < text.length; at++) if (text.charCodeAt(at) > 127) return longestBeyondAscii;
    return longest;
  }

  #isBorder(text: string, at: number): boolean {
    const code = text.charCodeAt(at);
    // The next character may be a combining mark, which would change this one.
    return code < 128 && this.#unit.borders[code] === 1 && text.charCodeAt(at + 1) < 128 && at + AHEAD < text.length;
  }

  /** The offset after the last border. */
  #lastBorder(text: string, from: number): number {
    for (let at = text.length - AHEAD - 1; at >= from; at--) if (this.#isBorder(text, at)) return at + 1;
    return from;
  }

  /** The offset after the last border that is less than a window away from the one before. */
  #reachableBorder(text: string, from: number, window: number): number {
    let last = from;
    for (let at = from; at < text.length && at - last < window; at++) if (this.#isBorder(text, at)) last = at + 1;
    return last;
  }
}
