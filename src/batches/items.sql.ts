/** The SQL of the items of batches. */
import type { Queryable } from '../storage/database.ts';
import { CANCELLED, EXPIRED, type ItemError } from './results/result.ts';
import type { UsageCounts } from './results/usage.ts';

const DELETED_AT_ONCE = 5_000;

export interface NewItem {
  position: number;
  customId: string;
  /** Null: the model of the batch. */
  model: string | null;
  body: Buffer;
}

/**
 * Returns the positions that were stored: those whose custom_id was there already are missing, and all of them once no
 * item may arrive any more.
 */
export async function insertItems(
  db: Queryable,
  batchId: string,
  items: readonly NewItem[],
  freeAt: Date,
): Promise<Set<number>> {
  const rows = await db.query<{ position: number }>(
    `with arriving as (select from batch_intakes where batch_id = $1 for key share)
      insert into batch_items (batch_id, position, custom_id, model, body, bytes, free_at)
      select $1, position, custom_id, model, body, length(body), $6
        from unnest($2::integer[], $3::text[], $4::text[], $5::bytea[]) as given (position, custom_id, model, body),
          arriving
      on conflict do nothing returning position`,
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

/** By custom_id. */
export async function positionsOf(
  db: Queryable,
  batchId: string,
  customIds: readonly string[],
): Promise<Map<string, number>> {
  const rows = await db.query<{ customId: string; position: number }>(
    'select custom_id as "customId", position from batch_items where batch_id = $1 and custom_id = any($2)',
    [batchId, customIds],
  );
  return new Map(rows.map(({ customId, position }) => [customId, position]));
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
 * For the rest of the transaction: the first rows of an index are read, and no others. While there are no statistics of a batch
 * that has just arrived, PostgreSQL would read and sort all of its items.
 */
export async function readInOrder(tx: Queryable): Promise<void> {
  await tx.query(`select set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true)`);
}

/**
 * Claims the next free items of a batch in progress, in their order, up to a number and, except for the first, a number
 * of bytes. Items that another process is claiming at this moment are skipped, and so are those of this claim: a process
 * that stood still for longer than its claim still runs them.
 */
export async function claimItems(
  tx: Queryable,
  batchId: string,
  { claim, now, until, count, bytes }: { claim: string; now: Date; until: Date; count: number; bytes: number },
): Promise<ClaimedItem[]> {
  await readInOrder(tx);
  const items = await tx.query<ClaimedItem>(
    `with free as (
        select ctid as row, free_at, position, bytes from batch_items
          where batch_id = $1 and outcome is null and free_at <= $2 and claim is distinct from $5
            and exists (select 1 from batches where id = $1 and state = 'in_progress' and expires_at > $2)
            and not exists (select 1 from batch_plans where batch_plans.batch_id = $1)
          order by free_at, position limit $3 for update skip locked),
      next as (
        select row from (select row, sum(bytes) over (order by free_at, position) - bytes as before from free) as sized
          where before < $4)
      update batch_items set claim = $5, free_at = $6, attempts = attempts + 1
        from next where batch_items.ctid = next.row
        returning batch_items.position, custom_id as "customId", model, body, attempts`,
    [batchId, now, count, bytes, claim, until],
  );
  return items.sort((one, other) => one.position - other.position);
}

/**
 * Extends the claim of every item. It never ends earlier than the claim of a native batch on its items, however late
 * this statement arrives.
 */
export async function renewClaim(db: Queryable, batchId: string, claim: string, until: Date): Promise<void> {
  const sql = `update batch_items set free_at = $3
    where batch_id = $1 and claim = $2 and outcome is null and free_at < $3`;
  await db.query(sql, [batchId, claim, until]);
}

/**
 * Returns items that are to run later, except those that another process has claimed meanwhile.
 * @param attempts how many attempts of each are not counted
 */
export async function putBack(
  db: Queryable,
  batchId: string,
  claim: string,
  { positions, freeAt, attempts }: { positions: readonly number[]; freeAt: Date; attempts: number },
): Promise<void> {
  await db.query(
    `update batch_items set claim = null, free_at = $4, attempts = greatest(0, attempts - $5)
      where batch_id = $1 and position = any($2) and claim = $3 and outcome is null`,
    [batchId, positions, claim, freeAt, attempts],
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
          where item.batch_id = $1 and item.position = any($2) and item.position = given.position and item.outcome is null
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
  /** When the first item without a result can be claimed; null if all have one. */
  freeAt: Date | null;
  /** When the last running claim ends; null if no process is running an item. */
  claimsEndAt: Date | null;
}

export async function openItems(db: Queryable, batchId: string, now: Date): Promise<OpenItems> {
  const [row] = await db.query<OpenItems>(
    `select
        (select free_at from batch_items where batch_id = $1 and outcome is null order by free_at limit 1) as "freeAt",
        (select max(free_at) from batch_items
          where batch_id = $1 and outcome is null and free_at > $2 and claim is not null) as "claimsEndAt"`,
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

/** Results of a final batch, of which every item has one, in order. @param after a position; -1 for the first page */
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
          select * from batch_items
            where batch_id = $1 and position > $2 and position <= $2 + $3 and outcome is not null) as page) as sized
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
