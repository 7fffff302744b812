/** Replaces patterns in a stream of bytes, wherever the stream is cut into chunks. */
import type { PatternSet } from './pattern-set.ts';

/** What replaces a match. It may throw, which ends the replacing. @param pattern its index */
type Replace = (pattern: number) => Buffer;

const NOTHING = Buffer.alloc(0);

/**
 * The result is that of replacing in the whole text: at each position the longest pattern, from left to right. Bytes that
 * may be the beginning of a pattern are held until more bytes arrive. Pieces of the result share memory with the chunks
 * and the replacements, so that many replacements of a small chunk take no memory as long as they are not read.
 */
export class Replacer {
  readonly #set: PatternSet;
  readonly #replace: Replace;
  #held: Buffer = NOTHING;

  constructor(set: PatternSet, replace: Replace) {
    this.#set = set;
    this.#replace = replace;
  }

  /** The pieces that are certain once `chunk` has arrived. They must be read to the end before the next call. */
  push(chunk: Buffer): Iterable<Buffer> {
    return this.#pieces(chunk, false);
  }

  /** The rest, after the last chunk. */
  end(): Iterable<Buffer> {
    return this.#pieces(NOTHING, true);
  }

  *#pieces(chunk: Buffer, isWhole: boolean): Generator<Buffer> {
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = NOTHING;
    let from = 0;
    for (;;) {
      const found = this.#set.find(bytes, from, isWhole);
      if (found.at > from) yield bytes.subarray(from, found.at);
      if (found.kind === 'none') return;
      if (found.kind === 'open') {
        this.#held = bytes.subarray(found.at);
        return;
      }
      yield this.#replace(found.pattern);
      from = found.at + this.#set.patterns[found.pattern]!.length;
    }
  }
}

/** The whole text, replaced. */
export function replaceAll(text: Buffer, set: PatternSet, replace: Replace): Buffer {
  const replacer = new Replacer(set, replace);
  const pieces = [...replacer.push(text), ...replacer.end()];
  return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}
