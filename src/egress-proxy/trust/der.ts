/** The part of DER (X.690) that a certificate needs. */

const SEQUENCE = 0x30;
const SET = 0x31;

/** An element: tag, length, content. */
export function element(tag: number, ...content: readonly Buffer[]): Buffer {
  const body = Buffer.concat(content);
  if (body.length < 0x80) return Buffer.concat([Buffer.from([tag, body.length]), body]);
  const digits = body.length.toString(16);
  const length = Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
  return Buffer.concat([Buffer.from([tag, 0x80 | length.length]), length, body]);
}

export function sequence(...content: readonly Buffer[]): Buffer {
  return element(SEQUENCE, ...content);
}

export function set(...content: readonly Buffer[]): Buffer {
  return element(SET, ...content);
}

/** @param hex the encoded numbers of the identifier */
export function objectId(hex: string): Buffer {
  return element(0x06, Buffer.from(hex, 'hex'));
}

/** @param bytes big-endian, the first bit zero */
export function integer(bytes: Buffer): Buffer {
  return element(0x02, bytes);
}

export function boolean(value: boolean): Buffer {
  return element(0x01, Buffer.from([value ? 0xff : 0]));
}

export function octets(content: Buffer): Buffer {
  return element(0x04, content);
}

/** @param unused how many of its last bits do not count */
export function bits(content: Buffer, unused = 0): Buffer {
  return element(0x03, Buffer.from([unused]), content);
}

export function text(value: string): Buffer {
  return element(0x0c, Buffer.from(value));
}

/** In seconds; years until 2049 have two digits (RFC 5280, 4.1.2.5). */
export function time(atMs: number): Buffer {
  const digits = new Date(atMs).toISOString().replace(/\.\d+|[-:T]/g, '');
  return digits < '2050' ? element(0x17, Buffer.from(digits.slice(2))) : element(0x18, Buffer.from(digits));
}

/** An element that another one contains, with its head. `end`: where the next one begins. */
export function elementAt(der: Buffer, at: number): { content: number; end: number } {
  const first = der[at + 1] ?? 0;
  const wide = first < 0x80 ? 0 : first & 0x7f;
  const content = at + 2 + wide;
  const length = wide === 0 ? first : der.readUIntBE(at + 2, wide);
  if (content + length > der.length) throw new RangeError('the DER text is cut');
  return { content, end: content + length };
}
