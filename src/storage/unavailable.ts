/** What failures of the database mean: whether it was unreachable, and whether it lacks what a statement names. */
import { GatewayError } from '../base/errors.ts';

/** What a statement gets while the database cannot be reached: 503, to be tried again. */
export class DatabaseUnavailable extends GatewayError {}

export function unavailable(message: string, cause?: unknown): DatabaseUnavailable {
  return new DatabaseUnavailable('server', message, {
    status: 503,
    retryAfterSeconds: 1,
    metadata: { retryable: true },
    ...(cause === undefined ? {} : { cause }),
  });
}

/** The SQLSTATE of a server's error, or the code of a system call's; undefined otherwise. */
export function errorCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === 'string' ? code : undefined;
}

/**
 * SQLSTATE classes and codes of a server that goes away, comes up, is full or is the wrong one: connection exception,
 * insufficient resources (disk full among them), operator intervention except a cancelled statement, I/O error, read-only.
 */
const SERVER_STATES = /^(08...|53...|57P0[1-5]|58030|25006)$/;
const SYSTEM_CODES = /^E[A-Z]+$/;
/** pg gives no code to what it notices itself. */
const CLIENT_MESSAGES =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout expired)/;

/** Whether the connection that `error` came from is of no further use. */
export function isConnectionLost(error: unknown): boolean {
  const code = errorCode(error);
  if (code !== undefined) return SERVER_STATES.test(code) || SYSTEM_CODES.test(code);
  return error instanceof Error && CLIENT_MESSAGES.test(error.message);
}

/** Whether the statement has certainly had no effect: the server said so, or it never left us. */
export function isNotRun(error: unknown): boolean {
  return /^(57P01|57P03|EPIPE)$/.test(errorCode(error) ?? '');
}

/** Whether the statement named a table that there is not: the database is of an earlier version, or new. */
export function isTableMissing(error: unknown): boolean {
  return errorCode(error) === '42P01';
}

/** Whether the statement named a column that there is not, for the same reasons. */
export function isColumnMissing(error: unknown): boolean {
  return errorCode(error) === '42703';
}
