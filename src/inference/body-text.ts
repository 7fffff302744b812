/** The bytes of an answer as they gather, and what they say. */

/** An error's body is read up to here; what vendors say in more is not worth the memory. */
export const ERROR_BODY_BYTES = 256 * 1024;
/** Some servers begin JSON with a byte order mark, as an event stream may. */
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf]);

export class BodyText {
  #chunks: Buffer[] = [];
  size = 0;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.size += chunk.length;
  }

  /** What of the chunk is within `most` bytes; the rest is dropped. */
  addUpTo(most: number, chunk: Buffer): void {
    if (this.size < most) this.add(chunk.subarray(0, most - this.size));
  }

  /** All of it without a byte order mark; nothing is kept. */
  takeBytes(): Buffer {
    const bytes = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.clear();
    const marked = bytes.length >= 3 && bytes[0] === 0xef && bytes.subarray(0, 3).equals(BYTE_ORDER_MARK);
    return marked ? bytes.subarray(3) : bytes;
  }

  take(): string {
    return this.takeBytes().toString('utf8');
  }

  clear(): void {
    this.#chunks = [];
    this.size = 0;
  }
}
