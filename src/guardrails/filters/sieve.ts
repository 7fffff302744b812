/**
 * One walk over a text that tells where any of many things may begin, from four bytes in a row. It asks without a branch at every
 * place, as a guess at each word would cost more than the walk: a pair of bytes chooses what may go on, the next pair what did.
 */

/** Bytes that may stand at one place, 1 for each that may; undefined: all of them. */
export type ByteSet = Uint8Array | undefined;

/** Four places in a row. Windows of one bucket are told as one: whoever asks looks at each of them. */
export interface Window {
  readonly bucket: number;
  readonly sets: readonly [ByteSet, ByteSet, ByteSet, ByteSet];
}

export const BUCKETS = 16;
/** Bytes that no window tells apart are one class; of more than so many, the last are taken for one another. */
const CLASSES = 64;

/** Places are noted for a part of the text before anybody looks at them, as the walk must do nothing else. */
const PIECE = 4_096;
const STEP = 4;
const starts = new Int32Array(PIECE);
const found = new Int32Array(PIECE);

export interface SieveVisitor {
  /** @param start of the window: -1 for one whose first byte stands before the text, as a zero @returns true to end the walk */
  at(start: number, buckets: number): boolean;
}

export class Sieve {
  readonly #classes = new Uint8Array(256);
  /** The class of each byte where it is the first of a pair. */
  readonly #firsts = new Uint16Array(256);
  /** By pair of classes: buckets whose windows may begin with it, and, above those, may end with it. */
  readonly #pairs: Int32Array;
  /** There are at most two to the power of this classes. */
  readonly #width: number;

  constructor(windows: readonly Window[]) {
    const members = this.#classify(windows);
    this.#width = 32 - Math.clz32(members.length - 1);
    this.#pairs = new Int32Array(1 << (2 * this.#width));
    for (let byte = 0; byte < 256; byte++) this.#firsts[byte] = this.#classes[byte]! << this.#width;
    for (const { bucket, sets } of windows) {
      const [first, second, third, fourth] = sets.map((set) => classesIn(set, members));
      this.#enter(first!, second!, 1 << bucket);
      this.#enter(third!, fourth!, 1 << (bucket + BUCKETS));
    }
  }

  /** @returns the bytes of each class */
  #classify(windows: readonly Window[]): number[][] {
    const sets = new Set(windows.flatMap((window) => window.sets).filter((set) => set !== undefined));
    const known = new Map<string, number>();
    const members: number[][] = [];
    for (let byte = 0; byte < 256; byte++) {
      let signature = '';
      for (const set of sets) signature += set[byte];
      const index = known.get(signature) ?? Math.min(known.size, CLASSES - 1);
      known.set(signature, index);
      this.#classes[byte] = index;
      const alike = members[index] ?? [];
      alike.push(byte);
      members[index] = alike;
    }
    return members;
  }

  #enter(firsts: readonly number[], seconds: readonly number[], bit: number): void {
    for (const first of firsts) for (const second of seconds) this.#pairs[(first << this.#width) | second]! |= bit;
  }

  /** @param bytes with six zeros behind them */
  walk(bytes: Uint8Array, length: number, visitor: SieveVisitor): void {
    for (let from = 0; from < length + 3; from += PIECE) {
      const count = this.#note(bytes, from, Math.min(from + PIECE, length + 3));
      for (let index = 0; index < count; index++) {
        if (visitor.at(starts[index]!, found[index]!)) return;
      }
    }
  }

  /**
   * Four places in a step, which takes a third less time. Zeros stand behind a text, so the last step may go past its end.
   * @returns for how many places it noted where a window starts, of those whose last byte stands in a part of the text
   */
  #note(bytes: Uint8Array, from: number, end: number): number {
    const firsts = this.#firsts;
    const classes = this.#classes;
    const pairs = this.#pairs;
    const pairAt = (at: number) => pairs[firsts[bytes[at - 1]!]! | classes[bytes[at]!]!]!;
    let last = firsts[from === 0 ? 0 : bytes[from - 1]!]!;
    let before = from === 0 ? 0 : pairAt(from - 1);
    let begun = from === 0 ? 0 : pairAt(from - 2);
    let count = 0;
    for (let at = from; at < end; at += STEP) {
      const one = bytes[at]!;
      const two = bytes[at + 1]!;
      const three = bytes[at + 2]!;
      const four = bytes[at + 3]!;
      const pairOne = pairs[last | classes[one]!]!;
      const pairTwo = pairs[firsts[one]! | classes[two]!]!;
      const pairThree = pairs[firsts[two]! | classes[three]!]!;
      const pairFour = pairs[firsts[three]! | classes[four]!]!;
      const atOne = begun & (pairOne >>> BUCKETS);
      const atTwo = before & (pairTwo >>> BUCKETS);
      const atThree = pairOne & (pairThree >>> BUCKETS);
      const atFour = pairTwo & (pairFour >>> BUCKETS);
      last = firsts[four]!;
      begun = pairThree;
      before = pairFour;
      if ((atOne | atTwo | atThree | atFour) === 0) continue;
      count = noted(count, at - 3, atOne);
      count = noted(count, at - 2, atTwo);
      count = noted(count, at - 1, atThree);
      count = noted(count, at, atFour);
    }
    return count;
  }
}

function noted(count: number, start: number, buckets: number): number {
  if (buckets === 0) return count;
  starts[count] = start;
  found[count] = buckets;
  return count + 1;
}

function classesIn(set: ByteSet, members: readonly (readonly number[])[]): number[] {
  return [...members.keys()].filter((index) => set === undefined || members[index]!.some((byte) => set[byte] === 1));
}
