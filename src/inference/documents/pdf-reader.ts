/** Reads the text of PDFs, in a worker thread. */
import { OneByOne, type ThreadParts, type Undone } from './one-by-one.ts';
import type { PdfFault, PdfNews, PdfOrder } from './pdf-worker.ts';

/** No model reads more pages at once. */
const MAX_PAGES = 2_000;
/** UTF-16 units of all pages. */
const MAX_LENGTH = 4 * 1024 * 1024;
const LIMITS = { waiting: 16, timeMs: 20_000, heapMb: 512 };

const EXTENSION = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const SCRIPT = new URL(`./pdf-worker.${EXTENSION}`, import.meta.url);

export type PdfFailure = PdfFault | Undone;
type PdfText = { pages: readonly string[] } | { fault: PdfFailure };

export class PdfReader {
  readonly #thread: OneByOne<Omit<PdfOrder, 'id'>, PdfNews>;

  constructor(parts: ThreadParts) {
    this.#thread = new OneByOne(parts, SCRIPT, LIMITS);
  }

  /** Whether the thread runs. */
  get running(): boolean {
    return this.#thread.running;
  }

  /** Never rejects. */
  async read(bytes: Uint8Array): Promise<PdfText> {
    // Copy the bytes: they may be a view of a larger buffer, and all of that would be sent.
    const order = { bytes: Uint8Array.from(bytes), maxPages: MAX_PAGES, maxLength: MAX_LENGTH };
    const news = await this.#thread.do(order);
    if (typeof news === 'string') return { fault: news };
    return news.pages === undefined ? { fault: news.fault ?? 'unreadable' } : { pages: news.pages };
  }

  /** Ends the thread. Files that wait are not read. */
  close(): Promise<void> {
    return this.#thread.close();
  }
}
