/**
 * A text as a reader sees it, whatever characters it uses: folded, with a mapping of offsets to the original. ASCII
 * text is its own reading at no cost.
 */
import { folded } from './folding.ts';
import { isAscii, nextAt } from './units.ts';

export interface Span {
  /** Offsets into the text in UTF-16 units; the end is exclusive. */
  start: number;
  end: number;
}

export interface Reading {
  readonly text: string;
  /** The original range of a range of the reading. */
  original(span: Span): Span;
  /** The first offset of the reading at or after an offset of the original. */
  reached(at: number): number;
}

/** The readings of one text, computed on first use. */
export class Readings {
  readonly raw: string;
  readonly ascii: boolean;
  #plain: Reading | undefined;
  #skeleton: Reading | undefined;

  constructor(raw: string) {
    this.raw = raw;
    this.ascii = isAscii(raw);
  }

  /** Compatibility characters normalized (NFKC), invisible characters removed. */
  get plain(): Reading {
    this.#plain ??= this.ascii ? unchanged(this.raw) : folded(this.raw, 'plain');
    return this.#plain;
  }

  /** Look-alikes replaced too, and accents removed. */
  get skeleton(): Reading {
    this.#skeleton ??= this.ascii ? unchanged(this.raw) : folded(this.raw, 'skeleton');
    return this.#skeleton;
  }

  /** Readings for patterns: the text as written and, if different, as folded. */
  get forPatterns(): readonly Reading[] {
    const written = unchanged(this.raw);
    return this.plain.text === this.raw ? [written] : [written, this.plain];
  }

  /** Text in tag characters, which are invisible to people but not to models; undefined for nearly every text. */
  get hidden(): Reading | undefined {
    return this.ascii || !this.raw.includes('\u{db40}') ? undefined : hidden(this.raw);
  }
}

/** A text that needs no folding. */
export function unchanged(text: string): Reading {
  return { text, original: (span) => span, reached: (at) => at };
}

const TAG_START = 0xe0020;
const TAG_END = 0xe007e;

/** Decodes tag characters, an invisible copy of ASCII. */
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
