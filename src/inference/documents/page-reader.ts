/** Turns HTML pages into Markdown, in a worker thread. */
import type { Clock } from '../../base/clock.ts';
import { OneByOne } from './one-by-one.ts';
import type { PageNews, PageOrder } from './page-worker.ts';

const EXTENSION = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
const SCRIPT = new URL(`./page-worker.${EXTENSION}`, import.meta.url);
const LIMITS = { waiting: 16, timeMs: 20_000, heapMb: 512 };

export class PageReader {
  readonly #thread: OneByOne<Omit<PageOrder, 'id'>, PageNews>;

  constructor(clock: Clock) {
    this.#thread = new OneByOne(clock, SCRIPT, LIMITS);
  }

  /** Undefined when the page cannot be read, too many wait, or it takes longer than 20 s. @param url of relative links */
  async read(page: { html: string; url: string }): Promise<{ title: string; text: string } | undefined> {
    const news = await this.#thread.do(page);
    if (typeof news === 'string' || news.text === undefined) return undefined;
    return { title: news.title ?? '', text: news.text };
  }

  close(): Promise<void> {
    return this.#thread.close();
  }
}
