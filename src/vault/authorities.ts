/**
 * The certificate authorities of vaults. One is made when a sandbox first uses a vault. Its key is encrypted with the data key of
 * the vault.
 */
import { X509Certificate } from 'node:crypto';
import { type Author, changeAs } from '../audit/index.ts';
import { uuidv7 } from '../base/ids.ts';
import { createAuthority } from '../egress-proxy/index.ts';
import { SealingError } from '../sealing/index.ts';
import type { Queryable } from '../storage/database.ts';
import type { SecretParts } from './secrets.ts';
import * as store from './store.ts';
import { openVaultKey, type VaultKey } from './vault-key.ts';

/** A retired authority is deleted with the first rotation after this time. */
const RETIRED_MS = 30 * 86_400_000;

type AuthorityParts = Pick<SecretParts, 'database' | 'clock' | 'sealing'>;

interface CurrentAuthority {
  id: string;
  certificate: string;
}

/**
 * The authority for a sandbox that starts now. Makes the first one.
 * @throws SealingError
 */
export async function currentAuthority(parts: AuthorityParts, vaultId: string): Promise<CurrentAuthority> {
  const known = await store.currentAuthority(parts.database, vaultId);
  if (known !== undefined) return known;
  const made = await createAuthority(parts.clock);
  return parts.database.transaction(async (tx) => {
    const vault = await store.lockVaultWithId(tx, vaultId);
    if (vault === undefined) throw new SealingError(`the vault ${vaultId} was deleted`);
    // Another process may have been faster.
    const current = await store.currentAuthority(tx, vaultId);
    if (current !== undefined) return current;
    const key = await openVaultKey(parts.sealing, tx, vault);
    return insert(tx, { vaultId, key, at: new Date(parts.clock.now()) }, made);
  });
}

interface Place {
  vaultId: string;
  key: VaultKey;
  at: Date;
}

async function insert(
  tx: Queryable,
  { vaultId, key, at }: Place,
  made: { certificate: string; key: string },
): Promise<CurrentAuthority> {
  const { certificate } = made;
  const id = uuidv7(at.getTime());
  await store.insertAuthority(tx, {
    ...{ id, vaultId, certificate, createdAt: at },
    sealed: key.sealAuthority({ certificate }, made.key),
  });
  return { id, certificate };
}

/**
 * Gives the vaults that have an authority a new one. Sandboxes that run keep theirs until they start again.
 *
 * @param workspaceId null: of every workspace
 * @param author of the audit entry of an organization
 * @returns how many there are
 * @throws SealingError if the key of a vault cannot be decrypted; its authority stays
 */
export async function rotateAuthorities(
  parts: SecretParts,
  workspaceId: string | null,
  author: (organizationId: string, at: number) => Author,
): Promise<number> {
  let rotated = 0;
  for (const { id, organizationId } of await store.vaultsIn(parts.database, workspaceId)) {
    if ((await store.currentAuthority(parts.database, id)) === undefined) continue;
    if (await rotate(parts, id, author(organizationId, parts.clock.now()))) rotated += 1;
  }
  return rotated;
}

/** @returns false: the vault was deleted */
async function rotate(parts: SecretParts, vaultId: string, author: Author): Promise<boolean> {
  const made = await createAuthority(parts.clock);
  return changeAs(author, parts, async (tx, changed) => {
    const vault = await store.lockVaultWithId(tx, vaultId);
    const before = vault && (await store.currentAuthority(tx, vaultId));
    if (vault === undefined || before === undefined) return false;
    const key = await openVaultKey(parts.sealing, tx, vault);
    const at = new Date(author.at);
    await store.retireAuthority(tx, vaultId, at, new Date(author.at - RETIRED_MS));
    await insert(tx, { vaultId, key, at }, made);
    await changed({
      action: 'vault.authority_rotated',
      resourceType: 'vault',
      resourceId: vaultId,
      workspaceId: vault.workspaceId,
      before: { certificate_fingerprint: fingerprintOf(before) },
      after: { certificate_fingerprint: fingerprintOf(made) },
    });
    return true;
  });
}

function fingerprintOf({ certificate }: { certificate: string }): string {
  return new X509Certificate(certificate).fingerprint256;
}
