/** Checks that every stored secret can be decrypted here and is what was written. */
import { type Sealing, SealingError } from '../sealing/index.ts';
import type { Database } from '../storage/database.ts';
import { secretsOf } from './read.ts';
import * as store from './store.ts';
import { openVaultKey, type VaultKey } from './vault-key.ts';

/** `name` is null where the data key of the vault, or the key of its certificate authority, cannot be decrypted. */
export interface UnreadableSecret {
  workspaceId: string;
  name: string | null;
  problem: string;
}

export async function checkVaults({ database, sealing }: { database: Database; sealing: Sealing }) {
  let checked = 0;
  const unreadable: UnreadableSecret[] = [];
  for (const { id } of await store.vaultsIn(database, null)) {
    await database.transaction(async (tx) => {
      const vault = await store.lockVaultWithId(tx, id);
      if (vault === undefined) return;
      const fail = (name: string | null, error: unknown, what = ''): undefined => {
        if (!(error instanceof SealingError)) throw error;
        unreadable.push({ workspaceId: vault.workspaceId, name, problem: what + error.message });
      };
      const key = await openVaultKey(sealing, tx, vault).catch((error: unknown) => fail(null, error));
      if (key === undefined) return;
      for (const authority of await store.authoritiesOf(tx, id)) {
        try {
          key.openAuthority(authority);
        } catch (error) {
          fail(null, error, 'its certificate authority: ');
        }
      }
      for await (const secret of secretsOf(tx, id)) {
        checked += 1;
        try {
          checkSecret(key, secret);
        } catch (error) {
          fail(secret.name, error);
        }
      }
    });
  }
  return { checked, unreadable };
}

function checkSecret(key: VaultKey, secret: store.StoredSecret): void {
  if (key.fingerprint(key.open(secret)) === secret.fingerprint) return;
  throw new SealingError('its fingerprint is not that of its value: it was altered');
}
