/** Posts data to a system that only has to accept it, and judges the answer. */
import type { Problem } from '../base/delivery-queue.ts';
import type { Egress } from './egress.ts';
import { EgressError } from './fault.ts';

/** One HTTP request. Any 2xx status is a success. */
export interface Outgoing {
  readonly url: string;
  readonly method: 'POST' | 'PUT';
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

interface Manner {
  /** How error messages call the system. */
  receiver: string;
  timeoutMs: number;
  tlsOnly: boolean;
  signal?: AbortSignal | undefined;
}

/** Statuses that say that the request itself is wrong. All others may be temporary: 401 and 403 end when the key is replaced. */
const REFUSED: ReadonlySet<number> = new Set([400, 413, 415, 422]);
const MOST_RETRY_AFTER_S = 3_600;

/** Undefined: the system has accepted it. */
export async function post(
  egress: Pick<Egress, 'request'>,
  { url, method, headers, body }: Outgoing,
  { receiver, timeoutMs, tlsOnly, signal }: Manner,
): Promise<Problem | undefined> {
  try {
    const reply = await egress.request({
      ...{ url, method, headers, body, timeoutMs, tlsOnly },
      ...(signal && { signal }),
      headOnly: true,
      maxBytes: 0,
    });
    if (reply.status >= 200 && reply.status < 300) return undefined;
    const outcome = REFUSED.has(reply.status) ? 'refused' : 'failed';
    const seconds = Number(reply.headers['retry-after']);
    return {
      message: `${receiver} answered with status ${reply.status}`,
      outcome,
      ...(seconds > 0 && { retryAfterMs: Math.min(seconds, MOST_RETRY_AFTER_S) * 1_000 }),
    };
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    return { message: `${receiver} ${error.message}`, outcome: error.fault === 'cancelled' ? 'cancelled' : 'failed' };
  }
}
