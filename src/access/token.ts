/** Tokens: how a key looks, where a request carries it, and what may be shown or stored of it. */
import { hash, randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { GatewayError } from '../base/errors.ts';
import { WIRE_NAME } from '../base/namespace.ts';
import type { KeyKind } from './caller.ts';

/** Longer ones are refused unread. */
export const MAX_TOKEN_LENGTH = 512;
/** A JWT carries what it says, and so is longer. */
const MAX_JWT_LENGTH = 4_096;

const RANDOM_BYTES = 32;
const OWN_PREFIX = /^sk-[a-z]+(?:-mgmt|-scim)?-v1-/;
const SHOWN_CHARACTERS = 3;
/** Showing both ends of a shorter token would give too much of it away. */
const MIN_MASKABLE_LENGTH = 24;
const VISIBLE_ASCII = /^[\x21-\x7e]+$/;
const HASH = /^[0-9a-f]{64}$/;
const BEARER = /^bearer +/i;
/** A JSON object in base64url. */
const JWT_START = 'eyJ';

const KIND_MARKS: Readonly<Record<KeyKind, string>> = { inference: '', management: '-mgmt', scim: '-scim' };

/**
 * A new token with 256 bits of entropy. All but inference keys have a prefix of their own, so that a person or a secret
 * scanner sees at once which kind leaked; nothing else depends on it.
 */
export function createToken(kind: KeyKind): string {
  return `sk-${WIRE_NAME}${KIND_MARKS[kind]}-v1-${randomBytes(RANDOM_BYTES).toString('hex')}`;
}

/**
 * SHA-256 of a token in hexadecimal: what is stored, looked up and shown as the key's public id (wire/keys.md, "Facts").
 * A plain hash is enough where the input cannot be guessed.
 */
export function hashToken(token: string): string {
  return hash('sha256', token);
}

/** Whether `text` can be what `hashToken` yields; what cannot is not asked of the database. */
export function isHash(text: string): boolean {
  return HASH.test(text);
}

/** Hexadecimal digits that a number which every JSON reader holds exactly has room for. */
export const NUMBER_DIGITS = 13;

/** The key as a number, for the fields of the wire that name keys by one (wire/workspaces.md, `io_logging_api_key_ids`). */
export function keyNumber(keyHash: string): number {
  return Number.parseInt(keyHash.slice(0, NUMBER_DIGITS), 16);
}

/** The token with all but its ends left out, e.g. `sk-svc-v1-abc...xyz`. */
export function maskToken(token: string): string {
  const prefix = OWN_PREFIX.exec(token)?.[0] ?? '';
  const secret = token.slice(prefix.length);
  if (secret.length < MIN_MASKABLE_LENGTH) return `${prefix}...`;
  return `${prefix}${secret.slice(0, SHOWN_CHARACTERS)}...${secret.slice(-SHOWN_CHARACTERS)}`;
}

/** Whether `token` can be carried in a header and is not absurdly long. */
export function isToken(token: string): boolean {
  return token.length <= MAX_TOKEN_LENGTH && VISIBLE_ASCII.test(token);
}

/** Whether `token` may be a JWT; a key of somebody's own choice may begin in the same way. */
export function mayBeJwt(token: string): boolean {
  return token.startsWith(JWT_START);
}

/**
 * The token that a request presents: `Authorization: Bearer`, else `x-api-key`, which the native SDKs send. Where both
 * are present `Authorization` decides and `x-api-key` is not looked at: SDKs that know both headers put an upstream
 * vendor's key from the environment into the latter while the former was set on purpose for this gateway.
 * Throws GatewayError 401 when there is none or it cannot be a token.
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
  // The exact spelling is what nearly every client sends; the pattern is for the others.
  if (authorization.startsWith('Bearer ') && authorization.charCodeAt(7) !== 32)
    return authorization.slice(7) || undefined;
  const scheme = BEARER.exec(authorization);
  return scheme ? authorization.slice(scheme[0].length) || undefined : undefined;
}

function apiKeyHeader(headers: IncomingHttpHeaders): string | undefined {
  const value = headers['x-api-key'];
  return typeof value === 'string' && value !== '' ? value : undefined;
}
