/**
 * What can be said of a pattern without matching it, read from its compiled program: how long a match can be, which
 * characters none contains, and texts without which there is none. RE2's programs are small graphs of single steps.
 */

interface Step {
  op: number;
  out: number;
  /** Of a branch: the other way. Of runes: 1 for any case. */
  arg: number;
  runes: ArrayLike<number>;
}

export interface Program {
  inst: readonly Step[];
  start: number;
}

export interface PatternFacts {
  /** UTF-16 units of the longest match; undefined where there is none. */
  longest: number | undefined;
  /** By code below 128: 1 where no match contains the character. */
  borders: Uint8Array;
  /** One of these stands in every match; undefined where nothing is known. */
  needs: readonly string[] | undefined;
  /** `needs` is in lower case and to be sought in a text that is, too. */
  anyCase: boolean;
}

const BRANCH = 1;
const BRANCH_MATCH = 2;
const FAIL = 5;
const MATCH = 6;
const FIRST_RUNE = 8;
const ANY_CASE = 1;
/** Programs past this size are not looked into: it takes the square of it. */
const MOST_STEPS = 1_500;
const MOST_LITERALS = 12;
/** Shorter ones stand in every text. */
const LEAST_LITERAL = 2;

export function factsOf(program: Program): PatternFacts {
  const literals = program.inst.length > MOST_STEPS ? undefined : literalsFrom(program, program.start, MOST_LITERALS);
  const anyCase = literals?.some(({ anyCase }) => anyCase) ?? false;
  return {
    longest: longestFrom(program),
    borders: bordersOf(program),
    needs: literals?.map(({ text }) => (anyCase ? text.toLowerCase() : text)),
    anyCase,
  };
}

function nextOf({ op, out, arg }: Step): number[] {
  if (op === MATCH || op === FAIL) return [];
  return op === BRANCH || op === BRANCH_MATCH ? [out, arg] : [out];
}

function isRune({ op }: Step): boolean {
  return op >= FIRST_RUNE;
}

/** Undefined for a program with a way back that reads something. */
function longestFrom({ inst, start }: Program): number | undefined {
  const known = new Map<number, number>();
  const open = new Set<number>();
  // Depth first without recursion: a pattern of 100,000 characters has as many steps in a row.
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
        // Every loop reads something, as patterns that match nothing are refused and the engine drops empty loops.
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

interface Literal {
  text: string;
  anyCase: boolean;
}

/** One of the literals stands in every match of what begins at a step. */
function literalsFrom(program: Program, start: number, most: number): Literal[] | undefined {
  const mandatory = mandatoryFrom(program, start);
  let best: Literal | undefined;
  for (let at = 0; at < mandatory.length; at++) {
    const literal = literalAt(program, mandatory[at]!, new Set(mandatory));
    if (literal.text.length > (best?.text.length ?? LEAST_LITERAL - 1)) best = literal;
  }
  if (best !== undefined) return [best];
  // Nothing stands in all of the ways: in each of them something may.
  let at = start;
  while (![BRANCH, BRANCH_MATCH].includes(program.inst[at]!.op)) {
    const [next] = nextOf(program.inst[at]!);
    if (next === undefined) return undefined;
    at = next;
  }
  const { out, arg } = program.inst[at]!;
  if (most < 2) return undefined;
  const one = literalsFrom(program, out, most - 1);
  const other = one && literalsFrom(program, arg, most - one.length);
  return other && [...one, ...other];
}

function isLetter({ op, runes }: Step): boolean {
  return op >= FIRST_RUNE && (runes.length === 1 || (runes.length === 2 && runes[0] === runes[1])) && runes[0]! < 128;
}

/** Steps of one ASCII character that every way to a match goes through. */
function mandatoryFrom(program: Program, start: number): number[] {
  const reachable = reach(program, start, -1);
  return [...reachable].filter((at) => {
    if (!isLetter(program.inst[at]!)) return false;
    for (const step of reach(program, start, at)) if (program.inst[step]!.op === MATCH) return false;
    return true;
  });
}

function reach({ inst }: Program, start: number, without: number): Set<number> {
  const seen = new Set<number>();
  const stack = start === without ? [] : [start];
  while (stack.length > 0) {
    const at = stack.pop()!;
    if (seen.has(at)) continue;
    seen.add(at);
    for (const to of nextOf(inst[at]!)) if (to !== without) stack.push(to);
  }
  return seen;
}

/** The characters that follow one another from a step on. */
function literalAt({ inst }: Program, from: number, mandatory: ReadonlySet<number>): Literal {
  let text = '';
  let anyCase = false;
  const seen = new Set<number>();
  let at = from;
  while (!seen.has(at)) {
    seen.add(at);
    const step = inst[at]!;
    if (isLetter(step) && mandatory.has(at)) {
      text += String.fromCharCode(step.runes[0]!);
      anyCase ||= (step.arg & ANY_CASE) !== 0;
    } else if (isRune(step) || nextOf(step).length !== 1) break;
    at = step.out;
  }
  return { text, anyCase };
}
