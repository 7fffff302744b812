/**
 * Filters on what models answer, as it streams. Text is let go as soon as no match can begin in it any more: where a
 * character stands that no match contains, and otherwise the longest match behind. What is found does not depend on the
 * pieces that the text comes in, which `answer-filters.test.ts` proves for every split.
 */
import type { Clock } from '../../base/clock.ts';
import { BUILTINS, type BuiltinSlug } from './builtins.ts';
import { CONTEXT, Cursor, type Unit } from './cursor.ts';
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

/** The longest private key that is found in an answer. */
const LONGEST_KEY = 16_384;

/** Of an answer that runs, so much at least is dropped at a time. */
const FORGOTTEN_AT_ONCE = 1_024;
const NONE: readonly Span[] = [];

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

  /** What the error of an upstream is looked through with, which may quote what the model said: nothing of it is refused. */
  screeningOfError(clock: Clock): AnswerScreening {
    return new AnswerScreening(this.#units, clock, 'error');
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
    for (const { filter } of found.sort(inOrder)) this.#screening.note(filter);
    this.#found.push(...found.filter(({ filter }) => this.#screening.replaces(filter)));
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

/** What is found in one answer. */
export class AnswerScreening {
  readonly #units: readonly Unit[];
  readonly #findings = new Findings(MAX_MATCHES);
  readonly #clock: Clock;
  /** In an error, matches that block are replaced by their labels. */
  readonly #replacesAll: boolean;
  /** False while matches that block are only counted. */
  refuses: boolean;
  #spentMs = 0;

  constructor(units: readonly Unit[], clock: Clock, of: 'answer' | 'error' = 'answer') {
    this.#units = units;
    this.#clock = clock;
    this.refuses = of === 'answer';
    this.#replacesAll = of === 'error';
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

  replaces({ action }: Filter): boolean {
    return action === 'redact' || (action === 'block' && this.#replacesAll);
  }

  /** @throws GatewayError 413 for more matches than can be told */
  note(filter: Filter): void {
    this.#findings.count(filter);
  }

  /** @throws GatewayError 403 with which filters found how much, if one of them blocks that */
  refuse(): void {
    if (this.refuses && this.#findings.blocked) throw new BlockedByFilter(this.hits, 'answer');
  }
}
