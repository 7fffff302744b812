/** An application's request: parsing it from the page's URL or a body, and verifying the code exchange. */
import { hash, timingSafeEqual } from 'node:crypto';
import { invalidField } from '../base/errors.ts';
import { shownName } from '../base/storable.ts';
import type { AuthCodeBody } from './schema.ts';

export type Method = 'S256' | 'plain';

export interface AuthRequest {
  callback: URL;
  challenge: string | null;
  method: Method | null;
  /** Body of `POST /keys`. */
  key: {
    name: string;
    limit?: number;
    limit_reset?: 'daily' | 'weekly' | 'monthly';
    expires_at?: string;
    workspace_id?: string;
  };
}

const MAX_URL_LENGTH = 2_048;
const S256_CHALLENGE = /^[A-Za-z0-9_-]{43}$/;
/** RFC 7636, 4.1 and 4.2: characters of a verifier, and so of a challenge with the method `plain`. */
const VERIFIER = /^[A-Za-z0-9._~-]{43,128}$/;
/** URLs allow more characters, such as `;` and `*`, which have a meaning in the Content-Security-Policy header. */
const HOST = /^([a-z0-9_-]+\.)*[a-z0-9_-]+\.?$|^\[[0-9a-f:]+\]$/;
const LOCAL_HOSTS: ReadonlySet<string> = new Set(['localhost', '127.0.0.1']);

/** Throws GatewayError 400 with the field path. */
export function readAuthRequest(body: AuthCodeBody): AuthRequest {
  const callback = readCallback(body.callback_url);
  const { code_challenge: challenge, code_challenge_method: method } = body;
  if (challenge === undefined && method !== undefined) {
    throw invalidField('code_challenge', 'is required with code_challenge_method');
  }
  if (challenge !== undefined && method === 'S256' && !S256_CHALLENGE.test(challenge)) {
    throw invalidField('code_challenge', 'must be a SHA-256 hash in base64url without padding: 43 characters');
  }
  if (challenge !== undefined && !VERIFIER.test(challenge)) {
    throw invalidField('code_challenge', 'must have 43 to 128 characters of A-Z a-z 0-9 - . _ ~ (RFC 7636)');
  }
  if (body.usage_limit_type !== undefined && body.limit === undefined) {
    throw invalidField('usage_limit_type', 'requires a limit');
  }
  return {
    callback,
    challenge: challenge ?? null,
    // RFC 7636, 4.3: the default method of a challenge.
    method: challenge === undefined ? null : (method ?? 'plain'),
    key: {
      name: shownName(body.key_label ?? `App at ${callback.host}`, 'key_label'),
      ...(body.limit !== undefined && { limit: body.limit }),
      ...(body.usage_limit_type !== undefined && { limit_reset: body.usage_limit_type }),
      ...(body.expires_at != null && { expires_at: body.expires_at }),
      ...(body.workspace_id !== undefined && { workspace_id: body.workspace_id }),
    },
  };
}

/** https, or localhost and 127.0.0.1 at any port. */
function readCallback(text: string): URL {
  const url = URL.parse(text);
  const local = url !== null && LOCAL_HOSTS.has(url.hostname) && /^https?:$/.test(url.protocol);
  if (url === null || text.length > MAX_URL_LENGTH || !(url.protocol === 'https:' || local)) {
    throw invalidField('callback_url', 'must be an https URL, or a URL of localhost or 127.0.0.1 at any port');
  }
  if (!HOST.test(url.hostname)) throw invalidField('callback_url', 'must have a host name or IP address');
  if (url.username !== '' || url.password !== '')
    throw invalidField('callback_url', 'must not have a user or password');
  if (url.hash !== '') throw invalidField('callback_url', 'must not have a fragment');
  return url;
}

/** True if `verifier` is well-formed and matches the challenge, or if there was no challenge. */
export function verifies(
  { challenge, method }: Pick<AuthRequest, 'challenge' | 'method'>,
  verifier: string | undefined,
): boolean {
  if (challenge === null) return true;
  if (verifier === undefined || !VERIFIER.test(verifier)) return false;
  const made = method === 'S256' ? hash('sha256', verifier, 'base64url') : verifier;
  // Compare hashes, because timingSafeEqual requires equal lengths.
  return timingSafeEqual(hash('sha256', made, 'buffer'), hash('sha256', challenge, 'buffer'));
}
