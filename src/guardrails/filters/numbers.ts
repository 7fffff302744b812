/** Finders of personal numbers: telephone, social security and card numbers, IP addresses. */
import { isIPv6 } from 'node:net';
import { allAt, type Offsets, offsetsOf } from './offsets.ts';
import type { Span } from './reading.ts';

/** Words within this distance before a number decide its meaning. */
const REACH = 40;
const SPEAKS_OF_PHONES =
  /\b(?:tel|telephone|telefon|téléphone|telefono|phone|call|fax|mobile|mobil|cell|handy|whatsapp|sms|text me|reach me|ring)\b[^\n]{0,24}$/i;
const MAY_SPEAK_OF_PHONES = /tel|tél|phone|call|fax|mobil|cell|handy|whatsapp|sms|text me|reach me|ring/i;
const SPEAKS_OF_SSN = /\b(?:ssn|social security|soc\.? sec)\b[^\n]{0,24}$/i;
const SPEAKS_OF_VERSIONS = /(?:\bv|\bversion|\bver\.?|\brelease|\bsection|\bchapter|\bbuild|§)\s{0,2}$/i;

const INTERNATIONAL = /(?<![\w+])\+[1-9](?:[ ().-]{0,3}\d){7,14}(?!\d)/g;
const NORTH_AMERICAN = /(?<![\w.+-])(?:1[-. ])?(?:\([2-9]\d{2}\) ?|[2-9]\d{2}[-. ])[2-9]\d{2}[-. ]\d{4}(?![\w-]|\.\d)/g;
const NATIONAL = /(?<![\w.+-])(?:\(0\d{1,4}\)|0\d{1,4}|\d{3,4})(?:[ /-]?\d){5,9}(?![\w-]|\.\d)/g;

export function phones(text: string, { digits }: Offsets = offsetsOf(text)): Span[] {
  if (digits < 7) return [];
  const spans = [...all(INTERNATIONAL, text), ...all(NORTH_AMERICAN, text)];
  const national = all(NATIONAL, text);
  if (national.length === 0 || !MAY_SPEAK_OF_PHONES.test(text)) return spans;
  for (const span of national) {
    const count = text.slice(span.start, span.end).replace(/\D/g, '').length;
    if (count >= 7 && count <= 12 && SPEAKS_OF_PHONES.test(before(text, span))) spans.push(span);
  }
  return spans;
}

const SSN = /(?<![\d-])(?!000|666|9\d\d)\d{3}([- ])(?!00)\d{2}\1(?!0000)\d{4}(?![\d-])/g;
const BARE_SSN = /(?<![\d-])(?!000|666|9\d\d)\d{3}(?!00)\d{2}(?!0000)\d{4}(?![\d-])/g;

export function socialSecurityNumbers(text: string, { digits }: Offsets = offsetsOf(text)): Span[] {
  if (digits < 9) return [];
  const bare = all(BARE_SSN, text).filter((span) => SPEAKS_OF_SSN.test(before(text, span)));
  return [...all(SSN, text), ...bare];
}

/** Digits with at most one separator between two of them. */
const DIGIT_RUN = /(?<!\w)\d(?:[ .-]?\d){11,}(?!\w)/g;
/** Leading digits of all card networks. */
const FIRST_DIGITS = new Set('23456');
const SEPARATORS = /[ .-]/g;
const CARD_LENGTHS = [19, 18, 17, 16, 15, 14, 13, 12];

export function cardNumbers(text: string, { digits }: Offsets = offsetsOf(text)): Span[] {
  if (digits < 12) return [];
  const spans: Span[] = [];
  for (const run of all(DIGIT_RUN, text)) cardsIn(text, run, spans);
  return spans;
}

/** A card number begins and ends at the border of a group of digits. */
function cardsIn(text: string, { start, end }: Span, spans: Span[]): void {
  const at: number[] = [];
  for (let index = start; index < end; index++) if (isDigit(text.charCodeAt(index))) at.push(index);
  const isBorder = (place: number) => place === 0 || place === at.length || at[place]! - at[place - 1]! > 1;
  const digits = text.slice(start, end).replace(SEPARATORS, '');
  for (let first = 0; first + 12 <= at.length; first++) {
    if (!isBorder(first) || !FIRST_DIGITS.has(digits[first]!)) continue;
    const length = CARD_LENGTHS.find((count) => {
      if (first + count > at.length || !isBorder(first + count)) return false;
      const number = digits.slice(first, first + count);
      return isIssued(number) && passesLuhn(number);
    });
    if (length === undefined) continue;
    spans.push({ start: at[first]!, end: at[first + length - 1]! + 1 });
    first += length - 1;
  }
}

/** True if a card network issues numbers with this prefix and length. */
function isIssued(digits: string): boolean {
  const { length } = digits;
  const two = Number(digits.slice(0, 2));
  const three = Number(digits.slice(0, 3));
  const four = Number(digits.slice(0, 4));
  if (digits[0] === '4') return length === 13 || length === 16 || length === 19;
  if ((two >= 51 && two <= 55) || (four >= 2221 && four <= 2720)) return length === 16;
  if (two === 34 || two === 37) return length === 15;
  if (four === 6011 || two === 65 || (three >= 644 && three <= 649) || two === 62) return length >= 16;
  if (two === 36 || two === 38 || two === 39 || (three >= 300 && three <= 305)) return length === 14;
  if (four >= 3528 && four <= 3589) return length >= 16;
  return (two === 50 || (two >= 56 && two <= 58) || two === 63 || two === 67) && length >= 16;
}

function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let index = 0; index < digits.length; index++) {
    const digit = digits.charCodeAt(digits.length - 1 - index) - 48;
    const doubled = index % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

const OCTET = '(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)';
const IPV4 = new RegExp(`(?<![\\w.-])(?:${OCTET}\\.){3}${OCTET}(?![\\w-]|\\.\\d)`, 'g');
/** Addresses that identify no host: loopback, unspecified, broadcast. */
const NOBODYS_IPV4 = /^(?:127\.|0\.0\.0\.0$|255\.255\.255\.255$)/;
const IPV6 = /(?<![\w:.])[0-9a-f]{0,4}(?::[0-9a-f]{0,4}){2,7}(?::(?:\d{1,3}\.){3}\d{1,3})?(?![\w:])/iy;

export function internetAddresses(text: string, { digits }: Offsets = offsetsOf(text)): Span[] {
  if (digits === 0) return [];
  const spans = ipv4Addresses(text, digits).filter((span) => !SPEAKS_OF_VERSIONS.test(before(text, span)));
  return [...spans, ...ipv6Addresses(text)];
}

/** Keeps what may be a version number: the word before it may belong to another line. */
export function addressesInLines(text: string, { digits }: Offsets): Span[] {
  return digits === 0 ? [] : [...ipv4Addresses(text, digits), ...ipv6Addresses(text)];
}

function ipv4Addresses(text: string, digits: number): Span[] {
  if (digits < 4) return [];
  return all(IPV4, text).filter((span) => !NOBODYS_IPV4.test(text.slice(span.start, span.end)));
}

function ipv6Addresses(text: string): Span[] {
  return allAt(IPV6, text, groupsAround(text)).filter((span) => {
    const address = text.slice(span.start, span.end);
    return address.length > 3 && /\d/.test(address) && isIPv6(address);
  });
}

/** Starts of groups before a colon that is followed by another colon after at most four hexadecimal digits. */
function groupsAround(text: string): number[] {
  const starts: number[] = [];
  for (let at = text.indexOf(':'); at !== -1; at = text.indexOf(':', at + 1)) {
    let next = at + 1;
    while (next < at + 5 && isHexadecimal(text.charCodeAt(next))) next += 1;
    if (text[next] !== ':') continue;
    let start = at;
    while (start > 0 && at - start < 5 && isHexadecimal(text.charCodeAt(start - 1))) start -= 1;
    starts.push(start);
  }
  return starts;
}

function isHexadecimal(code: number): boolean {
  return isDigit(code) || ((code | 32) >= 97 && (code | 32) <= 102);
}

function before(text: string, { start }: Span): string {
  return text.slice(Math.max(0, start - REACH), start);
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

/** Every match of a pattern. @param pattern global */
export function all(pattern: RegExp, text: string): Span[] {
  const spans: Span[] = [];
  pattern.lastIndex = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    spans.push({ start: match.index, end: match.index + match[0].length });
  }
  return spans;
}
