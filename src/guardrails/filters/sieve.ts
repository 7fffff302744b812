/**
 * One pass over a text that reports where any of many windows may begin, from four consecutive bytes. It runs without
 * branches at every offset, because mispredictions would cost more than the pass: one lookup by the first pair of bytes
 * gives the windows that may begin, one by the second pair those that may end.
 */

/** Set of bytes, 1 for each member; undefined means all bytes. */
export type ByteSet = Uint8Array | undefined;

/** Four consecutive byte sets. Windows of one bucket are reported together, and the visitor tells them apart. */
export interface Window {
  readonly bucket: number;
  readonly sets: readonly [ByteSet, ByteSet, ByteSet, ByteSet];
}

export const BUCKETS = 16;
/** Bytes that no window distinguishes share a class. Beyond this number, the last classes are merged. */
const CLASSES = 64;

/** Hits are recorded for a chunk of text before the visitor sees them, to keep the scanning loop tight. */
const PIECE = 4_096;
const STEP = 4;
const starts = new Int32Array(PIECE);
const found = new Int32Array(PIECE);

export interface SieveVisitor {
  /** @param start of the window; -1 if its first byte is before the text and reads as zero @returns true to stop */
  at(start: number, buckets: number): boolean;
}

export class Sieve {
  readonly #classes = new Uint8Array(256);
  /** The class of each byte as the first of a pair, shifted. */
  readonly #firsts = new Uint16Array(256);
  /** By pair of classes: buckets whose windows may begin with it and, in the upper bits, may end with it. */
  readonly #pairs: Int32Array;
  /** Number of bits that hold a class. */
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

  /** @param bytes followed by six zeros */
  walk(bytes: Uint8Array, length: number, visitor: SieveVisitor): void {
    for (let from = 0; from < length + 3; from += PIECE) {
      const count = this.#note(bytes, from, Math.min(from + PIECE, length + 3));
      for (let index = 0; index < count; index++) {
        if (visitor.at(starts[index]!, found[index]!)) return;
      }
    }
  }

  /**
   * Handles four offsets per step, which takes a third less time. Zeros follow the text, so the last step may pass its
   * end.
   * @returns the number of recorded window starts, for windows whose last byte is in the chunk
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
