/** Headers of an answer. Several stages contribute to them, in any order, and none replaces what another has set. */
import type { AcceptedRequest } from './request.ts';

/** By this header Anthropic's SDKs know a request. */
export const ANTHROPIC_REQUEST_ID = 'request-id';

export function addHeaders(request: AcceptedRequest, headers: Readonly<Record<string, string>>): void {
  request.answerHeaders = request.answerHeaders === undefined ? headers : { ...request.answerHeaders, ...headers };
}

/** All that were added, and the generation's id. */
export function headersOf({ id, answerHeaders }: AcceptedRequest): Record<string, string> {
  return answerHeaders === undefined ? { 'x-generation-id': id } : { 'x-generation-id': id, ...answerHeaders };
}
