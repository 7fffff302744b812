/**
 * Reads the body of `POST /batches` while it arrives: the elements of `requests` one by one, the other members whole, in
 * whatever order they come. Memory holds one value at a time. Values are cut out by brackets and quotes only;
 * errors inside a value are found when it is parsed.
 */

import { GatewayError, invalidField } from '../../base/errors.ts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isJsonSpace,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from '../../base/json-characters.ts';

export type Piece = { kind: 'member'; key: string; bytes: Buffer } | { kind: 'item'; index: number; bytes: Buffer };

interface ReaderLimits {
  /** Of one element of `requests`. */
  itemBytes: number;
  /** Of any other member, its name included. */
  memberBytes: number;
  /** An element of `requests`, in errors. */
  nameItem(index: number): string;
}

/** What the next byte may be. */
type Place =
  | 'begin'
  | 'first key'
  | 'key'
  | 'in key'
  | 'colon'
  | 'value'
  | 'in value'
  | 'after value'
  | 'first item'
  | 'item'
  | 'in item'
  | 'after item'
  | 'end';

export class RequestsReader {
  readonly #limits: ReaderLimits;
  readonly #keys = new Set<string>();
  #place: Place = 'begin';
  #key = '';
  #items = 0;
  /** Bytes before the current chunk. */
  #before = 0;
  /** Earlier chunks of the current value. */
  #parts: Buffer[] = [];
  #partBytes = 0;
  // Of the current value.
  #open = false;
  #depth = 0;
  #inString = false;
  #escaped = false;
  #scalar = false;

  constructor(limits: ReaderLimits) {
    this.#limits = limits;
  }

  /** @throws GatewayError 400 for a text that is not one object, and for a member that comes twice; 413 past a limit */
  *read(chunk: Buffer): Generator<Piece, void, undefined> {
    let at = 0;
    let start = 0;
    while (at < chunk.length) {
      if (this.#place === 'in key' || this.#place === 'in value' || this.#place === 'in item') {
        const end = this.#valueEnd(chunk, at);
        this.#checkSize(end - start);
        if (this.#open) {
          this.#keep(chunk.subarray(start));
          this.#before += chunk.length;
          return;
        }
        const bytes = this.#take(chunk.subarray(start, end));
        at = end;
        const piece = this.#valueRead(bytes);
        if (piece) yield piece;
        continue;
      }
      const byte = chunk[at]!;
      if (isJsonSpace(byte)) {
        at += 1;
        continue;
      }
      start = at;
      if (this.#step(byte, at)) at += 1;
    }
    this.#before += chunk.length;
  }

  /** @throws GatewayError 400 if the object is not complete */
  end(): void {
    if (this.#place !== 'end') throw invalidField('', 'is not a complete JSON object');
  }

  /** Handles a byte between values. Returns false when the byte begins a value, which has not been read yet. */
  #step(byte: number, at: number): boolean {
    switch (this.#place) {
      case 'begin':
        return this.#expect(byte === OPEN_BRACE, 'first key', at);
      case 'first key':
        if (byte === CLOSE_BRACE) return this.#expect(true, 'end', at);
        return this.#begin(byte === QUOTE, 'in key', at);
      case 'key':
        return this.#begin(byte === QUOTE, 'in key', at);
      case 'colon':
        return this.#expect(byte === COLON, 'value', at);
      case 'value':
        if (this.#key !== 'requests') return this.#begin(beginsValue(byte), 'in value', at);
        if (byte !== OPEN_BRACKET) throw invalidField('requests', 'must be a list');
        return this.#expect(true, 'first item', at);
      case 'after value':
        if (byte === CLOSE_BRACE) return this.#expect(true, 'end', at);
        return this.#expect(byte === COMMA, 'key', at);
      case 'first item':
        if (byte === CLOSE_BRACKET) return this.#expect(true, 'after value', at);
        return this.#begin(beginsValue(byte), 'in item', at);
      case 'item':
        return this.#begin(beginsValue(byte), 'in item', at);
      case 'after item':
        if (byte === CLOSE_BRACKET) return this.#expect(true, 'after value', at);
        return this.#expect(byte === COMMA, 'item', at);
      default:
        throw this.#malformed(at);
    }
  }

  #expect(expected: boolean, next: Place, at: number): true {
    if (!expected) throw this.#malformed(at);
    this.#place = next;
    return true;
  }

  #begin(expected: boolean, next: Place, at: number): false {
    this.#expect(expected, next, at);
    this.#depth = 0;
    this.#inString = false;
    this.#escaped = false;
    this.#scalar = false;
    this.#open = true;
    return false;
  }

  /** The offset after the current value; the end of the chunk, with the value still open, if it continues. */
  #valueEnd(chunk: Buffer, from: number): number {
    for (let at = from; at < chunk.length; at += 1) {
      const byte = chunk[at]!;
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false;
        else if (byte === BACKSLASH) this.#escaped = true;
        else if (byte === QUOTE) {
          this.#inString = false;
          if (this.#depth === 0) return this.#closed(at + 1);
        }
      } else if (byte === QUOTE) {
        if (this.#scalar) return this.#closed(at);
        this.#inString = true;
      } else if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
        if (this.#scalar) return this.#closed(at);
        this.#depth += 1;
      } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
        if (this.#depth === 0) return this.#closed(at);
        this.#depth -= 1;
        if (this.#depth === 0) return this.#closed(at + 1);
      } else if (this.#depth === 0) {
        if (byte === COMMA || byte === COLON || isJsonSpace(byte)) return this.#closed(at);
        this.#scalar = true;
      }
    }
    return chunk.length;
  }

  #closed(end: number): number {
    this.#open = false;
    return end;
  }

  #valueRead(bytes: Buffer): Piece | undefined {
    switch (this.#place) {
      case 'in key':
        this.#key = keyOf(bytes);
        if (this.#keys.has(this.#key)) throw invalidField(this.#key, 'occurs twice');
        this.#keys.add(this.#key);
        this.#place = 'colon';
        return undefined;
      case 'in item':
        this.#place = 'after item';
        return { kind: 'item', index: this.#items++, bytes };
      default:
        this.#place = 'after value';
        return { kind: 'member', key: this.#key, bytes };
    }
  }

  #checkSize(bytes: number): void {
    const { itemBytes, memberBytes, nameItem } = this.#limits;
    const isItem = this.#place === 'in item';
    const most = isItem ? itemBytes : memberBytes;
    if (this.#partBytes + bytes <= most) return;
    const what = isItem ? nameItem(this.#items) : this.#place === 'in key' ? 'the name of a member' : this.#key;
    throw new GatewayError('payload_too_large', `${what} is larger than ${most} bytes`, { path: what });
  }

  #keep(part: Buffer): void {
    // A copy, so that a short part does not keep the memory of its whole chunk.
    this.#parts.push(Buffer.from(part));
    this.#partBytes += part.length;
  }

  #take(last: Buffer): Buffer {
    if (this.#parts.length === 0) return last;
    const bytes = Buffer.concat([...this.#parts, last]);
    this.#parts = [];
    this.#partBytes = 0;
    return bytes;
  }

  #malformed(at: number): GatewayError {
    return invalidField('', `is not valid JSON: unexpected character at byte ${this.#before + at}`);
  }
}

function beginsValue(byte: number): boolean {
  return byte !== COMMA && byte !== COLON && byte !== CLOSE_BRACE && byte !== CLOSE_BRACKET;
}

function keyOf(quoted: Buffer): string {
  try {
    return JSON.parse(quoted.toString('utf8')) as string;
  } catch {
    throw invalidField('', 'has a member whose name is not valid JSON');
  }
}
