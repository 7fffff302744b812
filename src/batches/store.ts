/** The SQL of batches themselves. Callers open the transactions; ids and times are made above. */
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';
import { type Batch, type BatchShape, type BatchState, TERMINAL_STATES } from './batch.ts';
import type { UsageCounts } from './results/usage.ts';

const COLUMNS: Columns<Batch> = {
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  keyHash: 'key_hash',
  shape: 'shape',
  headers: { name: 'headers', type: 'jsonb' },
  region: 'region',
  endpoint: 'endpoint',
  model: 'model',
  provider: { name: 'provider', type: 'jsonb' },
  state: 'state',
  createdAt: 'created_at',
  inProgressAt: 'in_progress_at',
  finalizingAt: 'finalizing_at',
  expiresAt: 'expires_at',
  finalizedAt: 'finalized_at',
  cancelledAt: 'cancelled_at',
  total: 'total',
  completed: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
  expired: 'expired',
  usage: { name: 'usage', type: 'jsonb' },
  error: 'error',
  purgedAt: 'purged_at',
  idempotencyKey: 'idempotency_key',
  bodySha256: 'body_sha256',
  seenAt: 'seen_at',
};

const SELECT_BATCHES = `select ${selectList(COLUMNS, 'batches')} from batches`;
const UNFINISHED = `state in ('validating', 'in_progress', 'finalizing', 'cancelling')`;

export async function insertBatch(tx: Queryable, batch: Batch): Promise<void> {
  await insertRow(tx, 'batches', COLUMNS, batch);
}

/** @param lock keeps the row for the transaction */
export async function findBatch(db: Queryable, id: string, lock = false): Promise<Batch | undefined> {
  const [batch] = await db.query<Batch>(`${SELECT_BATCHES} where id = $1${lock ? ' for update' : ''}`, [id]);
  return batch;
}

export async function findByIdempotencyKey(
  db: Queryable,
  workspaceId: string,
  key: string,
): Promise<Batch | undefined> {
  const [batch] = await db.query<Batch>(`${SELECT_BATCHES} where workspace_id = $1 and idempotency_key = $2`, [
    workspaceId,
    key,
  ]);
  return batch;
}

interface BatchFilter {
  workspaceId: string;
  /** Of the API that the batches were submitted with; by default any. */
  shape?: BatchShape;
  /** An id; the page begins with the next older one. */
  after: string | null;
  /** An id; the page ends with the next newer one. */
  before?: string | null;
  states?: readonly BatchState[] | null;
  /** Inclusive. */
  createdFrom?: Date | null;
  createdBefore?: Date | null;
  limit: number;
}

/** Newest first. */
export async function listBatches(db: Queryable, filter: BatchFilter): Promise<Batch[]> {
  const { workspaceId, shape = null, after, before = null, states = null } = filter;
  const { createdFrom = null, createdBefore = null, limit } = filter;
  // Before an id, the oldest of the newer ones are wanted.
  const found = await db.query<Batch>(
    `${SELECT_BATCHES} where workspace_id = $1 and ($2::uuid is null or id < $2) and ($7::uuid is null or id > $7)
      and ($3::text[] is null or state = any($3)) and ($4::timestamptz is null or created_at >= $4)
      and ($5::timestamptz is null or created_at < $5) and ($8::text is null or shape = $8)
      order by id ${before === null ? 'desc' : 'asc'} limit $6`,
    [workspaceId, after, states, createdFrom, createdBefore, limit, before, shape],
  );
  return before === null ? found : found.reverse();
}

interface StateChange {
  state: BatchState;
  at: Date;
  usage?: UsageCounts | null;
  error?: string;
}

export async function changeState(tx: Queryable, id: string, change: StateChange): Promise<void> {
  const { state, at, usage = null, error = null } = change;
  await tx.query(
    `update batches set state = $2, usage = coalesce($4::jsonb, usage), error = coalesce($5, error),
      in_progress_at = case $2 when 'in_progress' then $3 else in_progress_at end,
      finalizing_at = case $2 when 'finalizing' then $3 else finalizing_at end,
      cancelled_at = case $2 when 'cancelling' then $3 else cancelled_at end,
      finalized_at = case when $2 = any($6) then $3 else finalized_at end where id = $1`,
    [id, state, at, usage === null ? null : JSON.stringify(usage), error, TERMINAL_STATES],
  );
}

/** Stores the facts that are known once all items have arrived. @param model null: each item names its own */
export async function setItems(
  tx: Queryable,
  id: string,
  { total, model }: { total: number; model: string | null },
): Promise<void> {
  await tx.query('update batches set total = $2, model = $3 where id = $1', [id, total, model]);
}

/**
 * The data of native batches at their provider. `unsupported`: it may have kept some. `not_applicable`: it never had any.
 */
export interface UpstreamData {
  provider: string;
  status: (typeof UPSTREAM_DATA)[number];
}

/** Best first. */
export const UPSTREAM_DATA = ['not_applicable', 'deleted', 'unsupported'] as const;

/** The worst of several is kept. */
export async function recordUpstream(tx: Queryable, id: string, { provider, status }: UpstreamData): Promise<void> {
  await tx.query(
    `update batches set upstream_provider = $2, upstream_data = $3 where id = $1
      and (upstream_data is null or array_position($4::text[], upstream_data) < array_position($4::text[], $3))`,
    [id, provider, status, UPSTREAM_DATA],
  );
}

/** Undefined: nothing of the batch was meant for a batch interface. */
export async function findUpstream(db: Queryable, id: string): Promise<UpstreamData | undefined> {
  const [found] = await db.query<UpstreamData>(
    `select upstream_provider as provider, upstream_data as status from batches
      where id = $1 and upstream_data is not null`,
    [id],
  );
  return found;
}

export async function deleteBatch(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from batches where id = $1', [id]);
}

/** Returns the ids. */
export async function deleteBatchesOf(tx: Queryable, workspaceId: string): Promise<string[]> {
  const rows = await tx.query<{ id: string }>('delete from batches where workspace_id = $1 returning id', [
    workspaceId,
  ]);
  const ids = rows.map(({ id }) => id);
  await tx.query('delete from batch_intakes where batch_id = any($1)', [ids]);
  return ids;
}

/** A process begins to work on the batch. */
export async function markSeen(db: Queryable, id: string, at: Date): Promise<void> {
  await db.query('update batches set seen_at = $2 where id = $1', [id, at]);
}

/**
 * Unfinished batches, except those that are known or whose items are still arriving: first one of each workspace, then
 * the second of each, and so on; those that have waited longest first.
 */
export function unfinishedBatches(
  db: Queryable,
  known: readonly string[],
  limit: number,
): Promise<Pick<Batch, 'id' | 'workspaceId'>[]> {
  return db.query<Pick<Batch, 'id' | 'workspaceId'>>(
    `select id, workspace_id as "workspaceId" from (
        select id, workspace_id, seen_at, row_number() over (partition by workspace_id order by seen_at, id) as nth
          from batches where ${UNFINISHED} and id <> all($1::uuid[])
            and not exists (select 1 from batch_intakes where batch_id = id)) as waiting
      order by nth, seen_at, id limit $2`,
    [known, limit],
  );
}

/** Final batches whose results were kept long enough. */
export async function purgeableBatches(db: Queryable, finalizedBefore: Date, limit: number): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from batches where finalized_at < $1 and purged_at is null and state = any($2) order by finalized_at limit $3`,
    [finalizedBefore, TERMINAL_STATES, limit],
  );
  return rows.map(({ id }) => id);
}

export async function markPurged(tx: Queryable, id: string, at: Date): Promise<void> {
  await tx.query('update batches set purged_at = $2 where id = $1', [id, at]);
}

/** Before the first item of a batch is stored. */
export async function beginIntake(db: Queryable, batchId: string, at: Date): Promise<void> {
  await db.query('insert into batch_intakes (batch_id, created_at) values ($1, $2)', [batchId, at]);
}

/** True while items of the batch are still arriving. */
export async function isArriving(db: Queryable, batchId: string): Promise<boolean> {
  return (await db.query('select 1 from batch_intakes where batch_id = $1', [batchId])).length > 0;
}

/**
 * Call it in the transaction after which no item arrives any more, or that removes the items. False: one of the two has
 * happened already.
 */
export async function endIntake(tx: Queryable, batchId: string): Promise<boolean> {
  return (await tx.query('delete from batch_intakes where batch_id = $1 returning batch_id', [batchId])).length > 0;
}

/** Those without a batch: the request that would have made it has failed. */
export async function abandonedIntakes(db: Queryable, before: Date): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select batch_id as id from batch_intakes
      where created_at < $1 and not exists (select 1 from batches where id = batch_id)`,
    [before],
  );
  return rows.map(({ id }) => id);
}
