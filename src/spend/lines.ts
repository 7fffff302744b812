/**
 * Records of a journal as the bytes that go into it, one line behind the other: `<kind><checksum> <JSON>`. Each text is
 * made bytes once, for its checksum and for the file, and whole requests' worth of them leave in one write.
 */
import { crc32 } from 'node:zlib';
import type { RecordKind } from './record.ts';

/** Kind, eight hexadecimal digits and a space. */
const HEAD_BYTES = 10;
const DIGITS = Buffer.from('0123456789abcdef');
const SPACE = 0x20;
const LINE_FEED = 0x0a;
const CAPACITY = 64 * 1024;

export class Lines {
  #bytes: Buffer = Buffer.allocUnsafe(CAPACITY);
  #length = 0;
  #count = 0;

  /** Of the bytes that are taken. */
  get length(): number {
    return this.#length;
  }

  /** Records. */
  get count(): number {
    return this.#count;
  }

  /** Valid up to `length`, and until something is added. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  /**
   * @param more what follows `json` in the same record; two texts are written as cheaply as one, and need not be put together
   * @returns where the record begins
   */
  add(kind: RecordKind, json: string, more = ''): number {
    const start = this.#length;
    const textAt = start + HEAD_BYTES;
    // UTF-8 takes three bytes at most for each UTF-16 unit.
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
    // What was grown for one large batch is not kept.
    if (this.#bytes.length > CAPACITY) this.#bytes = Buffer.allocUnsafe(CAPACITY);
  }

  #makeRoom(needed: number): void {
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, needed));
    this.#bytes.copy(grown, 0, 0, this.#length);
    this.#bytes = grown;
  }
}
