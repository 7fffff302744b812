/**
 * Offsets at which built-in filters may match, computed in one pass that all of them share. It reports too many offsets
 * rather than too few: the patterns decide.
 */
import type { Span } from './reading.ts';
import { BUCKETS, type ByteSet, Sieve, type SieveVisitor, type Window } from './sieve.ts';
import { bytesOf, clear } from './units.ts';

/** All finders treat digits with at most this many other characters between them as one number. */
const WIDEST_GAP = 3;

export interface Offsets {
  /** Where a service's token may begin, by its prefix. */
  readonly tokens: readonly number[];
  /** Where a word such as `password` may begin, to which a secret is assigned. */
  readonly assigned: readonly number[];
  /** Where an attempt at prompt injection may begin. */
  readonly injections: readonly number[];
  /** Number of digits of the longest number. */
  readonly digits: number;
}

/**
 * First six characters of words, in lower case. `*` is a letter, digit, `_` or `-`; `9` is any digit; `-` is also `_`;
 * `~` is anything else. Missing characters may be anything.
 */
const TOKEN_BEGINNINGS =
  'akia** asia** abia** acca** ghp-** gho-** ghu-** ghs-** ghr-** github glpat- gldt-* glrt-* sk-*** sk-liv sk-tes rk-liv ' +
  'rk-tes pk-liv pk-tes whsec- xoxa-* xoxb-* xoxe-* xoxp-* xoxr-* xoxs-* xapp-9 aiza** ya99~* gocspx eyj*** sg~*** npm-** ' +
  'pypi-* hf-*** dop-v9 shpat- age-se';
const ASSIGNED_BEGINNINGS = 'passwo passwd passph pwd secret api-ke apikey access auth-t authto privat client';
const INJECTION_BEGINNINGS =
  'ignor disreg forget overri bypass neglec discar drop~ do~not do~any don~t~ stop~ reveal show~ print~ output repeat displa ' +
  'leak~ expose tell~ give~ recite you~ar act~as preten become rolepl enable enter~ activa switch engage develo jailbr god~m ' +
  'god~~ sudo~m sudo~~ dan~m dan~~ withou no~ free~ not~bo imagin behave new~s new~~ update real~s real~~ actual system ' +
  'safety admin~ vergis missac oublie olvida descar';

/** Character class by byte: letters of either case, all digits and nearly all other bytes each share one class. */
const CLASSES = new Uint8Array(256);
const DIGIT_CLASS = 27;
const SIGN_CLASS = 28;
for (let code = 0; code < 128; code++) {
  const character = String.fromCharCode(code).toLowerCase();
  if (/[a-z]/.test(character)) CLASSES[code] = character.charCodeAt(0) - 96;
  else if (/\d/.test(character)) CLASSES[code] = DIGIT_CLASS;
  else if (/[_-]/.test(character)) CLASSES[code] = SIGN_CLASS;
}
const EVERY_CLASS = Array.from({ length: SIGN_CLASS + 1 }, (_, index) => index);

/** Bits of the beginnings that three characters may belong to: as the first three, and as the next three. */
const firstThree = new Uint32Array(32_768);
const nextThree = new Uint32Array(32_768);
const TOKEN_BITS = 0x0000_00ff;
const ASSIGNED_BITS = 0x0000_ff00;
const INJECTION_BITS = 0xffff_0000 | 0;

function classesOf(sign: string | undefined): readonly number[] {
  if (sign === undefined) return EVERY_CLASS;
  if (sign === '*') return EVERY_CLASS.slice(1);
  return sign === '~' ? [0] : [CLASSES[sign.charCodeAt(0)]!];
}

function enterThree(table: Uint32Array, signs: readonly (string | undefined)[], bit: number): void {
  for (const first of classesOf(signs[0])) {
    for (const second of classesOf(signs[1])) {
      for (const third of classesOf(signs[2])) table[(first << 10) | (second << 5) | third]! |= bit;
    }
  }
}

/** Several beginnings share a bit, so a mix of two halves can cause a false candidate. */
function enter(beginnings: string, firstBit: number, bits: number): void {
  beginnings.split(' ').forEach((beginning, index) => {
    const bit = 1 << (firstBit + (index % bits));
    const [a, b, c, d, e, f] = beginning;
    enterThree(firstThree, [a, b, c], bit);
    enterThree(nextThree, [d, e, f], bit);
  });
}

/** Buckets of the sieve: digits, template marks, and words by their beginnings in alphabetical order. */
const DIGIT = 1 << 0;
/** First bytes of template marks: `<|`, `<<`, `[/INST]`, `[INST]`, `##`. */
const MARK = 1 << 1;
const FIRST_WORDS = 2;

function bytesWhere(holds: (character: string, byte: number) => boolean): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, byte) =>
    Number(holds(byte < 128 ? String.fromCharCode(byte) : '', byte)),
  );
}

function windows(): Window[] {
  const notWithin = bytesWhere((character) => !/[0-9a-z]/i.test(character));
  const bySign = new Map<string | undefined, ByteSet>();
  const admitted = (sign: string | undefined): ByteSet => {
    if (sign !== undefined && !bySign.has(sign)) {
      const classes = classesOf(sign);
      bySign.set(
        sign,
        bytesWhere((_, byte) => classes.includes(CLASSES[byte]!)),
      );
    }
    return bySign.get(sign);
  };
  const beginnings = `${TOKEN_BEGINNINGS} ${ASSIGNED_BEGINNINGS} ${INJECTION_BEGINNINGS}`.split(' ').sort();
  const words = beginnings.map((beginning, index): Window => {
    const bucket = FIRST_WORDS + Math.floor((index * (BUCKETS - FIRST_WORDS)) / beginnings.length);
    return { bucket, sets: [notWithin, admitted(beginning[0]), admitted(beginning[1]), admitted(beginning[2])] };
  });
  const digit = bytesWhere((character) => /\d/.test(character));
  const markOne = bytesWhere((character) => /[<[#]/.test(character));
  const markTwo = bytesWhere((character) => /[|</i#]/i.test(character));
  return [
    { bucket: 0, sets: [undefined, digit, undefined, undefined] },
    { bucket: 1, sets: [undefined, markOne, markTwo, undefined] },
    ...words,
  ];
}

/** Built with the first text, so that installations without filters do not pay for it at startup. */
let sieve: Sieve | undefined;

function makeSieve(): Sieve {
  enter(TOKEN_BEGINNINGS, 0, 8);
  enter(ASSIGNED_BEGINNINGS, 8, 8);
  enter(INJECTION_BEGINNINGS, 16, 16);
  return new Sieve(windows());
}

export function offsetsOf(text: string): Offsets {
  sieve ??= makeSieve();
  const bytes = bytesOf(text);
  const offsets = new NotedOffsets(bytes);
  sieve.walk(bytes, text.length, offsets);
  clear(bytes, text.length);
  return offsets;
}

/** Shared empty list, because most texts have no places. */
const NOWHERE: readonly number[] = [];

class NotedOffsets implements Offsets, SieveVisitor {
  tokens = NOWHERE;
  assigned = NOWHERE;
  injections = NOWHERE;
  digits = 0;
  #together = 0;
  #lastDigit = -1 - WIDEST_GAP;
  readonly #bytes: Uint8Array;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  at(start: number, buckets: number): boolean {
    const at = start + 1;
    if ((buckets & DIGIT) !== 0) {
      this.#together = at - this.#lastDigit <= WIDEST_GAP + 1 ? this.#together + 1 : 1;
      this.digits = Math.max(this.digits, this.#together);
      this.#lastDigit = at;
    }
    if ((buckets & MARK) !== 0) this.injections = withOffset(this.injections, at);
    if ((buckets & ~(DIGIT | MARK)) === 0) return false;
    const begins = beginningsAt(this.#bytes, at);
    if ((begins & TOKEN_BITS) !== 0) this.tokens = withOffset(this.tokens, at);
    if ((begins & ASSIGNED_BITS) !== 0) this.assigned = withOffset(this.assigned, at);
    if ((begins & INJECTION_BITS) !== 0) this.injections = withOffset(this.injections, at);
    return false;
  }
}

function withOffset(offsets: readonly number[], at: number): readonly number[] {
  if (offsets === NOWHERE) return [at];
  (offsets as number[]).push(at);
  return offsets;
}

function beginningsAt(bytes: Uint8Array, at: number): number {
  const three = (CLASSES[bytes[at]!]! << 10) | (CLASSES[bytes[at + 1]!]! << 5) | CLASSES[bytes[at + 2]!]!;
  const found = firstThree[three]!;
  if (found === 0) return 0;
  const more = (CLASSES[bytes[at + 3]!]! << 10) | (CLASSES[bytes[at + 4]!]! << 5) | CLASSES[bytes[at + 5]!]!;
  return found & nextThree[more]!;
}

/**
 * Every match of a pattern that can only begin at known offsets.
 * @param pattern sticky
 */
export function allAt(pattern: RegExp, text: string, offsets: readonly number[]): Span[] {
  const spans: Span[] = [];
  let from = 0;
  for (const start of offsets) {
    if (start < from) continue;
    pattern.lastIndex = start;
    if (!pattern.test(text)) continue;
    from = pattern.lastIndex;
    spans.push({ start, end: from });
  }
  return spans;
}
