/**
 * BYOK: customers' own credentials at providers, stored encrypted and decrypted in memory for the requests that may use
 * them. Not here: the choice of endpoints (`inference/`) and the charge for a request (`spend/`).
 */

export type { ByokCaller, ByokCredential, ByokCredentials } from './byok-credentials.ts';
export { type ByokCache, startByokCache } from './key-cache.ts';
export { byokMigrations } from './migrations/index.ts';
export { type ByokParts, byokOperations } from './operations.ts';
export { sealedByokCredentials } from './sealed.ts';
export { endByokCredentials } from './workspace-end.ts';
