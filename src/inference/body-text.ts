/** The bytes of an answer as they gather, and what they say. */

const BYTE_ORDER_MARK = '\ufeff';

export class BodyText {
  #chunks: Buffer[] = [];
  size = 0;

  add(chunk: Buffer): void {
    this.#chunks.push(chunk);
    this.size += chunk.length;
  }

  /** All of it; nothing is kept. */
  take(): string {
    const text = (this.#chunks.length === 1 ? this.#chunks[0]! : Buffer.concat(this.#chunks)).toString('utf8');
    this.clear();
    // Some servers begin JSON with a byte order mark, as an event stream may.
    return text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  }

  clear(): void {
    this.#chunks = [];
    this.size = 0;
  }
}
