/**
 * Reads server-sent events by the line rules of the WHATWG HTML standard ("Interpreting an event stream"). Knows
 * nothing of the events' meaning. The work is linear in the bytes whatever the chunks are, and whole lines within a
 * chunk are decoded in place.
 */

import { isUtf8 } from 'node:buffer';
import { byteTextOf } from '../base/byte-text.ts';

const LINE_FEED = 10;
const CARRIAGE_RETURN = 13;
const SPACE = 32;
const COLON = 58;

/** Default limit of one event: tool arguments and images arrive in single events. */
const DEFAULT_EVENT_LIMIT_BYTES = 32 * 1024 * 1024;

/** How much of lines that are not event stream fields is kept for error messages. */
const STRAY_LIMIT_BYTES = 64 * 1024;

/** A carry buffer above this size is released after the line that needed it. */
const CARRY_KEPT_BYTES = 64 * 1024;

/** One event. `name` is '' if the stream gives none (a browser would say `message`); `data` joins its lines by LF. */
export type EventHandler = (name: string, data: string) => void;

/** The stream ended inside this event. */
export interface UnfinishedEvent {
  name: string;
  data: string;
  /** True if the last line was complete and only the blank line is missing. */
  lineEnded: boolean;
}

/** One event, or one line, exceeds the reader's limit. The reader has stopped. */
export class EventTooLargeError extends Error {
  constructor(limitBytes: number) {
    super(`an event of the stream is larger than ${limitBytes} bytes`);
    this.name = 'EventTooLargeError';
  }
}

/**
 * Reads an event stream from chunks that are cut anywhere. `id` and `retry` are ignored, since nothing here reconnects;
 * comments are skipped; a byte order mark at the very start is dropped. Each line is decoded as UTF-8 when it is
 * complete, so a character cut by a chunk stays whole; ill-formed bytes become U+FFFD, one for each maximal ill-formed
 * part, and never swallow a line end.
 *
 * The handler is called within `push`. A handler that throws leaves the rest of that chunk unread: do not push again.
 */
export class EventReader {
  readonly #handler: EventHandler;
  readonly #limitBytes: number;
  #stopped = false;
  /** Nothing has been read yet, so a byte order mark may follow. */
  #atStart = true;
  /** The last chunk ended in CR: a LF at the start of the next one belongs to it. */
  #afterCarriageReturn = false;
  /** The beginning of a line whose end has not arrived. */
  #carry: Buffer | undefined;
  #carryBytes = 0;
  #name = '';
  #data = '';
  #hasData = false;
  /** Bytes of the current event's data lines. */
  #eventBytes = 0;
  #stray = '';
  readonly #asBytes: boolean;
  /** The bytes that are read are known to be well-formed UTF-8. */
  #wellFormed = false;

  /** @param asBytes names and data of events as byte text (`base/byte-text.ts`) */
  constructor(handler: EventHandler, limitBytes: number = DEFAULT_EVENT_LIMIT_BYTES, asBytes = false) {
    this.#handler = handler;
    this.#limitBytes = limitBytes;
    this.#asBytes = asBytes;
  }

  /**
   * Calls the handler for every event that this chunk completes. Keeps no reference to the chunk. Throws
   * EventTooLargeError.
   */
  push(chunk: Buffer): void {
    const length = chunk.length;
    if (this.#stopped || length === 0) return;
    if (this.#asBytes) this.#wellFormed = isUtf8(chunk);
    let start = 0;
    if (this.#afterCarriageReturn) {
      this.#afterCarriageReturn = false;
      if (chunk[0] === LINE_FEED) start = 1;
    }
    // Each search starts where the last one of its kind ended, so no byte is inspected more than twice.
    let lineFeed = find(chunk, LINE_FEED, start);
    let carriageReturn = find(chunk, CARRIAGE_RETURN, start);
    while (start < length) {
      if (lineFeed < carriageReturn) {
        this.#line(chunk, start, lineFeed);
        start = lineFeed + 1;
        lineFeed = find(chunk, LINE_FEED, start);
      } else if (carriageReturn < length) {
        this.#line(chunk, start, carriageReturn);
        start = carriageReturn + 1;
        if (start === length) this.#afterCarriageReturn = true;
        else if (chunk[start] === LINE_FEED) start++;
        carriageReturn = find(chunk, CARRIAGE_RETURN, start);
        if (lineFeed < start) lineFeed = find(chunk, LINE_FEED, start);
      } else {
        this.#keep(chunk, start, length);
        return;
      }
      if (this.#stopped) return;
    }
  }

  /**
   * Ends the input. Returns the event that no blank line ended, which the standard drops but some upstreams rely on;
   * null if there is none or the reader was stopped. Calls no handler.
   */
  end(): UnfinishedEvent | null {
    if (this.#stopped) return null;
    const lineEnded = this.#carryBytes === 0;
    if (!lineEnded) this.#takeCarry();
    this.#stopped = true;
    if (!this.#hasData) return null;
    return { name: this.#name, data: this.#data, lineEnded };
  }

  /** Stops the reader: no further event is reported, not even from the current chunk. May be called by the handler. */
  stop(): void {
    this.#stopped = true;
    this.#carry = undefined;
    this.#carryBytes = 0;
  }

  /**
   * Lines that are not event stream fields, up to 64 KiB. The standard would skip them silently, but some upstreams put
   * a bare JSON error object or an HTML page into a stream.
   */
  get stray(): string {
    return this.#stray;
  }

  #line(chunk: Buffer, start: number, end: number): void {
    if (this.#carryBytes > 0) {
      this.#keep(chunk, start, end);
      this.#takeCarry();
    } else {
      this.#field(chunk, start, end);
    }
  }

  #takeCarry(): void {
    const carry = this.#carry!;
    const length = this.#carryBytes;
    this.#carryBytes = 0;
    if (carry.length > CARRY_KEPT_BYTES) this.#carry = undefined;
    const wellFormed = this.#wellFormed;
    this.#wellFormed = false;
    this.#field(carry, 0, length);
    this.#wellFormed = wellFormed;
  }

  /** Appends to the carry, which doubles when it is full: copying stays linear even for one byte at a time. */
  #keep(chunk: Buffer, start: number, end: number): void {
    const needed = this.#carryBytes + end - start;
    if (this.#eventBytes + needed > this.#limitBytes) this.#refuse();
    if (this.#carry === undefined || this.#carry.length < needed) {
      const larger = Buffer.allocUnsafeSlow(Math.max(1024, 2 ** Math.ceil(Math.log2(needed))));
      this.#carry?.copy(larger, 0, 0, this.#carryBytes);
      this.#carry = larger;
    }
    chunk.copy(this.#carry, this.#carryBytes, start, end);
    this.#carryBytes = needed;
  }

  #field(bytes: Buffer, from: number, end: number): void {
    let start = from;
    if (this.#atStart) {
      this.#atStart = false;
      if (end - start >= 3 && bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf)
        start += 3;
    }
    if (start === end) {
      this.#dispatch();
    } else if (isField(bytes, start, end, 0x64, 0x61, 0x74, 0x61)) {
      this.#appendData(bytes, valueStart(bytes, start + 4, end), end);
    } else if (bytes[start] === 0x65 && isField(bytes, start + 1, end, 0x76, 0x65, 0x6e, 0x74)) {
      this.#name = this.#text(bytes, valueStart(bytes, start + 5, end), end);
    } else if (bytes[start] !== COLON) {
      this.#skip(bytes, start, end);
    }
  }

  #appendData(bytes: Buffer, start: number, end: number): void {
    // Counts the line feed that joins the lines too, so empty lines cannot grow an event beyond the limit.
    this.#eventBytes += end - start + 1;
    if (this.#eventBytes > this.#limitBytes) this.#refuse();
    const text = this.#text(bytes, start, end);
    this.#data = this.#hasData ? `${this.#data}\n${text}` : text;
    this.#hasData = true;
  }

  #text(bytes: Buffer, start: number, end: number): string {
    if (!this.#asBytes) return bytes.toString('utf8', start, end);
    return this.#wellFormed ? bytes.toString('latin1', start, end) : byteTextOf(bytes.subarray(start, end));
  }

  #dispatch(): void {
    const name = this.#name;
    const data = this.#data;
    const hasData = this.#hasData;
    this.#name = '';
    this.#data = '';
    this.#hasData = false;
    this.#eventBytes = 0;
    if (hasData) this.#handler(name, data);
  }

  #skip(bytes: Buffer, start: number, end: number): void {
    const isId = start + 2 <= end && bytes[start] === 0x69 && bytes[start + 1] === 0x64;
    if (isId && (start + 2 === end || bytes[start + 2] === COLON)) return;
    if (bytes[start] === 0x72 && isField(bytes, start + 1, end, 0x65, 0x74, 0x72, 0x79)) return;
    const room = STRAY_LIMIT_BYTES - this.#stray.length;
    if (room <= 0) return;
    const text = bytes.toString('utf8', start, Math.min(end, start + room));
    this.#stray = this.#stray === '' ? text : `${this.#stray}\n${text}`;
  }

  #refuse(): never {
    this.stop();
    throw new EventTooLargeError(this.#limitBytes);
  }
}

/** Position of the byte, or the chunk's length if it is absent. */
function find(chunk: Buffer, byte: number, from: number): number {
  const at = chunk.indexOf(byte, from);
  return at === -1 ? chunk.length : at;
}

/** Whether the four bytes are at `start`, followed by a colon or the end of the line. */
// biome-ignore lint/complexity/useMaxParams: it runs for each line of a stream, and an array of bytes would be slower.
function isField(bytes: Buffer, start: number, end: number, a: number, b: number, c: number, d: number): boolean {
  return (
    bytes[start] === a &&
    bytes[start + 1] === b &&
    bytes[start + 2] === c &&
    bytes[start + 3] === d &&
    (end === start + 4 || (end > start + 4 && bytes[start + 4] === COLON))
  );
}

/** The start of the value: after the colon at `colon` (if the line is that long) and one space. */
function valueStart(bytes: Buffer, colon: number, end: number): number {
  if (colon >= end) return end;
  return colon + 1 < end && bytes[colon + 1] === SPACE ? colon + 2 : colon + 1;
}
