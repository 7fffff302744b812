/**
 * Finds many byte patterns in one pass (Wu-Manber): two bytes at the end of a window say how far it can move without
 * missing a pattern. The cost of a byte hardly depends on the number of patterns.
 */

/**
 * What a search found, at the first position where there is something.
 *  - `match`: the longest pattern that starts at `at`
 *  - `open`: the bytes from `at` to the end are the beginning of a pattern, so more bytes have to decide
 *  - `none`: nothing; `at` is the end
 */
type Found =
  | { kind: 'match'; at: number; pattern: number }
  | { kind: 'open'; at: number }
  | { kind: 'none'; at: number };

/** Patterns have at least two bytes. */
const SHORTEST_PATTERN = 2;

export class PatternSet {
  readonly patterns: readonly Buffer[];
  readonly #window: number;
  /** For the two last bytes of a window: by how much it can move. 0: a pattern may start at the window. */
  readonly #shifts = new Uint8Array(65_536);
  /** For the two last bytes of a window: the patterns that can start there, longest first. */
  readonly #candidates = new Map<number, number[]>();
  /** The bytes with which patterns begin. */
  readonly #firsts = new Uint8Array(256);
  /** Every beginning of a pattern that is shorter than a window. */
  readonly #beginnings = new Set<string>();

  constructor(patterns: readonly Buffer[]) {
    this.patterns = patterns;
    this.#window = patterns.reduce((shortest, { length }) => Math.min(shortest, length), 256);
    if (this.#window < SHORTEST_PATTERN) throw new RangeError(`a pattern has fewer than ${SHORTEST_PATTERN} bytes`);
    this.#shifts.fill(this.#window - 1);
    const longestFirst = patterns.map((_, index) => index).sort((a, b) => patterns[b]!.length - patterns[a]!.length);
    for (const index of longestFirst) this.#add(patterns[index]!, index);
  }

  #add(pattern: Buffer, index: number): void {
    const last = this.#window - 1;
    this.#firsts[pattern[0]!] = 1;
    for (let end = 1; end <= last; end += 1) {
      const block = (pattern[end - 1]! << 8) | pattern[end]!;
      this.#shifts[block] = Math.min(this.#shifts[block]!, last - end);
      if (end === last) this.#candidates.set(block, [...(this.#candidates.get(block) ?? []), index]);
    }
    for (let length = 1; length < this.#window; length += 1) {
      this.#beginnings.add(pattern.toString('latin1', 0, length));
    }
  }

  /** @param isWhole no bytes follow, so that nothing is `open` */
  find(bytes: Buffer, from: number, isWhole: boolean): Found {
    if (this.patterns.length === 0) return { kind: 'none', at: bytes.length };
    const last = this.#window - 1;
    let end = from + last;
    while (end < bytes.length) {
      const block = (bytes[end - 1]! << 8) | bytes[end]!;
      const shift = this.#shifts[block]!;
      if (shift === 0) {
        const found = this.#at(end - last, block, bytes, isWhole);
        if (found !== undefined) return found;
      }
      end += shift || 1;
    }
    if (!isWhole) {
      for (let start = Math.max(from, bytes.length - last); start < bytes.length; start += 1) {
        if (this.#firsts[bytes[start]!] === 1 && this.#beginnings.has(bytes.toString('latin1', start)))
          return { kind: 'open', at: start };
      }
    }
    return { kind: 'none', at: bytes.length };
  }

  #at(start: number, block: number, bytes: Buffer, isWhole: boolean): Found | undefined {
    const rest = bytes.length - start;
    for (const index of this.#candidates.get(block) ?? []) {
      const pattern = this.patterns[index]!;
      const length = Math.min(pattern.length, rest);
      if ((length < pattern.length && isWhole) || pattern.compare(bytes, start, start + length, 0, length) !== 0)
        continue;
      return length < pattern.length ? { kind: 'open', at: start } : { kind: 'match', at: start, pattern: index };
    }
    return undefined;
  }
}
