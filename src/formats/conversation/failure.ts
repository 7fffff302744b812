/**
 * What an upstream did wrong, in one vocabulary. A spoken format reads its vendor's error shape into it, `send` adds what
 * the network did, and `inference/call.ts` alone decides what follows: next endpoint, or an answer to the client.
 */

/**
 *  - the request's fault, the same everywhere: `invalid_request`, `context_length`, `too_large`, `content_filter`
 *  - `not_found`: this endpoint does not know the model
 *  - our account's fault at this provider: `auth`, `permission`, `quota`
 *  - passing: `rate_limit`, `overloaded`, `server`, `timeout`
 *  - the connection: `refused` (nothing was sent), `cut` (ended without its end marker), `malformed`, `empty`
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

export interface UpstreamFailure {
  kind: FailureKind;
  /** The upstream's HTTP status, or the status its error event named; null when there was none. */
  status: number | null;
  /** The upstream's own text, or ours about the connection. Shown to clients after secrets are removed. */
  message: string;
  /** The vendor's machine-readable code, when it gave one. */
  code?: string | null;
  /** `error.details` of the messages form, as it came. */
  details?: Record<string, unknown>;
  retryAfterSeconds?: number;
  /** The error body as it came (parsed JSON or text), bounded to 64 KiB. */
  raw?: unknown;
}

/** Of an error body, in characters: what vendors say in more is not worth the memory. */
export const LARGEST_RAW = 64 * 1024;

/** What a status means where the vendor's own word says nothing else; a form adds the vendor's own numbers. */
export const KIND_BY_STATUS: ReadonlyMap<number, FailureKind> = new Map<number, FailureKind>([
  [401, 'auth'],
  [402, 'quota'],
  [403, 'permission'],
  [404, 'not_found'],
  [408, 'timeout'],
  [413, 'too_large'],
  [424, 'server'],
  [429, 'rate_limit'],
  [499, 'server'],
  [503, 'overloaded'],
  [504, 'timeout'],
  [529, 'overloaded'],
]);

/** A text without the names of our account at a provider, which are nobody's business (bug 60): `org-...` and its kin, and `org: <uuid>`. */
export function withoutAccount(text: string): string {
  return text
    .replace(/\b(org|proj|user|acct)([-_])(?:(?=[A-Za-z]*\d)[A-Za-z0-9]{8,}|[A-Za-z0-9]{16,})/g, '$1$2***')
    .replace(
      /\b(org|organi[sz]ation|workspace|project|account)( id)?(\\?["']?[:\s]+\\?["']?)[0-9a-f]{8}-[0-9a-f-]{27}/gi,
      '$1$2$3***',
    );
}
