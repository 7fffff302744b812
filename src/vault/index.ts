/**
 * Vaults: secrets that may leave the gateway only towards the hosts that they are bound to. A vault belongs to a workspace and
 * has its own data key. Values are written once and never returned. Not here: the release of a value on the way to a host
 * (`egress-proxy/`).
 */
export { checkVaults, type UnreadableSecret } from './check.ts';
export { vaultMigrations } from './migrations/index.ts';
export { type VaultParts, vaultOperations } from './operations.ts';
export { rotateVaultKeys } from './rotate.ts';
export { sealedVaultKeys } from './vault-key.ts';
export { endVaults } from './workspace-end.ts';
