/** Cuts an input file into its lines while it is read. Memory holds one line at a time. */
import { isJsonSpace } from '../../base/json-characters.ts';

const LINE_FEED = 0x0a;
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

export interface Line {
  /** From 1. */
  number: number;
  /** Without its end; undefined if the line is too long. */
  bytes: Buffer | undefined;
}

export class Lines {
  readonly #mostBytes: number;
  #number = 1;
  /** The beginning of the current line, from earlier chunks. */
  #parts: Buffer[] = [];
  #partBytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  *read(chunk: Buffer): Generator<Line, void, undefined> {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(LINE_FEED, start);
      if (end === -1) break;
      this.#add(chunk.subarray(start, end));
      yield this.#line();
      start = end + 1;
    }
    // A copy, so that a short part does not keep the memory of its whole chunk.
    if (start < chunk.length) this.#add(Buffer.from(chunk.subarray(start)));
  }

  /** The last line, if it has no line feed. */
  *end(): Generator<Line, void, undefined> {
    if (this.#partBytes > 0) yield this.#line();
  }

  #add(part: Buffer): void {
    this.#partBytes += part.length;
    if (this.#partBytes > this.#mostBytes) this.#parts = [];
    else this.#parts.push(part);
  }

  #line(): Line {
    const number = this.#number;
    const bytes = this.#partBytes > this.#mostBytes ? undefined : joined(this.#parts);
    this.#number += 1;
    this.#parts = [];
    this.#partBytes = 0;
    if (number > 1 || bytes === undefined) return { number, bytes };
    const isMarked = bytes.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
    return { number, bytes: isMarked ? bytes.subarray(BYTE_ORDER_MARK.length) : bytes };
  }
}

function joined(parts: readonly Buffer[]): Buffer {
  return parts.length === 1 ? parts[0]! : Buffer.concat(parts);
}

export function isBlank(line: Buffer): boolean {
  return line.every(isJsonSpace);
}
