/** The SQL of the items of batches. */
import type { Queryable } from '../storage/database.ts';
import type { UsageCounts } from './batch.ts';
import { CANCELLED, EXPIRED, type ItemError } from './result.ts';

const DELETED_AT_ONCE = 5_000;

export interface NewItem {
  position: number;
  customId: string;
  /** Null: the model of the batch. */
  model: string | null;
  body: Buffer;
}

/** Returns the positions that were stored: those whose custom_id was there already are missing. */
export async function insertItems(
  db: Queryable,
  batchId: string,
  items: readonly NewItem[],
  freeAt: Date,
): Promise<Set<number>> {
  const rows = await db.query<{ position: number }>(
    `insert into batch_items (batch_id, position, custom_id, model, body, bytes, free_at)
      select $1, position, custom_id, model, body, length(body), $6
        from unnest($2::integer[], $3::text[], $4::text[], $5::bytea[]) as given (position, custom_id, model, body)
      on conflict (batch_id, custom_id) do nothing returning position`,
    [
      batchId,
      items.map((item) => item.position),
      items.map((item) => item.customId),
      items.map((item) => item.model),
      items.map((item) => item.body),
      freeAt,
    ],
  );
  return new Set(rows.map(({ position }) => position));
}

export async function positionOf(db: Queryable, batchId: string, customId: string): Promise<number | undefined> {
  const sql = 'select position from batch_items where batch_id = $1 and custom_id = $2';
  const [row] = await db.query<{ position: number }>(sql, [batchId, customId]);
  return row?.position;
}

/** In order. @param from the first position */
export function itemsFrom(
  db: Queryable,
  batchId: string,
  from: number,
  { count, bytes }: { count: number; bytes: number },
): Promise<NewItem[]> {
  return db.query<NewItem>(
    `select position, custom_id as "customId", model, body from (
        select position, custom_id, model, body, sum(bytes) over (order by position) - bytes as before
          from batch_items where batch_id = $1 and position >= $2 and position < $2 + $3) as next
      where before < $4 order by position`,
    [batchId, from, count, bytes],
  );
}

export interface ClaimedItem extends NewItem {
  attempts: number;
}

/**
 * Takes the next free items of a batch in progress, up to a number and, except for the first, a number of bytes. Items that
 * another process is taking at this moment are passed over.
 */
export async function claimItems(
  db: Queryable,
  batchId: string,
  { claim, now, until, count, bytes }: { claim: string; now: Date; until: Date; count: number; bytes: number },
): Promise<ClaimedItem[]> {
  const items = await db.query<ClaimedItem>(
    `with free as (
        select position, bytes from batch_items
          where batch_id = $1 and outcome is null and free_at <= $2
            and exists (select 1 from batches where id = $1 and state = 'in_progress' and expires_at > $2)
            and not exists (select 1 from batch_plans where batch_plans.batch_id = $1)
          order by position limit $3 for update skip locked),
      next as (
        select position from (select position, sum(bytes) over (order by position) - bytes as before from free) as sized
          where before < $4)
      update batch_items set claim = $5, free_at = $6, attempts = attempts + 1
        from next where batch_id = $1 and batch_items.position = next.position
        returning batch_items.position, custom_id as "customId", model, body, attempts`,
    [batchId, now, count, bytes, claim, until],
  );
  return items.sort((one, other) => one.position - other.position);
}

/** Keeps every item of this claim for longer. */
export async function renewClaim(db: Queryable, batchId: string, claim: string, until: Date): Promise<void> {
  await db.query('update batch_items set free_at = $3 where batch_id = $1 and claim = $2 and outcome is null', [
    batchId,
    claim,
    until,
  ]);
}

/** Gives an item back that is to run later. Does nothing if it was taken by another process meanwhile. */
export async function putBack(
  db: Queryable,
  batchId: string,
  claim: string,
  { position, freeAt }: { position: number; freeAt: Date },
): Promise<void> {
  await db.query(
    `update batch_items set claim = null, free_at = $4
      where batch_id = $1 and position = $2 and claim = $3 and outcome is null`,
    [batchId, position, claim, freeAt],
  );
}

/** Gives all items of a claim back. */
export async function releaseClaim(db: Queryable, batchId: string, claim: string, freeAt: Date): Promise<void> {
  await db.query(
    `update batch_items set claim = null, free_at = $3 where batch_id = $1 and claim = $2 and outcome is null`,
    [batchId, claim, freeAt],
  );
}

export interface ItemResult {
  position: number;
  outcome: 'completed' | 'failed';
  statusCode: number | null;
  requestId: string | null;
  /** JSON; null if there is an error instead. */
  response: Buffer | null;
  error: ItemError | null;
  usage: UsageCounts | null;
}

/** Counts the items of `settled` in their batch. */
const COUNT_SETTLED = `update batches set completed = batches.completed + counted.completed,
    failed = batches.failed + counted.failed, cancelled = batches.cancelled + counted.cancelled,
    expired = batches.expired + counted.expired
  from (select count(*) filter (where outcome = 'completed') as completed,
      count(*) filter (where outcome = 'failed') as failed,
      count(*) filter (where error ->> 'type' = '${CANCELLED.type}') as cancelled,
      count(*) filter (where error ->> 'type' = '${EXPIRED.type}') as expired from settled) as counted
  where id = $1`;

/** Writes results and counts them in the batch, in one statement. An item that has a result keeps it. */
export async function writeResults(tx: Queryable, batchId: string, results: readonly ItemResult[]): Promise<void> {
  const json = (value: unknown) => (value === null ? null : JSON.stringify(value));
  await tx.query(
    `with settled as (
        update batch_items as item set outcome = given.outcome, status_code = given.status_code,
            request_id = given.request_id, response = given.response, error = given.error::jsonb,
            usage = given.usage::jsonb, claim = null
          from unnest($2::integer[], $3::text[], $4::integer[], $5::text[], $6::bytea[], $7::text[], $8::text[])
            as given (position, outcome, status_code, request_id, response, error, usage)
          where item.batch_id = $1 and item.position = given.position and item.outcome is null
          returning item.outcome, item.error)
      ${COUNT_SETTLED}`,
    [
      batchId,
      results.map((result) => result.position),
      results.map((result) => result.outcome),
      results.map((result) => result.statusCode),
      results.map((result) => result.requestId),
      results.map((result) => result.response),
      results.map((result) => json(result.error)),
      results.map((result) => json(result.usage)),
    ],
  );
}

/** Ends every item without a result with this error, and counts it. */
export async function failOpenItems(tx: Queryable, batchId: string, error: ItemError): Promise<void> {
  await tx.query(
    `with settled as (
        update batch_items set outcome = 'failed', error = $2::jsonb, claim = null
          where batch_id = $1 and outcome is null returning outcome, error)
      ${COUNT_SETTLED}`,
    [batchId, JSON.stringify(error)],
  );
}

interface OpenItems {
  count: number;
  /** Items that a process is running, or had when it died. */
  claimed: number;
  /** When the first of them can be claimed; null if there are none. */
  freeAt: Date | null;
  /** When the last running claim ends; null if there is none. */
  claimsEndAt: Date | null;
}

export async function openItems(db: Queryable, batchId: string, now: Date): Promise<OpenItems> {
  const [row] = await db.query<OpenItems>(
    `select count(*)::float8 as count,
        count(*) filter (where claim is not null and free_at > $2)::float8 as claimed,
        min(free_at) as "freeAt", max(free_at) filter (where claim is not null and free_at > $2) as "claimsEndAt"
      from batch_items where batch_id = $1 and outcome is null`,
    [batchId, now],
  );
  return row!;
}

export async function sumUsage(db: Queryable, batchId: string): Promise<UsageCounts | null> {
  const rows = await db.query<{ name: string; sum: number }>(
    `select name, sum(value::float8)::float8 as sum from batch_items, jsonb_each_text(usage) as counts (name, value)
      where batch_id = $1 and outcome is not null group by name`,
    [batchId],
  );
  return rows.length === 0 ? null : Object.fromEntries(rows.map(({ name, sum }) => [name, sum]));
}

export interface StoredResult extends ItemResult {
  customId: string;
}

/** Results in order. @param after a position; -1 for the first page */
export function resultsAfter(
  db: Queryable,
  batchId: string,
  after: number,
  { count, bytes }: { count: number; bytes: number },
): Promise<StoredResult[]> {
  return db.query<StoredResult>(
    `select position, custom_id as "customId", outcome, status_code as "statusCode", request_id as "requestId", response,
        error, usage from (
        select *, sum(coalesce(length(response), 0)) over (order by position) - coalesce(length(response), 0) as before from (
          select * from batch_items where batch_id = $1 and position > $2 and outcome is not null
            order by position limit $3) as page) as sized
      where before < $4 order by position`,
    [batchId, after, count, bytes],
  );
}

/** Removes all items of a batch, a bounded number in each statement. */
export async function deleteItems(db: Queryable, batchId: string): Promise<void> {
  let removed: number;
  do {
    const rows = await db.query(
      `delete from batch_items where batch_id = $1 and position in (
          select position from batch_items where batch_id = $1 order by position limit $2) returning position`,
      [batchId, DELETED_AT_ONCE],
    );
    removed = rows.length;
  } while (removed === DELETED_AT_ONCE);
}
