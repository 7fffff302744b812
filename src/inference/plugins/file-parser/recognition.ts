/** The engine `mistral-ocr`: the configured OCR service recognizes the pages; their price is reserved first. */
import { GatewayError, invalidField } from '../../../base/errors.ts';
import { policyOf } from '../../../guardrails/index.ts';
import { OcrError } from '../../documents/ocr.ts';
import type { ConversationRequest } from '../../request.ts';
import { mayReach } from '../../routing/index.ts';
import type { AdmissionStep } from '../plugin.ts';
import type { RecognizePages } from './documents.ts';

/**
 * Undefined where nothing may be spent: the text is then read from the file.
 * @throws GatewayError 400 if no service is configured, 403 if the request may not reach the provider that has it
 */
export function recognition({ context, parts, path, paying }: AdmissionStep): RecognizePages | undefined {
  const settings = parts.ocr?.settings() ?? null;
  if (settings === null) {
    throw invalidField(
      `${path}.pdf.engine`,
      'needs an OCR service; none is configured (ocr in the yaml, or a provider of the kind mistral)',
    );
  }
  if (settings.providerId !== null) checkProvider(settings.providerId, context.request, parts, `${path}.pdf.engine`);
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

/** The file goes to a provider: rules about who may receive data hold for it too. */
function checkProvider(
  id: string,
  { facts, caller }: ConversationRequest,
  { catalog, accountPolicy }: AdmissionStep['parts'],
  path: string,
): void {
  const current = catalog();
  const endpoints = current.models.flatMap((model) => model.endpoints.filter(({ provider }) => provider.id === id));
  if (mayReach(endpoints, facts, accountPolicy(), { guardrails: policyOf(caller), catalog: current })) return;
  throw new GatewayError('permission_denied', `${path} needs the provider ${id}, which this request may not use`, {
    path,
  });
}
