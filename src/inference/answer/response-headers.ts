/** Response headers of inference operations. */
import type { RequestContext } from '../context.ts';

/** Every header that a stage has added, and the generation's id. */
export function headersOf({ request: { id }, headers }: RequestContext): Record<string, string> {
  return headers === undefined ? { 'x-generation-id': id } : { 'x-generation-id': id, ...headers };
}
