/** Writes Protocol Buffers messages into one growing buffer. */

const VARINT = 0;
const FIXED64 = 1;
const DELIMITED = 2;
const TWO_32 = 2 ** 32;
const NANOSECONDS = 1e6;
const FIRST_BYTES = 16 * 1024;
/** The value of a digit by its character code. */
const DIGITS = new Uint8Array(128);
for (const [value, digit] of [...'0123456789abcdef'].entries()) DIGITS[digit.charCodeAt(0)] = value;
/** Below it, a loop over the characters is faster than a call into the runtime. */
const SHORT = 32;

export class MessageWriter {
  #bytes: Buffer;
  #at = 0;

  /** @param bytes the initial size of the buffer, which grows */
  constructor(bytes = FIRST_BYTES) {
    this.#bytes = Buffer.allocUnsafe(bytes);
  }

  get size(): number {
    return this.#at;
  }

  /** What has been written so far; the writer begins again. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#at);
    this.#bytes = Buffer.allocUnsafe(this.#bytes.length);
    this.#at = 0;
    return taken;
  }

  /** Begins a message that is a member. @returns what `close` needs */
  open(field: number): number {
    this.#room(8);
    this.#tag(field, DELIMITED);
    // One byte for the length, which most messages need.
    this.#at += 1;
    return this.#at;
  }

  /** Ends the message whose content begins at `start`. */
  close(start: number): void {
    const length = this.#at - start;
    const more = lengthOf(length) - 1;
    if (more > 0) {
      this.#room(more);
      this.#bytes.copyWithin(start + more, start, this.#at);
    }
    this.#at = start - 1;
    this.#varint(length);
    this.#at += length;
  }

  text(field: number, value: string): void {
    const { length } = value;
    this.#room(16 + length * 3);
    this.#tag(field, DELIMITED);
    if (length < SHORT && this.#shortText(value)) return;
    const bytes = Buffer.byteLength(value);
    this.#varint(bytes);
    this.#bytes.write(value, this.#at, 'utf8');
    this.#at += bytes;
  }

  /** False, with nothing written, if the text is not ASCII. */
  #shortText(value: string): boolean {
    const bytes = this.#bytes;
    const start = this.#at + 1;
    for (let index = 0; index < value.length; index += 1) {
      const code = value.charCodeAt(index);
      if (code > 0x7f) return false;
      bytes[start + index] = code;
    }
    bytes[start - 1] = value.length;
    this.#at = start + value.length;
    return true;
  }

  /**
   * A message of an encoded member and of a message whose only member is a short text of ASCII. False, with nothing written, for
   * any other text.
   */
  shortPair(field: number, first: Buffer, second: number, inner: number, value: string): boolean {
    const { length } = value;
    const all = first.length + 4 + length;
    if (all > 0x7f) return false;
    this.#room(8 + all);
    const start = this.#at;
    const bytes = this.#bytes;
    this.#tag(field, DELIMITED);
    bytes[this.#at] = all;
    const from = this.#at + 1;
    for (let index = 0; index < first.length; index += 1) bytes[from + index] = first[index]!;
    this.#at = from + first.length;
    this.#tag(second, DELIMITED);
    bytes[this.#at] = 2 + length;
    this.#at += 1;
    this.#tag(inner, DELIMITED);
    if (this.#shortText(value)) return true;
    this.#at = start;
    return false;
  }

  /** Bytes, given as lower-case hexadecimal digits. Of few digits, which a loop reads faster than the runtime. */
  digits(field: number, value: string): void {
    this.#room(16 + value.length);
    this.#tag(field, DELIMITED);
    this.#varint(value.length / 2);
    const bytes = this.#bytes;
    for (let index = 0; index < value.length; index += 2) {
      bytes[this.#at++] = (DIGITS[value.charCodeAt(index)]! << 4) | DIGITS[value.charCodeAt(index + 1)]!;
    }
  }

  /** A safe integer, as int64. */
  integer(field: number, value: number): void {
    this.#room(16);
    this.#tag(field, VARINT);
    if (value >= 0) this.#varint(value);
    else this.#negative(value);
  }

  double(field: number, value: number): void {
    this.#room(16);
    this.#tag(field, FIXED64);
    this.#at = this.#bytes.writeDoubleLE(value, this.#at);
  }

  /** @param ms since 1970. Exact to 256 ns, which is the precision of the sum as a double. */
  nanoseconds(field: number, ms: number): void {
    this.#room(16);
    this.#tag(field, FIXED64);
    const value = Math.max(0, ms * NANOSECONDS);
    this.#at = this.#bytes.writeUInt32LE(value % TWO_32, this.#at);
    this.#at = this.#bytes.writeUInt32LE(Math.floor(value / TWO_32), this.#at);
  }

  /** Encoded members. */
  raw(members: Buffer): void {
    this.#room(members.length);
    this.#bytes.set(members, this.#at);
    this.#at += members.length;
  }

  #tag(field: number, type: number): void {
    this.#varint(field * 8 + type);
  }

  #varint(value: number): void {
    let rest = value;
    while (rest > 0x7f) {
      this.#bytes[this.#at++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.#bytes[this.#at++] = rest;
  }

  /** In two's complement, ten bytes. */
  #negative(value: number): void {
    let rest = BigInt.asUintN(64, BigInt(value));
    while (rest > 0x7fn) {
      this.#bytes[this.#at++] = Number(rest & 0x7fn) | 0x80;
      rest >>= 7n;
    }
    this.#bytes[this.#at++] = Number(rest);
  }

  #room(bytes: number): void {
    if (this.#at + bytes <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(this.#bytes.length * 2, this.#at + bytes));
    grown.set(this.#bytes.subarray(0, this.#at));
    this.#bytes = grown;
  }
}

/** Bytes of a varint. */
function lengthOf(value: number): number {
  let bytes = 1;
  for (let rest = value; rest > 0x7f; rest = Math.floor(rest / 0x80)) bytes += 1;
  return bytes;
}
