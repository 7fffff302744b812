/** The SQL of containers. Callers open the transactions; ids and times are made above. */
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';
import type { ContainerFile, StoredContainer } from './container.ts';

const COLUMNS: Columns<StoredContainer> = {
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  keyId: 'key_id',
  name: 'name',
  domains: { name: 'domains', type: 'jsonb' },
  copied: { name: 'copied', type: 'jsonb' },
  blobId: 'blob_id',
  bytes: { name: 'bytes', read: 'float8' },
  version: 'version',
  createdAt: 'created_at',
  usedAt: 'used_at',
  expiresAt: 'expires_at',
  unsavedAt: 'unsaved_at',
};

const SELECT = `select ${selectList(COLUMNS, 'containers')} from containers`;

/** Undefined also if it has expired. */
export async function findContainer(
  db: Queryable,
  keyId: string,
  name: string,
  now: Date,
): Promise<StoredContainer | undefined> {
  const sql = `${SELECT} where key_id = $1 and name = $2 and (expires_at > $3 or held_until > $3)`;
  const [found] = await db.query<StoredContainer>(sql, [keyId, name, now]);
  return found;
}

/** Does nothing if there is one with this name. */
export async function insertContainer(tx: Queryable, container: StoredContainer): Promise<void> {
  await insertRow(tx, 'containers', COLUMNS, container, 'on conflict (key_id, name) do nothing');
}

/** One use of a container. */
export interface Hold {
  /** Of the container. */
  id: string;
  /** A UUID of this use. */
  holder: string;
}

/** Claims a container. Undefined if another use has it, or it is gone. */
export async function takeContainer(
  db: Queryable,
  { id, holder }: Hold,
  now: Date,
  until: Date,
): Promise<StoredContainer | undefined> {
  const [taken] = await db.query<StoredContainer>(
    `update containers set holder = $2, held_until = $4
      where id = $1 and (holder is null or held_until <= $3) returning ${selectList(COLUMNS, 'containers')}`,
    [id, holder, now, until],
  );
  return taken;
}

/** `gone`, or whether a use has it. */
export async function stateOf(db: Queryable, id: string, now: Date): Promise<'gone' | 'held' | 'free'> {
  const sql = 'select coalesce(held_until > $2, false) as held from containers where id = $1';
  const [row] = await db.query<{ held: boolean }>(sql, [id, now]);
  if (row === undefined) return 'gone';
  return row.held ? 'held' : 'free';
}

/** Returns the holders whose claim still holds. */
export async function renewHolds(db: Queryable, holders: readonly string[], until: Date): Promise<string[]> {
  const sql = 'update containers set held_until = $2 where holder = any($1::uuid[]) returning holder';
  return (await db.query<{ holder: string }>(sql, [holders, until])).map(({ holder }) => holder);
}

/** The state of a container after a use. */
interface LeftState extends Pick<StoredContainer, 'copied' | 'blobId' | 'bytes' | 'usedAt' | 'expiresAt'> {
  files: readonly ContainerFile[];
}

/** Ends a claim with the files as they are now. Returns the blob that was replaced; undefined: another use has the container. */
export async function saveContainer(
  tx: Queryable,
  { id, holder }: Hold,
  { copied, blobId, bytes, usedAt, expiresAt, files }: LeftState,
): Promise<{ replaced: string | null } | undefined> {
  const [before] = await tx.query<{ blobId: string | null }>(
    'select blob_id as "blobId" from containers where id = $1 and holder = $2 for update',
    [id, holder],
  );
  if (before === undefined) return undefined;
  await tx.query(
    `update containers set copied = $2::jsonb, blob_id = $3, bytes = $4, used_at = $5, expires_at = $6,
      version = version + 1, holder = null, held_until = null, unsaved_at = null where id = $1`,
    [id, JSON.stringify(copied), blobId, bytes, usedAt, expiresAt],
  );
  await tx.query('delete from container_files where container_id = $1', [id]);
  await tx.query(
    `insert into container_files (container_id, id, path, bytes, changed_at)
      select $1, * from unnest($2::text[], $3::text[], $4::bigint[], $5::timestamptz[])`,
    [
      id,
      files.map((file) => file.id),
      files.map(({ path }) => path),
      files.map((file) => file.bytes),
      files.map(({ changedAt }) => changedAt),
    ],
  );
  return { replaced: before.blobId };
}

/** Ends a claim; the container stays as it was before. */
export async function releaseContainer(db: Queryable, { id, holder }: Hold, usedAt: Date, expiresAt: Date) {
  await db.query(
    `update containers set holder = null, held_until = null, used_at = $3, expires_at = $4 where id = $1 and holder = $2`,
    [id, holder, usedAt, expiresAt],
  );
}

/** The same for a use whose files could not be stored. */
export async function releaseUnsaved(db: Queryable, { id, holder }: Hold, usedAt: Date, expiresAt: Date) {
  await db.query(
    `update containers set holder = null, held_until = null, used_at = $3, expires_at = $4, unsaved_at = $3
      where id = $1 and holder = $2`,
    [id, holder, usedAt, expiresAt],
  );
}

/** Ends a claim together with a container that nothing was stored of. */
export async function deleteContainer(db: Queryable, { id, holder }: Hold): Promise<void> {
  await db.query('delete from containers where id = $1 and holder = $2 and blob_id is null', [id, holder]);
}

const REMOVED = 'returning blob_id as "blobId"';

/** Returns the blobs of the containers that were removed. Containers in use stay. */
async function removed(tx: Queryable, sql: string, values: readonly unknown[]): Promise<(string | null)[]> {
  return (await tx.query<{ blobId: string | null }>(`${sql} ${REMOVED}`, values)).map(({ blobId }) => blobId);
}

const FREE = '(held_until is null or held_until <= $1)';

/** At most `limit` that have expired by `now`. */
export function deleteExpired(tx: Queryable, now: Date, limit: number) {
  const sql = `delete from containers where id in (
    select id from containers where expires_at <= $1 and ${FREE} order by expires_at limit $2 for update skip locked)`;
  return removed(tx, sql, [now, limit]);
}

export function deleteExpiredNamed(tx: Queryable, keyId: string, name: string, now: Date) {
  return removed(tx, `delete from containers where key_id = $2 and name = $3 and expires_at <= $1 and ${FREE}`, [
    now,
    keyId,
    name,
  ]);
}

/** Those unused for longest, beyond the number that a key may have, and the bytes that a workspace may have. */
export function deleteSurplus(
  tx: Queryable,
  { workspaceId, now, ofKey, bytes }: { workspaceId: string; now: Date; ofKey: number; bytes: number },
) {
  const sql = `delete from containers where ${FREE} and id in (
    select id from (
      select id, row_number() over (partition by key_id order by used_at desc, id) as place,
        sum(bytes) over (order by used_at desc, id) as total
      from containers where workspace_id = $2) as ranked
    where place > $3 or total > $4)`;
  return removed(tx, sql, [now, workspaceId, ofKey, bytes]);
}

export function deleteContainersOf(tx: Queryable, workspaceId: string) {
  return removed(tx, 'delete from containers where workspace_id = $1', [workspaceId]);
}

const FILE = 'id, path, bytes::float8 as bytes, changed_at as "changedAt"';

/** At most as many as are shown of a container. */
export function listFiles(db: Queryable, containerId: string): Promise<ContainerFile[]> {
  return db.query<ContainerFile>(`select ${FILE} from container_files where container_id = $1`, [containerId]);
}
