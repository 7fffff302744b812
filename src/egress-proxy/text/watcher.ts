/** Looks for patterns in a stream that passes on unchanged and undelayed. */
import type { PatternSet } from './pattern-set.ts';

const NOTHING = Buffer.alloc(0);

/** A pattern that is cut into chunks is noticed with its last chunk. */
export class Watcher {
  readonly #set: PatternSet;
  /** The end of the last chunk, from where a pattern may have begun. */
  #tail: Buffer = NOTHING;

  constructor(set: PatternSet) {
    this.#set = set;
  }

  /** Bytes at the end of the last chunk, and of those before it, that a pattern may begin with. */
  get open(): number {
    return this.#tail.length;
  }

  /** The index of a pattern that ends in this chunk. */
  sees(chunk: Buffer): number | undefined {
    const bytes = this.#tail.length === 0 ? chunk : Buffer.concat([this.#tail, chunk]);
    this.#tail = NOTHING;
    for (let from = 0; ; ) {
      const found = this.#set.find(bytes, from, false);
      if (found.kind === 'match') return found.pattern;
      if (found.kind === 'none') return undefined;
      if (this.#tail.length === 0) this.#tail = bytes.subarray(found.at);
      from = found.at + 1;
    }
  }
}
