/**
 * A text as a reader sees it, whatever characters it is written with: folded, with the way back to the original for each
 * place. ASCII is its own reading and costs nothing.
 */
import { folded } from './folding.ts';
import { isAscii, nextAt } from './units.ts';

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
    this.#plain ??= this.ascii ? unchanged(this.raw) : folded(this.raw, 'plain');
    return this.#plain;
  }

  /** Characters that only look like others as those as well, without accents. */
  get skeleton(): Reading {
    this.#skeleton ??= this.ascii ? unchanged(this.raw) : folded(this.raw, 'skeleton');
    return this.#skeleton;
  }

  /** As patterns look at it: as it is written and, where that is something else, as it reads. */
  get forPatterns(): readonly Reading[] {
    const written = unchanged(this.raw);
    return this.plain.text === this.raw ? [written] : [written, this.plain];
  }

  /** What is written in characters that are invisible to people and not to models; undefined for nearly every text. */
  get hidden(): Reading | undefined {
    return this.ascii || !this.raw.includes('\u{db40}') ? undefined : hidden(this.raw);
  }
}

/** A text that reads as it is written. */
export function unchanged(text: string): Reading {
  return { text, original: (span) => span, reached: (at) => at };
}

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
