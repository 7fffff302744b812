/**
 * Folds a text character by character, together with combining marks, and maps each offset back to the original. Nearly
 * every character folds to one unit regardless of its neighbours, and is folded by a table; all others by Unicode's
 * rules.
 */
import { barely, plainly } from './look-alikes.ts';
import type { Reading, Span } from './reading.ts';
import { clear, nextAt, unitsOf } from './units.ts';

/** Invisible characters. `escapes.ts` handles the control characters of ASCII, and U+0085 is white space. */
const UNSEEN = /^[\p{Default_Ignorable_Code_Point}\p{Cf}\u0080-\u0084\u0086-\u009f]$/u;
const MARK = /^\p{M}$/u;
/** No character below this code point combines with the one before it. */
const FIRST_MARK = 0x300;

/**
 * Traits of a code point: whether they are known, whether it joins the character before it, whether it is invisible.
 */
const KNOWN = 1;
const JOINS = 2;
const UNSEEN_BY_ALL = 4;
let traits: Uint8Array | undefined;

/** The table is allocated with the first non-ASCII text; the system only backs the pages of scripts in use. */
function traitsOf(codePoint: number): number {
  traits ??= new Uint8Array(0x110000);
  let known = traits[codePoint]!;
  if (known !== 0) return known;
  const character = String.fromCodePoint(codePoint);
  known = KNOWN;
  if (UNSEEN.test(character)) known |= JOINS | UNSEEN_BY_ALL;
  else if (MARK.test(character)) known |= JOINS;
  traits[codePoint] = known;
  return known;
}

/** Maximum number of folded clusters that are cached. */
const REMEMBERED = 4_096;

const READS_AS = 0xffff;
const JOINS_NONE = 0x10000;

class Table {
  readonly #rules: (cluster: string) => string;
  readonly #known = new Map<string, string>();
  /**
   * By UTF-16 unit: the unit it folds to, or 0 if that is unknown or not a single unit; plus `JOINS_NONE` if the unit
   * is known not to join the character before it.
   */
  readonly units = new Uint32Array(65_536);

  constructor(rules: (cluster: string) => string) {
    this.#rules = rules;
    for (let code = 0; code < FIRST_MARK; code++) this.units[code] = JOINS_NONE | (code < 128 ? code : 0);
  }

  fold(cluster: string): string {
    if (cluster.length === 1 && cluster.charCodeAt(0) < 0x80) return cluster;
    let reads = this.#known.get(cluster);
    if (reads === undefined) {
      reads = this.#rules(cluster);
      if (this.#known.size < REMEMBERED && cluster.length <= 4) this.#known.set(cluster, reads);
    }
    return reads;
  }
}

const tables = new Map<'plain' | 'skeleton', Table>();

function tableOf(kind: 'plain' | 'skeleton'): Table {
  let table = tables.get(kind);
  if (table === undefined) {
    table = new Table(kind === 'plain' ? plainly : barely);
    tables.set(kind, table);
  }
  return table;
}

/** `plain`: compatibility characters are normalized (NFKC); `skeleton`: look-alikes too, and accents are removed. */
export function folded(raw: string, kind: 'plain' | 'skeleton'): Reading {
  return new Folding(raw, tableOf(kind)).reading();
}

/** Reused buffer for texts of ordinary length. */
const ordinary = new Uint16Array(32_768);

class Folding {
  readonly #raw: string;
  readonly #table: Table;
  readonly #units: Uint16Array;
  readonly #changes = new Changes();
  #result: Uint16Array;
  /** Length of the result. */
  #length = 0;
  #differs = false;

  constructor(raw: string, table: Table) {
    this.#raw = raw;
    this.#table = table;
    this.#units = unitsOf(raw);
    this.#result = raw.length <= ordinary.length ? ordinary : new Uint16Array(raw.length);
  }

  reading(): Reading {
    const raw = this.#raw;
    for (let at = this.#copySingles(0); at < raw.length; at = this.#copySingles(at)) at = this.#foldOne(at);
    const text = this.#differs ? this.#text() : raw;
    clear(this.#units, raw.length);
    clear(this.#result, this.#length);
    return this.#changes.reading(raw, text);
  }

  #text(): string {
    return Buffer.from(this.#result.buffer, 0, 2 * this.#length).toString('utf16le');
  }

  /** @returns the first offset at or after `at` that the table cannot fold */
  #copySingles(at: number): number {
    const units = this.#units;
    const table = this.#table.units;
    const result = this.#result;
    const end = this.#raw.length;
    let length = this.#length;
    let differences = 0;
    let place = at;
    let unit = units[place]!;
    let known = table[unit]!;
    while (place < end) {
      const next = units[place + 1]!;
      const nextKnown = table[next]!;
      const reads = known & READS_AS;
      if (reads === 0 || nextKnown < JOINS_NONE) break;
      differences |= reads ^ unit;
      result[length] = reads;
      length += 1;
      place += 1;
      unit = next;
      known = nextKnown;
    }
    this.#length = length;
    if (differences !== 0) this.#differs = true;
    return place;
  }

  /** @returns the offset after the folded characters */
  #foldOne(at: number): number {
    const raw = this.#raw;
    const code = raw.codePointAt(at)!;
    const end = nextAt(raw, at);
    const known = traitsOf(code);
    if ((known & UNSEEN_BY_ALL) !== 0) {
      this.#write(at, end, '', true);
      return end;
    }
    if (!this.#isUnpaired(end)) return this.#foldCluster(at, end);
    const reads = this.#table.fold(raw.slice(at, end));
    this.#write(at, end, reads, true);
    if (reads.length === 1 && isCharacter(code) && (known & JOINS) === 0) {
      this.#table.units[code] = (this.#table.units[code]! & JOINS_NONE) | reads.charCodeAt(0);
    }
    return end;
  }

  #isUnpaired(end: number): boolean {
    const raw = this.#raw;
    if (end === raw.length || raw.charCodeAt(end) < FIRST_MARK) return true;
    const next = raw.codePointAt(end)!;
    if ((traitsOf(next) & JOINS) !== 0) return false;
    if (isCharacter(next)) this.#table.units[next]! |= JOINS_NONE;
    return true;
  }

  /** @param next offset after its first character @returns the end of the cluster */
  #foldCluster(at: number, next: number): number {
    const raw = this.#raw;
    let end = next;
    let cluster = raw.slice(at, end);
    // Marks join the character before them, even across invisible characters.
    for (let place = next; place < raw.length && raw.charCodeAt(place) >= FIRST_MARK; ) {
      const known = traitsOf(raw.codePointAt(place)!);
      if ((known & JOINS) === 0) break;
      const after = nextAt(raw, place);
      if ((known & UNSEEN_BY_ALL) === 0) {
        cluster += raw.slice(place, after);
        end = after;
      }
      place = after;
    }
    this.#write(at, end, this.#table.fold(cluster), end === next);
    return end;
  }

  /** @param alone a single character: while its length stays the same, no offset mapping is needed */
  #write(start: number, end: number, reads: string, alone: boolean): void {
    const rest = this.#length + reads.length;
    const needed = rest + this.#raw.length - end;
    if (needed > this.#result.length) {
      const longer = new Uint16Array(needed * 2);
      longer.set(this.#result.subarray(0, this.#length));
      clear(this.#result, this.#length);
      this.#result = longer;
    }
    for (let index = 0; index < reads.length; index++) this.#result[this.#length + index] = reads.charCodeAt(index);
    if (!alone || reads.length !== end - start) this.#changes.add(start, end, this.#length, rest);
    if (reads.length !== end - start || !this.#raw.startsWith(reads, start)) this.#differs = true;
    this.#length = rest;
  }
}

/** True if a code point is one UTF-16 unit and not a surrogate. */
function isCharacter(codePoint: number): boolean {
  return codePoint < 0xd800 || (codePoint > 0xdfff && codePoint < 0x10000);
}

/** Parts of a text whose offsets in the result differ from the original. */
export class Changes {
  /** By change: its offsets in the original and in the result. */
  readonly #starts: number[] = [];
  readonly #ends: number[] = [];
  readonly #foldedStarts: number[] = [];
  readonly #foldedEnds: number[] = [];
  #raw = '';

  add(start: number, end: number, foldedStart: number, foldedEnd: number): void {
    this.#starts.push(start);
    this.#ends.push(end);
    this.#foldedStarts.push(foldedStart);
    this.#foldedEnds.push(foldedEnd);
  }

  reading(raw: string, text: string): Reading {
    this.#raw = raw;
    return {
      text,
      original: ({ start, end }) => ({
        start: start < text.length ? this.#origin(start).start : raw.length,
        end: end > 0 && end <= text.length ? this.#origin(end - 1).end : raw.length,
      }),
      reached: (from) => firstWhere(text.length, (at) => this.#origin(at).start >= from),
    };
  }

  /** The original range of one unit of the result. */
  #origin(place: number): Span {
    const change = firstWhere(this.#foldedStarts.length, (index) => this.#foldedStarts[index]! > place) - 1;
    if (change >= 0 && place < this.#foldedEnds[change]!) {
      return { start: this.#starts[change]!, end: this.#ends[change]! };
    }
    const at = change < 0 ? place : this.#ends[change]! + place - this.#foldedEnds[change]!;
    // Both surrogates map to the whole character.
    const from = at > 0 && this.#raw.codePointAt(at - 1)! > 0xffff ? at - 1 : at;
    return { start: from, end: nextAt(this.#raw, from) };
  }
}

/** Binary search: the first index for which `holds` is true; it must stay true for all later ones. */
function firstWhere(count: number, holds: (index: number) => boolean): number {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
