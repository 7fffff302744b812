/** Reads the secrets of a vault with their values, some at a time. */
import type { Queryable } from '../storage/database.ts';
import { type StoredSecret, sealedSecrets } from './store.ts';

/** A value has up to 64 KiB of text. */
const BATCH = 100;

export async function* secretsOf(db: Queryable, vaultId: string): AsyncGenerator<StoredSecret> {
  let after = '';
  for (;;) {
    const batch = await sealedSecrets(db, vaultId, after, BATCH);
    yield* batch;
    const last = batch.at(-1);
    if (last === undefined) return;
    after = last.name;
  }
}
