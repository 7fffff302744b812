/** The engine `mistral-ocr`: the configured OCR service recognizes the pages; their price is reserved first. */
import { GatewayError, invalidField } from '../../../base/errors.ts';
import { OcrError } from '../../documents/ocr.ts';
import type { AdmissionStep } from '../plugin.ts';
import type { RecognizePages } from './documents.ts';

/**
 * Undefined where nothing may be spent: the text is then read from the file.
 * @throws GatewayError 400 if no service is configured
 */
export function recognition({ parts, path, paying }: AdmissionStep): RecognizePages | undefined {
  const settings = parts.ocr?.settings() ?? null;
  if (settings === null) {
    throw invalidField(`${path}.pdf.engine`, 'needs an OCR service; none is configured (ocr in the yaml)');
  }
  if (paying === undefined) return undefined;
  const { spending, signal } = paying;
  return async (bytes, count) => {
    const held = settings.pageNano * BigInt(count);
    await spending.hold(held);
    try {
      const pages = await parts.ocr!.read(settings, bytes, signal);
      // No more than was reserved.
      spending.settle(held, settings.pageNano * BigInt(Math.min(pages.length, count)));
      return pages.slice(0, count);
    } catch (error) {
      if (!(error instanceof OcrError)) throw error;
      if (!error.costs) spending.settle(held, 0n);
      throw new GatewayError('provider_unavailable', error.message, { status: 502 });
    }
  };
}
