/** The SQL of stored conversations and their items. */
import { type Columns, insertRow, selectList } from '../../storage/columns.ts';
import type { Queryable } from '../../storage/database.ts';

export interface StoredConversation {
  /** `conv_...` */
  id: string;
  organizationId: string;
  workspaceId: string;
  createdAt: Date;
  usedAt: Date;
  dataKey: Buffer;
  /** Encrypted. */
  metadata: Buffer;
}

const COLUMNS: Columns<StoredConversation> = {
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  createdAt: 'created_at',
  usedAt: 'used_at',
  dataKey: 'data_key',
  metadata: 'metadata',
};

export interface StoredItem {
  id: string;
  sealed: Buffer;
}

export async function insertConversation(tx: Queryable, row: StoredConversation): Promise<void> {
  await insertRow(tx, 'conversations', COLUMNS, row);
}

/** @param lock keeps the row for the transaction */
export async function findConversation(
  db: Queryable,
  id: string,
  workspaceId: string,
  lock = false,
): Promise<StoredConversation | undefined> {
  const [row] = await db.query<StoredConversation>(
    `select ${selectList(COLUMNS, 'conversations')} from conversations
      where id = $1 and workspace_id = $2${lock ? ' for update' : ''}`,
    [id, workspaceId],
  );
  return row;
}

export async function setMetadata(tx: Queryable, id: string, metadata: Buffer): Promise<void> {
  await tx.query('update conversations set metadata = $2 where id = $1', [id, metadata]);
}

/** False: there is none. */
export async function deleteConversation(tx: Queryable, id: string, workspaceId: string): Promise<boolean> {
  const sql = 'delete from conversations where id = $1 and workspace_id = $2 returning id';
  return (await tx.query(sql, [id, workspaceId])).length > 0;
}

export async function deleteConversationsOf(tx: Queryable, workspaceId: string): Promise<void> {
  await tx.query('delete from conversations where workspace_id = $1', [workspaceId]);
}

/** Returns how many were removed. */
export async function deleteUnused(db: Queryable, usedBefore: Date, limit: number): Promise<number> {
  const sql = `delete from conversations where id in (
    select id from conversations where used_at < $1 order by used_at limit $2) returning id`;
  return (await db.query(sql, [usedBefore, limit])).length;
}

/** Number of items, and of their bytes. */
export async function sizeOf(db: Queryable, id: string): Promise<{ count: number; bytes: number }> {
  const [row] = await db.query<{ count: number; bytes: number }>(
    `select count(*)::float8 as count, coalesce(sum(length(sealed)), 0)::float8 as bytes
      from conversation_items where conversation_id = $1`,
    [id],
  );
  return row!;
}

const NAMED = `from conversation_items i join conversations c on c.id = i.conversation_id
  where i.id = any($1) and c.workspace_id = $2 order by i.id, i.position desc`;

/** The size in bytes of what `itemsNamed` returns. */
export async function bytesNamed(db: Queryable, ids: readonly string[], workspaceId: string): Promise<number> {
  const [row] = await db.query<{ bytes: number }>(
    `select coalesce(sum(bytes), 0)::float8 as bytes
      from (select distinct on (i.id) length(i.sealed) as bytes ${NAMED}) named`,
    [ids, workspaceId],
  );
  return row!.bytes;
}

/** Each with its conversation; of several items with one id the newest. */
export async function itemsNamed(
  db: Queryable,
  ids: readonly string[],
  workspaceId: string,
): Promise<(StoredItem & { conversation: Pick<StoredConversation, 'id' | 'dataKey'> })[]> {
  const rows = await db.query<StoredItem & { conversationId: string; dataKey: Buffer }>(
    `select distinct on (i.id) i.id, i.sealed, c.id as "conversationId", c.data_key as "dataKey" ${NAMED}`,
    [ids, workspaceId],
  );
  return rows.map(({ conversationId, dataKey, ...item }) => ({
    ...item,
    conversation: { id: conversationId, dataKey },
  }));
}

/** Which of these ids the conversation has. */
export async function takenIds(tx: Queryable, id: string, itemIds: readonly string[]): Promise<string[]> {
  const sql = 'select id from conversation_items where conversation_id = $1 and id = any($2)';
  return (await tx.query<{ id: string }>(sql, [id, itemIds])).map((row) => row.id);
}

/** In their order, after all others. */
export async function insertItems(tx: Queryable, id: string, items: readonly StoredItem[], at: Date): Promise<void> {
  await tx.query(
    `insert into conversation_items (conversation_id, id, sealed)
      select $1, given.id, given.sealed
        from unnest($2::text[], $3::bytea[]) with ordinality as given (id, sealed, nth) order by nth`,
    [id, items.map((item) => item.id), items.map((item) => item.sealed)],
  );
  await tx.query('update conversations set used_at = $2 where id = $1', [id, at]);
}

/** Oldest first. */
export function allItems(db: Queryable, id: string): Promise<StoredItem[]> {
  return db.query<StoredItem>(
    'select id, sealed from conversation_items where conversation_id = $1 order by position',
    [id],
  );
}

interface ItemPageChoice {
  /** An item's id; the page begins after it. */
  after: string | undefined;
  limit: number;
  order: 'asc' | 'desc';
}

/** One more than the limit if there are more. Undefined: there is no item `after`. */
export async function itemPage(
  db: Queryable,
  id: string,
  { after, limit, order }: ItemPageChoice,
): Promise<StoredItem[] | undefined> {
  if (after !== undefined && (await findItem(db, id, after)) === undefined) return undefined;
  return db.query<StoredItem>(
    `select id, sealed from conversation_items as item where conversation_id = $1
        and ($2::text is null or position ${order === 'asc' ? '>' : '<'} (
          select position from conversation_items where conversation_id = $1 and id = $2))
      order by position ${order} limit $3`,
    [id, after ?? null, limit + 1],
  );
}

export async function findItem(db: Queryable, id: string, itemId: string): Promise<StoredItem | undefined> {
  const [row] = await db.query<StoredItem>(
    'select id, sealed from conversation_items where conversation_id = $1 and id = $2',
    [id, itemId],
  );
  return row;
}

/** False: there is none. */
export async function deleteItem(tx: Queryable, id: string, itemId: string): Promise<boolean> {
  const sql = 'delete from conversation_items where conversation_id = $1 and id = $2 returning id';
  return (await tx.query(sql, [id, itemId])).length > 0;
}
