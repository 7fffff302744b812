/**
 * Regular expressions that users write, matched in linear time by RE2's rules (`engine.ts`). With re2js one automaton tells
 * which of many match at all, so that a text in which none does is gone through once however many there are.
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
import { asksForTextBorder, factsOf, type PatternFacts, type Program } from './program.ts';
import type { Span } from './reading.ts';

type Engine = typeof import('re2js');

/** Places that one text may be matched at before it is refused as too much to look through. */
export const MAX_MATCHES = 20_000;

/** Characters of a long text that are looked at between two looks at the clock. */
const PIECE = 32_768;
/** So many characters are looked through between two looks at the clock where what is looked for is our own. */
const BETWEEN_LOOKS = 2_048;
/** How long the filters of one request may take, which hold up every other request meanwhile. */
const MOST_EFFORT_MS = 1_000;

/** What one request's filters have cost so far. */
export class Effort {
  readonly #clock: Clock;
  readonly #startedAt: number;
  #since = 0;

  constructor(clock: Clock, spentMs = 0) {
    this.#clock = clock;
    this.#startedAt = clock.monotonic() - spentMs;
  }

  /**
   * What `look` finds in the text. A long one is first gone through in pieces, so that filters that are slow on it are
   * noticed before all of it was read. After short ones the clock is looked at now and then.
   * @throws GatewayError 413 when it takes too long
   */
  through<Found>(text: string, look: (text: string) => Found): Found {
    if (text.length > 2 * PIECE) {
      for (let at = 0; at < text.length; at += PIECE) {
        look(text.slice(at, at + PIECE));
        this.check();
      }
    }
    const found = look(text);
    this.looked(text.length);
    return found;
  }

  /** So many characters were looked through by one filter. @throws GatewayError 413 when it takes too long */
  looked(characters: number): void {
    this.#since += characters;
    if (this.#since > BETWEEN_LOOKS) this.check();
  }

  /** @returns ms that were spent so far @throws GatewayError 413 when it takes too long */
  check(): number {
    this.#since = 0;
    const spentMs = this.#clock.monotonic() - this.#startedAt;
    if (spentMs > MOST_EFFORT_MS) throw tooMuch();
    return spentMs;
  }
}

let engine: Promise<Engine> | undefined;

/** Only installations that use patterns load it. */
function loadEngine(): Promise<Engine> {
  engine ??= import('re2js');
  return engine;
}

/**
 * @param path of the list, for messages
 * @throws GatewayError 400 `invalid_regex_pattern` with the position, for a pattern that cannot be taken
 */
export async function checkPatterns(path: string, filters: readonly PatternFilter[]): Promise<void> {
  if (filters.length === 0) return;
  const { RE2JS } = await loadEngine();
  filters.forEach(({ pattern, appliesTo }, index) => {
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
      throw invalidPattern(where, 'the native engine of this installation does not take it', undefined);
    }
    if (expression.matcher('').find()) {
      throw invalidPattern(where, 'it matches the empty text, so it would match everywhere', 0);
    }
    if (appliesTo?.includes('response')) refuseEndless(where, expression);
  });
}

/** The longest match that a pattern for answers may have, in UTF-16 units: as much of a stream may have to wait. */
export const LONGEST_MATCH = 4_096;

function refuseEndless(path: string, expression: PortableExpression): void {
  const { longest } = factsOf(programOf(expression));
  if (longest !== undefined && longest <= LONGEST_MATCH) return;
  const found = longest === undefined ? 'any length' : `${longest} characters`;
  throw invalidPattern(
    path,
    `its matches may have ${found}, and a filter on answers holds back at most ${LONGEST_MATCH}: give its quantifiers an upper bound, such as {1,64}`,
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

/** What the engine says, without the pattern in it. */
function problemOf(error: unknown): string {
  const { error: problem } = error as { error?: unknown };
  return typeof problem === 'string' ? problem : 'it cannot be read';
}

/** The engine tells the piece that is wrong; where that stands only once, its place is known. */
function positionOf(error: unknown, pattern: string): number | undefined {
  const { input: piece } = error as { input?: unknown };
  if (typeof piece !== 'string' || piece === '') return undefined;
  const at = pattern.indexOf(piece);
  return at === -1 ? undefined : at;
}

/** One compiled pattern, for texts that are short. */
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

  /** Matches from a place on, which see what stands before it. */
  find(text: string, from: number): Span[] {
    // What a match needs stands within it; of an answer that streams, most of the text was looked through before.
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

/** What the engine compiled it to. */
export function programOf(expression: PortableExpression): Program {
  return (expression.re2() as unknown as { prog: Program }).prog;
}

/** Compiled patterns that are asked together; the index is that of the list they were made from. */
export class PatternSet {
  /** undefined where patterns can only be matched one by one. */
  readonly #set: ExpressionSet | undefined;
  readonly #expressions: readonly Expression[];
  readonly #candidates: Candidates;
  /** Patterns that ask where the text begins or ends. */
  readonly #bordered: ReadonlySet<number>;
  /** From so many candidates on, asking about all patterns at once is faster than asking about each. */
  readonly #together: number;

  private constructor(
    set: ExpressionSet | undefined,
    expressions: readonly Expression[],
    programs: readonly Program[],
    together: number,
  ) {
    this.#together = together;
    this.#set = set;
    this.#expressions = expressions;
    this.#candidates = new Candidates(programs.map(keysOf));
    this.#bordered = new Set([...programs.keys()].filter((index) => asksForTextBorder(programs[index]!)));
  }

  /** @param native the module `re2`; null: re2js, whether or not there is one */
  static async of(patterns: readonly string[], native = nativeModule()): Promise<PatternSet> {
    const { RE2JS, RE2Set } = await loadEngine();
    const portable = patterns.map((pattern) => compile(RE2JS, pattern));
    const translated = patterns.map((pattern) => RE2JS.translateRegExp(pattern));
    const set = native === null ? portableSet(RE2Set, translated) : nativeSet(translated, native);
    return new PatternSet(
      set,
      portable.map((expression, index) => expressionOf(expression, translated[index]!, native)),
      portable.map(programOf),
      native === null ? 1 : 2,
    );
  }

  /** Which patterns match somewhere in the text. RE2 is linear in the text, and in the pattern as well. */
  matching(text: string, effort: Effort): readonly number[] {
    // Where all are asked about in any case, seeking what some of them need would be for nothing.
    const candidates = this.#candidates.anywhere < this.#together ? this.#candidates.in(text) : undefined;
    if (candidates?.length === 0) return candidates;
    // What users write may take a thousand times as long for a character as what is our own.
    effort.check();
    const set = this.#set;
    if (set !== undefined && (candidates === undefined || candidates.length >= this.#together)) {
      const matching = effort.through(text, (piece) => set.matching(piece));
      if (matching !== undefined) return matching;
    }
    return (candidates ?? this.#candidates.in(text)).filter((index) => {
      const expression = this.#expressions[index]!;
      effort.check();
      return effort.through(text, (piece) => expression.matches(piece));
    });
  }

  /**
   * Whether one of them may match in one of the lines of a text, taken by itself. Where a line ends stands what ends a text but
   * for the patterns that ask for just that.
   */
  mayMatchInLines(text: string, effort: Effort): boolean {
    if (this.#bordered.size > 0 && this.#candidates.in(text).some((index) => this.#bordered.has(index))) return true;
    return this.matching(text, effort).length > 0;
  }

  /**
   * Where in a text something stands that is part of every match of a pattern.
   * @returns false where that is not known of each pattern, so that one may match anywhere
   */
  eachKey(text: string, visit: (start: number, end: number) => void): boolean {
    if (this.#candidates.anywhere > 0) return false;
    this.#candidates.eachKey(text, (_, start, end) => {
      visit(start, end);
      return false;
    });
    return true;
  }

  /** Where one of them does; empty matches are none. Each match may cost a walk to the end of the text. */
  find(index: number, text: string, effort: Effort): Span[] {
    const spans: Span[] = [];
    this.#expressions[index]!.each(text, 0, (start, end) => {
      effort.check();
      if (end > start) spans.push({ start, end });
      if (spans.length > MAX_MATCHES) throw tooMuch();
      return true;
    });
    return spans;
  }
}

function portableSet(RE2Set: Engine['RE2Set'], translated: readonly string[]): ExpressionSet {
  const set = new RE2Set();
  for (const pattern of translated) set.add(pattern);
  set.compile();
  return { matching: (text) => set.match(text) };
}

export function tooMuch(): GatewayError {
  return new GatewayError(
    'payload_too_large',
    'the body holds more text than the filters of this key can look through',
  );
}
