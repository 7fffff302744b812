/** Response headers. Several stages add to them, in any order; none may remove what another has set. */
import type { AcceptedRequest } from '../request.ts';

/** Anthropic's SDKs read the request id from this header. */
export const ANTHROPIC_REQUEST_ID = 'request-id';

export function addHeaders(request: AcceptedRequest, headers: Readonly<Record<string, string>>): void {
  request.answerHeaders = request.answerHeaders === undefined ? headers : { ...request.answerHeaders, ...headers };
}

/** Every header added so far, and the generation's id. */
export function headersOf({ id, answerHeaders }: AcceptedRequest): Record<string, string> {
  return answerHeaders === undefined ? { 'x-generation-id': id } : { 'x-generation-id': id, ...answerHeaders };
}
