/**
 * Folds a text character by character, with the marks that belong to each, and remembers where every place comes from. Nearly
 * every character becomes one unit whatever stands beside it: those go through a table, and all others through Unicode's rules.
 */
import { barely, plainly } from './look-alikes.ts';
import type { Reading, Span } from './reading.ts';
import { clear, nextAt, unitsOf } from './units.ts';

/** Control characters of ASCII are seen to elsewhere (`escapes.ts`), and U+0085 is white space. */
const UNSEEN = /^[\p{Default_Ignorable_Code_Point}\p{Cf}\u0080-\u0084\u0086-\u009f]$/u;
const MARK = /^\p{M}$/u;
/** Below it nothing joins what stands before. */
const FIRST_MARK = 0x300;

/** What is known of a code point: whether it was looked at, and whether others join or skip it. */
const KNOWN = 1;
const JOINS = 2;
const UNSEEN_BY_ALL = 4;
let traits: Uint8Array | undefined;

/** The table is made with the first text beyond ASCII; its pages are used as far as scripts are. */
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

/** Clusters that the rules were asked about, so that they are not asked again. */
const REMEMBERED = 4_096;

const READS_AS = 0xffff;
const JOINS_NONE = 0x10000;

class Table {
  readonly #rules: (cluster: string) => string;
  readonly #known = new Map<string, string>();
  /**
   * By UTF-16 unit: the one that it reads as, 0 where that is not known or is not one unit; and `JOINS_NONE` for what is known not
   * to join what stands before.
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

/** `plain`: compatible characters as their usual ones; `skeleton`: by their looks as well, without accents. */
export function folded(raw: string, kind: 'plain' | 'skeleton'): Reading {
  return new Folding(raw, tableOf(kind)).reading();
}

/** Texts as long as most are written into this. */
const ordinary = new Uint16Array(32_768);

class Folding {
  readonly #raw: string;
  readonly #table: Table;
  readonly #units: Uint16Array;
  readonly #changes = new Changes();
  #result: Uint16Array;
  /** Of the result. */
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

  /** @returns the first place at or behind `at` that the table does not tell */
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

  /** @returns behind what it folded */
  #foldOne(at: number): number {
    const raw = this.#raw;
    const code = raw.codePointAt(at)!;
    const end = nextAt(raw, at);
    const known = traitsOf(code);
    if ((known & UNSEEN_BY_ALL) !== 0) {
      this.#write(at, end, '', true);
      return end;
    }
    if (!this.#standsAlone(end)) return this.#foldCluster(at, end);
    const reads = this.#table.fold(raw.slice(at, end));
    this.#write(at, end, reads, true);
    if (reads.length === 1 && isCharacter(code) && (known & JOINS) === 0) {
      this.#table.units[code] = (this.#table.units[code]! & JOINS_NONE) | reads.charCodeAt(0);
    }
    return end;
  }

  #standsAlone(end: number): boolean {
    const raw = this.#raw;
    if (end === raw.length || raw.charCodeAt(end) < FIRST_MARK) return true;
    const next = raw.codePointAt(end)!;
    if ((traitsOf(next) & JOINS) !== 0) return false;
    if (isCharacter(next)) this.#table.units[next]! |= JOINS_NONE;
    return true;
  }

  /** @param next behind its first character @returns where the cluster ends */
  #foldCluster(at: number, next: number): number {
    const raw = this.#raw;
    let end = next;
    let cluster = raw.slice(at, end);
    // Marks join what they follow, also when something unseen stands between.
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

  /** @param alone it is of one character: while it stays as long, its places say where they come from by themselves */
  #write(start: number, end: number, reads: string, alone: boolean): void {
    const behind = this.#length + reads.length;
    const room = behind + this.#raw.length - end;
    if (room > this.#result.length) {
      const longer = new Uint16Array(room * 2);
      longer.set(this.#result.subarray(0, this.#length));
      clear(this.#result, this.#length);
      this.#result = longer;
    }
    for (let index = 0; index < reads.length; index++) this.#result[this.#length + index] = reads.charCodeAt(index);
    if (!alone || reads.length !== end - start) this.#changes.add(start, end, this.#length, behind);
    if (reads.length !== end - start || !this.#raw.startsWith(reads, start)) this.#differs = true;
    this.#length = behind;
  }
}

/** Whether a code point is one UTF-16 unit and none of the halves of two. */
function isCharacter(codePoint: number): boolean {
  return codePoint < 0xd800 || (codePoint > 0xdfff && codePoint < 0x10000);
}

/** Pieces of a text whose places in the result do not say where they come from. */
export class Changes {
  /** By change: its place in the original, and in the result. */
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
