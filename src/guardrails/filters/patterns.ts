/**
 * User-defined regular expressions, matched in linear time by RE2's rules (`engine.ts`). With re2js one automaton
 * decides which of many patterns match at all, so a text without matches is scanned once however many patterns there
 * are.
 */
import type { Clock } from '../../base/clock.ts';
import { GatewayError } from '../../base/errors.ts';
import type { PatternFilter } from '../settings.ts';
import { Candidates } from './candidates.ts';
import { forbiddenIn } from './dialect.ts';
import {
  type Expression,
  type ExpressionSet,
  expressionOf,
  nativeExpression,
  nativeModule,
  nativeSet,
  type PortableExpression,
} from './engine.ts';
import { keysOf } from './keys.ts';
import { checksTextBorder, factsOf, type PatternFacts, type Program } from './program.ts';
import type { Span } from './reading.ts';

type Engine = typeof import('re2js');

/** A text with more matches than this is refused. */
export const MAX_MATCHES = 20_000;

/** Characters of a text that are searched before the first check of the time budget. */
const UNCHECKED = 65_536;
/** The same for patterns, as characters times steps of the compiled program; at least `LEAST_UNCHECKED` characters. */
const UNCHECKED_STEPS = 2 ** 21;
const LEAST_UNCHECKED = 1_024;
/** Characters between two checks of the time budget, of built-in filters. */
const CHECK_EVERY = 2_048;
/** Time budget for the filters of one request; they block the event loop. */
const MOST_EFFORT_MS = 1_000;

/** Time that the filters of one request have used. */
export class Effort {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #since = 0;

  constructor(clock: Clock, spentMs = 0) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic() - spentMs;
  }

  /**
   * Runs `search` on the text. First searches prefixes of a long text, each twice as long as the last, so that a slow
   * filter is noticed early: twice the text takes at most four times as long. After short texts the time budget is
   * checked now and then.
   * @param unchecked length of the first prefix
   * @throws GatewayError 413 when it takes too long
   */
  through<Found>(text: string, search: (text: string) => Found, unchecked = UNCHECKED): Found {
    for (let end = unchecked; end < text.length; end *= 2) {
      search(text.slice(0, end));
      this.check();
    }
    const found = search(text);
    this.count(text.length);
    return found;
  }

  /** Counts characters that one filter has searched. @throws GatewayError 413 when it takes too long */
  count(characters: number): void {
    this.#since += characters;
    if (this.#since > CHECK_EVERY) this.check();
  }

  /** @returns ms spent so far @throws GatewayError 413 when it takes too long */
  check(): number {
    this.#since = 0;
    const spentMs = this.#clock.monotonic() - this.#startedAt;
    if (spentMs > MOST_EFFORT_MS) throw tooMuch();
    return spentMs;
  }
}

let engine: Promise<Engine> | undefined;

/** Loaded only when patterns are in use. */
function loadEngine(): Promise<Engine> {
  engine ??= import('re2js');
  return engine;
}

/**
 * @param path path of the list, for messages
 * @throws GatewayError 400 `invalid_regex_pattern` with the position, for an unsupported pattern
 */
export async function checkPatterns(path: string, filters: readonly PatternFilter[]): Promise<void> {
  if (filters.length === 0) return;
  const { RE2JS } = await loadEngine();
  for (const [index, { pattern, appliesTo }] of filters.entries()) {
    await pauseFor(pattern);
    const where = `${path}[${index}].pattern`;
    const forbidden = forbiddenIn(pattern);
    if (forbidden !== undefined) throw invalidPattern(where, forbidden.problem, forbidden.position);
    let expression: PortableExpression;
    try {
      expression = compile(RE2JS, pattern);
    } catch (error) {
      throw invalidPattern(where, problemOf(error), positionOf(error, pattern));
    }
    const native = nativeModule();
    if (native !== null && nativeExpression(RE2JS.translateRegExp(pattern), native) === undefined) {
      throw invalidPattern(where, 'the native engine of this installation does not support it', undefined);
    }
    if (expression.matcher('').find()) {
      throw invalidPattern(where, 'it matches empty text and would match everywhere', 0);
    }
    // Matches without characters are ignored, so that such a filter would do nothing.
    if (factsOf(programOf(expression)).longest === 0) throw invalidPattern(where, 'its matches have no characters', 0);
    if (appliesTo?.includes('response')) refuseEndless(where, expression);
  }
}

/** Compiling a pattern of this many characters takes about 10 ms, and one of 100,000 a second. */
const LONG_PATTERN = 1_000;

/** Lets other work run before a long pattern is compiled. */
async function pauseFor(pattern: string): Promise<void> {
  if (pattern.length >= LONG_PATTERN) await new Promise<void>((resolve) => void setImmediate(resolve));
}

/** Longest match allowed for filters on answers, in UTF-16 units; a stream may have to hold back this much. */
export const LONGEST_MATCH = 4_096;

function refuseEndless(path: string, expression: PortableExpression): void {
  const { longest } = factsOf(programOf(expression));
  if (longest !== undefined && longest <= LONGEST_MATCH) return;
  const found = longest === undefined ? 'any length' : `${longest} characters`;
  throw invalidPattern(
    path,
    `its matches may have ${found}, but filters on answers allow at most ${LONGEST_MATCH} characters: give its quantifiers an upper bound, such as {1,64}`,
    undefined,
  );
}

function invalidPattern(path: string, problem: string, position: number | undefined): GatewayError {
  const at = position === undefined ? '' : ` at position ${position}`;
  return new GatewayError('invalid_request', `${path}: invalid_regex_pattern: ${problem}${at}`, {
    path,
    metadata: { reason: 'invalid_regex_pattern', ...(position !== undefined && { position }) },
  });
}

function compile(RE2JS: Engine['RE2JS'], pattern: string): PortableExpression {
  return RE2JS.compile(RE2JS.translateRegExp(pattern));
}

/** The engine's message, without the pattern. */
function problemOf(error: unknown): string {
  const { error: problem } = error as { error?: unknown };
  return typeof problem === 'string' ? problem : 'it cannot be parsed';
}

/** The engine reports the faulty fragment; its position is only known if it occurs once. */
function positionOf(error: unknown, pattern: string): number | undefined {
  const { input: piece } = error as { input?: unknown };
  if (typeof piece !== 'string' || piece === '') return undefined;
  const at = pattern.indexOf(piece);
  return at === -1 ? undefined : at;
}

/** One compiled pattern, for short texts. */
export class Pattern {
  readonly facts: PatternFacts;
  readonly #expression: Expression;
  readonly #candidates: Candidates;

  private constructor(portable: PortableExpression, translated: string) {
    this.#expression = expressionOf(portable, translated);
    this.facts = factsOf(programOf(portable));
    this.#candidates = new Candidates([keysOf(programOf(portable))]);
  }

  static async of(pattern: string): Promise<Pattern> {
    const { RE2JS } = await loadEngine();
    return new Pattern(compile(RE2JS, pattern), RE2JS.translateRegExp(pattern));
  }

  /** Matches from an offset on; lookbehind for borders sees the text before it. */
  find(text: string, from: number): Span[] {
    // A match contains its key, and most of a streaming answer was already searched.
    if (this.#candidates.in(text.slice(from)).length === 0) return [];
    const spans: Span[] = [];
    this.#expression.each(text, from, (start, end) => {
      if (end > start) spans.push({ start, end });
      if (spans.length > MAX_MATCHES) throw tooMuch();
      return true;
    });
    return spans;
  }
}

/** The engine's compiled program. */
export function programOf(expression: PortableExpression): Program {
  return (expression.re2() as unknown as { prog: Program }).prog;
}

/** Compiled patterns that are matched together; indices refer to the list they were made from. */
export class PatternSet {
  /** undefined if patterns can only be matched one by one. */
  readonly #set: ExpressionSet | undefined;
  readonly #expressions: readonly Expression[];
  readonly #candidates: Candidates;
  /** Patterns that test for the start or end of the text. */
  readonly #bordered: ReadonlySet<number>;
  /** From this number of candidates on, matching all patterns at once is faster than matching each. */
  readonly #together: number;
  /** Steps of each compiled program, and of all together. */
  readonly #sizes: readonly number[];
  readonly #size: number;

  private constructor(
    set: ExpressionSet | undefined,
    expressions: readonly Expression[],
    programs: readonly Program[],
    together: number,
  ) {
    this.#together = together;
    this.#sizes = programs.map(({ inst }) => inst.length);
    this.#size = this.#sizes.reduce((sum, size) => sum + size, 0);
    this.#set = set;
    this.#expressions = expressions;
    this.#candidates = new Candidates(programs.map(keysOf));
    this.#bordered = new Set([...programs.keys()].filter((index) => checksTextBorder(programs[index]!)));
  }

  /** @param native the module `re2`; null forces re2js */
  static async of(patterns: readonly string[], native = nativeModule()): Promise<PatternSet> {
    const { RE2JS, RE2Set } = await loadEngine();
    const portable: PortableExpression[] = [];
    for (const pattern of patterns) {
      await pauseFor(pattern);
      portable.push(compile(RE2JS, pattern));
    }
    const translated = patterns.map((pattern) => RE2JS.translateRegExp(pattern));
    const set = native === null ? portableSet(RE2Set, translated) : nativeSet(translated, native);
    return new PatternSet(
      set,
      portable.map((expression, index) => expressionOf(expression, translated[index]!, native)),
      portable.map(programOf),
      native === null ? 1 : 2,
    );
  }

  /** Indices of the patterns that match in the text. RE2 is linear in the text, and in the pattern too. */
  matching(text: string, effort: Effort): readonly number[] {
    // Skip the search for keys when all patterns will be matched anyway.
    const candidates = this.#candidates.anywhere < this.#together ? this.#candidates.in(text) : undefined;
    if (candidates?.length === 0) return candidates;
    // A user's pattern can take a thousand times as long per character as a built-in filter.
    effort.check();
    const set = this.#set;
    if (set !== undefined && (candidates === undefined || candidates.length >= this.#together)) {
      const matching = effort.through(text, (piece) => set.matching(piece), uncheckedFor(this.#size));
      if (matching !== undefined) return matching;
    }
    return (candidates ?? this.#candidates.in(text)).filter((index) => {
      const expression = this.#expressions[index]!;
      effort.check();
      return effort.through(text, (piece) => expression.matches(piece), uncheckedFor(this.#sizes[index]!));
    });
  }

  /**
   * True if a pattern may match in a single line of a joined text. The end of a line equals the end of a text, except
   * for patterns that test for the latter.
   */
  mayMatchInLines(text: string, effort: Effort): boolean {
    if (this.#bordered.size > 0 && this.#candidates.in(text).some((index) => this.#bordered.has(index))) return true;
    return this.matching(text, effort).length > 0;
  }

  /**
   * Visits the occurrences of keys; every match contains one.
   * @returns false if a pattern has no key, so that it may match anywhere
   */
  eachKey(text: string, visit: (start: number, end: number) => void): boolean {
    if (this.#candidates.anywhere > 0) return false;
    this.#candidates.eachKey(text, (_, start, end) => {
      visit(start, end);
      return false;
    });
    return true;
  }

  /** The non-empty matches of one pattern. Each match may cost a scan to the end of the text. */
  find(index: number, text: string, effort: Effort): Span[] {
    const expression = this.#expressions[index]!;
    const search = (piece: string) => {
      const spans: Span[] = [];
      expression.each(piece, 0, (start, end) => {
        effort.check();
        if (end > start) spans.push({ start, end });
        if (spans.length > MAX_MATCHES) throw tooMuch();
        return true;
      });
      return spans;
    };
    return effort.through(text, search, uncheckedFor(this.#sizes[index]!));
  }
}

/** @param size steps of the compiled programs: a character may cost as many */
function uncheckedFor(size: number): number {
  return Math.max(LEAST_UNCHECKED, Math.min(UNCHECKED, Math.floor(UNCHECKED_STEPS / size)));
}

function portableSet(RE2Set: Engine['RE2Set'], translated: readonly string[]): ExpressionSet {
  const set = new RE2Set();
  for (const pattern of translated) set.add(pattern);
  set.compile();
  return { matching: (text) => set.match(text) };
}

export function tooMuch(): GatewayError {
  return new GatewayError('payload_too_large', 'the body has more text than the filters of this key can check');
}
