/** Turns HTML pages into Markdown, in a worker thread. */
import { OneByOne, type ThreadParts, type Undone } from './one-by-one.ts';
import type { PageNews, PageOrder } from './page-worker.ts';

const EXTENSION = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const SCRIPT = new URL(`./page-worker.${EXTENSION}`, import.meta.url);
const LIMITS = { waiting: 16, timeMs: 20_000, heapMb: 512 };

type PageText = { title: string; text: string } | { fault: 'unreadable' | Undone };

export class PageReader {
  readonly #thread: OneByOne<Omit<PageOrder, 'id'>, PageNews>;

  constructor(parts: ThreadParts) {
    this.#thread = new OneByOne(parts, SCRIPT, LIMITS);
  }

  /** Never rejects. @param url of relative links */
  async read(page: { html: string; url: string }): Promise<PageText> {
    const news = await this.#thread.do(page);
    if (typeof news === 'string') return { fault: news };
    if (news.text === undefined) return { fault: 'unreadable' };
    return { title: news.title ?? '', text: news.text };
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}
