/**
 * Upstream failures in one vocabulary. A spoken format maps its vendor's errors to it, `send` adds network failures,
 * and `inference/call.ts` alone decides what follows: try the next endpoint, or answer the client.
 */
import type { Usage } from './conversation.ts';

/**
 * - caused by the request, the same everywhere: `invalid_request`, `context_length`, `too_large`, `content_filter`
 * - `not_found`: this endpoint does not know the model
 * - caused by our account at this provider: `auth`, `permission`, `quota`
 * - transient: `rate_limit`, `overloaded`, `server`, `timeout`
 * - connection: `refused` (nothing was sent), `cut` (ended without its end marker), `malformed`, `empty`
 */
export type FailureKind =
  | 'invalid_request'
  | 'context_length'
  | 'too_large'
  | 'content_filter'
  | 'not_found'
  | 'auth'
  | 'permission'
  | 'quota'
  | 'rate_limit'
  | 'overloaded'
  | 'server'
  | 'timeout'
  | 'refused'
  | 'cut'
  | 'malformed'
  | 'empty';

/** Longer waits that an upstream asks for are shortened to a week. */
export const LONGEST_WAIT_SECONDS = 7 * 24 * 3600;

export interface UpstreamFailure {
  kind: FailureKind;
  /** The upstream's HTTP status, or the status in its error event; null when there was none. */
  status: number | null;
  /**
   * The upstream's message, or the gateway's own for connection failures. Secrets are removed before clients see it.
   */
  message: string;
  /** The vendor's machine-readable code, when it gave one. */
  code?: string | null;
  /** `error.details` of the messages format, unchanged. */
  details?: Record<string, unknown>;
  retryAfterSeconds?: number;
  /** The usage that the upstream reports together with an error inside an answer. It is charged. */
  usage?: Usage;
  /**
   * The client held the answer back for at least half of the time. Then a timeout or a closed connection is not the
   * upstream's fault.
   */
  heldBack?: boolean;
  /** The error body (parsed JSON or text), at most 64 KiB. */
  raw?: unknown;
}

/** The failure with the usage that the upstream reports; unchanged if it reports none. */
export function withUsage(failure: UpstreamFailure, usage: Usage | undefined): UpstreamFailure {
  return usage === undefined ? failure : { ...failure, usage };
}

/** The upstream refused the call before any work: without output or usage it costs nothing, whatever the status. */
export const REFUSALS: ReadonlySet<FailureKind> = new Set<FailureKind>([
  'invalid_request',
  'context_length',
  'too_large',
  'not_found',
  'auth',
  'permission',
  'quota',
  'rate_limit',
  'overloaded',
]);

/** Longest stored error body, in characters. */
export const LARGEST_RAW = 64 * 1024;

/**
 * The default meaning of a status, used when the vendor's code does not decide; formats add vendor-specific statuses.
 */
export const KIND_BY_STATUS: ReadonlyMap<number, FailureKind> = new Map<number, FailureKind>([
  [401, 'auth'],
  [402, 'quota'],
  [403, 'permission'],
  [404, 'not_found'],
  [405, 'not_found'],
  [408, 'timeout'],
  [410, 'not_found'],
  [413, 'too_large'],
  [424, 'server'],
  [429, 'rate_limit'],
  [499, 'server'],
  [503, 'overloaded'],
  [504, 'timeout'],
  [529, 'overloaded'],
]);

/**
 * Removes ids of our account at a provider (`org-...` and similar, `org: <uuid>`), which clients must not see
 * (api7/aisix#144).
 */
export function withoutAccount(text: string): string {
  return text
    .replace(/\b(org|proj|user|acct)([-_])(?:(?=[A-Za-z]*\d)[A-Za-z0-9]{8,}|[A-Za-z0-9]{16,})/g, '$1$2***')
    .replace(
      /\b(org|organi[sz]ation|workspace|project|account)( id)?(\\?["']?[:\s]+\\?["']?)[0-9a-f]{8}-[0-9a-f-]{27}/gi,
      '$1$2$3***',
    );
}
