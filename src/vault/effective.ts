/** The secrets that one sandbox may use, decrypted: all of them or, with the reason, none. */
import type { Authority } from '../egress-proxy/index.ts';
import { type Sealing, SealingError } from '../sealing/index.ts';
import type { Database } from '../storage/database.ts';
import * as store from './store.ts';
import { openNamed, openVaultKey, type VaultKey } from './vault-key.ts';

interface OpenedSecret {
  name: string;
  hosts: readonly string[];
  value: string;
}

interface Wanted {
  vaults: { ownId: string; borrowedId: string | null };
  authorityId: string;
}

/**
 * Reads them under locks that keep rotations away, so that keys and values belong together.
 * @throws SealingError with what cannot be decrypted, or is gone
 */
export function openEffective(
  { database, sealing }: { database: Pick<Database, 'transaction'>; sealing: Sealing },
  { vaults, authorityId }: Wanted,
): Promise<{ secrets: OpenedSecret[]; authority: Authority }> {
  const ids = [vaults.ownId, vaults.borrowedId].filter((id) => id !== null);
  return database.transaction(async (tx) => {
    const keys = new Map<string, VaultKey>();
    for (const vault of await store.holdVaults(tx, ids)) keys.set(vault.id, await openVaultKey(sealing, tx, vault));
    // A borrowed vault ends with its intern; the own one ends with the sandbox.
    const own = keys.get(vaults.ownId);
    const signing = own && (await store.authorityWithId(tx, authorityId));
    if (signing === undefined) throw new SealingError(`the vault ${vaults.ownId} or its certificate authority is gone`);
    const authority = { certificate: signing.certificate, key: own!.openAuthority(signing) };
    const stored = await store.effectiveSecrets(tx, vaults);
    const secrets = stored.map((secret) => {
      const { vaultId, name, hosts } = secret;
      return { name, hosts, value: openNamed(keys.get(vaultId)!, secret) };
    });
    return { secrets, authority };
  });
}
