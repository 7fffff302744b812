/**
 * Vaults: secrets that may leave the gateway only towards the hosts that they are bound to. A vault belongs to a workspace or to an
 * intern, and has its own data key. Values are written once and never returned; sandboxes get placeholders for them. Not here: how a
 * value takes the place of its placeholder on the way to a host (`egress-proxy/`).
 */
export { rotateAuthorities } from './authorities.ts';
export { checkVaults, type UnreadableSecret } from './check.ts';
export { vaultMigrations } from './migrations/index.ts';
export { vaultOperations } from './operations.ts';
export { type SandboxEgress, type SandboxPolicy, SecretReleases, type WithheldSecret } from './release.ts';
export { rotateVaultKeys } from './rotate.ts';
export type { VaultParts } from './secret-operations.ts';
export type { HeldOwner } from './secrets.ts';
export { insertVault, isLendable, type Vault, type VaultOwner, vaultIdOf } from './store.ts';
export { sealedVaultKeys } from './vault-key.ts';
export { endInternVault, endVaults, newVault } from './vaults.ts';
