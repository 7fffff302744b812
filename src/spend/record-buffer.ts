/**
 * Journal records as bytes, one per line: `<kind><checksum> <JSON>`. Each text is encoded once, for its checksum and
 * for the file, and the records of many requests are written together.
 */
import { crc32 } from 'node:zlib';
import type { RecordKind } from './record.ts';

/** Kind, eight hexadecimal digits and a space. */
const HEAD_BYTES = 10;
const DIGITS = Buffer.from('0123456789abcdef');
const SPACE = 0x20;
const LINE_FEED = 0x0a;
const CAPACITY = 64 * 1024;

export class RecordBuffer {
  #bytes: Buffer = Buffer.allocUnsafe(CAPACITY);
  #length = 0;
  #count = 0;

  /** Bytes in use. */
  get length(): number {
    return this.#length;
  }

  /** Number of records. */
  get count(): number {
    return this.#count;
  }

  /** Valid up to `length`, until the next `add`. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  /**
   * @param more appended to `json` in the same record, which saves concatenating them
   * @returns offset of the record
   */
  add(kind: RecordKind, json: string, more = ''): number {
    const start = this.#length;
    const textAt = start + HEAD_BYTES;
    // UTF-8 takes at most three bytes per UTF-16 unit.
    this.#makeRoom(textAt + 3 * (json.length + more.length) + 1);
    const bytes = this.#bytes;
    let end = textAt + bytes.write(json, textAt, 'utf8');
    if (more !== '') end += bytes.write(more, end, 'utf8');
    bytes[start] = kind.charCodeAt(0);
    const sum = crc32(bytes.subarray(textAt, end));
    for (let digit = 0; digit < 8; digit += 1) bytes[start + 8 - digit] = DIGITS[(sum >>> (4 * digit)) & 15]!;
    bytes[textAt - 1] = SPACE;
    bytes[end] = LINE_FEED;
    this.#length = end + 1;
    this.#count += 1;
    return start;
  }

  clear(): void {
    this.#length = 0;
    this.#count = 0;
    // Drop a buffer that was grown for one large batch.
    if (this.#bytes.length > CAPACITY) this.#bytes = Buffer.allocUnsafe(CAPACITY);
  }

  #makeRoom(needed: number): void {
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, needed));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
