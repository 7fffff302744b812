/** The bytes of an answer as they gather, and what they say. */

/** An error's body is read up to here; what vendors say in more is not worth the memory. */
export const ERROR_BODY_BYTES = 256 * 1024;
const BYTE_ORDER_MARK = '\ufeff';

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

  /** All of it; nothing is kept. */
  takeBytes(): Buffer {
    const bytes = this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks);
    this.clear();
    return bytes;
  }

  take(): string {
    const text = this.takeBytes().toString('utf8');
    // Some servers begin JSON with a byte order mark, as an event stream may.
    return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  }

  clear(): void {
    this.#chunks = [];
    this.size = 0;
  }
}
