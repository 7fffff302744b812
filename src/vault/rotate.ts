/** Rotates the data keys of vaults. */
import { type Author, changeAs } from '../audit/index.ts';
import type { Clock } from '../base/clock.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import { secretsOf } from './read.ts';
import * as store from './store.ts';
import { newDataKey, openNamed, openVaultKey, type VaultKey } from './vault-key.ts';

interface RotationParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  sealing: Sealing;
}

/**
 * Gives vaults new data keys and re-encrypts their secrets, whose fingerprints change. Each vault in a transaction of its own: a
 * process that dies leaves it as it was.
 *
 * @param workspaceId null: of every workspace
 * @param author of the audit entry of an organization
 * @throws SealingError that names the secret that cannot be decrypted; its vault stays as it was
 */
export async function rotateVaultKeys(
  parts: RotationParts,
  workspaceId: string | null,
  author: (organizationId: string, at: number) => Author,
): Promise<{ vaults: number; secrets: number }> {
  let [vaults, secrets] = [0, 0];
  for (const { id, organizationId } of await store.vaultsIn(parts.database, workspaceId)) {
    const rotated = await rotateVault(parts, id, author(organizationId, parts.clock.now()));
    if (rotated === undefined) continue;
    vaults += 1;
    secrets += rotated;
  }
  return { vaults, secrets };
}

/** @returns the number of its secrets; undefined if it was deleted */
async function rotateVault(parts: RotationParts, id: string, author: Author): Promise<number | undefined> {
  const { sealing } = parts;
  const dataKey = await newDataKey(sealing, id);
  return changeAs(author, parts, async (tx, changed) => {
    const vault = await store.lockVaultWithId(tx, id);
    if (vault === undefined) return undefined;
    const next = { ...vault, dataKey, keyVersion: vault.keyVersion + 1 };
    const keys = { old: await openVaultKey(sealing, tx, vault), key: await openVaultKey(sealing, tx, next) };
    const count = await reseal(tx, id, keys, new Date(author.at));
    await store.replaceDataKey(tx, next);
    await changed({
      action: 'vault.rotated',
      resourceType: 'vault',
      resourceId: id,
      workspaceId: vault.workspaceId,
      before: { key_version: vault.keyVersion },
      after: { key_version: next.keyVersion },
    });
    return count;
  });
}

async function reseal(
  tx: Queryable,
  vaultId: string,
  { old, key }: { old: VaultKey; key: VaultKey },
  updatedAt: Date,
): Promise<number> {
  for (const authority of await store.authoritiesOf(tx, vaultId)) {
    const { id, certificate } = authority;
    await store.resealAuthority(tx, { id, sealed: key.sealAuthority({ certificate }, old.openAuthority(authority)) });
  }
  let count = 0;
  for await (const secret of secretsOf(tx, vaultId)) {
    const value = openNamed(old, secret);
    await store.putSecret(tx, {
      ...secret,
      updatedAt,
      fingerprint: key.fingerprint(value),
      sealed: key.seal(secret, value),
    });
    count += 1;
  }
  return count;
}
