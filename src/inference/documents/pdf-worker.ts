/** The worker thread that reads the text of PDFs. Loads the parser on first use. */
import { parentPort } from 'node:worker_threads';

export interface PdfOrder {
  id: number;
  bytes: Uint8Array;
  maxPages: number;
  maxLength: number;
}

export type PdfFault = 'unreadable' | 'encrypted' | 'pages' | 'length';

/** `fault` is absent when the text was read. */
export interface PdfNews {
  id: number;
  /** One text for each page. */
  pages?: string[];
  fault?: PdfFault;
}

async function read({ id, bytes, maxPages, maxLength }: PdfOrder): Promise<PdfNews> {
  const { extractText, getDocumentProxy } = await import('unpdf');
  try {
    const document = await getDocumentProxy(bytes, { verbosity: 0 });
    if (document.numPages > maxPages) return { id, fault: 'pages' };
    const { text } = await extractText(document, { mergePages: false });
    const length = text.reduce((sum, page) => sum + page.length, 0);
    return length > maxLength ? { id, fault: 'length' } : { id, pages: text };
  } catch (error) {
    return { id, fault: (error as Error).name === 'PasswordException' ? 'encrypted' : 'unreadable' };
  }
}

parentPort?.on('message', async (order: PdfOrder) => {
  parentPort?.postMessage(await read(order));
});
