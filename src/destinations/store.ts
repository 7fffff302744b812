/** The SQL of destinations. */
import type { Page } from '../http/contract.ts';
import { type Columns, insertRow, selectList, updateRow } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';
import type { WireConfig } from './config.ts';
import type { FilterRules } from './schema.ts';

export interface DestinationSettings {
  name: string;
  enabled: boolean;
  privacyMode: boolean;
  samplingRate: number;
  regions: readonly string[];
  filterRules: FilterRules | null;
  /** null: all. */
  allowedKeyIds: readonly string[] | null;
  sendsCost: boolean;
  sendsIdentity: boolean;
  sendsRequestContext: boolean;
}

export interface StoredDestination extends DestinationSettings {
  id: string;
  organizationId: string;
  workspaceId: string;
  type: string;
  /** Secrets masked. */
  config: WireConfig;
  sealed: Buffer;
  createdAt: Date;
  updatedAt: Date;
}

export interface ShownDestination extends StoredDestination {
  allowedKeyHashes: readonly string[] | null;
  delivered: bigint;
  dropped: bigint;
  deliveredAt: Date | null;
  failedAt: Date | null;
  lastError: string | null;
  /** Records in the database. */
  waiting: number;
}

const SETTINGS: Columns<DestinationSettings> = {
  name: 'name',
  enabled: 'enabled',
  privacyMode: 'privacy_mode',
  samplingRate: 'sampling_rate',
  regions: 'regions',
  filterRules: { name: 'filter_rules', type: 'jsonb' },
  allowedKeyIds: 'allowed_key_ids',
  sendsCost: 'sends_cost',
  sendsIdentity: 'sends_identity',
  sendsRequestContext: 'sends_request_context',
};

const CHANGING = { ...SETTINGS, config: { name: 'config', type: 'jsonb' }, sealed: 'sealed', updatedAt: 'updated_at' };

const COLUMNS: Columns<StoredDestination> = {
  ...CHANGING,
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  type: 'type',
  createdAt: 'created_at',
};

const FIELDS = selectList(COLUMNS, 'd');
const SHOWN = `${FIELDS}, case when d.allowed_key_ids is not null then array(
    select k.hash from unnest(d.allowed_key_ids) with ordinality as allowed (id, place)
      join api_keys k on k.id = allowed.id order by allowed.place) end as "allowedKeyHashes",
  coalesce(s.delivered, 0) as delivered, coalesce(s.dropped, 0) as dropped,
  s.delivered_at as "deliveredAt", s.failed_at as "failedAt", s.last_error as "lastError",
  (select coalesce(sum(b.record_count), 0)::int from destination_batches b where b.destination_id = d.id) as waiting`;
const FROM = 'destinations d left join destination_states s on s.destination_id = d.id';

/** In the order of their creation. */
export async function listDestinations(
  db: Queryable,
  { organizationId, workspaceId, limit, offset }: Page & { organizationId: string; workspaceId: string },
): Promise<{ destinations: ShownDestination[]; total: number }> {
  const where = 'd.organization_id = $1 and d.workspace_id = $2';
  const destinations = await db.query<ShownDestination>(
    `select ${SHOWN} from ${FROM} where ${where} order by d.created_at, d.id limit $3 offset $4`,
    [organizationId, workspaceId, limit, offset],
  );
  const sql = `select count(*)::int as total from destinations d where ${where}`;
  const [count] = await db.query<{ total: number }>(sql, [organizationId, workspaceId]);
  return { destinations, total: count!.total };
}

/** @param hold locks the row until the transaction ends */
export async function findDestination(
  db: Queryable,
  organizationId: string,
  id: string,
  hold = false,
): Promise<ShownDestination | undefined> {
  const lock = hold ? ' for update of d' : '';
  const sql = `select ${SHOWN} from ${FROM} where d.organization_id = $1 and d.id = $2${lock}`;
  const [row] = await db.query<ShownDestination>(sql, [organizationId, id]);
  return row;
}

/** The enabled destinations of workspaces that forward their generations. */
export async function activeDestinations(db: Queryable): Promise<StoredDestination[]> {
  return db.query(
    `select ${FIELDS} from destinations d join workspaces w on w.id = d.workspace_id
      where d.enabled and w.is_observability_broadcast_enabled order by d.created_at, d.id`,
  );
}

export async function countDestinations(tx: Queryable, organizationId: string): Promise<number> {
  await tx.query('select 1 from organizations where id = $1 for no key update', [organizationId]);
  const sql = 'select count(*)::int as total from destinations where organization_id = $1';
  const [row] = await tx.query<{ total: number }>(sql, [organizationId]);
  return row!.total;
}

export async function insertDestination(tx: Queryable, destination: StoredDestination): Promise<void> {
  await insertRow(tx, 'destinations', COLUMNS, destination);
}

export async function updateDestination(
  tx: Queryable,
  id: string,
  destination: Pick<StoredDestination, keyof typeof CHANGING>,
): Promise<void> {
  await updateRow(tx, 'destinations', CHANGING, destination, { id });
}

export async function deleteDestination(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from destinations where id = $1', [id]);
}

export async function deleteDestinationsIn(tx: Queryable, workspaceId: string): Promise<string[]> {
  const sql = 'delete from destinations where workspace_id = $1 returning id';
  return (await tx.query<{ id: string }>(sql, [workspaceId])).map(({ id }) => id);
}

/** What has happened since the last call. */
export interface StateChange {
  delivered: number;
  dropped: number;
  deliveredAt: Date | null;
  failedAt: Date | null;
  lastError: string | null;
}

/** Does nothing for a destination that was deleted. */
export async function addToState(db: Queryable, id: string, change: StateChange): Promise<void> {
  await db.query(
    `insert into destination_states (destination_id, delivered, dropped, delivered_at, failed_at, last_error)
     select id, $2, $3, $4, $5, $6 from destinations where id = $1 for key share
     on conflict (destination_id) do update set
       delivered = destination_states.delivered + excluded.delivered,
       dropped = destination_states.dropped + excluded.dropped,
       delivered_at = greatest(destination_states.delivered_at, excluded.delivered_at),
       failed_at = greatest(destination_states.failed_at, excluded.failed_at),
       last_error = coalesce(excluded.last_error, destination_states.last_error)`,
    [id, change.delivered, change.dropped, change.deliveredAt, change.failedAt, change.lastError],
  );
}

interface DestinationBatch {
  id: string;
  destinationId: string;
  /** Encrypted JSON of a list of records; null in those of earlier versions. */
  sealed: Buffer | null;
  recordCount: number;
  attempts: number;
  createdAt: Date;
}

/** @returns false if the destination has no room for it, or was deleted */
export async function insertBatch(tx: Queryable, batch: DestinationBatch, mostBytes: number): Promise<boolean> {
  const rows = await tx.query(
    `insert into destination_batches (id, destination_id, sealed, record_count, attempts, created_at, due_at)
     select $1, d.id, $3::bytea, $4, $5, $6, $6 from destinations d
      where d.id = $2 and (select coalesce(sum(coalesce(length(b.sealed), length(b.records))), 0) from destination_batches b
        where b.destination_id = d.id) + length($3::bytea) <= $7
      for key share
     returning 1`,
    [batch.id, batch.destinationId, batch.sealed, batch.recordCount, batch.attempts, batch.createdAt, mostBytes],
  );
  return rows.length > 0;
}

/** @returns with `records` for a batch that is not encrypted */
export async function findBatch(
  db: Queryable,
  id: string,
): Promise<(DestinationBatch & { records: string | null }) | undefined> {
  const [row] = await db.query<DestinationBatch & { records: string | null }>(
    `select id, destination_id as "destinationId", sealed, records, record_count as "recordCount", attempts,
       created_at as "createdAt" from destination_batches where id = $1`,
    [id],
  );
  return row;
}

/** @returns false if another process has already removed it */
export async function removeBatch(db: Queryable, id: string): Promise<boolean> {
  return (await db.query('delete from destination_batches where id = $1 returning 1', [id])).length > 0;
}

export async function postponeBatch(tx: Queryable, id: string, dueAt: Date): Promise<boolean> {
  const sql = 'update destination_batches set attempts = attempts + 1, due_at = $2 where id = $1 returning 1';
  return (await tx.query(sql, [id, dueAt])).length > 0;
}

/** Batches that have been due for a while: their jobs were lost. */
export async function overdueBatches(db: Queryable, dueBefore: Date): Promise<string[]> {
  const sql = 'select id from destination_batches where due_at < $1 order by due_at limit 1000';
  return (await db.query<{ id: string }>(sql, [dueBefore])).map(({ id }) => id);
}
