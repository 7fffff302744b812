/** The SQL of vector stores. Callers open the transactions; ids and times are made above. */
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';

export interface VectorStore {
  id: string;
  organizationId: string;
  workspaceId: string;
  name: string;
  metadata: Readonly<Record<string, string>>;
  /** Days without use after which its files are removed; null: never. */
  expiresDays: number | null;
  /** Null: files are ranked by keywords only. */
  embeddingModel: string | null;
  dataKey: Buffer;
  createdAt: Date;
  activeAt: Date;
}

const COLUMNS: Columns<VectorStore> = {
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  name: 'name',
  metadata: { name: 'metadata', type: 'jsonb' },
  expiresDays: 'expires_days',
  embeddingModel: 'embedding_model',
  dataKey: 'data_key',
  createdAt: 'created_at',
  activeAt: 'active_at',
};

const STORES = `select ${selectList(COLUMNS, 's')} from vector_stores s`;

/** What a store holds. */
export interface Holdings {
  inProgress: number;
  completed: number;
  failed: number;
  cancelled: number;
  bytes: number;
}

export async function insertStore(tx: Queryable, store: VectorStore): Promise<void> {
  await insertRow(tx, 'vector_stores', COLUMNS, store);
}

/** Holds the workspace, so that two requests at once cannot exceed its limit together. Returns how many stores it has. */
export async function lockCountOf(tx: Queryable, workspaceId: string): Promise<number> {
  await tx.query('select 1 from workspaces where id = $1 for no key update', [workspaceId]);
  const [row] = await tx.query<{ count: number }>(
    'select count(*)::int as count from vector_stores where workspace_id = $1',
    [workspaceId],
  );
  return row!.count;
}

export function findStores(db: Queryable, workspaceId: string, ids: readonly string[]): Promise<VectorStore[]> {
  return db.query<VectorStore>(`${STORES} where s.workspace_id = $1 and s.id = any($2::uuid[])`, [workspaceId, ids]);
}

/** Keeps the row for the transaction. */
export async function lockStore(tx: Queryable, workspaceId: string, id: string): Promise<VectorStore | undefined> {
  const sql = `${STORES} where s.workspace_id = $1 and s.id = $2 for no key update`;
  const [store] = await tx.query<VectorStore>(sql, [workspaceId, id]);
  return store;
}

export interface ListPage {
  after: string | undefined;
  before: string | undefined;
  newestFirst: boolean;
  limit: number;
}

/** The rows of a page by their ids, which rise with time. @param first number of the first parameter */
export function pageSql(alias: string, { newestFirst }: ListPage, first: number): string {
  const [after, before] = newestFirst ? ['<', '>'] : ['>', '<'];
  const id = `${alias}.id`;
  return `($${first}::uuid is null or ${id} ${after} $${first}) and ($${first + 1}::uuid is null or ${id} ${before} $${first + 1})
    order by ${id} ${newestFirst ? 'desc' : 'asc'} limit $${first + 2}`;
}

export function pageValues({ after, before, limit }: ListPage): unknown[] {
  return [after ?? null, before ?? null, limit];
}

export function listStores(db: Queryable, workspaceId: string, page: ListPage): Promise<VectorStore[]> {
  return db.query<VectorStore>(`${STORES} where s.workspace_id = $1 and ${pageSql('s', page, 2)}`, [
    workspaceId,
    ...pageValues(page),
  ]);
}

export async function holdingsOf(db: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, Holdings>> {
  const rows = await db.query<Holdings & { id: string }>(
    `select store_id as id,
            count(*) filter (where status = 'in_progress')::int as "inProgress",
            count(*) filter (where status = 'completed')::int as completed,
            count(*) filter (where status = 'failed')::int as failed,
            count(*) filter (where status = 'cancelled')::int as cancelled,
            coalesce(sum(bytes), 0)::float8 as bytes
       from vector_store_files where store_id = any($1::uuid[]) group by store_id`,
    [ids],
  );
  return new Map(rows.map(({ id, ...holdings }) => [id, holdings]));
}

export async function updateStore(
  tx: Queryable,
  { id, name, metadata, expiresDays }: Pick<VectorStore, 'id' | 'name' | 'metadata' | 'expiresDays'>,
): Promise<void> {
  await tx.query('update vector_stores set name = $2, metadata = $3::jsonb, expires_days = $4 where id = $1', [
    id,
    name,
    JSON.stringify(metadata),
    expiresDays,
  ]);
}

/** Notes that the stores are used. @param notedBefore those noted since then are left as they are */
export async function touchStores(db: Queryable, ids: readonly string[], now: Date, notedBefore: Date): Promise<void> {
  await db.query('update vector_stores set active_at = $2 where id = any($1::uuid[]) and active_at < $3', [
    ids,
    now,
    notedBefore,
  ]);
}

export async function deleteStore(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from vector_stores where id = $1', [id]);
}

/** For a workspace that is deleted. */
export async function endVectorStores(tx: Queryable, workspaceId: string): Promise<void> {
  await tx.query('delete from vector_stores where workspace_id = $1', [workspaceId]);
}

/** Removes the files of stores that have expired. */
export async function emptyExpiredStores(db: Queryable, now: Date): Promise<void> {
  await db.query(
    `delete from vector_store_files f using vector_stores s
      where s.id = f.store_id and s.expires_days is not null and s.active_at + s.expires_days * interval '1 day' <= $1`,
    [now],
  );
}
