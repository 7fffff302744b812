/** The SQL of interns. Callers open the transactions and supply ids and times. */
import { type Columns, insertRow, pick, selectList, updateRow } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';
import type { Intern } from './intern.ts';
import type { LiveStatus } from './lifecycle.ts';

const COLUMNS: Columns<Intern> = {
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  creatorUserId: 'creator_user_id',
  name: 'name',
  description: 'description',
  instructions: 'instructions',
  model: 'model',
  status: 'status',
  epoch: 'epoch',
  hostname: 'hostname',
  progress: { name: 'progress', type: 'jsonb' },
  lastFailureMessage: 'last_failure_message',
  vaultId: 'vault_id',
  attachedVaultId: 'attached_vault_id',
  idempotencyKey: 'idempotency_key',
  bodySha256: 'body_sha256',
  provisionOnCreate: 'provision_on_create',
  provisionedAt: 'provisioned_at',
  lossAcknowledged: 'loss_acknowledged',
  createdAt: 'created_at',
  updatedAt: 'updated_at',
};

const SELECT = `select ${selectList(COLUMNS, 'i')} from interns i`;

export async function insertIntern(tx: Queryable, intern: Intern): Promise<void> {
  await insertRow(tx, 'interns', COLUMNS, intern);
}

export async function findIntern(db: Queryable, workspaceId: string, id: string): Promise<Intern | undefined> {
  const [intern] = await db.query<Intern>(`${SELECT} where workspace_id = $1 and id = $2`, [workspaceId, id]);
  return intern;
}

export async function internWithId(db: Queryable, id: string): Promise<Intern | undefined> {
  const [intern] = await db.query<Intern>(`${SELECT} where id = $1`, [id]);
  return intern;
}

/** Keeps it from being deleted until the transaction ends. False: there is none. */
export async function holdIntern(tx: Queryable, id: string): Promise<boolean> {
  return (await tx.query('select 1 from interns where id = $1 for key share', [id])).length > 0;
}

/** Locked until the transaction ends. */
export async function lockIntern(tx: Queryable, id: string): Promise<Intern | undefined> {
  const [intern] = await tx.query<Intern>(`${SELECT} where id = $1 for update`, [id]);
  return intern;
}

type Creator = Pick<Intern, 'workspaceId' | 'creatorUserId'>;
const OF_CREATOR = `where workspace_id = $1 and coalesce(creator_user_id, '') = coalesce($2, '')`;

export async function internNamed(
  db: Queryable,
  { workspaceId, creatorUserId }: Creator,
  name: string,
): Promise<Intern | undefined> {
  const [intern] = await db.query<Intern>(`${SELECT} ${OF_CREATOR} and name = $3`, [workspaceId, creatorUserId, name]);
  return intern;
}

export async function internOfRequest(
  db: Queryable,
  { workspaceId, creatorUserId }: Creator,
  idempotencyKey: string,
): Promise<Intern | undefined> {
  const parameters = [workspaceId, creatorUserId, idempotencyKey];
  const [intern] = await db.query<Intern>(`${SELECT} ${OF_CREATOR} and idempotency_key = $3`, parameters);
  return intern;
}

/** Creations by one creator in one workspace happen one after the other. */
export async function lockCreator(tx: Queryable, { workspaceId, creatorUserId }: Creator): Promise<void> {
  const name = `interns ${workspaceId} ${creatorUserId ?? ''}`;
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [name]);
}

export async function countInterns(db: Queryable, workspaceId: string): Promise<number> {
  const sql = 'select count(*)::int as count from interns where workspace_id = $1';
  const [row] = await db.query<{ count: number }>(sql, [workspaceId]);
  return row!.count;
}

interface InternFilter {
  workspaceId: string;
  statuses: readonly string[] | null;
  /** An id; the page begins with the next older one. */
  after: string | null;
  limit: number;
}

/** Newest first. */
export function listInterns(db: Queryable, { workspaceId, statuses, after, limit }: InternFilter): Promise<Intern[]> {
  return db.query<Intern>(
    `${SELECT} where workspace_id = $1 and ($2::text[] is null or status = any($2)) and ($3::uuid is null or id < $3)
      order by id desc limit $4`,
    [workspaceId, statuses, after, limit],
  );
}

const SETTINGS = pick(COLUMNS, ['name', 'description', 'instructions', 'model', 'updatedAt']);

export async function updateSettings(tx: Queryable, intern: Intern): Promise<void> {
  await updateRow(tx, 'interns', SETTINGS, intern, { id: intern.id });
}

const LIFE = pick(COLUMNS, [
  'status',
  'epoch',
  'hostname',
  'progress',
  'lastFailureMessage',
  'provisionedAt',
  'lossAcknowledged',
  'updatedAt',
]);

export async function updateLife(tx: Queryable, intern: Intern): Promise<void> {
  await updateRow(tx, 'interns', LIFE, intern, { id: intern.id });
}

/** Does nothing after a later request. */
export async function updateProgress(db: Queryable, { id, epoch, progress }: Intern): Promise<void> {
  const sql = 'update interns set progress = $3::jsonb where id = $1 and epoch = $2';
  await db.query(sql, [id, epoch, JSON.stringify(progress)]);
}

export async function deleteIntern(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from interns where id = $1', [id]);
}

/** Those with unfinished work, oldest first. */
export async function internsAtWork(db: Queryable, statuses: readonly LiveStatus[]): Promise<string[]> {
  const rows = await db.query<{ id: string }>('select id from interns where status = any($1) order by id', [statuses]);
  return rows.map(({ id }) => id);
}
