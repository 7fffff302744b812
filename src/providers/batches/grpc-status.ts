/** Errors of calls that a service reports with a gRPC code (google.rpc.Code). */

/** The code of a cancelled call. */
export const CANCELLED = 1;

const STATUS: Readonly<Record<number, number>> = { 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 13: 500, 14: 503, 16: 401 };

/** The HTTP status of a gRPC code, or of a code that is one; 500 if it is unknown. */
export function httpStatusOf(code: unknown): number {
  return STATUS[Number(code)] ?? (Number(code) >= 400 && Number(code) < 600 ? Number(code) : 500);
}
