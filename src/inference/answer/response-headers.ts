/** Response headers of inference operations. */
import type { RequestContext } from '../context.ts';

/** Anthropic's SDKs read the request id from this header. */
export const ANTHROPIC_REQUEST_ID = 'request-id';

/** Every header that a stage has added, and the generation's id. */
export function headersOf({ request: { id }, headers }: RequestContext): Record<string, string> {
  return headers === undefined ? { 'x-generation-id': id } : { 'x-generation-id': id, ...headers };
}
