/** The SQL of stored responses. Callers open the transactions; ids and times are made above. */
import { type Columns, insertRow, selectList } from '../storage/columns.ts';
import type { Queryable } from '../storage/database.ts';
import type { ResponseStatus, StoredResponse } from './response.ts';

const COLUMNS: Columns<StoredResponse> = {
  id: 'id',
  organizationId: 'organization_id',
  workspaceId: 'workspace_id',
  keyHash: 'key_hash',
  status: 'status',
  previousId: 'previous_id',
  conversationId: 'conversation_id',
  background: 'background',
  streamed: 'streamed',
  createdAt: 'created_at',
  expiresAt: 'expires_at',
  claim: 'claim',
  claimedUntil: 'claimed_until',
  dataKey: 'data_key',
  bytes: 'bytes',
  contextItems: 'context_items',
};

const SELECTED = selectList(COLUMNS, 'responses');

/** Encrypted. */
interface SealedContents {
  input: Buffer;
  answer: Buffer;
}

type NewResponse = StoredResponse & SealedContents & { request: Buffer | null };

export async function insertResponse(tx: Queryable, row: NewResponse): Promise<void> {
  const columns: Columns<NewResponse> = { ...COLUMNS, input: 'input', answer: 'answer', request: 'request' };
  await insertRow(tx, 'responses', columns, row);
}

/** Where it may be read: in its workspace, until it expires. */
export interface Viewer {
  workspaceId: string;
  now: Date;
}

const VISIBLE = 'workspace_id = $2 and expires_at > $3';

export async function findResponse(
  db: Queryable,
  id: string,
  { workspaceId, now }: Viewer,
): Promise<(StoredResponse & SealedContents) | undefined> {
  const [row] = await db.query<StoredResponse & SealedContents>(
    `select ${SELECTED}, input, answer from responses where id = $1 and ${VISIBLE}`,
    [id, workspaceId, now],
  );
  return row;
}

/** Without its contents, which may be large. */
export async function findRow(
  db: Queryable,
  id: string,
  { workspaceId, now }: Viewer,
): Promise<StoredResponse | undefined> {
  const sql = `select ${SELECTED} from responses where id = $1 and ${VISIBLE}`;
  const [row] = await db.query<StoredResponse>(sql, [id, workspaceId, now]);
  return row;
}

/** A response and those that it continues, oldest first, at most `limit`. Empty if there is none with this id. */
export function chainOf(
  db: Queryable,
  id: string,
  { workspaceId, now }: Viewer,
  limit: number,
): Promise<StoredResponse[]> {
  return db.query<StoredResponse>(
    `with recursive chain as (
        select id, previous_id, 1 as length from responses where id = $1 and ${VISIBLE}
        union all
        select before.id, before.previous_id, chain.length + 1 from chain
          join responses as before on before.id = chain.previous_id
          where before.workspace_id = $2 and before.expires_at > $3 and chain.length < $4)
      select ${SELECTED} from chain join responses on responses.id = chain.id order by chain.length desc`,
    [id, workspaceId, now, limit],
  );
}

/** By their ids. */
export async function contentsOf(db: Queryable, ids: readonly string[]): Promise<Map<string, SealedContents>> {
  const rows = await db.query<SealedContents & { id: string }>(
    'select id, input, answer from responses where id = any($1)',
    [ids],
  );
  return new Map(rows.map(({ id, ...contents }) => [id, contents]));
}

/** The newest response whose answer has an item with each of these ids, newest first. */
export function responsesWithItems(
  db: Queryable,
  itemIds: readonly string[],
  { workspaceId, now }: Viewer,
): Promise<StoredResponse[]> {
  return db.query<StoredResponse>(
    `select ${SELECTED} from responses where id in (
        select distinct on (item_id) responses.id from response_items join responses on responses.id = response_id
          where item_id = any($1) and ${VISIBLE} order by item_id, created_at desc, responses.id desc)
      order by created_at desc, id desc`,
    [itemIds, workspaceId, now],
  );
}

/** What a new response continues is kept for at least as long as it. */
export async function keepUntil(tx: Queryable, ids: readonly string[], until: Date): Promise<void> {
  await tx.query('update responses set expires_at = $2 where id = any($1) and expires_at < $2', [ids, until]);
}

/**
 * Keeps the claims of a process on its responses, those included that were taken for lost. Returns the ones that it still has to
 * run.
 */
export async function renewClaims(
  db: Queryable,
  claim: string,
  ids: readonly string[],
  until: Date,
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `update responses set claimed_until = $3, status = 'in_progress' where claim = $1 and id = any($2)
      and claimed_until is not null and status in ('in_progress', 'failed') returning id`,
    [claim, ids, until],
  );
  return rows.map(({ id }) => id);
}

interface Finished {
  id: string;
  claim: string;
  status: ResponseStatus;
  answer: Buffer;
  /** Ids of the items of the answer. */
  items: readonly string[];
}

/**
 * Writes how it ended, and returns its status: a response that was cancelled meanwhile stays so. Undefined if it was deleted,
 * or its end is written already. A process that was taken for dead may still finish.
 */
export async function finishResponse(tx: Queryable, given: Finished): Promise<ResponseStatus | undefined> {
  const [row] = await tx.query<{ status: ResponseStatus }>(
    `update responses set status = case status when 'cancelled' then status else $3 end, answer = $4::bytea,
        bytes = length(input) + length($4::bytea), claimed_until = null
      where id = $1 and claim = $2 and (claimed_until is not null or status = 'cancelled') returning status`,
    [given.id, given.claim, given.status, given.answer],
  );
  if (row !== undefined && given.items.length > 0) {
    await tx.query(
      `insert into response_items (response_id, item_id) select $1, unnest($2::text[]) on conflict do nothing`,
      [given.id, given.items],
    );
  }
  return row?.status;
}

/** False: there is none. */
export async function deleteResponse(tx: Queryable, id: string, { workspaceId, now }: Viewer): Promise<boolean> {
  const sql = `delete from responses where id = $1 and ${VISIBLE} returning id`;
  return (await tx.query(sql, [id, workspaceId, now])).length > 0;
}

export async function deleteResponsesOf(tx: Queryable, workspaceId: string): Promise<void> {
  await tx.query('delete from responses where workspace_id = $1', [workspaceId]);
}

/** Returns how many were removed. */
export async function deleteExpired(db: Queryable, now: Date, limit: number): Promise<number> {
  const sql = `delete from responses where id in (
    select id from responses where expires_at <= $1 order by expires_at limit $2) returning id`;
  return (await db.query(sql, [now, limit])).length;
}

/** Those whose process died. */
export async function failLost(db: Queryable, now: Date): Promise<void> {
  await db.query(`update responses set status = 'failed' where status = 'in_progress' and claimed_until <= $1`, [now]);
}

/** Takes a queued response, with its encrypted request. Undefined: another process has, or it was cancelled. */
export async function claimQueued(
  db: Queryable,
  id: string,
  { claim, until, now }: { claim: string; until: Date; now: Date },
): Promise<(StoredResponse & SealedContents & { request: Buffer }) | undefined> {
  const [row] = await db.query<StoredResponse & SealedContents & { request: Buffer }>(
    `with taken as (
        select id, request from responses where id = $1 and status = 'queued' and expires_at > $4 for update skip locked)
      update responses set status = 'in_progress', claim = $2, claimed_until = $3, request = null
        from taken where responses.id = taken.id returning ${SELECTED}, taken.request, input, answer`,
    [id, claim, until, now],
  );
  return row;
}

/** Whose job may be lost. */
export async function queuedBefore(db: Queryable, before: Date, limit: number): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    `select id from responses where status = 'queued' and created_at < $1 order by created_at limit $2`,
    [before, limit],
  );
  return rows.map(({ id }) => id);
}

/** Keeps the row for the transaction. */
export async function lockResponse(
  tx: Queryable,
  id: string,
  { workspaceId, now }: Viewer,
): Promise<StoredResponse | undefined> {
  const [row] = await tx.query<StoredResponse>(
    `select ${SELECTED} from responses where id = $1 and ${VISIBLE} for update`,
    [id, workspaceId, now],
  );
  return row;
}

export async function cancelResponse(tx: Queryable, id: string): Promise<void> {
  await tx.query(`update responses set status = 'cancelled', request = null, claimed_until = null where id = $1`, [id]);
}
