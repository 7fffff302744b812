/**
 * Locates the vectors of a reply in the public format without parsing their numbers. Vectors are flat lists or base64,
 * so a native byte search finds their end. Anything unexpected yields undefined, and the reply is then parsed in full.
 */
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../base/json-characters.ts';
import type { Encoding } from './request.ts';

interface ScannedVector {
  index: number | undefined;
  encoding: Encoding;
  /** First and one-past-last byte of the vector's JSON. */
  start: number;
  end: number;
}

export interface ScannedReply {
  /** Top-level members: first and one-past-last byte of their value. */
  members: Map<string, { start: number; end: number }>;
  /** In reply order. */
  vectors: ScannedVector[];
  /** Whether every item has its type and a consecutive index. */
  complete: boolean;
}

export function scanReply(body: Buffer): ScannedReply | undefined {
  try {
    return new Scanner(body).reply();
  } catch (error) {
    if (error instanceof Unexpected) return undefined;
    throw error;
  }
}

class Unexpected extends Error {}

class Scanner {
  readonly #body: Buffer;
  #at = 0;

  constructor(body: Buffer) {
    this.#body = body;
  }

  reply(): ScannedReply {
    const members = new Map<string, { start: number; end: number }>();
    const vectors: ScannedVector[] = [];
    let complete = true;
    this.#object((key) => {
      if (members.has(key)) throw new Unexpected();
      const start = this.#at;
      if (key === 'data') {
        this.#list(() => {
          if (!this.#item(vectors)) complete = false;
        });
      } else this.#skip();
      members.set(key, { start, end: this.#at });
    });
    this.#space();
    const data = members.get('data');
    if (this.#at !== this.#body.length || data === undefined) throw new Unexpected();
    this.#checkNumbers(data, vectors);
    return { members, vectors, complete };
  }

  /**
   * Lists of numbers contain `null`, `NaN` or `Infinity` if the model failed. None of the expected keys contains `u`,
   * `N` or `I`, so one search for each over all vectors detects them.
   */
  #checkNumbers({ start, end }: { start: number; end: number }, vectors: readonly ScannedVector[]): void {
    if (vectors[0]?.encoding !== 'float') return;
    const data = this.#body.subarray(start, end);
    if (data.includes(0x75) || data.includes(0x4e) || data.includes(0x49)) throw new Unexpected();
  }

  /** Reads one item of `data`; false unless it declares itself the embedding at this index. */
  #item(vectors: ScannedVector[]): boolean {
    let index: number | undefined;
    let told = false;
    let vector: { encoding: Encoding; start: number; end: number } | undefined;
    this.#object((key) => {
      const start = this.#at;
      if (key === 'embedding') {
        if (vector !== undefined) throw new Unexpected();
        vector = this.#vector();
        return;
      }
      this.#skip();
      const text = this.#body.toString('latin1', start, this.#at);
      if (key === 'index' && /^\d{1,9}$/.test(text)) index = Number(text);
      if (key === 'object' && text === '"embedding"') told = true;
    });
    if (vector === undefined) throw new Unexpected();
    const place = vectors.length;
    vectors.push({ ...vector, index });
    return told && index === place;
  }

  #vector(): { encoding: Encoding; start: number; end: number } {
    const start = this.#at;
    const opening = this.#body[start];
    if (opening !== OPEN_BRACKET && opening !== QUOTE) throw new Unexpected();
    const close = this.#body.indexOf(opening === QUOTE ? QUOTE : CLOSE_BRACKET, start + 1);
    // Rejects empty vectors and nested lists.
    if (close <= start + 1) throw new Unexpected();
    const last = this.#body[close - 1]!;
    if (opening === QUOTE ? last === BACKSLASH : last === CLOSE_BRACKET || this.#body[start + 1] === OPEN_BRACKET) {
      throw new Unexpected();
    }
    this.#at = close + 1;
    return { encoding: opening === QUOTE ? 'base64' : 'float', start, end: close + 1 };
  }

  #object(member: (key: string) => void): void {
    this.#expect(OPEN_BRACE);
    if (this.#next() === CLOSE_BRACE) {
      this.#at += 1;
      return;
    }
    for (;;) {
      this.#space();
      const start = this.#at;
      this.#string();
      const key = this.#body.toString('latin1', start + 1, this.#at - 1);
      this.#expect(COLON);
      this.#space();
      member(key);
      if (this.#separator(CLOSE_BRACE)) return;
    }
  }

  #list(item: () => void): void {
    this.#expect(OPEN_BRACKET);
    if (this.#next() === CLOSE_BRACKET) {
      this.#at += 1;
      return;
    }
    for (;;) {
      this.#space();
      item();
      if (this.#separator(CLOSE_BRACKET)) return;
    }
  }

  /** Skips a comma or the end; true at the end. */
  #separator(end: number): boolean {
    const byte = this.#next();
    if (byte !== COMMA && byte !== end) throw new Unexpected();
    this.#at += 1;
    return byte === end;
  }

  #skip(depth = 0): void {
    const byte = this.#body[this.#at];
    if (depth > 64) throw new Unexpected();
    if (byte === QUOTE) this.#string();
    else if (byte === OPEN_BRACE) this.#object(() => this.#skip(depth + 1));
    else if (byte === OPEN_BRACKET) this.#list(() => this.#skip(depth + 1));
    else this.#word();
  }

  /** A number, true, false or null. */
  #word(): void {
    const start = this.#at;
    for (; this.#at < this.#body.length; this.#at += 1) {
      const byte = this.#body[this.#at]!;
      if (byte === COMMA || byte === CLOSE_BRACE || byte === CLOSE_BRACKET || byte <= 0x20) break;
    }
    const text = this.#body.toString('latin1', start, this.#at);
    if (!/^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)$/.test(text)) throw new Unexpected();
  }

  #string(): void {
    if (this.#body[this.#at] !== QUOTE) throw new Unexpected();
    for (let at = this.#at + 1; at < this.#body.length; at += 1) {
      const byte = this.#body[at];
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) {
        this.#at = at + 1;
        return;
      }
    }
    throw new Unexpected();
  }

  #expect(byte: number): void {
    if (this.#next() !== byte) throw new Unexpected();
    this.#at += 1;
  }

  #next(): number | undefined {
    this.#space();
    return this.#body[this.#at];
  }

  #space(): void {
    for (; ; this.#at += 1) {
      const byte = this.#body[this.#at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return;
    }
  }
}
