/**
 * Reads a large document in steps, so that others get their turn in between. The top level and the elements of its lists are
 * taken apart here and parsed in runs of some kilobytes. That is also cheaper: making one text of a large body costs as
 * much as parsing it. Whatever is not plain valid JSON is left to `readDocument`, which knows what to say about it.
 */

import { isAscii, isUtf8 } from 'node:buffer';
import type { JsonDocument, Member } from './json.ts';
import { countKeys, DEFAULT_MAX_DEPTH, decodedKey, MAX_VALUES, ParsedDocument, readDocument } from './json.ts';
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  isJsonSpace,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './json-characters.ts';
import { createScan, type Scan, scanRun, stringEnd } from './json-scanner.ts';

/** Smaller bodies are not worth it. */
export const LARGE_DOCUMENT_BYTES = 128 * 1024;

interface Sizes {
  /** A step ends after so many bytes. */
  step: number;
  /** How much of the body is made one text; a value that is larger needs a larger one. */
  window: number;
  /** Elements are parsed together up to this size. */
  run: number;
}

/** A step takes about a tenth of a millisecond. */
const SIZES: Sizes = { step: 64 * 1024, window: 64 * 1024, run: 16 * 1024 };

/** Thrown for what `readDocument` has to look at, as parse errors are. */
class NotPlain extends SyntaxError {}

/** Where the character that `offset` is within ends, if the bytes are UTF-8. */
function endOfCharacter(bytes: Buffer, offset: number): number {
  let end = Math.min(offset, bytes.length);
  while (end < bytes.length && end < offset + 3 && (bytes[end]! & 0xc0) === 0x80) end += 1;
  return end;
}

export class DocumentReader {
  readonly #bytes: Buffer;
  readonly #maxDepth: number;
  readonly #sizes: Sizes;
  readonly #members: Member[] = [];
  readonly #structure: Record<string, unknown> = {};
  #ascii = true;
  #longNumber = false;
  #values = 0;
  /** The decoded part of the body, its offset in the body, and the offset of the next character to read. */
  #text = '';
  #base = 0;
  #at = 0;
  /** The list whose elements are being read. */
  #list: unknown[] | undefined;
  #started = false;
  #ended = false;
  #scan: Scan = createScan();

  constructor(bytes: Buffer, limits: { maxDepth?: number } = {}, sizes = SIZES) {
    this.#bytes = bytes;
    this.#maxDepth = limits.maxDepth ?? DEFAULT_MAX_DEPTH;
    this.#sizes = sizes;
  }

  /** Reads on. Returns the document once it is complete. Throws as `readDocument`. */
  step(): JsonDocument | undefined {
    const until = this.#at + this.#sizes.step;
    try {
      if (!this.#started) this.#begin();
      while (!this.#ended && this.#at < until) {
        if (this.#list === undefined) this.#member();
        else this.#elements(this.#list);
      }
    } catch (error) {
      if (error instanceof SyntaxError) return readDocument(this.#bytes, { maxDepth: this.#maxDepth });
      throw error;
    }
    if (!this.#ended) return undefined;
    return new ParsedDocument(this.#bytes, this.#members, this.#structure, this.#ascii, this.#longNumber);
  }

  #begin(): void {
    this.#started = true;
    // Lists are the second level.
    if (this.#maxDepth < 2) throw new NotPlain();
    this.#take(OPEN_BRACE);
    if (this.#next() === CLOSE_BRACE) this.#end();
  }

  #member(): void {
    if (this.#next() !== QUOTE) throw new NotPlain();
    const keyStart = this.#at;
    const key = this.#key();
    this.#take(COLON);
    const first = this.#next();
    const member: Member = { key, keyStart, valueStart: this.#at, valueEnd: this.#at };
    this.#members.push(member);
    if (first === OPEN_BRACKET) {
      this.#at += 1;
      this.#list = [];
      this.#structure[key] = this.#list;
      return;
    }
    const run = this.#run(0, this.#maxDepth - 1).trimEnd();
    const value: unknown = JSON.parse(run);
    this.#check([value]);
    this.#structure[key] = value;
    member.valueEnd = member.valueStart + run.length;
    this.#endMember();
  }

  #key(): string {
    let end = stringEnd(this.#text, this.#at + 1 - this.#base);
    while (end >= this.#text.length) {
      this.#widen();
      end = stringEnd(this.#text, 1);
    }
    const quoted = this.#text.slice(this.#at - this.#base, end);
    const key = JSON.parse(quoted) as string;
    if (key.length !== quoted.length - 2 || key === '__proto__' || Object.hasOwn(this.#structure, key))
      throw new NotPlain();
    this.#at = this.#base + end;
    return key;
  }

  #elements(list: unknown[]): void {
    const run = this.#run(this.#sizes.run, this.#maxDepth - 2);
    const values = JSON.parse(`[${run}]`) as unknown[];
    this.#check(values);
    const goesOn = this.#text.charCodeAt(this.#at - this.#base) === COMMA;
    // A comma must separate two elements.
    if (values.length === 0 && (goesOn || list.length > 0)) throw new NotPlain();
    for (const value of values) list.push(value);
    if (goesOn) {
      this.#count(1);
      this.#at += 1;
      return;
    }
    this.#take(CLOSE_BRACKET);
    this.#members.at(-1)!.valueEnd = this.#at;
    this.#list = undefined;
    this.#endMember();
  }

  /** The text up to the comma or bracket that ends a value, or the elements of at least `size`. */
  #run(size: number, maxDepth: number): string {
    for (;;) {
      const from = this.#at - this.#base;
      const scan = createScan();
      const end = scanRun(this.#text, from, size, maxDepth, scan);
      if (scan.tooDeep || scan.prototypeKey) throw new NotPlain();
      if (end === -1) {
        this.#widen();
        continue;
      }
      this.#scan = scan;
      this.#count(scan.values);
      this.#longNumber ||= scan.longNumber;
      this.#at = this.#base + end;
      return this.#text.slice(from, end);
    }
  }

  /** Two spellings of one key are one key after parsing, so the counts reveal duplicates at any depth. */
  #check(values: unknown[]): void {
    if (countKeys(values, this.#scan.escapedKey) !== this.#scan.keys) throw new NotPlain();
  }

  #count(values: number): void {
    this.#values += values;
    if (this.#values > MAX_VALUES) throw new NotPlain();
  }

  #endMember(): void {
    const code = this.#next();
    if (code === CLOSE_BRACE) this.#end();
    else {
      this.#take(COMMA);
      this.#count(1);
    }
  }

  #end(): void {
    for (let at = this.#at + 1; at < this.#bytes.length; at += 1) {
      if (!isJsonSpace(this.#bytes[at]!)) throw new NotPlain();
    }
    if (!this.#ascii) {
      for (const member of this.#members) member.key = decodedKey(member.key);
    }
    this.#text = '';
    this.#ended = true;
  }

  #take(code: number): void {
    if (this.#next() !== code) throw new NotPlain();
    this.#at += 1;
  }

  /** The next character that is no white space; `#at` is then its offset. */
  #next(): number {
    for (;;) {
      if (this.#at - this.#base >= this.#text.length) this.#widen();
      const code = this.#text.charCodeAt(this.#at - this.#base);
      if (!isJsonSpace(code)) return code;
      this.#at += 1;
    }
  }

  /** Makes the text begin at what is read next, and longer if it did already. */
  #widen(): void {
    const { window } = this.#sizes;
    if (this.#base + this.#text.length >= this.#bytes.length) throw new NotPlain();
    const length = this.#at === this.#base ? Math.max(window, 2 * this.#text.length) : window;
    this.#base = this.#at;
    const end = endOfCharacter(this.#bytes, this.#base + length);
    const bytes = this.#bytes.subarray(this.#base, end);
    if (!isAscii(bytes)) {
      if (!isUtf8(bytes)) throw new NotPlain();
      this.#ascii = false;
    }
    this.#text = bytes.toString('latin1');
  }
}
