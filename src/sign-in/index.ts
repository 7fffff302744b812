/**
 * Sign-in: how an application gets a key of its own from a person (OAuth with PKCE): the consent page, the code, and its
 * exchange. Who may let an application in shows it by a management key. In `federation/`: how a workload gets a short-lived
 * access token for the JWT of its own identity provider (RFC 8693). What a key is, is the business of `access/`.
 */
export { createFederation, type Federation } from './federation/federation.ts';
export { rotateSigningKey, sealedSigningKeys } from './federation/signing-keys.ts';
export { signInMigrations } from './migrations/index.ts';
export { type SignInParts, signInOperations } from './operations.ts';
