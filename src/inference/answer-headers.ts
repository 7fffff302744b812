/** Headers of an answer. Several stages contribute to them, in any order, and none replaces what another has set. */
import type { AcceptedRequest } from './request.ts';

export function addHeaders(request: AcceptedRequest, headers: Readonly<Record<string, string>>): void {
  request.answerHeaders = request.answerHeaders === undefined ? headers : { ...request.answerHeaders, ...headers };
}

/** All that were added, and the generation's id. */
export function headersOf({ id, answerHeaders }: AcceptedRequest): Record<string, string> {
  return answerHeaders === undefined ? { 'x-generation-id': id } : { 'x-generation-id': id, ...answerHeaders };
}
