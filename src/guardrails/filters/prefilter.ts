/**
 * Which of many texts the filters may find something in, seen in all of them at once. A text by itself costs as much as some
 * hundred characters before one of its own is read, and a conversation is made of many short ones. So they are put together as
 * the lines of one text, and nearly all of them are never looked at again.
 */
import type { Builtin } from './builtins.ts';
import { DEEPEST, eachEscape, undone } from './escapes.ts';
import type { Effort, PatternSet } from './patterns.ts';
import { placesOf } from './places.ts';
import { Readings, type Span } from './reading.ts';
import { isAscii } from './units.ts';

/** A longer text costs hardly more by itself, and twice as much in all where something stands in it. */
const SHORT = 1_024;
/** Characters that are looked at together: the arrays for one text have room for them. */
const TOGETHER = 16_384;
/**
 * Stands between two texts. To whatever asks what stands beside a match it is what the end of a text is: part of no word, number
 * or address, and where a line ends. What sees a difference says so (`Builtin.findInLines`, `PatternSet.mayMatchInLines`).
 */
const BETWEEN = '\n';

interface Line {
  readonly text: string;
  /** The text whose escapes stand for it; undefined for one of the texts themselves. */
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
   * Those in which something may be found, also in what their escapes stand for: nothing is found in any other.
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
      for (const some of partsOf(lines)) {
        const all = new Lines(some, suspects);
        // Those that have to be folded are not to have the others folded as well.
        for (const part of all.byScript()) this.#look(part, effort);
        if (depth < DEEPEST) unescaped.push(...all.unescaped());
      }
      lines = unescaped;
    }
    return suspects as ReadonlySet<unknown> as ReadonlySet<Text>;
  }

  #look(lines: Lines, effort: Effort): void {
    const readings = new Readings(lines.text);
    if (readings.hidden !== undefined) {
      lines.mark(lines.all.filter(({ text }) => new Readings(text).hidden !== undefined));
    }
    if (this.#builtins.length > 0) this.#seekBuiltins(lines, readings, effort);
    if (this.#patterns !== undefined) this.#seekPatterns(this.#patterns, lines, readings, effort);
  }

  #seekBuiltins(lines: Lines, { skeleton }: Readings, effort: Effort): void {
    const { text } = skeleton;
    const places = placesOf(text);
    for (const builtin of this.#builtins) {
      const spans = builtin.findInLines?.(text, places) ?? builtin.find(text, places);
      for (const span of spans) lines.mark(lines.touched(skeleton.original(span)));
    }
    effort.looked(text.length * this.#builtins.length);
  }

  #seekPatterns(patterns: PatternSet, lines: Lines, readings: Readings, effort: Effort): void {
    // Where most are looked at in any case, seeking more is for nothing.
    if (lines.areMostlyMarked()) {
      lines.mark(lines.all);
      return;
    }
    const asked = linesToAsk(patterns, lines, readings);
    if (asked === undefined) {
      if (!mayMatch(patterns, readings, effort)) return;
      lines.mark(lines.unmarked(lines.all).filter((line) => mayMatch(patterns, new Readings(line.text), effort)));
      return;
    }
    const open = lines.unmarked(asked);
    if (open.length < 2 || mayMatch(patterns, new Readings(joined(open)), effort)) lines.mark(open);
  }
}

/** Those that hold what a pattern needs; undefined where one may match anywhere. */
function linesToAsk(patterns: PatternSet, lines: Lines, { forPatterns }: Readings): Iterable<Line> | undefined {
  const asked = new Set<Line>();
  for (const { text, original } of forPatterns) {
    const told = patterns.eachKey(text, (start, end) => {
      for (const line of lines.touched(original({ start, end }))) asked.add(line);
    });
    if (!told) return undefined;
  }
  return asked;
}

function mayMatch(patterns: PatternSet, { forPatterns }: Readings, effort: Effort): boolean {
  return forPatterns.some(({ text }) => patterns.mayMatchInLines(text, effort));
}

/** One after the other, with at most so many characters as are looked at together. */
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
  /** Where each begins. */
  readonly #starts: readonly number[];
  readonly #suspects: Set<Line>;

  /** @param suspects to which the texts of marked lines are added */
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

  /** What stands between two lines belongs to the first of them. */
  touched({ start, end }: Span): readonly Line[] {
    const first = this.#at(start);
    let behind = first + 1;
    while (behind < this.all.length && this.#starts[behind]! < end) behind += 1;
    return this.all.slice(first, behind);
  }

  /** Those that are ASCII apart from all others, where there are both. */
  byScript(): Lines[] {
    if (isAscii(this.text)) return [this];
    const ascii = this.all.filter(({ text }) => isAscii(text));
    if (ascii.length === 0) return [this];
    const others = this.all.filter(({ text }) => !isAscii(text));
    return [new Lines(ascii, this.#suspects), new Lines(others, this.#suspects)];
  }

  /** What escapes in lines that are not marked yet stand for. */
  unescaped(): Line[] {
    const asked = new Set<Line>();
    eachEscape(this.text, (place) => {
      const at = this.#at(place);
      asked.add(this.all[at]!);
      return this.#starts[at + 1] ?? this.text.length;
    });
    return this.unmarked(asked).flatMap((line) => {
      const reading = undone(line.text);
      return reading === undefined ? [] : [{ text: reading.text, of: line.of ?? line }];
    });
  }

  /** The line that a place stands in. */
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
