/**
 * Facts about a pattern from its compiled program, without matching: the longest match, and the characters that no
 * match contains. RE2 programs are small graphs of single steps.
 */

export interface Step {
  op: number;
  out: number;
  /** Of a branch: the other target. Of runes: 1 to ignore case. */
  arg: number;
  runes: ArrayLike<number>;
}

export interface Program {
  inst: readonly Step[];
  start: number;
}

export interface PatternFacts {
  /** UTF-16 units of the longest match; undefined if matches are unbounded. */
  longest: number | undefined;
  /** By code below 128: 1 if no match contains the character. */
  borders: Uint8Array;
}

export const BRANCH = 1;
export const BRANCH_MATCH = 2;
/** Reads nothing; tests the characters on both sides. */
const BORDER = 4;
/** `arg` of a border that tests for the start or end of the text. */
const OF_TEXT = 4 | 8;
const FAIL = 5;
export const MATCH = 6;
const FIRST_RUNE = 8;
/** Reads any character; higher opcodes do too, except for line ends. */
export const ANY_RUNE = 10;
/** `arg` of runes that ignore case. */
export const ANY_CASE = 1;

export function factsOf(program: Program): PatternFacts {
  return { longest: longestFrom(program), borders: bordersOf(program) };
}

/** True if it tests for the start or end of the text. Line and word borders depend only on neighbouring characters. */
export function checksTextBorder({ inst }: Program): boolean {
  return inst.some(({ op, arg }) => op === BORDER && (arg & OF_TEXT) !== 0);
}

export function nextOf({ op, out, arg }: Step): number[] {
  if (op === MATCH || op === FAIL) return [];
  return op === BRANCH || op === BRANCH_MATCH ? [out, arg] : [out];
}

export function isRune({ op }: Step): boolean {
  return op >= FIRST_RUNE;
}

/** Undefined for a program with a loop that reads something. */
function longestFrom({ inst, start }: Program): number | undefined {
  const known = new Map<number, number>();
  const open = new Set<number>();
  // Depth first without recursion: a pattern of 100,000 characters has as many consecutive steps.
  const stack = [start];
  while (stack.length > 0) {
    const at = stack.at(-1)!;
    const step = inst[at]!;
    if (known.has(at)) {
      stack.pop();
      continue;
    }
    const next = nextOf(step);
    if (!open.has(at)) {
      open.add(at);
      for (const to of next) {
        // Every loop reads something: empty-matching patterns are refused, and the engine drops empty loops.
        if (open.has(to) && !known.has(to)) return undefined;
        if (!known.has(to)) stack.push(to);
      }
      continue;
    }
    let longest = Number.NEGATIVE_INFINITY;
    for (const to of next) longest = Math.max(longest, known.get(to) ?? Number.NEGATIVE_INFINITY);
    if (step.op === MATCH) longest = 0;
    known.set(at, longest + (isRune(step) ? widthOf(step) : 0));
    open.delete(at);
    stack.pop();
  }
  return Math.max(0, known.get(start)!);
}

function widthOf({ runes }: Step): number {
  return (runes[runes.length - 1] ?? 0x10ffff) > 0xffff ? 2 : 1;
}

function bordersOf({ inst }: Program): Uint8Array {
  const borders = new Uint8Array(128).fill(1);
  for (const step of inst) {
    if (!isRune(step)) continue;
    const { runes } = step;
    if (runes.length === 0) return new Uint8Array(128);
    for (let pair = 0; pair < runes.length; pair += 2) {
      const low = runes[pair]!;
      const high = runes[pair + 1] ?? low;
      for (let code = low; code <= Math.min(high, 127); code++) {
        borders[code] = 0;
        if ((step.arg & ANY_CASE) !== 0 || runes.length === 1) {
          borders[String.fromCharCode(code).toLowerCase().charCodeAt(0)] = 0;
          borders[String.fromCharCode(code).toUpperCase().charCodeAt(0)] = 0;
        }
      }
    }
  }
  return borders;
}
