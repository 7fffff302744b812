/**
 * Sign-in: an application obtains its own key from a person (OAuth with PKCE) through a consent page, a code and its
 * exchange. The person authorizes with a management key. `federation/`: a workload exchanges the JWT of its own
 * identity provider for a short-lived access token (RFC 8693). Not here: the keys themselves (`access/`).
 */
export { unmetRule } from './federation/claims.ts';
export { createFederation, type Federation } from './federation/federation.ts';
export { rotateSigningKey, sealedSigningKeys } from './federation/signing-keys.ts';
export { signInMigrations } from './migrations/index.ts';
export { type SignInParts, signInOperations } from './operations.ts';
