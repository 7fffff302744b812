/** The SQL of encryption keys. */
import type { Queryable } from '../storage/database.ts';

export interface WrappedKey {
  version: number;
  wrapped: Buffer;
}

/** A known text encrypted with the installation key; undefined until something is encrypted. */
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

/** Locks out other writers of keys until the transaction ends; readers continue. */
export async function lockKeys(tx: Queryable): Promise<void> {
  await tx.query('lock table sealing_canary in share row exclusive mode');
}

/** The canary and the keys of one purpose, from one snapshot; the newest key last. */
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

/** One column of encrypted values. */
export interface SealedRows {
  readonly purpose: string;
  readonly column: string;
  /**
   * Up to `limit` rows after `after` whose record does not begin with `header`, by id; locked by `tx`. Skips rows that
   * others have locked.
   */
  outdated(
    tx: Queryable,
    header: Buffer,
    after: string | null,
    limit: number,
  ): Promise<{ id: string; sealed: Buffer }[]>;
  replace(tx: Queryable, id: string, sealed: Buffer): Promise<void>;
  /** Number of records that do not begin with `header`. */
  countOutdated(db: Queryable, header: Buffer): Promise<number>;
}

/** A column of a table with the key `id`. The names become part of statements. */
export function sealedColumn({ purpose, table, column }: Record<'purpose' | 'table' | 'column', string>): SealedRows {
  const outdated = `from ${table} where substring(${column} from 1 for length($1::bytea)) <> $1::bytea`;
  return {
    purpose,
    column,
    outdated: (tx, header, after, limit) =>
      tx.query(
        `select id, ${column} as sealed ${outdated} ${after === null ? '' : 'and id > $3'}
          order by id limit $2 for no key update skip locked`,
        [header, limit, ...(after === null ? [] : [after])],
      ),
    async replace(tx, id, sealed) {
      await tx.query(`update ${table} set ${column} = $2 where id = $1`, [id, sealed]);
    },
    async countOutdated(db, header) {
      const [row] = await db.query<{ count: number }>(`select count(*)::int as count ${outdated}`, [header]);
      return row?.count ?? 0;
    },
  };
}
