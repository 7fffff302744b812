/**
 * Extracts the keys of a pattern from its compiled program: short rows of character sets, one of which occurs in every
 * match. A text without them cannot match. `candidates.ts` checks this for many patterns in one pass.
 */
import { ANY_CASE, ANY_RUNE, BRANCH, BRANCH_MATCH, isRune, MATCH, nextOf, type Program, type Step } from './program.ts';
import type { ByteSet } from './sieve.ts';
import { byteOf } from './units.ts';

/** Consecutive units of a text, as byte classes. */
export interface Key {
  readonly sets: readonly NonNullable<ByteSet>[];
  /** Estimated probability of the key at a given offset of ordinary text. */
  readonly probability: number;
}

/** Larger programs are not analysed. */
const MOST_STEPS = 1_500;
/** Maximum number of alternatives of one pattern, with one key each, and of analysis steps to find them. */
const MOST_KEYS = 12;
const MOST_SEARCHES = 64;
const LONGEST_KEY = 12;
/** A key more likely than this excludes too few texts. */
const MAX_PROBABILITY = 0.1;
/** A key less likely than this is good enough: do not split the pattern into its alternatives. */
const GOOD_PROBABILITY = 1e-5;

/** @returns keys, one of which occurs in every match; undefined if there are none */
export function keysOf(program: Program): readonly Key[] | undefined {
  if (program.inst.length > MOST_STEPS) return undefined;
  const keys = new Search(program).keysFrom(program.start, MOST_KEYS);
  return keys !== undefined && probabilityOf(keys) <= MAX_PROBABILITY ? keys : undefined;
}

function probabilityOf(keys: readonly Key[]): number {
  return keys.reduce((sum, { probability }) => sum + probability, 0);
}

class Search {
  readonly #program: Program;
  readonly #sets = new Map<number, ByteSet>();
  readonly #probabilities = new Map<ByteSet, number>();
  #steps = 0;

  constructor(program: Program) {
    this.#program = program;
  }

  keysFrom(start: number, most: number): Key[] | undefined {
    this.#steps += 1;
    if (this.#steps > MOST_SEARCHES) return undefined;
    const key = this.#bestKey(mandatoryFrom(this.#program, start));
    if (most < 2 || (key !== undefined && key.probability <= GOOD_PROBABILITY)) return key && [key];
    const split = this.#splitKeys(start, most);
    if (split === undefined || (key !== undefined && key.probability <= probabilityOf(split))) return key && [key];
    return split;
  }

  /** The keys of each alternative at the first branch. */
  #splitKeys(start: number, most: number): Key[] | undefined {
    const { inst } = this.#program;
    let at = start;
    while (inst[at]!.op !== BRANCH && inst[at]!.op !== BRANCH_MATCH) {
      const [next] = nextOf(inst[at]!);
      if (next === undefined) return undefined;
      at = next;
    }
    const one = this.keysFrom(inst[at]!.out, most - 1);
    const other = one && this.keysFrom(inst[at]!.arg, most - one.length);
    return other && [...one, ...other];
  }

  /** @param mandatory steps in their order */
  #bestKey(mandatory: readonly number[]): Key | undefined {
    let best: Key | undefined;
    let row: NonNullable<ByteSet>[] = [];
    let last = -1;
    for (const at of mandatory) {
      if (!isRune(this.#program.inst[at]!)) continue;
      const set = this.#setOf(at);
      if (set === undefined || !this.#follows(last, at)) row = [];
      last = at;
      if (set === undefined) continue;
      row = [...row.slice(1 - LONGEST_KEY), set];
      const probability = row.reduce((product, one) => product * this.#probabilities.get(one)!, 1);
      if (best === undefined || probability < best.probability) best = { sets: row, probability: probability };
    }
    return best;
  }

  /** True if the unit read by one step always directly follows the unit read by the other. */
  #follows(before: number, at: number): boolean {
    if (before === -1) return false;
    const { inst } = this.#program;
    for (let step = inst[before]!.out; step !== at; step = inst[step]!.out) {
      if (isRune(inst[step]!) || nextOf(inst[step]!).length !== 1) return false;
    }
    return true;
  }

  #setOf(at: number): ByteSet {
    if (this.#sets.has(at)) return this.#sets.get(at);
    const set = bytesOfStep(this.#program.inst[at]!);
    this.#sets.set(at, set);
    if (set !== undefined) this.#probabilities.set(set, probabilityOfSet(set));
    return set;
  }
}

/** @returns undefined for a step that may read more than one unit, or any unit */
function bytesOfStep({ op, runes, arg }: Step): ByteSet {
  if (op >= ANY_RUNE || runes.length === 0 || runes[runes.length - 1]! > 0xffff) return undefined;
  const set = new Uint8Array(256);
  if (runes.length === 1) {
    enterCases(set, runes[0]!, (arg & ANY_CASE) !== 0);
    return set;
  }
  for (let pair = 0; pair < runes.length; pair += 2) {
    const low = runes[pair]!;
    const high = runes[pair + 1]!;
    for (let code = low; code <= Math.min(high, low + 255); code++) set[byteOf(code)] = 1;
    if (high >= 128 && high - low > 255) set.fill(1, 128);
    // The engine reads lone surrogates as U+FFFD.
    if ((low <= 0xdfff && high >= 0xd800) || (low <= 0xfffd && high >= 0xfffd)) set.fill(1, 128);
  }
  return set;
}

function enterCases(set: Uint8Array, rune: number, anyCase: boolean): void {
  if (rune === 0xfffd || (rune >= 0xd800 && rune <= 0xdfff) || (anyCase && rune > 127)) set.fill(1, 128);
  set[byteOf(rune)] = 1;
  if (!anyCase) return;
  const character = String.fromCharCode(rune);
  for (const folded of [character.toLowerCase(), character.toUpperCase()]) {
    if (folded.length === 1) set[byteOf(folded.charCodeAt(0))] = 1;
  }
  // U+017F and U+212A equal `s` and `k` when case is ignored, and the other way around.
  if (/[s\u017f]/i.test(character)) for (const code of [0x53, 0x73, 0x17f]) set[byteOf(code)] = 1;
  if (/[k\u212a]/i.test(character)) for (const code of [0x4b, 0x6b, 0x212a]) set[byteOf(code)] = 1;
}

/** Rough frequency of a byte in ordinary text; only used to choose among keys. */
const CHANCES = Float64Array.from({ length: 256 }, (_, byte) => {
  const character = String.fromCharCode(byte);
  if (byte >= 128) return 0.001;
  if (character === ' ') return 0.16;
  const rank = 'etaoinshrdlcumwfgypbvkjxqz'.indexOf(character);
  if (rank !== -1) return 0.095 * 0.87 ** rank;
  if (/[.,\n]/.test(character)) return 0.01;
  if (/\d/.test(character)) return 0.006;
  return byte < 32 ? 0.0002 : 0.002;
});

function probabilityOfSet(set: Uint8Array): number {
  let probability = 0;
  for (let byte = 0; byte < 256; byte++) if (set[byte] === 1) probability += CHANCES[byte]!;
  return Math.min(1, probability);
}

/** Steps on every path from `start` to a match, in order: the dominators of the match. */
function mandatoryFrom({ inst }: Program, start: number): number[] {
  const order = backwards(inst, start);
  const rank = new Map(order.map((at, index) => [at, index]));
  const before: number[][] = order.map(() => []);
  order.forEach((at, index) => {
    for (const to of nextOf(inst[at]!)) before[rank.get(to)!]!.push(index);
  });
  // By rank: the immediate dominator (Cooper, Harvey and Kennedy).
  const nearest = new Int32Array(order.length).fill(-1);
  nearest[0] = 0;
  for (let changed = true; changed; ) {
    changed = false;
    for (let index = 1; index < order.length; index++) {
      const found = before[index]!.filter((one) => nearest[one] !== -1).reduce((a, b) => commonOf(nearest, a, b));
      if (nearest[index] !== found) changed = true;
      nearest[index] = found;
    }
  }
  const matches = order.flatMap((at, index) => (inst[at]!.op === MATCH ? [index] : []));
  if (matches.length === 0) return [];
  const steps: number[] = [];
  for (let index = matches.reduce((a, b) => commonOf(nearest, a, b)); ; index = nearest[index]!) {
    steps.push(order[index]!);
    if (index === 0) return steps.reverse();
  }
}

function commonOf(nearest: Int32Array, a: number, b: number): number {
  let [one, other] = [a, b];
  while (one !== other) {
    if (one > other) one = nearest[one]!;
    else other = nearest[other]!;
  }
  return one;
}

/** The steps reachable from `start` in reverse post-order: each before its successors, except back edges. */
function backwards(inst: Program['inst'], start: number): number[] {
  const done: number[] = [];
  const seen = new Set([start]);
  const stack = [{ at: start, next: nextOf(inst[start]!) }];
  while (stack.length > 0) {
    const { at, next } = stack.at(-1)!;
    const to = next.pop();
    if (to === undefined) {
      done.push(at);
      stack.pop();
    } else if (!seen.has(to)) {
      seen.add(to);
      stack.push({ at: to, next: nextOf(inst[to]!) });
    }
  }
  return done.reverse();
}
