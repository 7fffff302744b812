/**
 * Selects the texts in which the filters may find something, for many texts at once. Calling the filters on one text
 * costs as much as reading some hundred characters, and a conversation has many short texts. So they are joined as the
 * lines of one text, and nearly all of them are never looked at again.
 */
import type { Builtin } from './builtins.ts';
import { DEEPEST, eachEscape, undone } from './escapes.ts';
import { offsetsOf } from './offsets.ts';
import type { Effort, PatternSet } from './patterns.ts';
import { Readings, type Span } from './reading.ts';
import { isAscii } from './units.ts';

/** A longer text gains little from joining, and costs twice as much if it has a match. */
const SHORT = 1_024;
/** Maximum length of a joined text, so that it fits the preallocated arrays. */
const TOGETHER = 16_384;
/**
 * Separates joined texts. For anything that tests the neighbours of a match it equals the end of a text: it belongs to
 * no word, number or address, and ends a line. Filters that see a difference declare it (`Builtin.findInLines`,
 * `PatternSet.mayMatchInLines`).
 */
const BETWEEN = '\n';

interface Line {
  readonly text: string;
  /** The text that this line is the unescaped form of; undefined for one of the texts themselves. */
  readonly of?: Line;
}

export class Prefilter {
  readonly #builtins: readonly Builtin[];
  readonly #patterns: PatternSet | undefined;

  constructor(builtins: readonly Builtin[], patterns: PatternSet | undefined) {
    this.#builtins = builtins;
    this.#patterns = patterns;
  }

  /**
   * Texts in which something may be found, including in their unescaped form. The filters find nothing in the others.
   * @throws GatewayError 413 when it takes too long
   */
  suspects<Text extends { readonly text: string }>(texts: readonly Text[], effort: Effort): ReadonlySet<Text> {
    if (texts.length < 2) return new Set(texts);
    const suspects = new Set<Line>();
    let lines: Line[] = [];
    for (const one of texts) {
      if (one.text.length > SHORT) suspects.add(one);
      else lines.push(one);
    }
    for (let depth = 0; lines.length > 0; depth++) {
      const unescaped: Line[] = [];
      for (const group of partsOf(lines)) {
        const all = new Lines(group, suspects);
        // Keep ASCII texts apart, so that they are not folded with the others.
        for (const part of all.byScript()) this.#search(part, effort);
        if (depth < DEEPEST) unescaped.push(...all.unescaped());
      }
      lines = unescaped;
    }
    return suspects as ReadonlySet<unknown> as ReadonlySet<Text>;
  }

  #search(lines: Lines, effort: Effort): void {
    const readings = new Readings(lines.text);
    if (readings.hidden !== undefined) {
      lines.mark(lines.all.filter(({ text }) => new Readings(text).hidden !== undefined));
    }
    if (this.#builtins.length > 0) this.#seekBuiltins(lines, readings, effort);
    if (this.#patterns !== undefined) this.#seekPatterns(this.#patterns, lines, readings, effort);
  }

  #seekBuiltins(lines: Lines, { skeleton }: Readings, effort: Effort): void {
    const { text } = skeleton;
    const offsets = offsetsOf(text);
    for (const builtin of this.#builtins) {
      const spans = builtin.findInLines?.(text, offsets) ?? builtin.find(text, offsets);
      for (const span of spans) lines.mark(lines.touched(skeleton.original(span)));
    }
    effort.count(text.length * this.#builtins.length);
  }

  #seekPatterns(patterns: PatternSet, lines: Lines, readings: Readings, effort: Effort): void {
    // Skip the search for keys when most lines will be checked anyway.
    if (lines.areMostlyMarked()) {
      lines.mark(lines.all);
      return;
    }
    const withKeys = linesWithKeys(patterns, lines, readings);
    if (withKeys === undefined) {
      if (!mayMatch(patterns, readings, effort)) return;
      lines.mark(lines.unmarked(lines.all).filter((line) => mayMatch(patterns, new Readings(line.text), effort)));
      return;
    }
    const open = lines.unmarked(withKeys);
    if (open.length < 2 || mayMatch(patterns, new Readings(joined(open)), effort)) lines.mark(open);
  }
}

/** The lines that contain a key; undefined if a pattern may match anywhere. */
function linesWithKeys(patterns: PatternSet, lines: Lines, { forPatterns }: Readings): Iterable<Line> | undefined {
  const withKeys = new Set<Line>();
  for (const { text, original } of forPatterns) {
    const searched = patterns.eachKey(text, (start, end) => {
      for (const line of lines.touched(original({ start, end }))) withKeys.add(line);
    });
    if (!searched) return undefined;
  }
  return withKeys;
}

function mayMatch(patterns: PatternSet, { forPatterns }: Readings, effort: Effort): boolean {
  return forPatterns.some(({ text }) => patterns.mayMatchInLines(text, effort));
}

/** Groups the lines in order, each group up to the maximum length of a joined text. */
function partsOf(lines: readonly Line[]): readonly (readonly Line[])[] {
  const parts: Line[][] = [];
  let part: Line[] = [];
  let length = 0;
  for (const line of lines) {
    if (parts.length === 0 || length + line.text.length > TOGETHER) {
      part = [];
      parts.push(part);
      length = 0;
    }
    part.push(line);
    length += line.text.length + BETWEEN.length;
  }
  return parts;
}

function joined(lines: readonly Line[]): string {
  return lines.map(({ text }) => text).join(BETWEEN);
}

class Lines {
  readonly all: readonly Line[];
  readonly text: string;
  /** Offset at which each line begins. */
  readonly #starts: readonly number[];
  readonly #suspects: Set<Line>;

  /** @param suspects set to which marked lines are added */
  constructor(all: readonly Line[], suspects: Set<Line>) {
    this.all = all;
    this.text = joined(all);
    const starts: number[] = [];
    let next = 0;
    for (const { text } of all) {
      starts.push(next);
      next += text.length + BETWEEN.length;
    }
    this.#starts = starts;
    this.#suspects = suspects;
  }

  mark(lines: Iterable<Line>): void {
    for (const line of lines) this.#suspects.add(line.of ?? line);
  }

  areMostlyMarked(): boolean {
    return this.#suspects.size > 0 && this.unmarked(this.all).length < this.all.length / 2;
  }

  unmarked(lines: Iterable<Line>): Line[] {
    return [...lines].filter((line) => !this.#suspects.has(line.of ?? line));
  }

  /** The separator between two lines belongs to the first of them. */
  touched({ start, end }: Span): readonly Line[] {
    const first = this.#at(start);
    let after = first + 1;
    while (after < this.all.length && this.#starts[after]! < end) after += 1;
    return this.all.slice(first, after);
  }

  /** Separates ASCII lines from the others if there are both. */
  byScript(): Lines[] {
    if (isAscii(this.text)) return [this];
    const ascii = this.all.filter(({ text }) => isAscii(text));
    if (ascii.length === 0) return [this];
    const others = this.all.filter(({ text }) => !isAscii(text));
    return [new Lines(ascii, this.#suspects), new Lines(others, this.#suspects)];
  }

  /** The unescaped forms of lines that are not marked yet. */
  unescaped(): Line[] {
    const withKeys = new Set<Line>();
    eachEscape(this.text, (place) => {
      const at = this.#at(place);
      withKeys.add(this.all[at]!);
      return this.#starts[at + 1] ?? this.text.length;
    });
    return this.unmarked(withKeys).flatMap((line) => {
      const reading = undone(line.text);
      return reading === undefined ? [] : [{ text: reading.text, of: line.of ?? line }];
    });
  }

  /** Index of the line that contains an offset. */
  #at(place: number): number {
    let [low, high] = [0, this.all.length];
    while (low + 1 < high) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle]! <= place) low = middle;
      else high = middle;
    }
    return low;
  }
}
