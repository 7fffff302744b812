/**
 * Sign-in: how an application gets a key of its own from a person (OAuth with PKCE): the consent page, the code, and its
 * exchange. Who may let an application in shows it by a management key. What a key is, is the business of `access/`.
 */
export { signInMigrations } from './migrations/index.ts';
export { type SignInParts, signInOperations } from './operations.ts';
