/** Recognizes the text of PDFs with the configured OCR service, which has Mistral's API (`POST /ocr`). */
import type { OcrSettings } from '../../base/config.ts';
import { type Egress, EgressError, type EgressReply } from '../../egress/index.ts';
import { fieldsOf, listOf, textOf } from '../../formats/conversation/fields.ts';

const TIMEOUT_MS = 120_000;
const MAX_REPLY_BYTES = 32 * 1024 * 1024;

/** A PDF that was not recognized. */
export class OcrError extends Error {
  /** The service may charge for it. */
  readonly costs: boolean;

  constructor(message: string, costs: boolean) {
    super(message);
    this.name = 'OcrError';
    this.costs = costs;
  }
}

export interface Ocr {
  /** The current configuration; null if there is none. */
  settings(): OcrSettings | null;
  /** The text of each page as Markdown. Rejects with OcrError. */
  read(settings: OcrSettings, pdf: Buffer, signal: AbortSignal): Promise<string[]>;
}

/** @param egress allows private addresses, because the operator configures the URL */
export function createOcr(egress: Egress, settings: () => OcrSettings | null): Ocr {
  return { settings, read: (current, pdf, signal) => read(egress, current, pdf, signal) };
}

async function read(
  egress: Egress,
  { url, apiKey, model }: OcrSettings,
  pdf: Buffer,
  signal: AbortSignal,
): Promise<string[]> {
  const document = { type: 'document_url', document_url: `data:application/pdf;base64,${pdf.toString('base64')}` };
  let reply: EgressReply;
  try {
    reply = await egress.request({
      url: `${url}/ocr`,
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        ...(apiKey !== null && { authorization: `Bearer ${apiKey.reveal()}` }),
      },
      body: JSON.stringify({ model, document, include_image_base64: false }),
      maxBytes: MAX_REPLY_BYTES,
      timeoutMs: TIMEOUT_MS,
      signal,
    });
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    throw new OcrError('the OCR service did not respond', true);
  }
  if (reply.status !== 200) throw new OcrError(`the OCR service responded with status ${reply.status}`, false);
  const pages = pagesIn(reply.body);
  if (pages === undefined) throw new OcrError('the response of the OCR service has no pages', true);
  return pages;
}

function pagesIn(body: Buffer): string[] | undefined {
  let reply: unknown;
  try {
    reply = JSON.parse(body.toString('utf8'));
  } catch {
    return undefined;
  }
  const pages = listOf(fieldsOf(reply)['pages']).map(fieldsOf);
  return pages.length === 0 ? undefined : pages.map(({ markdown }) => textOf(markdown));
}
