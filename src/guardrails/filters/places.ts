/**
 * Where in a text a built-in filter may find something, seen in one walk over it that all of them share. What is noted is
 * too much rather than too little: the patterns themselves decide.
 */
import type { Span } from './reading.ts';
import { BUCKETS, type ByteSet, Sieve, type SieveVisitor, type Window } from './sieve.ts';
import { bytesOf, clear } from './units.ts';

/** Digits with up to so many other characters between two belong to one number, for every finder. */
const WIDEST_GAP = 3;

export interface Places {
  /** Where the name of a service's token may begin. */
  readonly tokens: readonly number[];
  /** Where a word may begin that a secret is assigned to. */
  readonly assigned: readonly number[];
  /** Where an attempt at injection may begin. */
  readonly injections: readonly number[];
  /** Digits of the longest number. */
  readonly digits: number;
}

/**
 * First six characters of what may stand at a word's beginning, small. `*` is a letter, digit, `_` or `-`, `9` any digit, `-` also
 * `_`, and `~` anything else; what is not told may be anything.
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

/** By byte: letters of either case are one, all digits are one, and so is nearly all else. */
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

/** Bits that say which beginnings three characters may belong to: in the first table as the first three, in the other behind. */
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

/** Several beginnings share a bit: a place that only their halves together admit is looked at in vain. */
function enter(beginnings: string, firstBit: number, bits: number): void {
  beginnings.split(' ').forEach((beginning, index) => {
    const bit = 1 << (firstBit + (index % bits));
    const [a, b, c, d, e, f] = beginning;
    enterThree(firstThree, [a, b, c], bit);
    enterThree(nextThree, [d, e, f], bit);
  });
}

/** Buckets of the walk: of digits, of marks, and of words by their beginnings, neighbours in the alphabet together. */
const DIGIT = 1 << 0;
/** Begins the marks of templates, which are no words: `<|`, `<<`, `[/INST]`, `[INST]`, `##`. */
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

/** Made with the first text: many installations filter none, and a start is not to pay for the tables. */
let sieve: Sieve | undefined;

function makeSieve(): Sieve {
  enter(TOKEN_BEGINNINGS, 0, 8);
  enter(ASSIGNED_BEGINNINGS, 8, 8);
  enter(INJECTION_BEGINNINGS, 16, 16);
  return new Sieve(windows());
}

export function placesOf(text: string): Places {
  sieve ??= makeSieve();
  const bytes = bytesOf(text);
  const places = new Noted(bytes);
  sieve.walk(bytes, text.length, places);
  clear(bytes, text.length);
  return places;
}

/** Most texts have none, and many are short. */
const NOWHERE: readonly number[] = [];

class Noted implements Places, SieveVisitor {
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
    if ((buckets & MARK) !== 0) this.injections = withPlace(this.injections, at);
    if ((buckets & ~(DIGIT | MARK)) === 0) return false;
    const begins = beginningsAt(this.#bytes, at);
    if ((begins & TOKEN_BITS) !== 0) this.tokens = withPlace(this.tokens, at);
    if ((begins & ASSIGNED_BITS) !== 0) this.assigned = withPlace(this.assigned, at);
    if ((begins & INJECTION_BITS) !== 0) this.injections = withPlace(this.injections, at);
    return false;
  }
}

function withPlace(places: readonly number[], at: number): readonly number[] {
  if (places === NOWHERE) return [at];
  (places as number[]).push(at);
  return places;
}

function beginningsAt(bytes: Uint8Array, at: number): number {
  const three = (CLASSES[bytes[at]!]! << 10) | (CLASSES[bytes[at + 1]!]! << 5) | CLASSES[bytes[at + 2]!]!;
  const found = firstThree[three]!;
  if (found === 0) return 0;
  const more = (CLASSES[bytes[at + 3]!]! << 10) | (CLASSES[bytes[at + 4]!]! << 5) | CLASSES[bytes[at + 5]!]!;
  return found & nextThree[more]!;
}

/**
 * Every match of a pattern that can only begin at known places.
 * @param pattern sticky
 */
export function allAt(pattern: RegExp, text: string, places: readonly number[]): Span[] {
  const spans: Span[] = [];
  let from = 0;
  for (const start of places) {
    if (start < from) continue;
    pattern.lastIndex = start;
    if (!pattern.test(text)) continue;
    from = pattern.lastIndex;
    spans.push({ start, end: from });
  }
  return spans;
}
