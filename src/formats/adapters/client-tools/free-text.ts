/**
 * Extracts the free text of a custom tool from its function's arguments, `{"input": "..."}`, while they stream.
 * Arguments in any other shape are held and read at the end.
 */
import { freeTextOf, INPUT_MEMBER } from './shapes.ts';

const HEAD = new RegExp(`^\\s*\\{\\s*"${INPUT_MEMBER}"\\s*:\\s*"`);
/** The head without white space; a prefix of it may still become the head. */
const HEAD_SIGNS = `{"${INPUT_MEMBER}":"`;
const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' };

export class FreeText {
  /** Received but not yet read. */
  #left = '';
  #state: 'head' | 'text' | 'over' | 'other' = 'head';

  /** The text added by this piece. */
  add(piece: string): string {
    if (this.#state === 'over') return '';
    this.#left += piece;
    if (this.#state === 'head') this.#readHead();
    return this.#state === 'text' ? this.#readText() : '';
  }

  /** The remaining text at the end of the call. */
  end(): string {
    if (this.#state === 'text' || this.#state === 'over') return '';
    const text = freeTextOf(this.#left);
    this.#left = '';
    this.#state = 'over';
    return text;
  }

  #readHead(): void {
    const head = HEAD.exec(this.#left);
    if (head !== null) {
      this.#state = 'text';
      this.#left = this.#left.slice(head[0].length);
    } else if (!HEAD_SIGNS.startsWith(this.#left.slice(0, 64).replaceAll(/\s/g, ''))) this.#state = 'other';
  }

  /** Reads up to the closing quote or an incomplete escape. */
  #readText(): string {
    const left = this.#left;
    let text = '';
    let from = 0;
    let at = 0;
    for (; at < left.length; at++) {
      const sign = left[at];
      if (sign === '"') {
        text += left.slice(from, at);
        this.#state = 'over';
        this.#left = '';
        return text;
      }
      if (sign !== '\\') continue;
      const length = left[at + 1] === 'u' ? 6 : 2;
      if (at + length > left.length) break;
      text += left.slice(from, at) + unescaped(left.slice(at + 1, at + length));
      at += length - 1;
      from = at + 1;
    }
    text += left.slice(from, at);
    this.#left = left.slice(at);
    return text;
  }
}

function unescaped(sequence: string): string {
  if (sequence[0] === 'u') return String.fromCharCode(Number.parseInt(sequence.slice(1), 16) || 0);
  return ESCAPES[sequence] ?? sequence;
}
