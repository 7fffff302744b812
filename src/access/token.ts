/** Tokens: their format, where a request carries them, and which parts may be shown or stored. */
import { hash, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../base/errors.ts';
import { WIRE_NAME } from '../base/namespace.ts';
import type { KeyKind } from './caller.ts';

/** Longer tokens are refused without hashing. */
export const MAX_TOKEN_LENGTH = 512;
/** JWTs carry claims, so they are longer than keys. */
const MAX_JWT_LENGTH = 4_096;

const RANDOM_BYTES = 32;
const OWN_PREFIX = /^sk-[a-z]+(?:-mgmt|-scim)?-v1-/;
const SHOWN_CHARACTERS = 3;
/** Showing both ends of a shorter token would reveal too much of it. */
const MIN_MASKABLE_LENGTH = 24;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;
const HASH = /^[0-9a-f]{64}$/;
const BEARER = /^bearer +/i;
/** A JSON object in base64url. */
const JWT_START = 'eyJ';

const KIND_MARKS: Readonly<Record<KeyKind, string>> = { inference: '', management: '-mgmt', scim: '-scim' };

/**
 * A new token with 256 bits of entropy. Management keys and SCIM tokens have their own prefix, so that people and
 * secret scanners see which kind leaked; nothing else depends on the prefix.
 */
export function createToken(kind: KeyKind): string {
  return `sk-${WIRE_NAME}${KIND_MARKS[kind]}-v1-${randomBytes(RANDOM_BYTES).toString('hex')}`;
}

/**
 * SHA-256 of a token in hexadecimal: the form in which it is stored and looked up, and the key's public id. A plain
 * hash is enough, because the input cannot be guessed.
 */
export function hashToken(token: string): string {
  return hash('sha256', token);
}

/** True if `text` has the shape of a `hashToken` result; anything else is not looked up. */
export function isHash(text: string): boolean {
  return HASH.test(text);
}

/** Number of hexadecimal digits that every JSON reader can hold exactly as a number. */
export const NUMBER_DIGITS = 13;

/** The key as a number, for wire fields such as `io_logging_api_key_ids` that name keys by number. */
export function keyNumber(keyHash: string): number {
  return Number.parseInt(keyHash.slice(0, NUMBER_DIGITS), 16);
}

/** The token with all but its ends removed, e.g. `sk-svc-v1-abc...xyz`. */
export function maskToken(token: string): string {
  const prefix = OWN_PREFIX.exec(token)?.[0] ?? '';
  const secret = token.slice(prefix.length);
  if (secret.length < MIN_MASKABLE_LENGTH) return `${prefix}...`;
  return `${prefix}${secret.slice(0, SHOWN_CHARACTERS)}...${secret.slice(-SHOWN_CHARACTERS)}`;
}

/** True if `token` fits into a header and has an acceptable length. */
export function isToken(token: string): boolean {
  return token.length <= MAX_TOKEN_LENGTH && VISIBLE_ASCII.test(token);
}

/** True if `token` may be a JWT. A customer-chosen key may begin the same way. */
export function mayBeJwt(token: string): boolean {
  return token.startsWith(JWT_START);
}

/**
 * The token that a request presents: `Authorization: Bearer`, else `x-api-key` or `x-goog-api-key`, which the native SDKs
 * send. If both are
 * present, `Authorization` decides and `x-api-key` is ignored: SDKs that know both headers fill the latter with an
 * upstream vendor's key from the environment, while the former was set on purpose for this gateway.
 * Throws GatewayError 401 when there is no token or it is malformed.
 */
export function presentedToken(headers: IncomingHttpHeaders): string {
  const { authorization } = headers;
  const token = bearerToken(authorization) ?? apiKeyHeader(headers);
  if (token === undefined) {
    const problem = authorization ? 'The Authorization header is not a bearer token.' : 'No API key was given.';
    throw unauthorized(`${problem} Send it as "Authorization: Bearer <key>".`);
  }
  const longest = mayBeJwt(token) ? MAX_JWT_LENGTH : MAX_TOKEN_LENGTH;
  if (token.length > longest || !VISIBLE_ASCII.test(token)) throw unauthorized('The API key is not valid.');
  return token;
}

export function unauthorized(message: string): GatewayError {
  return new GatewayError('authentication', message);
}

function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  // Fast path: nearly every client sends exactly this spelling. The pattern covers the others.
  if (authorization.startsWith('Bearer ') && authorization.charCodeAt(7) !== 32)
    return authorization.slice(7) || undefined;
  const scheme = BEARER.exec(authorization);
  return scheme ? authorization.slice(scheme[0].length) || undefined : undefined;
}

function apiKeyHeader(headers: IncomingHttpHeaders): string | undefined {
  const value = headers['x-api-key'] || headers['x-goog-api-key'];
  return typeof value === 'string' && value !== '' ? value : undefined;
}
