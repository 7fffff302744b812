/**
 * A text as a reader sees it, whatever characters it is written with: folded, with the way back to the original for each
 * place. ASCII is its own reading and costs nothing.
 */

import { isAscii } from './units.ts';

export interface Span {
  /** Offsets into the text, in UTF-16 units; the end is behind the last. */
  start: number;
  end: number;
}

export interface Reading {
  readonly text: string;
  /** What a place of the reading is in the original. */
  original(span: Span): Span;
  /** The first place of the reading that stands at or behind one of the original. */
  reached(at: number): number;
}

/** The readings of one text, each made when it is first asked for. */
export class Readings {
  readonly raw: string;
  readonly ascii: boolean;
  #plain: Reading | undefined;
  #skeleton: Reading | undefined;

  constructor(raw: string) {
    this.raw = raw;
    this.ascii = isAscii(raw);
  }

  /** Compatible characters as their usual ones (NFKC), without those that nobody sees. */
  get plain(): Reading {
    this.#plain ??= this.ascii ? unchanged(this.raw) : folded(this.raw, plainly, SAME_PLAIN);
    return this.#plain;
  }

  /** Characters that only look like others as those as well, without accents. */
  get skeleton(): Reading {
    this.#skeleton ??= this.ascii ? unchanged(this.raw) : folded(this.raw, barely, SAME_BARE);
    return this.#skeleton;
  }

  /** What is written in characters that are invisible to people and not to models; undefined for nearly every text. */
  get hidden(): Reading | undefined {
    return this.ascii || !this.raw.includes('\u{db40}') ? undefined : hidden(this.raw);
  }
}

const UNSEEN = /^[\p{Default_Ignorable_Code_Point}\p{Cf}]$/u;
const MARK = /^\p{M}$/u;
const MARKS = /\p{M}+/gu;
const DIGIT = /^\p{Nd}$/u;
const DASH = /^\p{Pd}$/u;

function unchanged(text: string): Reading {
  return { text, original: (span) => span, reached: (at) => at };
}

type Fold = (cluster: string) => string;

/** What is known of a code point: whether it was looked at, whether others join or skip it, which folds leave it alone. */
const KNOWN = 1;
const JOINS = 2;
const SAME_PLAIN = 4;
const SAME_BARE = 8;
const UNSEEN_BY_ALL = 16;
let traits: Uint8Array | undefined;

/** The table is made with the first text beyond ASCII; its pages are used as far as scripts are. */
function traitsOf(codePoint: number): number {
  traits ??= new Uint8Array(0x110000);
  let found = traits[codePoint]!;
  if (found !== 0) return found;
  const character = String.fromCodePoint(codePoint);
  found = KNOWN;
  if (UNSEEN.test(character)) found |= JOINS | UNSEEN_BY_ALL;
  else if (MARK.test(character)) found |= JOINS;
  else {
    if (plainly(character) === character) found |= SAME_PLAIN;
    if (barely(character) === character) found |= SAME_BARE;
  }
  traits[codePoint] = found;
  return found;
}

/**
 * Character by character with the marks that belong to each. Only what folding changes is written anew and remembered with
 * its place; what lies between is taken over as it stands.
 */
function folded(raw: string, fold: Fold, same: number): Reading {
  const changes = new Changes(raw);
  let at = 0;
  while (at < raw.length) {
    const code = raw.codePointAt(at)!;
    const end = at + (code > 0xffff ? 2 : 1);
    const stays = code < 0x80 || (traitsOf(code) & same) !== 0;
    const alone = end === raw.length || raw.charCodeAt(end) < 0x300 || (traitsOf(raw.codePointAt(end)!) & JOINS) === 0;
    if (stays && alone) {
      at = end;
    } else if (code >= 0x80 && (traitsOf(code) & UNSEEN_BY_ALL) !== 0) {
      changes.add(at, end, '');
      at = end;
    } else if (alone) {
      changes.add(at, end, fold(raw.slice(at, end)));
      at = end;
    } else at = foldCluster(raw, at, fold, changes);
  }
  return changes.reading();
}

/** @returns where the cluster ends */
function foldCluster(raw: string, at: number, fold: Fold, changes: Changes): number {
  let end = nextAt(raw, at);
  let cluster = raw.slice(at, end);
  // Marks join what they follow, also when something unseen stands between.
  for (let next = end; next < raw.length && raw.charCodeAt(next) >= 0x300; ) {
    const after = nextAt(raw, next);
    const character = raw.slice(next, after);
    if (MARK.test(character) && !UNSEEN.test(character)) {
      cluster += character;
      end = after;
    } else if (!UNSEEN.test(character)) break;
    next = after;
  }
  changes.add(at, end, cluster.length === 1 && cluster.charCodeAt(0) < 0x80 ? cluster : fold(cluster));
  return end;
}

/** Pieces of a text that read otherwise than they are written. */
class Changes {
  readonly #raw: string;
  readonly #parts: string[] = [];
  /** By change: its place in the original, and in the result. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #foldedStarts: number[] = [];
  readonly #foldedEnds: number[] = [];
  #length = 0;
  #copied = 0;

  constructor(raw: string) {
    this.#raw = raw;
  }

  add(start: number, end: number, result: string): void {
    if (start > this.#copied) this.#parts.push(this.#raw.slice(this.#copied, start));
    this.#length += start - this.#copied;
    this.#copied = end;
    this.#parts.push(result);
    this.#starts.push(start);
    this.#ends.push(end);
    this.#foldedStarts.push(this.#length);
    this.#length += result.length;
    this.#foldedEnds.push(this.#length);
  }

  reading(): Reading {
    const raw = this.#raw;
    if (this.#copied > 0) this.#parts.push(raw.slice(this.#copied));
    const text = this.#copied === 0 ? raw : this.#parts.join('');
    return {
      text,
      original: ({ start, end }) => ({
        start: start < text.length ? this.#origin(start).start : raw.length,
        end: end > 0 && end <= text.length ? this.#origin(end - 1).end : raw.length,
      }),
      reached: (from) => firstWhere(text.length, (at) => this.#origin(at).start >= from),
    };
  }

  /** The original of one unit of the result. */
  #origin(place: number): Span {
    const change = firstWhere(this.#foldedStarts.length, (index) => this.#foldedStarts[index]! > place) - 1;
    if (change >= 0 && place < this.#foldedEnds[change]!) {
      return { start: this.#starts[change]!, end: this.#ends[change]! };
    }
    const at = change < 0 ? place : this.#ends[change]! + place - this.#foldedEnds[change]!;
    // Both halves of a character come from all of it.
    const from = at > 0 && this.#raw.codePointAt(at - 1)! > 0xffff ? at - 1 : at;
    return { start: from, end: nextAt(this.#raw, from) };
  }
}

/** The first of so many numbers for which something holds that holds for all behind it as well. */
function firstWhere(count: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

function nextAt(text: string, at: number): number {
  return at + (text.codePointAt(at)! > 0xffff ? 2 : 1);
}

/** Compatible characters as their usual ones. */
export function plainly(cluster: string): string {
  return cluster.normalize('NFKC');
}

const bare = new Map<string, string>();
const REMEMBERED = 4_096;

/** Without accents, and as what they look like. */
export function barely(cluster: string): string {
  let result = bare.get(cluster);
  if (result === undefined) {
    const letters = cluster.normalize('NFKD').replace(MARKS, '').normalize('NFC');
    result = '';
    for (const character of letters) result += lookAlike(character);
    if (bare.size < REMEMBERED && cluster.length <= 4) bare.set(cluster, result);
  }
  return result;
}

function lookAlike(character: string): string {
  const known = LOOK_ALIKES.get(character);
  if (known !== undefined) return known;
  if (character.charCodeAt(0) < 0x80) return character;
  if (DASH.test(character)) return '-';
  return DIGIT.test(character) ? digitOf(character.codePointAt(0)!) : character;
}

/** Decimal digits of every script stand ten in a row. */
function digitOf(codePoint: number): string {
  let zero = codePoint;
  while (codePoint - zero < 9 && DIGIT.test(String.fromCodePoint(zero - 1))) zero -= 1;
  return String(codePoint - zero);
}

/** Letters of other scripts and of phonetics that cannot be told from Latin ones, and marks that cannot be told apart. */
const LOOK_ALIKES = new Map(
  [
    ['аɑαａ', 'a'],
    ['Ьƅ', 'b'],
    ['сϲⅽ', 'c'],
    ['ԁⅾ', 'd'],
    ['еєҽ', 'e'],
    ['ғ', 'f'],
    ['ɡցǥ', 'g'],
    ['һհ', 'h'],
    ['іıιɩӏ', 'i'],
    ['јϳ', 'j'],
    ['кκ', 'k'],
    ['ⅼǀ', 'l'],
    ['м', 'm'],
    ['пոո', 'n'],
    ['оοσօ', 'o'],
    ['рρ', 'p'],
    ['ԛզ', 'q'],
    ['г', 'r'],
    ['ѕ', 's'],
    ['тτ', 't'],
    ['υսμ', 'u'],
    ['νѵ', 'v'],
    ['ѡԝω', 'w'],
    ['хχ', 'x'],
    ['уγү', 'y'],
    ['ᴢ', 'z'],
    ['АΑ', 'A'],
    ['ВΒ', 'B'],
    ['СϹ', 'C'],
    ['ЕΕ', 'E'],
    ['НΗ', 'H'],
    ['ІΙӀ', 'I'],
    ['Ј', 'J'],
    ['КΚ', 'K'],
    ['МΜ', 'M'],
    ['Ν', 'N'],
    ['ОΟ', 'O'],
    ['РΡ', 'P'],
    ['Ѕ', 'S'],
    ['ТΤ', 'T'],
    ['ХΧ', 'X'],
    ['ΥҮ', 'Y'],
    ['Ζ', 'Z'],
    ['ᴀ', 'a'],
    ['ʙ', 'b'],
    ['ᴄ', 'c'],
    ['ᴅ', 'd'],
    ['ᴇ', 'e'],
    ['ꜰ', 'f'],
    ['ɢ', 'g'],
    ['ʜ', 'h'],
    ['ɪ', 'i'],
    ['ᴊ', 'j'],
    ['ᴋ', 'k'],
    ['ʟ', 'l'],
    ['ᴍ', 'm'],
    ['ɴ', 'n'],
    ['ᴏ', 'o'],
    ['ᴘ', 'p'],
    ['ʀ', 'r'],
    ['ꜱ', 's'],
    ['ᴛ', 't'],
    ['ᴜ', 'u'],
    ['ᴠ', 'v'],
    ['ᴡ', 'w'],
    ['ʏ', 'y'],
    ['。․', '.'],
    ['⁄∕', '/'],
    ['−', '-'],
    ['’‘', "'"],
    ['“”', '"'],
  ].flatMap(([characters, letter]) => [...characters!].map((character) => [character, letter!] as const)),
);

const TAG_START = 0xe0020;
const TAG_END = 0xe007e;

/** Tag characters, which repeat ASCII unseen, as that ASCII. */
function hidden(raw: string): Reading | undefined {
  let text = '';
  const starts: number[] = [];
  for (let at = 0; at < raw.length; at = nextAt(raw, at)) {
    const codePoint = raw.codePointAt(at)!;
    if (codePoint < TAG_START || codePoint > TAG_END) continue;
    text += String.fromCharCode(codePoint - 0xe0000);
    starts.push(at);
  }
  if (text === '') return undefined;
  return {
    text,
    original: ({ start, end }) => ({ start: starts[start]!, end: starts[end - 1]! + 2 }),
    reached: (from) => starts.filter((start) => start < from).length,
  };
}
