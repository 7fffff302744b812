/** The worker thread that turns HTML pages into Markdown. Loads the parser on first use. */
import { answerOrders } from './order.ts';

export interface PageOrder {
  id: number;
  html: string;
  url: string;
}

/** `text` is absent when the page could not be read. */
export interface PageNews {
  id: number;
  title?: string;
  text?: string;
}

/** Its extractors for some sites would fetch more, past the checked egress. */
const OPTIONS = { markdown: true, useAsync: false, fetch: () => Promise.reject(new Error('not allowed')) };

const load = () => Promise.all([import('defuddle/node'), import('linkedom')]);
type Parser = Awaited<ReturnType<typeof load>>;

async function read({ id, html, url }: PageOrder, [{ Defuddle }, { parseHTML }]: Parser): Promise<PageNews> {
  try {
    const { document } = parseHTML(html);
    const { content, title } = await Defuddle(document as never, url, OPTIONS);
    return { id, title, text: content };
  } catch {
    return { id };
  }
}

answerOrders(load, read);
