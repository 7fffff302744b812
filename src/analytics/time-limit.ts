/** Ends queries that take too long. */
import { GatewayError } from '../base/errors.ts';
import type { Queryable } from '../storage/database.ts';
import type { AnalyticsParts } from './parts.ts';

const TIMEOUT_MS = 10_000;
const QUERY_CANCELED = '57014';

/** @param run must set the time limit for its statements. @throws GatewayError 408 */
export async function inTime<T>(
  { database, timeoutMs = TIMEOUT_MS }: AnalyticsParts,
  run: (tx: Queryable, timeoutMs: number) => Promise<T>,
): Promise<T> {
  try {
    return await database.transaction((tx) => run(tx, timeoutMs));
  } catch (error) {
    if ((error as { code?: unknown }).code !== QUERY_CANCELED) throw error;
    throw new GatewayError(
      'timeout',
      `The query took more than ${timeoutMs / 1000} s: use a shorter time range or more filters.`,
      { status: 408, cause: error },
    );
  }
}
