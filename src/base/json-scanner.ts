/**
 * One pass over the text of a JSON object that finds the offsets of its top-level members, its depth and its number of keys.
 * It does not validate the grammar (JSON.parse does); on invalid text it ends in linear time with meaningless results. Works
 * on Latin-1 views of UTF-8 bytes and on real text, since all structure is ASCII.
 */

import type { Member } from './json.ts';
import {
  BACKSLASH,
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COLON,
  COMMA,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
} from './json-characters.ts';

/** Results of a scan. */
export interface Scan {
  members: Member[];
  /** Keys in the whole text. If the parsed value has fewer, there were duplicates. */
  keys: number;
  /** Nesting goes past the bound; the scan stopped there. */
  tooDeep: boolean;
  /** There are more values than the bound; the scan stopped there. */
  tooMany: boolean;
  /** A key is `__proto__`, possibly written with escapes. */
  prototypeKey: boolean;
  /** A key at any depth is written with escapes. */
  escapedKey: boolean;
  /** A top-level key is written with escapes. */
  escapedMember: boolean;
  /** A number has more digits than a double holds exactly, or an exponent. */
  longNumber: boolean;
  /** Commas that `scanRun` has seen: each value except the first of its list or object has one before it. */
  values: number;
}

const UNDERSCORE = 0x5f;
const PLUS = 0x2b;
const LOWER_E = 0x65;

/** Any decimal of up to 15 significant digits survives a double. */
const SAFE_NUMBER_LENGTH = 15;
/** Strings up to this length are scanned character by character; a call of indexOf costs more than that. */
const SHORT_STRING = 16;

const PROTOTYPE_KEY = '__proto__';

/** Which levels are objects. Scans are synchronous, so one list serves all of them. */
const objectAt: boolean[] = new Array(256).fill(false);
const MAX_KEPT_LEVELS = 4096;

/**
 * Scans `text`, stopping at nesting deeper than `maxDepth` (the object itself is level 1) and after `maxValues` values,
 * because parsed tiny values take many times their size in bytes.
 */
export function scanObject(text: string, maxDepth: number, maxValues = Number.POSITIVE_INFINITY): Scan {
  const levels = objectAt;
  const scan = createScan();
  const length = text.length;
  let depth = 0;
  // Each value except the first of its list or object has a comma before it.
  let values = 0;
  let expectsKey = false;
  let member: Member | undefined;
  let awaitsValue = false;
  let tokenEnd = 0;
  let at = 0;
  while (at < length) {
    const code = text.charCodeAt(at);
    if (code <= 0x20) {
      at += 1;
      continue;
    }
    if (awaitsValue && code !== COLON) {
      member!.valueStart = at;
      awaitsValue = false;
    }
    switch (code) {
      case QUOTE:
        tokenEnd = stringEnd(text, at + 1);
        if (expectsKey) {
          expectsKey = false;
          member = noteKey(scan, text, at, tokenEnd, depth) ?? member;
        }
        at = tokenEnd;
        continue;
      case COLON:
        awaitsValue = depth === 1 && member !== undefined;
        break;
      case COMMA:
        if (depth === 1 && member !== undefined) member.valueEnd = tokenEnd;
        expectsKey = depth > 0 && levels[depth] === true;
        values += 1;
        if (values > maxValues) {
          scan.tooMany = true;
          return scan;
        }
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth += 1;
        if (depth > maxDepth) {
          scan.tooDeep = true;
          return scan;
        }
        levels[depth] = code === OPEN_BRACE;
        expectsKey = code === OPEN_BRACE;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (depth === 1 && member !== undefined) member.valueEnd = tokenEnd;
        if (depth > 0) depth -= 1;
        expectsKey = false;
        tokenEnd = at + 1;
        break;
      default:
        tokenEnd = scalarEnd(text, at);
        if (code < COLON && isLongNumber(text, at, tokenEnd)) scan.longNumber = true;
        at = tokenEnd;
        continue;
    }
    at += 1;
  }
  if (levels.length > MAX_KEPT_LEVELS) levels.length = MAX_KEPT_LEVELS;
  return scan;
}

/**
 * Scans values from `from` on, up to the comma or bracket after them: the first such comma at least `size` characters further
 * on, or the bracket that ends their list or object. If the text ends first, the last comma between two of the values.
 * Returns its offset, or -1 if there is none. The scan counts `keys` and `values` up to there; its other results may include
 * the text after it.
 */
export function scanRun(text: string, from: number, size: number, maxDepth: number, scan: Scan): number {
  const levels = objectAt;
  const length = text.length;
  let depth = 0;
  let expectsKey = false;
  let at = from;
  let comma = -1;
  let keys = 0;
  let values = 0;
  while (at < length) {
    const code = text.charCodeAt(at);
    switch (code) {
      case QUOTE: {
        const end = stringEnd(text, at + 1);
        // Below the top level.
        if (expectsKey) noteKey(scan, text, at, end, 2);
        expectsKey = false;
        at = end;
        continue;
      }
      case COMMA:
        if (depth === 0) {
          if (at - from >= size) return at;
          comma = at;
          keys = scan.keys;
          values = scan.values;
        }
        expectsKey = depth > 0 && levels[depth] === true;
        scan.values += 1;
        break;
      case OPEN_BRACE:
      case OPEN_BRACKET:
        depth += 1;
        if (depth > maxDepth) {
          scan.tooDeep = true;
          return at;
        }
        levels[depth] = code === OPEN_BRACE;
        expectsKey = code === OPEN_BRACE;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        if (depth === 0) return at;
        depth -= 1;
        expectsKey = false;
        break;
      case COLON:
        break;
      default:
        if (code <= 0x20) break;
        if (code < COLON && isLongNumber(text, at, scalarEnd(text, at))) scan.longNumber = true;
        at = scalarEnd(text, at);
        continue;
    }
    at += 1;
  }
  scan.keys = keys;
  scan.values = values;
  return comma;
}

/**
 * The top-level members of the JSON object that starts at or after `from`, in order. The text must be valid JSON; values are
 * only skipped.
 */
export function scanMembers(text: string, from = 0): Member[] {
  const members: Member[] = [];
  let at = text.indexOf('{', from) + 1;
  while (at > 0) {
    const keyStart = skipSpace(text, at);
    if (text.charCodeAt(keyStart) !== QUOTE) break;
    const keyEnd = stringEnd(text, keyStart + 1);
    const colon = skipSpace(text, keyEnd);
    if (text.charCodeAt(colon) !== COLON) break;
    const valueStart = skipSpace(text, colon + 1);
    const valueEnd = endOfValue(text, valueStart);
    members.push({ key: keyAt(text, keyStart, keyEnd), keyStart, valueStart, valueEnd });
    at = skipSpace(text, valueEnd);
    if (text.charCodeAt(at) !== COMMA) break;
    at += 1;
  }
  return members;
}

function keyAt(text: string, start: number, end: number): string {
  return hasBackslash(text, start + 1, end - 1) ? decodeKey(text.slice(start, end)) : text.slice(start + 1, end - 1);
}

function skipSpace(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= 0x20) at += 1;
  return at;
}

function endOfValue(text: string, start: number): number {
  const first = text.charCodeAt(start);
  if (first === QUOTE) return stringEnd(text, start + 1);
  if (first !== OPEN_BRACE && first !== OPEN_BRACKET) return scalarEnd(text, start);
  let depth = 1;
  let at = start + 1;
  while (depth > 0 && at < text.length) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = stringEnd(text, at + 1);
      continue;
    }
    if (code === OPEN_BRACE || code === OPEN_BRACKET) depth += 1;
    else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) depth -= 1;
    at += 1;
  }
  return at;
}

export function createScan(): Scan {
  return {
    members: [],
    keys: 0,
    tooDeep: false,
    tooMany: false,
    prototypeKey: false,
    escapedKey: false,
    escapedMember: false,
    longNumber: false,
    values: 0,
  };
}

/** Counts the key quoted from `start` to `end`; adds a member if it is a top-level one. */
function noteKey(scan: Scan, text: string, start: number, end: number, depth: number): Member | undefined {
  scan.keys += 1;
  const escaped = hasBackslash(text, start + 1, end - 1);
  const suspicious = end - start - 2 === PROTOTYPE_KEY.length && text.charCodeAt(start + 1) === UNDERSCORE;
  if (depth !== 1 && !escaped && !suspicious) return undefined;
  const key = keyAt(text, start, end);
  if (key === PROTOTYPE_KEY) scan.prototypeKey = true;
  if (escaped) scan.escapedKey = true;
  if (depth !== 1) return undefined;
  if (escaped) scan.escapedMember = true;
  const member: Member = { key, keyStart: start, valueStart: end, valueEnd: end };
  scan.members.push(member);
  return member;
}

/** The end of a number or literal, or of something that the parser will refuse. */
function scalarEnd(text: string, start: number): number {
  let end = start + 1;
  for (; end < text.length; end += 1) {
    const next = text.charCodeAt(end);
    if (next <= COMMA && next !== PLUS) break;
    if (next === CLOSE_BRACE || next === CLOSE_BRACKET) break;
    if (next === COLON || next === OPEN_BRACE || next === OPEN_BRACKET) break;
  }
  return end;
}

function isLongNumber(text: string, start: number, end: number): boolean {
  if (end - start > SAFE_NUMBER_LENGTH) return true;
  for (let at = start; at < end; at += 1) if ((text.charCodeAt(at) | 0x20) === LOWER_E) return true;
  return false;
}

/** The offset after the closing quote of the string whose content starts at `start`; the length of the text if it is not closed. */
export function stringEnd(text: string, start: number): number {
  const shortEnd = Math.min(start + SHORT_STRING, text.length);
  let at = start;
  for (; at < shortEnd; at += 1) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at += 1;
  }
  // `at` is never inside an escape here, so only backslashes from `at` on can escape a quote.
  let quote = text.indexOf('"', at);
  while (quote !== -1) {
    let before = quote - 1;
    while (before >= at && text.charCodeAt(before) === BACKSLASH) before -= 1;
    if ((quote - before) % 2 === 1) return quote + 1;
    quote = text.indexOf('"', quote + 1);
  }
  return text.length;
}

function hasBackslash(text: string, start: number, end: number): boolean {
  for (let at = start; at < end; at += 1) if (text.charCodeAt(at) === BACKSLASH) return true;
  return false;
}

/** The unescaped key; the text itself if the escapes are invalid, which the parser will refuse. */
function decodeKey(quoted: string): string {
  try {
    return JSON.parse(quoted) as string;
  } catch {
    return quoted;
  }
}
