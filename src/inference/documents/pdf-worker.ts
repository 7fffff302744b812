/** The worker thread that reads the text of PDFs. Loads the parser on first use. */
import { answerOrders } from './order.ts';

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

type Parser = typeof import('unpdf');

async function read({ id, bytes, maxPages, maxLength }: PdfOrder, parser: Parser): Promise<PdfNews> {
  const { extractText, getDocumentProxy } = parser;
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

answerOrders(() => import('unpdf'), read);
