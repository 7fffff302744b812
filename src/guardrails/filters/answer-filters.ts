/**
 * Filters on streaming answers. Text is released as soon as no match can begin in it: at a character that no match
 * contains, or else as soon as no match could be long enough to reach it. Findings do not depend on how the text is
 * chunked; `answer-filters.test.ts` proves this for every split.
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

/** Released text is dropped in steps of at least this size. */
const FORGOTTEN_AT_ONCE = 1_024;
const NONE: readonly Span[] = [];

/** Per built-in filter: characters that no match contains, and the longest match it finds in an answer. */
const SHAPES: Readonly<Record<BuiltinSlug, { longest: number; borders: RegExp }>> = {
  email: { longest: 768, borders: /[\s<>()[\]{}",;|]/ },
  phone: { longest: 64, borders: /[^0-9 +()./-]/ },
  ssn: { longest: 16, borders: /[^0-9 -]/ },
  'credit-card': { longest: 64, borders: /[^0-9 .-]/ },
  'ip-address': { longest: 64, borders: /[^0-9a-f:.]/i },
  secrets: { longest: LONGEST_MATCH, borders: /\s/ },
  'person-name': { longest: 128, borders: /[^A-Za-z .,'-]/ },
  address: { longest: 256, borders: /[<>()[\]{}"`;|=*_!?\\~^@$%&+]/ },
  'regex-prompt-injection': { longest: 512, borders: /[.?()";]/ },
};

export class AnswerFilters {
  readonly #units: readonly Unit[];
  /** Equal for equal filters, so that answers cached under other filters are not reused. */
  readonly fingerprint: string;
  /** True if a filter blocks: then tool calls of the answer wait until all of it has been screened. */
  readonly blocks: boolean;

  private constructor(units: readonly Unit[], filters: readonly Filter[]) {
    this.#units = units;
    this.fingerprint = JSON.stringify(filters.map(({ kind, name, action, label }) => [kind, name, action, label]));
    this.blocks = filters.some(({ action }) => action === 'block');
  }

  /** Returns undefined when no guardrail has filters on answers. */
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

  /** Starts the screening of one answer. */
  screening(clock: Clock): AnswerScreening {
    return new AnswerScreening(this.#units, clock);
  }

  /** Starts the screening of an upstream's error, which may quote model output. Blocking filters redact here. */
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
    find: (readings, from) => outermost(builtinMatches(slug, readings).filter(({ start }) => start >= from)),
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
  return spans.sort((a, b) => a.start - b.start || b.end - a.end);
}

/** Without spans within others; they are in order. */
function outermost(spans: readonly Span[]): Span[] {
  let reached = -1;
  return spans.filter(({ end }) => {
    if (end <= reached) return false;
    reached = end;
    return true;
  });
}

/** Looks at the text as written and as folded. A match may be longer as written than as folded. */
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

/** One stream of text in an answer, from start to end. */
export class ScreenedText {
  readonly #cursors: Cursor[];
  readonly #screening: AnswerScreening;
  #text = '';
  /** Offset of `#text` in the whole text. */
  #base = 0;
  /** Matches that are not completely released yet, in order. */
  #found: Found[] = [];

  constructor(units: readonly Unit[], screening: AnswerScreening) {
    this.#cursors = units.map((unit) => new Cursor(unit));
    this.#screening = screening;
  }

  /** Offset of the end of the text so far. */
  get length(): number {
    return this.#base + this.#text.length;
  }

  /**
   * Appends text, or ends it.
   * @returns the offset up to which text may be released @throws GatewayError 403 when a filter blocks
   */
  advance(more: string, ended: boolean): number {
    this.#text += more;
    let sure = this.length;
    let found: Found[] | undefined;
    // All cursors share the readings of this text.
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
    // A match that could still extend into a later one is held back completely.
    const open = this.#found.find(({ end }) => end > sure);
    return open === undefined ? sure : Math.min(sure, open.start);
  }

  #add(found: Found[]): void {
    for (const { filter } of found.sort(inOrder)) this.#screening.note(filter);
    this.#found.push(...found.filter(({ filter }) => this.#screening.replaces(filter)));
    this.#found.sort(inOrder);
  }

  /** The text of a released range, with matches replaced; `changed` is true if it differs from the original. */
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

  /** Drops text before an offset that will not be read again. */
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

/** The findings in one answer. */
export class AnswerScreening {
  readonly #units: readonly Unit[];
  readonly #findings = new Findings(MAX_MATCHES);
  readonly #clock: Clock;
  /** In an error, matches of blocking filters are replaced by their labels. */
  readonly #replacesAll: boolean;
  /** False while matches of blocking filters are only counted. */
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

  /** Screens a complete text. @throws GatewayError 403 when a filter blocks, 413 when screening takes too long */
  whole(text: string): string {
    const screened = this.text();
    screened.advance(text, true);
    this.refuse();
    return screened.read(0, text.length).text;
  }

  /** Runs one step and adds its time. @throws GatewayError 413 when screening takes too long */
  timed<Result>(step: () => Result): Result {
    const effort = new Effort(this.#clock, this.#spentMs);
    const result = step();
    this.#spentMs = effort.check();
    return result;
  }

  replaces({ action }: Filter): boolean {
    return action === 'redact' || (action === 'block' && this.#replacesAll);
  }

  /** @throws GatewayError 413 for more matches than can be reported */
  note(filter: Filter): void {
    this.#findings.count(filter);
  }

  /** @throws GatewayError 403 with the number of matches per filter, if a filter blocks */
  refuse(): void {
    if (this.refuses && this.#findings.blocked) throw new BlockedByFilter(this.hits, 'answer');
  }
}
