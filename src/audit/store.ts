/** The SQL of the audit log, which is only inserted into and read. */
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';
import type { Author, Change } from './record.ts';

export interface StoredEntry {
  /** Increases in the order of insertion. */
  place: bigint;
  id: string;
  createdAt: Date;
  action: string;
  resourceType: string;
  resourceId: string;
  workspaceId: string | null;
  actorType: Author['type'];
  actorKeyHash: string | null;
  actorKeyLabel: string | null;
  actorUserId: string | null;
  requestId: string | null;
  sourceAddress: string | null;
  before: Record<string, unknown> | null;
  after: Record<string, unknown> | null;
}

const COLUMNS: Columns<Omit<StoredEntry, 'place'>> = {
  id: 'id',
  createdAt: 'created_at',
  action: 'action',
  resourceType: 'resource_type',
  resourceId: 'resource_id',
  workspaceId: 'workspace_id',
  actorType: 'actor_type',
  actorKeyHash: 'actor_key_hash',
  actorKeyLabel: 'actor_key_label',
  actorUserId: 'actor_user_id',
  requestId: 'request_id',
  sourceAddress: 'source_address',
  before: 'before',
  after: 'after',
};

export interface EntryFilter {
  organizationId: string;
  action?: string | undefined;
  resourceType?: string | undefined;
  resourceId?: string | undefined;
  /** Hash of a key, or id of a member. */
  actor?: string | undefined;
  actorType?: string | undefined;
  workspaceId?: string | undefined;
  from?: Date | undefined;
  /** Exclusive. */
  until?: Date | undefined;
  /** Only entries inserted before this position. */
  before?: string | undefined;
  limit: number;
}

export async function insertEntry(
  tx: Queryable,
  id: string,
  author: Author,
  change: Change,
  states: { before: string | null; after: string | null },
): Promise<void> {
  const { organizationId, at, type, keyHash, keyLabel, userId, requestId, sourceAddress } = author;
  const { action, resourceType, resourceId, workspaceId } = change;
  const columns = { ...COLUMNS, organizationId: 'organization_id' };
  await insertRow(tx, 'audit_entries', columns, {
    id,
    organizationId,
    createdAt: new Date(at),
    action,
    resourceType,
    resourceId,
    workspaceId,
    actorType: type,
    actorKeyHash: keyHash,
    actorKeyLabel: keyLabel,
    actorUserId: userId,
    requestId,
    sourceAddress,
    ...states,
  });
}

const ENTRIES_LOCK = 0x61756469;

/** Serializes callers until the transaction ends. */
export async function lockEntries(tx: Queryable): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [ENTRIES_LOCK]);
}

/** True if the same action on the same resource was recorded after `since`. */
export async function hasEntry(
  tx: Queryable,
  organizationId: string,
  { action, resourceType, resourceId }: Change,
  since: Date,
): Promise<boolean> {
  const sql = `select 1 from audit_entries where organization_id = $1 and resource_type = $2 and resource_id = $3
                  and action = $4 and created_at > $5 limit 1`;
  return (await tx.query(sql, [organizationId, resourceType, resourceId, action, since])).length > 0;
}

/** Newest first. */
export function listEntries(db: Queryable, filter: EntryFilter): Promise<StoredEntry[]> {
  return db.query<StoredEntry>(
    `select place, ${selectList(COLUMNS, 'audit_entries')}
       from audit_entries
      where organization_id = $1
        and ($2::text is null or action = $2)
        and ($3::text is null or resource_type = $3)
        and ($4::text is null or resource_id = $4)
        and ($5::text is null or actor_key_hash = $5 or actor_user_id = $5)
        and ($6::text is null or actor_type = $6)
        and ($7::text is null or workspace_id = $7)
        and ($8::timestamptz is null or created_at >= $8)
        and ($9::timestamptz is null or created_at < $9)
        and ($10::bigint is null or place < $10)
      order by place desc limit $11`,
    [
      filter.organizationId,
      filter.action ?? null,
      filter.resourceType ?? null,
      filter.resourceId ?? null,
      filter.actor ?? null,
      filter.actorType ?? null,
      filter.workspaceId ?? null,
      filter.from ?? null,
      filter.until ?? null,
      filter.before ?? null,
      filter.limit,
    ],
  );
}
