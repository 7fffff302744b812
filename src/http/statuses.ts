/** The error statuses of an operation: those that follow from its access, path and body, and those it declares. */
import type { Operation } from './operation.ts';

/** A malformed request, an internal error, and a gateway that is busy, shutting down or without its database. */
const OF_ALL = [400, 500, 503];
/** A missing or unknown key; a key that may not do this. */
const OF_CLOSED = [401, 403];
/** A body that arrives too slowly, is too large, or is of another media type. */
const OF_BODIES = [408, 413, 415];

/** Ascending. */
export function errorStatuses<C>({ access, params, body, upload, errors = [] }: ErrorSources<C>): number[] {
  const found = new Set([...OF_ALL, ...errors]);
  if (access.kinds !== 'anyone') for (const status of OF_CLOSED) found.add(status);
  if (access.regions) found.add(403);
  if (params || access.programme !== undefined || access.scope !== undefined) found.add(404);
  if (body || upload) for (const status of OF_BODIES) found.add(status);
  return [...found].sort((a, b) => a - b);
}

type ErrorSources<C> = Pick<Operation<C>, 'access' | 'params' | 'body' | 'upload' | 'errors'>;
