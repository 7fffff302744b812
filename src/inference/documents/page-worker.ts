/** The worker thread that turns HTML pages into Markdown. Loads the parser on first use. */
import { parentPort } from 'node:worker_threads';

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

async function read({ id, html, url }: PageOrder): Promise<PageNews> {
  try {
    const [{ Defuddle }, { parseHTML }] = await Promise.all([import('defuddle/node'), import('linkedom')]);
    const { document } = parseHTML(html);
    const { content, title } = await Defuddle(document as never, url, OPTIONS);
    return { id, title, text: content };
  } catch {
    return { id };
  }
}

parentPort?.on('message', async (order: PageOrder) => {
  parentPort?.postMessage(await read(order));
});
