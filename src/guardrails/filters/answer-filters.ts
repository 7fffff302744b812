/**
 * Filters on what models answer, as it streams. Text is let go as soon as no match can begin in it any more: where a
 * character stands that no match contains, and otherwise the longest match behind. What is found does not depend on the
 * pieces that the text comes in, which `answer-filters.test.ts` proves for every split.
 */
import type { Clock } from '../../base/clock.ts';
import { BUILTINS, type BuiltinSlug } from './builtins.ts';
import {
  BlockedByFilter,
  combinedFilters,
  type Filter,
  type FiltersOf,
  Findings,
  type Match as Found,
  type Hit,
} from './filters.ts';
import { Effort, LONGEST_MATCH, MAX_MATCHES, Pattern } from './patterns.ts';
import { Readings, type Span } from './reading.ts';
import { inOrder } from './redaction.ts';
import { privateKeyMayBegin, privateKeys } from './secrets.ts';

/** What stands before a match may say what it is; no filter looks further back. */
const CONTEXT = 160;
/** No filter looks further behind a match, or behind a character that none contains. */
const AHEAD = 3;
/** The longest private key that is found in an answer. */
const LONGEST_KEY = 16_384;

/** Of an answer that runs, so much at least is dropped at a time. */
const FORGOTTEN_AT_ONCE = 1_024;
const NONE: readonly Span[] = [];

/** One way in which one filter looks at a text. */
interface Unit {
  readonly filter: Filter;
  readonly longest: number;
  /** The same in a text that is not ASCII. */
  readonly longestBeyondAscii?: number;
  /** By code below 128: 1 where no match contains the character. */
  readonly borders: Uint8Array;
  /** A search that begins at `from` finds what one from further ahead would have found there. */
  readonly exact: boolean;
  find(readings: Readings, from: number): readonly Span[];
  /** The first place at or behind `from` where a match may begin that is not there yet. */
  mayBegin?(text: string, from: number): number;
}

/** What no match of a built-in filter contains, and the longest that it finds in an answer. */
const SHAPES: Readonly<Record<BuiltinSlug, { longest: number; borders: RegExp }>> = {
  email: { longest: 768, borders: /[\s<>()[\]{}",;|]/ },
  phone: { longest: 64, borders: /[^0-9 +()./-]/ },
  ssn: { longest: 16, borders: /[^0-9 -]/ },
  'credit-card': { longest: 64, borders: /[^0-9 .-]/ },
  'ip-address': { longest: 64, borders: /[^0-9a-f:.]/i },
  secrets: { longest: LONGEST_MATCH, borders: /\s/ },
  'regex-prompt-injection': { longest: 512, borders: /[.?()";]/ },
};

export class AnswerFilters {
  readonly #units: readonly Unit[];
  /** The same for the same filters: answers that were kept under others are not given again. */
  readonly fingerprint: string;
  /** Some of them refuse: what an answer wants done waits until all of it was seen. */
  readonly blocks: boolean;

  private constructor(units: readonly Unit[], filters: readonly Filter[]) {
    this.#units = units;
    this.fingerprint = JSON.stringify(filters.map(({ kind, name, action, label }) => [kind, name, action, label]));
    this.blocks = filters.some(({ action }) => action === 'block');
  }

  /** undefined when no guardrail has any for answers. */
  static async of(guardrails: readonly FiltersOf[]): Promise<AnswerFilters | undefined> {
    const filters = combinedFilters(guardrails, 'response');
    if (filters.length === 0) return undefined;
    const units: Unit[] = [];
    for (const filter of filters) {
      if (filter.kind === 'builtin') units.push(...builtinUnits(filter));
      else units.push(...patternUnits(filter, await Pattern.of(filter.name)));
    }
    return new AnswerFilters(units, filters);
  }

  /** What one answer is looked through with. */
  screening(clock: Clock): AnswerScreening {
    return new AnswerScreening(this.#units, clock);
  }
}

function builtinUnits(filter: Filter): Unit[] {
  const slug = filter.name as BuiltinSlug;
  const { longest, borders } = SHAPES[slug];
  const unit: Unit = {
    filter,
    longest,
    borders: Uint8Array.from({ length: 128 }, (_, code) => Number(borders.test(String.fromCharCode(code)))),
    exact: false,
    find: (readings, from) => builtinMatches(slug, readings).filter(({ start }) => start >= from),
  };
  if (slug !== 'secrets') return [unit];
  return [
    unit,
    {
      filter,
      longest: LONGEST_KEY,
      borders: new Uint8Array(128),
      exact: true,
      find: ({ raw }, from) => privateKeys(raw, LONGEST_KEY, from),
      mayBegin: privateKeyMayBegin,
    },
  ];
}

function builtinMatches(slug: BuiltinSlug, readings: Readings): Span[] {
  const { find } = BUILTINS[slug];
  const { skeleton, hidden } = readings;
  const spans = find(skeleton.text).map((span) => skeleton.original(span));
  if (hidden !== undefined) for (const span of find(hidden.text)) spans.push(hidden.original(span));
  return spans.sort((a, b) => a.start - b.start);
}

/** As it is written, and as it reads: made plain, a match may be written longer. */
function patternUnits(filter: Filter, pattern: Pattern): Unit[] {
  const { longest = LONGEST_MATCH, borders } = pattern.facts;
  const unit = { filter, longest, borders, exact: true };
  return [
    { ...unit, find: ({ raw }, from) => pattern.find(raw, from) },
    {
      ...unit,
      longestBeyondAscii: 4 * longest + 16,
      find(readings, from) {
        if (readings.ascii || readings.plain.text === readings.raw) return NONE;
        const { plain } = readings;
        return pattern.find(plain.text, plain.reached(from)).map((span) => plain.original(span));
      },
    },
  ];
}

/** One answer's text of one kind, from its beginning to its end. */
export class ScreenedText {
  readonly #cursors: Cursor[];
  readonly #screening: AnswerScreening;
  #text = '';
  /** Offset of `#text` in the whole. */
  #base = 0;
  /** Places that are found and not passed yet, in order. */
  #found: Found[] = [];

  constructor(units: readonly Unit[], screening: AnswerScreening) {
    this.#cursors = units.map((unit) => new Cursor(unit));
    this.#screening = screening;
  }

  /** Offset of its end so far. */
  get length(): number {
    return this.#base + this.#text.length;
  }

  /**
   * Takes more of it, or its end.
   * @returns up to where it may be let go @throws GatewayError 403 when a filter blocks
   */
  advance(more: string, ended: boolean): number {
    this.#text += more;
    let sure = this.length;
    let found: Found[] | undefined;
    // All of them look at one text, which is read once for all.
    const readings = new Readings(this.#text);
    for (const cursor of this.#cursors) {
      const spans = cursor.advance(readings, this.#base, ended);
      if (spans.length > 0) {
        found ??= [];
        for (const { start, end } of spans) found.push({ start, end, filter: cursor.filter });
      }
      if (cursor.at < sure) sure = cursor.at;
    }
    if (found !== undefined) this.#add(found);
    if (this.#found.length === 0) return sure;
    this.#merge(sure);
    // A place that may still grow into the next one waits as a whole.
    const open = this.#found.find(({ end }) => end > sure);
    return open === undefined ? sure : Math.min(sure, open.start);
  }

  #add(found: Found[]): void {
    for (const match of found.sort(inOrder)) this.#screening.note(match, this.#text, this.#base);
    this.#found.push(...found.filter(({ filter }) => filter.action === 'redact'));
    this.#found.sort(inOrder);
  }

  /** What is to be read in place of a range that may be let go; true when that is something else. */
  read(start: number, end: number): { text: string; changed: boolean } {
    let text = '';
    let at = start;
    let changed = false;
    for (const match of this.#found) {
      if (match.end <= start || match.start >= end) continue;
      changed = true;
      if (match.start > at) text += this.#slice(at, match.start);
      if (match.start >= start) text += match.filter.label;
      at = Math.min(end, match.end);
    }
    return { text: text + this.#slice(at, end), changed };
  }

  /** Nothing before a place is asked for any more. */
  forget(before: number): void {
    if (before - CONTEXT - this.#base < FORGOTTEN_AT_ONCE) return;
    const keptFrom = Math.min(before, ...this.#cursors.map(({ at }) => at)) - CONTEXT;
    if (keptFrom - this.#base < FORGOTTEN_AT_ONCE) return;
    this.#text = this.#text.slice(keptFrom - this.#base);
    this.#base = keptFrom;
    this.#found = this.#found.filter(({ end }) => end > before);
  }

  #slice(start: number, end: number): string {
    return this.#text.slice(start - this.#base, end - this.#base);
  }

  #merge(sure: number): void {
    const merged: Found[] = [];
    for (const match of this.#found) {
      const last = merged.at(-1);
      if (last !== undefined && match.start < last.end && match.start < sure) last.end = Math.max(last.end, match.end);
      else merged.push({ ...match });
    }
    this.#found = merged;
  }
}

/** How far one filter has looked. */
class Cursor {
  readonly #unit: Unit;
  /** No match begins before it that has not been told. */
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

  /** Matches of one expression follow from one another, so that only their end must be sure. */
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
   * Between characters that no match contains a text is looked through by itself; where none stands for long, in windows
   * whose places follow from the text alone.
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
    // What follows may be a mark that makes another character of it.
    return code < 128 && this.#unit.borders[code] === 1 && text.charCodeAt(at + 1) < 128 && at + AHEAD < text.length;
  }

  /** Behind the last one. */
  #lastBorder(text: string, from: number): number {
    for (let at = text.length - AHEAD - 1; at >= from; at--) if (this.#isBorder(text, at)) return at + 1;
    return from;
  }

  /** Behind the last one that is less than a window away from the one before. */
  #reachableBorder(text: string, from: number, window: number): number {
    let last = from;
    for (let at = from; at < text.length && at - last < window; at++) if (this.#isBorder(text, at)) last = at + 1;
    return last;
  }
}

/** What is found in one answer. */
export class AnswerScreening {
  readonly #units: readonly Unit[];
  readonly #findings = new Findings(MAX_MATCHES);
  readonly #clock: Clock;
  #spentMs = 0;

  constructor(units: readonly Unit[], clock: Clock) {
    this.#units = units;
    this.#clock = clock;
  }

  get hits(): readonly Hit[] {
    return this.#findings.hits;
  }

  text(): ScreenedText {
    return new ScreenedText(this.#units, this);
  }

  /** A text that came at once. @throws GatewayError 403 when a filter blocks, and when they take too long */
  whole(text: string): string {
    const screened = this.text();
    screened.advance(text, true);
    this.refuse();
    return screened.read(0, text.length).text;
  }

  /** Runs one step and counts its time. @throws GatewayError as for requests that take too long */
  timed<Result>(step: () => Result): Result {
    const effort = new Effort(this.#clock, this.#spentMs);
    const result = step();
    this.#spentMs = effort.check();
    return result;
  }

  /** @param base where the text stands in the whole @throws GatewayError 413 for more matches than can be told */
  note(match: Found, text: string, base: number): void {
    this.#findings.note(match, text, base);
  }

  /** @throws GatewayError 403 with what was found, if a filter blocks that */
  refuse(): void {
    const { quotes } = this.#findings;
    if (quotes.length > 0) throw new BlockedByFilter(this.hits, quotes, 'answer');
  }
}
