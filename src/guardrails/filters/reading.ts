/**
 * A text as a reader sees it, whatever characters it is written with: folded, with the way back to the original for each
 * place. ASCII is its own reading and costs nothing.
 */

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
    this.ascii = !BEYOND_ASCII.test(raw);
  }

  /** Compatible characters as their usual ones (NFKC), without those that nobody sees. */
  get plain(): Reading {
    this.#plain ??= this.ascii ? unchanged(this.raw) : folded(this.raw, plainly);
    return this.#plain;
  }

  /** Characters that only look like others as those as well, without accents. */
  get skeleton(): Reading {
    this.#skeleton ??= this.ascii ? unchanged(this.raw) : folded(this.raw, barely);
    return this.#skeleton;
  }

  /** What is written in characters that are invisible to people and not to models; undefined for nearly every text. */
  get hidden(): Reading | undefined {
    return this.ascii || !this.raw.includes('\u{db40}') ? undefined : hidden(this.raw);
  }
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: ASCII is what is asked for.
const BEYOND_ASCII = /[^\x00-\x7f]/;
const UNSEEN = /^[\p{Default_Ignorable_Code_Point}\p{Cf}]$/u;
const MARK = /^\p{M}$/u;
const MARKS = /\p{M}+/gu;
const DIGIT = /^\p{Nd}$/u;
const DASH = /^\p{Pd}$/u;

function unchanged(text: string): Reading {
  return { text, original: (span) => span, reached: (at) => at };
}

/** Character by character with the marks that belong to each, so that every place of the result has its origin. */
function folded(raw: string, fold: (cluster: string) => string): Reading {
  const parts: string[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  let at = 0;
  while (at < raw.length) {
    let end = nextAt(raw, at);
    const first = raw.slice(at, end);
    if (first.charCodeAt(0) >= 0x80 && UNSEEN.test(first)) {
      at = end;
      continue;
    }
    let cluster = first;
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
    const result = cluster.length === 1 && cluster.charCodeAt(0) < 0x80 ? cluster : fold(cluster);
    parts.push(result);
    for (let unit = 0; unit < result.length; unit++) {
      starts.push(at);
      ends.push(end);
    }
    at = end;
  }
  return {
    text: parts.join(''),
    original: ({ start, end }) => ({ start: starts[start] ?? raw.length, end: ends[end - 1] ?? raw.length }),
    reached(from) {
      const found = starts.findIndex((start) => start >= from);
      return found === -1 ? starts.length : found;
    },
  };
}

function nextAt(text: string, at: number): number {
  return at + (text.codePointAt(at)! > 0xffff ? 2 : 1);
}

function plainly(cluster: string): string {
  return cluster.normalize('NFKC');
}

const bare = new Map<string, string>();
const REMEMBERED = 4_096;

function barely(cluster: string): string {
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
