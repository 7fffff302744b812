/** Reads the text of Word documents, in a worker thread. */
import type { DocxFault, DocxNews, DocxOrder } from './docx-worker.ts';
import { OneByOne, type ThreadParts, type Undone } from './one-by-one.ts';

/** Of the unpacked document; one that is not hostile has less. */
const MAX_BYTES = 64 * 1024 * 1024;
/** UTF-16 units. */
const MAX_LENGTH = 4 * 1024 * 1024;
const LIMITS = { waiting: 16, timeMs: 20_000, heapMb: 512 };

const EXTENSION = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const SCRIPT = new URL(`./docx-worker.${EXTENSION}`, import.meta.url);

type DocxFailure = DocxFault | Undone;

export class DocxReader {
  readonly #thread: OneByOne<Omit<DocxOrder, 'id'>, DocxNews>;

  constructor(parts: ThreadParts) {
    this.#thread = new OneByOne(parts, SCRIPT, LIMITS);
  }

  /** Never rejects. */
  async read(bytes: Uint8Array): Promise<{ text: string } | { fault: DocxFailure }> {
    // Copy the bytes: they may be a view of a larger buffer, and all of that would be sent.
    const news = await this.#thread.do({ bytes: Uint8Array.from(bytes), maxBytes: MAX_BYTES, maxLength: MAX_LENGTH });
    if (typeof news === 'string') return { fault: news };
    return news.text === undefined ? { fault: news.fault ?? 'unreadable' } : { text: news.text };
  }

  /** Ends the thread. Files that wait are not read. */
  close(): Promise<void> {
    return this.#thread.close();
  }
}
