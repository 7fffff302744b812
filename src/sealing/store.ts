/** The SQL of sealing. */
import type { Queryable } from '../storage/database.ts';

export interface WrappedKey {
  version: number;
  wrapped: Buffer;
}

/** A text of ours under the installation's key; undefined while nothing has ever been sealed. */
export async function readCanary(db: Queryable): Promise<Buffer | undefined> {
  const [row] = await db.query<{ sealed: Buffer }>('select sealed from sealing_canary');
  return row?.sealed;
}

export async function insertCanary(tx: Queryable, sealed: Buffer): Promise<void> {
  await tx.query('insert into sealing_canary (id, sealed) values (1, $1)', [sealed]);
}

export async function replaceCanary(tx: Queryable, sealed: Buffer): Promise<void> {
  await tx.query('update sealing_canary set sealed = $1', [sealed]);
}

/** Until the transaction ends nobody else makes or wraps a key; reading goes on. */
export async function lockKeys(tx: Queryable): Promise<void> {
  await tx.query('lock table sealing_canary in share row exclusive mode');
}

/** The canary and the keys of one purpose, of the same moment; the newest key last. */
export async function readKeys(
  db: Queryable,
  purpose: string,
): Promise<{ canary: Buffer | undefined; keys: WrappedKey[] }> {
  const rows = await db.query<{ canary: Buffer | null } & (WrappedKey | { version: null })>(
    `select canary.sealed as canary, k.version, k.wrapped
       from (select 1) as one left join sealing_canary canary on true left join sealing_keys k on k.purpose = $1
      order by k.version`,
    [purpose],
  );
  return { canary: rows[0]?.canary ?? undefined, keys: rows.filter((row) => row.version !== null) };
}

export async function allKeys(tx: Queryable): Promise<(WrappedKey & { purpose: string })[]> {
  return tx.query('select purpose, version, wrapped from sealing_keys order by purpose, version');
}

export async function insertDataKey(
  tx: Queryable,
  purpose: string,
  { version, wrapped }: WrappedKey,
  createdAt: Date,
): Promise<void> {
  const sql = 'insert into sealing_keys (purpose, version, wrapped, created_at) values ($1, $2, $3, $4)';
  await tx.query(sql, [purpose, version, wrapped, createdAt]);
}

export async function replaceDataKey(tx: Queryable, purpose: string, { version, wrapped }: WrappedKey): Promise<void> {
  await tx.query('update sealing_keys set wrapped = $3 where purpose = $1 and version = $2', [
    purpose,
    version,
    wrapped,
  ]);
}
