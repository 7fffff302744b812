/**
 * Byte text: a string in which each character is one byte of UTF-8, as Node's encoding `latin1` reads them. V8 keeps it in one
 * byte per character, so what only passes through costs the same in every language: a single character outside Latin-1
 * makes a whole text, and every piece cut from it, twice as large and slower to parse, join and write. The structure of
 * JSON and of event streams is ASCII, the same in both. A text that the gateway itself reads is decoded first (`readable`).
 *
 * Half of a surrogate pair, which JSON can write as an escape, has no bytes in UTF-8 and stays as it is.
 */
import { isUtf8 } from 'node:buffer';
import { parseJson } from './json.ts';

/** How texts that are passed on stand for bytes: as text, or as byte text. */
export type TextEncoding = 'utf8' | 'latin1';

const NOT_ASCII = /[\u0080-\uffff]/;
/** V8 knows of a string of one byte per character that it has none, without a search. */
const NOT_A_BYTE = /[\u0100-\uffff]/;

/** The byte text of a text. */
export function byteText(text: string): string {
  if (!NOT_ASCII.test(text)) return text;
  return text.isWellFormed()
    ? bytesOf(text)
    : text.replace(/[\u0080-\ud7ff\ue000-\uffff]+|[\ud800-\udbff][\udc00-\udfff]/g, bytesOf);
}

function bytesOf(text: string): string {
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** The text of a byte text. */
export function readable(bytes: string): string {
  if (!NOT_ASCII.test(bytes)) return bytes;
  return NOT_A_BYTE.test(bytes) ? bytes.replace(/[^\u0100-\uffff]+/g, textOf) : textOf(bytes);
}

function textOf(bytes: string): string {
  return Buffer.from(bytes, 'latin1').toString('utf8');
}

/** The text of a byte text that was cut at its end, perhaps inside of a character. */
export function readableStart(bytes: string): string {
  const last = /[\u00c2-\u00f4][\u0080-\u00bf]{0,2}$/.exec(bytes);
  if (last === null) return readable(bytes);
  const lead = bytes.charCodeAt(last.index);
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  return readable(last[0].length < length ? bytes.slice(0, last.index) : bytes);
}

/** Bytes as byte text. Ill-formed ones become U+FFFD, as in every decoder. */
export function byteTextOf(bytes: Buffer): string {
  return isUtf8(bytes) ? bytes.toString('latin1') : bytesOf(bytes.toString('utf8'));
}

/** UTF-16 units of the text. */
export function unitsOf(bytes: string): number {
  let units = 0;
  for (let at = 0; at < bytes.length; at += 1) {
    const code = bytes.charCodeAt(at);
    // A character counts with its first byte, and one of four bytes is a surrogate pair.
    if (code < 0x80 || code > 0xff) units += 1;
    else if (code >= 0xc0) units += code >= 0xf0 ? 2 : 1;
  }
  return units;
}

/** `parseJson` of byte text: all texts in the value are byte text, even those that were written with escapes. */
export function parseByteText(bytes: string, maxDepth?: number): unknown {
  return parseJson(bytes.includes('\\u') ? withoutEscapes(bytes) : bytes, maxDepth);
}

/** An escape; the two of a surrogate pair together. Other escapes match so that none is found inside of them. */
const ESCAPE = /\\(?:u(d[89ab][0-9a-f]{2})\\u(d[c-f][0-9a-f]{2})|u([0-9a-f]{4})|.)/gi;

/** JSON in which characters outside ASCII are bytes instead of escapes. */
function withoutEscapes(json: string): string {
  return json.replace(ESCAPE, (whole: string, high?: string, low?: string, unit?: string) => {
    if (high !== undefined && low !== undefined) {
      return bytesOf(String.fromCharCode(Number.parseInt(high, 16), Number.parseInt(low, 16)));
    }
    const code = unit === undefined ? 0 : Number.parseInt(unit, 16);
    const isHalf = code >= 0xd800 && code <= 0xdfff;
    return code < 0x80 || isHalf ? whole : bytesOf(String.fromCharCode(code));
  });
}

/** What was joined from byte texts: two halves of a surrogate pair may have come to stand side by side. */
export function joinedByteText(bytes: string): string {
  return NOT_A_BYTE.test(bytes) ? bytes.replace(/[\u0100-\uffff]+/g, bytesOf) : bytes;
}

/** A JSON value with byte text for all its texts. */
export function byteTextsIn<Value>(value: Value): Value {
  return changedTexts(value, byteText);
}

/** A JSON value with the texts of all its byte texts, which may have been cut at their ends. */
export function readableIn<Value>(value: Value): Value {
  return changedTexts(value, readableStart);
}

function changedTexts<Value>(value: Value, change: (text: string) => string): Value {
  const json = JSON.stringify(value) as string | undefined;
  return json === undefined || !NOT_ASCII.test(json) ? value : (changed(value, change) as Value);
}

function changed(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item: unknown) => changed(item, change));
  // A number that a double cannot hold (`parseJson`) is an object, too.
  if (Object.getPrototypeOf(value) !== Object.prototype) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [change(key), changed(member, change)]));
}
