/** A key in the query, for the operations whose public clients send it there. Query strings are never logged. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Operation } from './operation.ts';

/** The headers, with the key of the query where it counts: a header that is not empty wins. */
export function credentialHeaders<C>(
  headers: IncomingHttpHeaders,
  { keyInQuery }: Operation<C>,
  search: string,
): IncomingHttpHeaders {
  if (keyInQuery !== true || headers.authorization || headers['x-api-key']) return headers;
  const key = !headers['x-goog-api-key'] ? new URLSearchParams(search).get('key') : null;
  return key === null || key === '' ? headers : { ...headers, 'x-goog-api-key': key };
}
