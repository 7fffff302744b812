/**
 * Customers' own keys at providers (BYOK): kept sealed, and opened in memory for the requests that may use them. Not here:
 * which endpoint a request goes to, and what is charged for it (`inference`, `spend`).
 */
export { type FollowedOwnKeys, followOwnKeys } from './followed.ts';
export { byokMigrations } from './migrations/index.ts';
export { type OwnKeyParts, ownKeyOperations } from './operations.ts';
export type { OwnKey, OwnKeyCaller, OwnKeys } from './own-keys.ts';
export { sealedOwnKeys } from './sealed.ts';
export { endOwnKeys } from './workspace-end.ts';
