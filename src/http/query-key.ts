/** A key in the query, for the operations whose public clients send it there. Query strings are never logged. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Operation } from './operation.ts';

/** The headers, with the key of the query where it counts: a header with a key wins. */
export function credentialHeaders<C>(
  headers: IncomingHttpHeaders,
  { keyInQuery }: Operation<C>,
  search: string,
): IncomingHttpHeaders {
  if (keyInQuery !== true || headers.authorization !== undefined || headers['x-api-key'] !== undefined) return headers;
  const key = headers['x-goog-api-key'] === undefined ? new URLSearchParams(search).get('key') : null;
  return key === null || key === '' ? headers : { ...headers, 'x-goog-api-key': key };
}
