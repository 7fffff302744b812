/** Text inside files that a body carries as base64 or as a data URL (RFC 2397). */
import { isUtf8 } from 'node:buffer';

/** Encoding of a text, for decoding and for writing it back. */
type Encoding = 'utf8' | 'utf16le' | 'utf16be';

interface AttachedText {
  readonly text: string;
  /** Returns the same kind of file with another text, in base64. */
  encode(text: string): string;
}

const SAMPLE = 1_024;
const TEXTUAL = /^(?:text\/|application\/(?:[\w.+-]*(?:json|xml|yaml|javascript|sql|csv|toml|x-sh)|rtf))/i;
const UNTOLD = /^(?:application\/octet-stream\b|[;\s]|$)/i;
/** PDFs are documents, although some of their bytes are ASCII. */
const DOCUMENT = '%PDF-';
/** Minimum shares of bytes for content of unknown type to count as text. */
const LEAST_PRINTABLE = 0.7;
const LEAST_ZEROS = 0.2;

/**
 * @param data base64, with any line breaks and padding
 * @param kind media type, or '' if unknown
 * @returns undefined for media
 */
export function attachedText(data: string, kind: string): AttachedText | undefined {
  // Media are recognized by their first bytes.
  if (encodingOf(bytesOf(data.slice(0, SAMPLE)), kind, true) === undefined) return undefined;
  const bytes = bytesOf(data);
  const encoding = encodingOf(bytes, kind, false);
  if (encoding === undefined) return undefined;
  return {
    text: encoding === 'utf8' ? bytes.toString('utf8') : swapped(bytes, encoding).toString('utf16le'),
    encode: (text) =>
      (encoding === 'utf8' ? Buffer.from(text) : swapped(Buffer.from(text, 'utf16le'), encoding)).toString('base64'),
  };
}

/** Decodes concatenated base64 pieces, each of which may have its own padding. */
function bytesOf(data: string): Buffer {
  const pieces = data.split(/=+/);
  if (pieces.length <= 2) return Buffer.from(pieces[0]!, 'base64');
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64')));
}

/** @param cut the bytes may end inside a character */
function encodingOf(bytes: Buffer, kind: string, cut: boolean): Encoding | undefined {
  if (bytes.length >= 2 && bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf16le';
  if (bytes.length >= 2 && bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf16be';
  const textual = TEXTUAL.test(kind);
  if (!textual && bytes.toString('latin1', 0, DOCUMENT.length) === DOCUMENT) return undefined;
  const part = cut ? withoutHalf(bytes) : bytes;
  const zeros = part.includes(0);
  if (!zeros && isUtf8(part)) return 'utf8';
  if (!textual && !UNTOLD.test(kind)) return undefined;
  const { even, odd, printable } = shares(part.subarray(0, SAMPLE));
  if (odd > LEAST_ZEROS && even < odd) return 'utf16le';
  if (even > LEAST_ZEROS && odd < even) return 'utf16be';
  // Invalid UTF-8 sequences decode to replacement characters.
  return textual || printable >= LEAST_PRINTABLE ? 'utf8' : undefined;
}

function withoutHalf(bytes: Buffer): Buffer {
  let end = bytes.length;
  while (end > 0 && end > bytes.length - 4 && (bytes[end - 1]! & 0x80) !== 0) end -= 1;
  return bytes.subarray(0, end);
}

/** Shares of zeros at even and odd offsets, and of printable bytes. */
function shares(bytes: Buffer): { even: number; odd: number; printable: number } {
  const zeros = [0, 0];
  let printable = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at]!;
    if (byte === 0) zeros[at % 2]! += 1;
    else if ((byte >= 0x20 && byte < 0x7f) || (byte >= 9 && byte <= 13)) printable += 1;
  }
  const length = Math.max(1, bytes.length);
  return { even: (2 * zeros[0]!) / length, odd: (2 * zeros[1]!) / length, printable: printable / length };
}

function swapped(bytes: Buffer, encoding: Encoding): Buffer {
  if (encoding !== 'utf16be') return bytes;
  return Buffer.from(bytes.subarray(0, bytes.length - (bytes.length % 2))).swap16();
}

const DATA_URL = /^data:/i;
const BASE64_HEAD = /;\s*base64\s*,$/i;
const LONGEST_HEAD = 200;

export interface DataUrl {
  /** `data:text/plain;base64,` */
  readonly head: string;
  readonly kind: string;
  readonly data: string;
  readonly base64: boolean;
}

export function dataUrlOf(text: string): DataUrl | undefined {
  if (!DATA_URL.test(text)) return undefined;
  const comma = text.indexOf(',');
  if (comma === -1 || comma > LONGEST_HEAD) return undefined;
  const head = text.slice(0, comma + 1);
  const kind = head.slice('data:'.length, -1);
  return { head, kind, data: text.slice(comma + 1), base64: BASE64_HEAD.test(head) };
}
