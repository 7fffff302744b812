/**
 * JSON as bytes and as values. `readDocument` takes a request body apart without copying it, `scanMembers` a text (upstream
 * replies and events); `parseJson` and `stringifyJson` keep number literals that a double cannot hold. `json-edits.ts`
 * changes members.
 */
import { isAscii, isUtf8 } from 'node:buffer';
import { GatewayError, invalidField } from './errors.ts';
import { findFault } from './json-fault.ts';
import { scanObject } from './json-scanner.ts';

/** One top-level member of a JSON object, as byte offsets into its document (or character offsets into its text). */
export interface Member {
  key: string;
  /** Offset of the key's opening quote. */
  keyStart: number;
  /** First and one-past-last byte of the value. */
  valueStart: number;
  valueEnd: number;
}

/**
 * A JSON object that arrived as bytes, in three views of one content. All are of the same shape: no key twice, no
 * `__proto__`, bounded depth. Pick the cheapest that is true enough; none may be changed.
 */
export interface JsonDocument {
  readonly bytes: Buffer;
  readonly members: readonly Member[];
  /** All bytes are ASCII, so `structure` is `value`. */
  readonly ascii: boolean;
  /**
   * Made by the parse itself. Structure, ASCII keys and strings, numbers and booleans are exact; other strings may be
   * the Latin-1 reading of their UTF-8 bytes: never shorter than the true string, equal only to itself.
   */
  readonly structure: Record<string, unknown>;
  /** The result of JSON.parse. The same object as `structure` if the body is ASCII; otherwise decoded on first use. */
  readonly value: Record<string, unknown>;
  /**
   * `value`, with number literals that a double cannot hold as raw JSON (`JSON.rawJSON`), so that tool inputs and schemas
   * keep 2^53+1. The same object as `value` if there are none. Serialize it with `stringifyJson`.
   */
  readonly exact: Record<string, unknown>;
  /** The true value of one top-level member, without decoding the rest; undefined when absent. */
  member(key: string): unknown;
}

/** Maximum number of values in one body. No conversation has as many, and parsing more would block other requests. */
export const MAX_VALUES = 250_000;

/** Default maximum nesting; the document itself is level 1. */
export const DEFAULT_MAX_DEPTH = 128;

/**
 * Reads a body that must be one JSON object in UTF-8. Throws GatewayError 400 (`invalid_request`) for anything else, and
 * for duplicate keys, `__proto__`, escaped top-level keys, half surrogate pairs, nesting beyond `maxDepth` and more than
 * MAX_VALUES values, with the path or the byte offset. Time and memory are linear in the length, whatever the bytes.
 */
export function readDocument(bytes: Buffer, limits: { maxDepth?: number } = {}): JsonDocument {
  const maxDepth = limits.maxDepth ?? DEFAULT_MAX_DEPTH;
  const ascii = isAscii(bytes);
  if (!ascii) checkEncoding(bytes);
  const text = bytes.toString('latin1');
  const scan = scanObject(text, maxDepth, MAX_VALUES);
  if (scan.tooMany) {
    throw new GatewayError('invalid_request', `the body has more than ${MAX_VALUES} values`, { path: '' });
  }
  if (scan.tooDeep || scan.prototypeKey || scan.escapedMember) throw refusal(text, maxDepth);
  let structure: unknown;
  try {
    structure = JSON.parse(text);
  } catch (error) {
    throw refusal(text, maxDepth, error);
  }
  if (!isObject(structure)) throw refusal(text, maxDepth);
  // Two spellings of one key are one key after parsing, so the counts reveal duplicates at any depth.
  if (countKeys(structure, scan.escapedKey) !== scan.keys) throw refusal(text, maxDepth);
  if (!ascii) for (const member of scan.members) member.key = decodedKey(member.key);
  return new ParsedDocument(bytes, scan.members, structure, ascii, scan.longNumber);
}

/**
 * The top-level members of a JSON object held as text (from `from` on), in order; for a duplicate key the last one
 * counts, as in JSON.parse. The text must be a valid JSON object; otherwise the result is meaningless.
 */
export { scanMembers } from './json-scanner.ts';

const EXPONENT = /\d[eE][+-]?\d/;

/** More digits than a double holds exactly, or an exponent; matches inside strings too, which only costs time. */
function mayHaveLongNumber(text: string): boolean {
  return EXPONENT.test(text) || hasLongRun(text);
}

/** Any decimal of fewer digits survives a double. */
const LONG_RUN = 16;

/** Whether so many digits and points occur in a row: every such run includes one of the sampled offsets. */
function hasLongRun(text: string): boolean {
  for (let at = LONG_RUN - 1; at < text.length; at += LONG_RUN) {
    if (!isDigitOrPoint(text, at)) continue;
    let start = at;
    while (start > 0 && isDigitOrPoint(text, start - 1)) start -= 1;
    let end = at + 1;
    while (end - start < LONG_RUN && end < text.length && isDigitOrPoint(text, end)) end += 1;
    if (end - start >= LONG_RUN) return true;
  }
  return false;
}

function isDigitOrPoint(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return (code >= 0x30 && code <= 0x39) || code === 0x2e;
}

/**
 * JSON.parse, except that number literals which a double cannot hold become raw JSON, which `stringifyJson` writes
 * unchanged. Throws SyntaxError for invalid text and for nesting deeper than `maxDepth`.
 */
export function parseJson(text: string, maxDepth: number = DEFAULT_MAX_DEPTH): unknown {
  // A shorter text cannot nest that deep, and most texts have fewer brackets.
  if (text.length > 2 * maxDepth && opensMore(text, maxDepth) && isDeeper(text, maxDepth)) {
    throw new SyntaxError(`nested deeper than ${maxDepth} levels`);
  }
  return mayHaveLongNumber(text) ? JSON.parse(text, keepExactNumber) : JSON.parse(text);
}

/** JSON.stringify, which writes the raw numbers of `parseJson` unchanged. */
export function stringifyJson(value: unknown): string {
  return JSON.stringify(value);
}

export class ParsedDocument implements JsonDocument {
  readonly bytes: Buffer;
  readonly members: readonly Member[];
  readonly structure: Record<string, unknown>;
  readonly ascii: boolean;
  readonly #hasLongNumber: boolean;
  #decoded: Record<string, unknown> | undefined;
  #exactValue: Record<string, unknown> | undefined;

  constructor(
    bytes: Buffer,
    members: readonly Member[],
    structure: Record<string, unknown>,
    ascii: boolean,
    hasLongNumber: boolean,
  ) {
    this.bytes = bytes;
    this.members = members;
    this.structure = structure;
    this.ascii = ascii;
    this.#decoded = ascii ? structure : undefined;
    this.#hasLongNumber = hasLongNumber;
  }

  get value(): Record<string, unknown> {
    this.#decoded ??= JSON.parse(this.bytes.toString('utf8')) as Record<string, unknown>;
    return this.#decoded;
  }

  get exact(): Record<string, unknown> {
    if (!this.#hasLongNumber) return this.value;
    this.#exactValue ??= JSON.parse(this.bytes.toString('utf8'), keepExactNumber) as Record<string, unknown>;
    return this.#exactValue;
  }

  /** The document that has been given further members at its end. */
  extended(bytes: Buffer, added: readonly Member[], values: Readonly<Record<string, unknown>>): ParsedDocument {
    const members = [...this.members, ...added];
    return new ParsedDocument(bytes, members, { ...this.structure, ...values }, this.ascii, this.#hasLongNumber);
  }

  member(key: string): unknown {
    if (this.#decoded) return Object.hasOwn(this.#decoded, key) ? this.#decoded[key] : undefined;
    const found = this.members.find((member) => member.key === key);
    return found && JSON.parse(this.bytes.toString('utf8', found.valueStart, found.valueEnd));
  }
}

function checkEncoding(bytes: Buffer): void {
  if (bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf) {
    throw new GatewayError('invalid_request', 'the body starts with a byte order mark, which JSON must not have');
  }
  if (!isUtf8(bytes)) {
    throw new GatewayError('invalid_request', `the body is not valid UTF-8 at byte ${invalidByte(bytes)}`);
  }
}

/** Offset of the first byte that is not valid UTF-8. */
function invalidByte(bytes: Buffer): number {
  const text = bytes.toString('utf8');
  let offset = 0;
  let from = 0;
  for (;;) {
    const at = text.indexOf('\ufffd', from);
    if (at === -1) return offset;
    offset += Buffer.byteLength(text.slice(from, at));
    const genuine = bytes[offset] === 0xef && bytes[offset + 1] === 0xbf && bytes[offset + 2] === 0xbd;
    if (!genuine) return offset;
    offset += 3;
    from = at + 1;
  }
}

function refusal(text: string, maxDepth: number, cause?: unknown): GatewayError {
  const fault = findFault(text, maxDepth);
  if (fault === undefined) return new GatewayError('invalid_request', 'the body is not valid JSON', { cause });
  if (!fault.syntax) return invalidField(fault.path, fault.problem);
  const { path, problem, offset } = fault;
  const position = `at byte ${offset}${path === '' ? '' : ` (${path})`}`;
  return new GatewayError('invalid_request', `the body is not valid JSON: it ${problem} ${position}`, { path });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * Keys in `value` at any depth; NaN when some string holds half of a surrogate pair (cheap, because
 * strings from a Latin-1 text are wide only if they have escapes). Keys are checked only if one was written with escapes.
 */
export function countKeys(value: object, checksKeys: boolean): number {
  let count = 0;
  if (Array.isArray(value)) {
    for (const item of value as unknown[]) {
      if (typeof item === 'string') {
        if (!item.isWellFormed()) return Number.NaN;
      } else if (typeof item === 'object' && item !== null) count += countKeys(item, checksKeys);
    }
    return count;
  }
  for (const key in value) {
    count += 1;
    if (checksKeys && !key.isWellFormed()) return Number.NaN;
    const item = (value as Record<string, unknown>)[key];
    if (typeof item === 'string') {
      if (!item.isWellFormed()) return Number.NaN;
    } else if (typeof item === 'object' && item !== null) count += countKeys(item, checksKeys);
  }
  return count;
}

/** Whether the text has more than `count` opening braces and brackets, be it within strings. */
function opensMore(text: string, count: number): boolean {
  let left = count;
  for (const mark of '{[') {
    for (let at = text.indexOf(mark); at !== -1; at = text.indexOf(mark, at + 1)) {
      left -= 1;
      if (left < 0) return true;
    }
  }
  return false;
}

function isDeeper(text: string, maxDepth: number): boolean {
  return scanObject(text, maxDepth).tooDeep;
}

/** Standard (ES2026), not in the compiler's library yet. */
const rawJson = JSON as unknown as { rawJSON(literal: string): unknown };

const NOT_ASCII = /[\u0080-\u00ff]/;

/** The key that a Latin-1 view of its UTF-8 bytes represents. */
export function decodedKey(bytes: string): string {
  return NOT_ASCII.test(bytes) ? Buffer.from(bytes, 'latin1').toString('utf8') : bytes;
}

/** The reviver that keeps a literal whose decimal value differs from its double's. */
function keepExactNumber(_key: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number' || context?.source === undefined) return value;
  const { source } = context;
  return sameNumber(source, value) ? value : rawJson.rawJSON(source);
}

function sameNumber(source: string, value: number): boolean {
  const written = JSON.stringify(value);
  if (written === source) return true;
  if (!Number.isFinite(value)) return false;
  return normalNumber(source) === normalNumber(written);
}

/** Numbers with longer exponents never need a comparison of two spellings. */
const MAX_EXPONENT_LENGTH = 9;

/** Sign, significant digits and exponent of a JSON number, so that equal values give equal texts. */
function normalNumber(literal: string): string {
  const match = /^(-?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d+))?$/.exec(literal);
  if (!match) return literal;
  const [, sign, whole = '', fraction = '', exponent = '0'] = match;
  if (exponent.length > MAX_EXPONENT_LENGTH) return literal;
  const digits = whole + fraction;
  let start = 0;
  let end = digits.length;
  while (start < end && digits[start] === '0') start += 1;
  while (end > start && digits[end - 1] === '0') end -= 1;
  if (start === end) return '0';
  return `${sign}${digits.slice(start, end)}e${Number(exponent) - fraction.length + digits.length - end}`;
}
