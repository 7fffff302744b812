/** Selects the patterns that can match in a text at all, in one pass over it. */
import type { Key } from './keys.ts';
import { BUCKETS, type ByteSet, Sieve, type SieveVisitor, type Window } from './sieve.ts';
import { bytesOf, clear } from './units.ts';

const WINDOW = 4;

/** A key to look for, by its least likely window. */
interface KeyWindow {
  readonly pattern: number;
  readonly sets: Key['sets'];
  /** Offset of the window in the key. */
  readonly offset: number;
}

/** @returns true to end the walk */
type KeyVisitor = (pattern: number, start: number, end: number) => boolean;

export class Candidates {
  readonly #count: number;
  /** Patterns without keys: they may match anywhere. */
  readonly #always: readonly number[];
  readonly #buckets: readonly (readonly KeyWindow[])[];
  readonly #sieve: Sieve;

  /** @param keys by pattern */
  constructor(keys: readonly (readonly Key[] | undefined)[]) {
    this.#count = keys.length;
    this.#always = [...keys.keys()].filter((pattern) => keys[pattern] === undefined);
    const keyWindows = keys.flatMap((alternatives, pattern) =>
      (alternatives ?? []).map(({ sets }) => keyWindowOf(pattern, sets)),
    );
    const bucketOf = (index: number) => index % BUCKETS;
    this.#buckets = Array.from({ length: BUCKETS }, (_, bucket) =>
      keyWindows.filter((_, index) => bucketOf(index) === bucket),
    );
    this.#sieve = new Sieve(keyWindows.map((one, index) => ({ bucket: bucketOf(index), sets: windowOf(one) })));
  }

  /** Number of patterns that may match anywhere. */
  get anywhere(): number {
    return this.#always.length;
  }

  /** @returns indices in order */
  in(text: string): readonly number[] {
    // Allocated on the first hit, because most texts have none.
    let found: Set<number> | undefined;
    this.eachKey(text, (pattern) => {
      found ??= new Set();
      found.add(pattern);
      return found.size === this.#count - this.#always.length;
    });
    return found === undefined ? this.#always : [...this.#always, ...found].sort((a, b) => a - b);
  }

  /** Visits each occurrence of a key. Patterns that may match anywhere are not reported. */
  eachKey(text: string, visit: KeyVisitor): void {
    if (this.#always.length === this.#count) return;
    const bytes = bytesOf(text);
    this.#sieve.walk(bytes, text.length, new KeySearch(bytes, text.length, this.#buckets, visit));
    clear(bytes, text.length);
  }
}

function keyWindowOf(pattern: number, sets: Key['sets']): KeyWindow {
  let offset = 0;
  let least = Number.POSITIVE_INFINITY;
  for (let at = 0; at + Math.min(WINDOW, sets.length) <= sets.length; at++) {
    const width = sets.slice(at, at + WINDOW).reduce((sum, set) => sum + Math.log(widthOf(set)), 0);
    if (width < least) [least, offset] = [width, at];
  }
  return { pattern, sets, offset };
}

function widthOf(set: Uint8Array): number {
  return set.reduce((count, one) => count + one, 0);
}

function windowOf({ sets, offset }: KeyWindow): Window['sets'] {
  return [sets[offset], sets[offset + 1], sets[offset + 2], sets[offset + 3]] as [ByteSet, ByteSet, ByteSet, ByteSet];
}

class KeySearch implements SieveVisitor {
  readonly #bytes: Uint8Array;
  readonly #length: number;
  readonly #buckets: readonly (readonly KeyWindow[])[];
  readonly #visit: KeyVisitor;

  constructor(bytes: Uint8Array, length: number, buckets: readonly (readonly KeyWindow[])[], visit: KeyVisitor) {
    this.#bytes = bytes;
    this.#length = length;
    this.#buckets = buckets;
    this.#visit = visit;
  }

  at(window: number, buckets: number): boolean {
    for (let left = buckets; left !== 0; left &= left - 1) {
      for (const { pattern, sets, offset } of this.#buckets[31 - Math.clz32(left & -left)]!) {
        const start = window - offset;
        if (this.#matchesAt(sets, start) && this.#visit(pattern, start, start + sets.length)) return true;
      }
    }
    return false;
  }

  #matchesAt(sets: Key['sets'], start: number): boolean {
    if (start < 0 || start + sets.length > this.#length) return false;
    for (let index = 0; index < sets.length; index++) if (sets[index]![this.#bytes[start + index]!] === 0) return false;
    return true;
  }
}
