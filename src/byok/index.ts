/**
 * BYOK: customers' own credentials at providers, stored encrypted and decrypted in memory for the requests that may use
 * them. Not here: the choice of endpoints (`inference/`) and the charge for a request (`spend/`).
 */
export { type FollowedOwnKeys, followOwnKeys } from './followed.ts';
export { byokMigrations } from './migrations/index.ts';
export { type OwnKeyParts, ownKeyOperations } from './operations.ts';
export type { OwnKey, OwnKeyCaller, OwnKeys } from './own-keys.ts';
export { sealedOwnKeys } from './sealed.ts';
export { endOwnKeys } from './workspace-end.ts';
