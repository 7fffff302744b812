/** Gathers the bytes of an upstream response and decodes them. */

/** The most bytes read of an error body; vendors say nothing useful after that. */
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

  /** Adds the chunk up to a total of `limit` bytes and drops the rest. */
  addUpTo(limit: number, chunk: Buffer): void {
    if (this.size < limit) this.add(chunk.subarray(0, limit - this.size));
  }

  /** Returns all bytes without a byte order mark, and clears the buffer. */
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
