/** The SQL of key aliases: a key's additional secrets. */
import type { Queryable } from '../../storage/database.ts';

export interface Alias {
  hash: string;
  /** Hash of the key's current secret. */
  keyHash: string;
  expiresAt: Date | null;
}

/** The alias of a secret that an inference key had before a rotation. */
export async function predecessor(db: Queryable, organizationId: string, hash: string): Promise<Alias | undefined> {
  const sql = `select a.hash, k.hash as "keyHash", a.expires_at as "expiresAt"
                 from key_aliases a join api_keys k on k.id = a.key_id and k.deleted_at is null
                where a.kind = 'predecessor' and k.organization_id = $1 and a.hash = $2`;
  const [row] = await db.query<Alias>(sql, [organizationId, hash]);
  return row;
}

interface NewAlias {
  hash: string;
  keyId: string;
  kind: 'external' | 'predecessor' | 'sandbox';
  label: string | null;
  createdAt: Date;
  expiresAt: Date | null;
}

/** Returns false when the secret belongs, or once belonged, to a key. */
export async function insertAlias(tx: Queryable, alias: NewAlias): Promise<boolean> {
  const { hash, keyId, kind, label, createdAt, expiresAt } = alias;
  const rows = await tx.query(
    `insert into key_aliases (hash, key_id, kind, label, created_at, expires_at)
     select $1, $2, $3, $4, $5, $6 where not exists (select 1 from api_keys where hash = $1)
     on conflict (hash) do nothing returning hash`,
    [hash, keyId, kind, label, createdAt, expiresAt],
  );
  return rows.length > 0;
}

/** Ends an alias for good. */
export async function endAlias(tx: Queryable, hash: string, endedAt: Date): Promise<void> {
  await tx.query('update key_aliases set expires_at = least(coalesce(expires_at, $2), $2) where hash = $1', [
    hash,
    endedAt,
  ]);
}

/** Replaces the key's secret. Lists that name keys by number are updated to the new number. */
export async function replaceSecret(
  tx: Queryable,
  keyId: string,
  secret: { hash: string; label: string; number: number; formerNumber: number },
  updatedAt: Date,
): Promise<string[]> {
  await tx.query('update api_keys set hash = $2, label = $3, updated_at = $4 where id = $1', [
    keyId,
    secret.hash,
    secret.label,
    updatedAt,
  ]);
  const rows = await tx.query<{ id: string }>(
    `update workspaces w set version = w.version + 1,
       io_logging_api_key_ids = array_replace(w.io_logging_api_key_ids, $2::bigint, $3::bigint)
     from api_keys k where k.id = $1 and w.id = k.workspace_id and $2 = any(w.io_logging_api_key_ids) returning w.id`,
    [keyId, secret.formerNumber, secret.number],
  );
  return rows.map(({ id }) => id);
}

/** Returns false if it is gone already. */
export async function deleteSandboxSecret(tx: Queryable, hash: string): Promise<boolean> {
  const sql = `delete from key_aliases where hash = $1 and kind = 'sandbox' returning 1`;
  return (await tx.query(sql, [hash])).length > 0;
}

/** Returns the hashes of the secrets that sandboxes had. */
export async function deleteSandboxSecrets(tx: Queryable, keyId: string): Promise<string[]> {
  const sql = `delete from key_aliases where key_id = $1 and kind = 'sandbox' returning hash`;
  return (await tx.query<{ hash: string }>(sql, [keyId])).map(({ hash }) => hash);
}
