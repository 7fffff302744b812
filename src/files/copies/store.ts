/** The SQL of copies at vendors. */
import { type Columns, selectList } from '../../storage/columns.ts';
import type { Queryable } from '../../storage/database.ts';

export interface StoredCopy {
  id: string;
  fileId: string;
  providerId: string;
  byokId: string | null;
  account: Buffer;
  vendorId: string | null;
  expiresAt: Date | null;
  removalAttempts: number;
}

const COLUMNS: Columns<StoredCopy> = {
  id: 'id',
  fileId: 'file_id',
  providerId: 'provider_id',
  byokId: 'byok_id',
  account: 'account',
  vendorId: 'vendor_id',
  expiresAt: 'expires_at',
  removalAttempts: 'removal_attempts',
};

const SELECT = `select ${selectList(COLUMNS, 'file_copies')} from file_copies`;

/** Those that the vendor keeps beyond `until`. */
export function findCopies(
  db: Queryable,
  account: Buffer,
  fileIds: readonly string[],
  until: Date,
): Promise<(StoredCopy & { vendorId: string })[]> {
  return db.query(
    `${SELECT} where account = $1 and file_id = any($2::uuid[]) and vendor_id is not null
      and (expires_at is null or expires_at > $3)`,
    [account, fileIds, until],
  );
}

type Claim = Pick<StoredCopy, 'id' | 'fileId' | 'providerId' | 'byokId' | 'account'>;

/** False: there is a copy, or another claim. @param times of now, the end of the claim, and usable copies */
export async function claimCopy(
  db: Queryable,
  { id, fileId, providerId, byokId, account }: Claim,
  { now, end, until }: { now: Date; end: Date; until: Date },
): Promise<boolean> {
  const rows = await db.query(
    `insert into file_copies (id, file_id, provider_id, byok_id, account, expires_at, created_at)
      values ($1, $2, $3, $4, $5, $6, $7)
      on conflict (file_id, account) do update
        set id = $1, provider_id = $3, byok_id = $4, vendor_id = null, expires_at = $6, created_at = $7,
          removal_attempts = 0, remove_after = null
        where file_copies.expires_at <= case when file_copies.vendor_id is null then $7::timestamptz else $8::timestamptz end
      returning id`,
    [id, fileId, providerId, byokId, account, end, now, until],
  );
  return rows.length > 0;
}

/** False: the claim ended, and another process took it over. */
export async function completeCopy(
  db: Queryable,
  { id, vendorId, expiresAt }: { id: string; vendorId: string; expiresAt: Date | null },
): Promise<boolean> {
  const sql = 'update file_copies set vendor_id = $2, expires_at = $3 where id = $1 returning id';
  return (await db.query(sql, [id, vendorId, expiresAt])).length > 0;
}

export async function deleteCopies(db: Queryable, ids: readonly string[]): Promise<void> {
  await db.query('delete from file_copies where id = any($1::uuid[])', [ids]);
}

/** Copies of files that do not exist, expired ones, and ended claims; those first that wait longest. */
export function removableCopies(db: Queryable, now: Date, limit: number): Promise<StoredCopy[]> {
  return db.query<StoredCopy>(
    `${SELECT} where (remove_after is null or remove_after <= $1)
      and (expires_at <= $1
        or vendor_id is not null and not exists (select 1 from files where files.id = file_copies.file_id))
      order by remove_after nulls first, created_at limit $2`,
    [now, limit],
  );
}

export async function postponeRemoval(db: Queryable, id: string, after: Date): Promise<void> {
  const sql = 'update file_copies set removal_attempts = removal_attempts + 1, remove_after = $2 where id = $1';
  await db.query(sql, [id, after]);
}
