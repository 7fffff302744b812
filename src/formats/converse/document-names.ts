/**
 * Names of documents as this form takes them: letters, digits, hyphens, round and square brackets and single spaces, at
 * most 200 of them, and no name twice in a conversation, whatever its case. A name depends on nothing behind its document.
 */
import { Uncarried } from '../conversation/losses.ts';

/** What the service takes in one request. */
const MOST_DOCUMENTS = 5;
const MOST_LETTERS = 200;
const NAMELESS = 'document';

export class DocumentNames {
  private readonly used = new Set<string>();

  /** The name for a document with this file name; its ending is told by the block's format. Throws `Uncarried` past the most. */
  take(filename: string | undefined): string {
    const stem = (filename ?? '').replace(/\.[A-Za-z0-9]{1,5}$/, '');
    const plain = stem
      .replace(/[^A-Za-z0-9()[\]\s-]+/g, '-')
      .replace(/\s+/g, ' ')
      .trim();
    const name = /[A-Za-z0-9]/.test(plain) ? plain.slice(0, MOST_LETTERS).trimEnd() : NAMELESS;
    let free = name;
    for (let count = 2; this.used.has(free.toLowerCase()); count++) {
      const suffix = ` ${count}`;
      free = name.slice(0, MOST_LETTERS - suffix.length).trimEnd() + suffix;
    }
    this.used.add(free.toLowerCase());
    if (this.used.size > MOST_DOCUMENTS) {
      throw new Uncarried('file', `the converse form takes ${MOST_DOCUMENTS} documents in a request`);
    }
    return free;
  }
}
