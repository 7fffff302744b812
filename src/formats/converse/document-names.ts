/**
 * Document names as this format allows them: letters, digits, hyphens, brackets, parentheses and single spaces, at most
 * 200 characters, unique in a conversation regardless of case. A name never depends on later documents.
 */
import { Uncarried } from '../conversation/losses.ts';

/** Most documents per request. */
const MOST_DOCUMENTS = 5;
const MOST_LETTERS = 200;
const NAMELESS = 'document';

export class DocumentNames {
  readonly #used = new Set<string>();

  /**
   * A name for the document with this file name, without the extension (the block's format replaces it). Throws
   * `Uncarried` if there are too many documents.
   */
  take(filename: string | undefined): string {
    const stem = (filename ?? '').replace(/\.[A-Za-z0-9]{1,5}$/, '');
    const plain = stem
      .replace(/[^A-Za-z0-9()[\]\s-]+/g, '-')
      .replace(/\s+/g, ' ')
      .trim();
    const name = /[A-Za-z0-9]/.test(plain) ? plain.slice(0, MOST_LETTERS).trimEnd() : NAMELESS;
    let free = name;
    for (let count = 2; this.#used.has(free.toLowerCase()); count++) {
      const suffix = ` ${count}`;
      free = name.slice(0, MOST_LETTERS - suffix.length).trimEnd() + suffix;
    }
    this.#used.add(free.toLowerCase());
    if (this.#used.size > MOST_DOCUMENTS) {
      throw new Uncarried('file', `the converse format accepts at most ${MOST_DOCUMENTS} documents per request`);
    }
    return free;
  }
}
