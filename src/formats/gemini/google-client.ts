/** Google's clients, where they share paths with others. */
import type { GatewayError } from '../../base/errors.ts';
import { encodeFailure } from './encode-failure.ts';

type Headers = Readonly<Record<string, unknown>>;

export function isGoogle(headers: Headers): boolean {
  return headers['x-goog-api-client'] !== undefined || headers['x-goog-api-key'] !== undefined;
}

/** For operations whose errors have this form for Google's clients; undefined for others. */
export function googleFailure(error: GatewayError, { headers }: { headers: Headers }): unknown {
  return isGoogle(headers) ? encodeFailure(error, { generationId: null }) : undefined;
}
