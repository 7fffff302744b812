/**
 * Undoes encodings that models read easily: JSON and program escapes, HTML entities, percent-encoding, tag characters,
 * and control characters between letters. Also undoes escapes of escapes, as in JSON within JSON.
 */
import { Changes } from './folding.ts';
import { tooMuch } from './patterns.ts';
import type { Reading } from './reading.ts';
import { clear, isAscii, unitsOf } from './units.ts';

const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
  tab: '\t',
  newline: '\n',
  commat: '@',
  period: '.',
  comma: ',',
  colon: ':',
  semi: ';',
  hyphen: '-',
  dash: '-',
  minus: '-',
  sol: '/',
  bsol: '\\',
  lowbar: '_',
  num: '#',
  plus: '+',
  equals: '=',
  excl: '!',
  quest: '?',
  dollar: '$',
  percnt: '%',
  lpar: '(',
  rpar: ')',
  shy: '',
  zwj: '',
  zwnj: '',
};
/** Meanings of a letter after a backslash that are neither the letter itself nor a number. */
const LETTERS: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '"': '"', '/': '/' };

// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are searched for.
const CONTROL = /[\x00-\x08\x0e-\x1f\x7f]/;
/** A run of backslashes counts as one, because each further level of JSON doubles them. */
const BACKSLASHES = String.raw`(?<!\\)\\+`;
const ESCAPE = new RegExp(
  [
    String.raw`${BACKSLASHES}u\{0{0,4}(?<braced>[0-9a-f]{1,6})\}`,
    `${BACKSLASHES}(?:u(?<unit>[0-9a-f]{4})|x(?<byte>[0-9a-f]{2}))`,
    `${BACKSLASHES}(?<letter>[nrt"/])`,
    '&(?:amp;)*#0{0,8}(?<decimal>[0-9]{1,7});?',
    '&(?:amp;)*#x0{0,8}(?<hex>[0-9a-f]{1,6});?',
    `&(?:amp;)*(?<name>${Object.keys(NAMED).join('|')});`,
    '(?<percents>(?:%(?:25)*[0-9a-f]{2}){1,1000})',
    String.raw`(?<tag>[\u{e0020}-\u{e007e}])`,
    `(?<control>${CONTROL.source}+)`,
  ].join('|'),
  'giu',
);
const PERCENT = /%(?:25)*([0-9a-f]{2})/gi;
const OF_CONTROL = Uint8Array.from({ length: 128 }, (_, code) => Number(CONTROL.test(String.fromCharCode(code))));
const CONTROLS = [...Array(0x20).keys(), 0x7f]
  .map((code) => String.fromCharCode(code))
  .filter((one) => CONTROL.test(one));
/** From this length on, one search per character is faster. */
const LONG = 128;

/** A text without these and without control characters contains no escapes. */
const MARKS = ['%', '\\', '&', '\u{db40}'];

/** Maximum depth of nested escapes of different kinds, such as program escapes in a percent-encoded URL. */
export const DEEPEST = 3;
/** Maximum number of escapes in one text. */
const MOST = 250_000;

/**
 * Returns the text with its escapes undone; undefined if it has none, which a few single-character searches decide.
 * @throws GatewayError 413 for too many escapes
 */
export function undone(raw: string): Reading | undefined {
  if (!mayHold(raw)) return undefined;
  const changes = new Changes();
  let count = 0;
  let text = '';
  let copied = 0;
  const put = (start: number, end: number, meaning: string): void => {
    text += raw.slice(copied, start);
    changes.add(start, end, text.length, text.length + meaning.length);
    text += meaning;
    copied = end;
    if (++count > MOST) throw tooMuch();
  };
  ESCAPE.lastIndex = 0;
  for (let match = ESCAPE.exec(raw); match !== null; match = ESCAPE.exec(raw)) {
    const groups = match.groups!;
    if (groups.percents !== undefined) putPercents(put, match[0], match.index);
    else put(match.index, match.index + match[0].length, meaningOf(groups));
  }
  return copied === 0 ? undefined : changes.reading(raw, text + raw.slice(copied));
}

/** @param visit gets each offset where an escape may begin, and returns where to continue */
export function eachEscape(raw: string, visit: (at: number) => number): void {
  const marks = holdsControl(raw) ? [...MARKS, ...CONTROLS] : MARKS;
  for (const mark of marks) for (let at = raw.indexOf(mark); at !== -1; at = raw.indexOf(mark, visit(at)));
}

function mayHold(raw: string): boolean {
  for (const mark of MARKS) if (raw.includes(mark)) return true;
  return holdsControl(raw);
}

function holdsControl(raw: string): boolean {
  if (raw.length < LONG) return CONTROL.test(raw);
  if (isAscii(raw)) return CONTROLS.some((one) => raw.includes(one));
  // `indexOf` of a control character stops at every byte that equals it, in either half of a unit; scan instead.
  const units = unitsOf(raw);
  let held = 0;
  for (let at = 0; at < raw.length; at++) held |= units[at]! < 128 ? OF_CONTROL[units[at]!]! : 0;
  clear(units, raw.length);
  return held !== 0;
}

function meaningOf(groups: Record<string, string | undefined>): string {
  const { braced, unit, byte, letter, decimal, hex, name, tag, control } = groups;
  if (control !== undefined) return '';
  if (unit !== undefined || byte !== undefined) return String.fromCharCode(Number.parseInt((unit ?? byte)!, 16));
  if (letter !== undefined) return LETTERS[letter.toLowerCase()]!;
  if (name !== undefined) return NAMED[name.toLowerCase()]!;
  if (tag !== undefined) return String.fromCharCode(tag.codePointAt(0)! - 0xe0000);
  const codePoint = decimal === undefined ? Number.parseInt((braced ?? hex)!, 16) : Number(decimal);
  return codePoint > 0x10ffff ? '' : String.fromCodePoint(codePoint);
}

/** UTF-8 bytes. ASCII bytes keep their own offsets. */
function putPercents(put: (start: number, end: number, meaning: string) => void, run: string, from: number): void {
  const bytes = [...run.matchAll(PERCENT)].map((match) => ({
    byte: Number.parseInt(match[1]!, 16),
    start: from + match.index,
    end: from + match.index + match[0].length,
  }));
  for (let at = 0; at < bytes.length; ) {
    let next = at + 1;
    if (bytes[at]!.byte >= 0x80) while (next < bytes.length && bytes[next]!.byte >= 0x80) next += 1;
    const piece = Buffer.from(bytes.slice(at, next).map(({ byte }) => byte)).toString('utf8');
    put(bytes[at]!.start, bytes[next - 1]!.end, piece);
    at = next;
  }
}
