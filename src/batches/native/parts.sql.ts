/** The SQL of plans, of native batches and of their items. */
import { type Columns, insertRow, selectList } from '../../storage/columns.ts';
import type { Queryable } from '../../storage/database.ts';
import { type ClaimedItem, readInOrder } from '../items.sql.ts';
import type { NativePart } from './part.ts';

const COLUMNS: Columns<NativePart> = {
  id: 'id',
  batchId: 'batch_id',
  keyId: 'key_id',
  endpointId: 'endpoint_id',
  model: 'model',
  credential: 'credential',
  byokId: 'byok_id',
  format: 'format',
  path: 'path',
  items: 'items',
  bytes: { name: 'bytes', read: 'float8' },
  blobId: 'blob_id',
  createdAt: 'created_at',
  beganAt: 'began_at',
  triedAt: 'tried_at',
  uploadId: 'upload_id',
  upstreamId: 'upstream_id',
  notOurs: 'not_ours',
  cancelled: 'cancelled',
  failures: 'failures',
  polls: 'polls',
  turn: 'turn',
};

/** The items of the batch are to be planned before any runs. */
export async function insertPlan(tx: Queryable, batchId: string): Promise<void> {
  await tx.query('insert into batch_plans (batch_id) values ($1) on conflict do nothing', [batchId]);
}

export async function hasParts(db: Queryable, batchId: string): Promise<boolean> {
  return (await db.query('select 1 from native_batches where batch_id = $1 limit 1', [batchId])).length > 0;
}

/** Plans of batches that ended before they were planned. */
export async function removeOldPlans(db: Queryable): Promise<void> {
  await db.query(
    `delete from batch_plans where not exists (
        select 1 from batches where id = batch_id and state in ('validating', 'in_progress'))`,
  );
}

interface Claim {
  claim: string;
  now: Date;
  until: Date;
}

/** False: it is over, or another process plans. Renews the plan of the same claim. */
export async function takePlan(db: Queryable, batchId: string, { claim, now, until }: Claim): Promise<boolean> {
  const rows = await db.query(
    `update batch_plans set claim = $2, claimed_until = $4
      where batch_id = $1 and (claim is null or claim = $2 or claimed_until < $3) returning batch_id`,
    [batchId, claim, now, until],
  );
  return rows.length > 0;
}

export async function leavePlan(db: Queryable, batchId: string, claim: string): Promise<void> {
  await db.query('update batch_plans set claim = null where batch_id = $1 and claim = $2', [batchId, claim]);
}

export async function endPlan(db: Queryable, batchId: string): Promise<void> {
  await db.query('delete from batch_plans where batch_id = $1', [batchId]);
}

/** Takes the next free items after a position that may be assigned to a batch interface. */
export async function takeForPart(
  tx: Queryable,
  batchId: string,
  { claim, now, until, after, count, bytes }: Claim & { after: number; count: number; bytes: number },
): Promise<ClaimedItem[]> {
  await readInOrder(tx);
  const items = await tx.query<ClaimedItem>(
    `with free as (
        select ctid as row, position, bytes from batch_items
          where batch_id = $1 and outcome is null and not direct and free_at <= $2 and position > $3
            and exists (select 1 from batches where id = $1 and state = 'in_progress' and expires_at > $2)
          order by position limit $4 for update skip locked),
      next as (
        select row from (select row, sum(bytes) over (order by position) - bytes as before from free) as sized
          where before < $5)
      update batch_items set claim = $6, free_at = $7
        from next where batch_items.ctid = next.row
        returning batch_items.position, custom_id as "customId", model, body, attempts`,
    [batchId, now, after, count, bytes, claim, until],
  );
  return items.sort((one, other) => one.position - other.position);
}

/** Gives items of a claim back; all of them without positions. @param direct they are to run one by one */
export async function releaseItems(
  db: Queryable,
  batchId: string,
  { claim, freeAt, direct, positions }: { claim: string; freeAt: Date; direct: boolean; positions?: readonly number[] },
): Promise<void> {
  await db.query(
    `update batch_items set claim = null, free_at = $3, direct = direct or $4
      where batch_id = $1 and claim = $2 and outcome is null and ($5::integer[] is null or position = any($5))`,
    [batchId, claim, freeAt, direct, positions ?? null],
  );
}

/** Keeps the items of a claim for long. Returns their number. */
export async function keepItems(tx: Queryable, batchId: string, claim: string, until: Date): Promise<number> {
  const [row] = await tx.query<{ count: number }>(
    `with kept as (
        update batch_items set free_at = $3 where batch_id = $1 and claim = $2 and outcome is null returning position)
      select count(*)::float8 as count from kept`,
    [batchId, claim, until],
  );
  return row!.count;
}

/** Open items of a part among these positions, or the first ones after one. @param lock until the transaction ends */
export function openItemsOf(
  db: Queryable,
  { batchId, id }: Pick<NativePart, 'batchId' | 'id'>,
  {
    positions,
    after = -1,
    limit,
    lock = false,
  }: { positions?: readonly number[]; after?: number; limit: number; lock?: boolean },
): Promise<ClaimedItem[]> {
  return db.query<ClaimedItem>(
    `select position, custom_id as "customId", model, body, attempts from batch_items
      where batch_id = $1 and claim = $2 and outcome is null and ($3::integer[] is null or position = any($3))
        and position > $5
      order by position limit $4${lock ? ' for update' : ''}`,
    [batchId, id, positions ?? null, limit, after],
  );
}

export async function insertPart(tx: Queryable, part: NativePart): Promise<void> {
  await insertRow(tx, 'native_batches', { ...COLUMNS, seenAt: 'seen_at' }, { ...part, seenAt: part.createdAt });
}

/** Undefined: the job is an old one, or another process has the part (`busy`). */
export async function claimPart(
  db: Queryable,
  { id, turn, claim, now, until }: Claim & { id: string; turn: number },
): Promise<NativePart | 'busy' | undefined> {
  const [part] = await db.query<NativePart>(
    `update native_batches set claim = $3, claimed_until = $5, seen_at = $4
      where id = $1 and turn = $2 and (claim is null or claimed_until < $4)
      returning ${selectList(COLUMNS, 'native_batches')}`,
    [id, turn, claim, now, until],
  );
  if (part !== undefined) return part;
  const rows = await db.query('select 1 from native_batches where id = $1 and turn = $2', [id, turn]);
  return rows.length > 0 ? 'busy' : undefined;
}

/** False: another process has taken it over. */
export async function renewPart(db: Queryable, id: string, { claim, now, until }: Claim): Promise<boolean> {
  const sql = 'update native_batches set claimed_until = $3, seen_at = $4 where id = $1 and claim = $2 returning id';
  return (await db.query(sql, [id, claim, until, now])).length > 0;
}

type PartChange = Partial<
  Pick<
    NativePart,
    | 'beganAt'
    | 'triedAt'
    | 'items'
    | 'bytes'
    | 'blobId'
    | 'uploadId'
    | 'upstreamId'
    | 'notOurs'
    | 'cancelled'
    | 'failures'
    | 'polls'
  >
>;

/** @throws Error if another process has taken the part over */
export async function changePart(db: Queryable, id: string, claim: string, change: PartChange): Promise<void> {
  const entries = Object.entries(change) as [keyof PartChange, unknown][];
  const nameOf = (column: Columns<NativePart>[keyof NativePart]) => (typeof column === 'string' ? column : column.name);
  const sets = entries.map(([member], at) => `${nameOf(COLUMNS[member])} = $${at + 3}`);
  const rows = await db.query(
    `update native_batches set ${sets.join(', ')} where id = $1 and claim = $2 returning id`,
    [id, claim, ...entries.map(([, value]) => value)],
  );
  if (rows.length === 0) throw new Error(`native batch ${id} was taken over`);
}

/** Ends the step of a claim. Returns the next turn; undefined if another process has taken the part over. */
export async function passOn(tx: Queryable, id: string, claim: string): Promise<number | undefined> {
  const [row] = await tx.query<{ turn: number }>(
    'update native_batches set claim = null, turn = turn + 1 where id = $1 and claim = $2 returning turn',
    [id, claim],
  );
  return row?.turn;
}

/** The parts of a batch, or all that no process has looked at since `seenBefore`, with a new turn each. */
export function wakeParts(
  tx: Queryable,
  by: { batchId: string } | { seenBefore: Date; at: Date },
): Promise<{ id: string; turn: number }[]> {
  if ('batchId' in by) {
    return tx.query(
      'update native_batches set turn = turn + 1 where batch_id = $1 and not cancelled returning id, turn',
      [by.batchId],
    );
  }
  return tx.query('update native_batches set turn = turn + 1, seen_at = $2 where seen_at < $1 returning id, turn', [
    by.seenBefore,
    by.at,
  ]);
}

export async function deletePart(tx: Queryable, id: string): Promise<void> {
  await tx.query('delete from native_batches where id = $1', [id]);
}

/** Those of upstream batches that other parts have. */
export async function knownUpstream(db: Queryable, part: string, ids: readonly string[]): Promise<Set<string>> {
  const rows = await db.query<{ id: string }>(
    'select upstream_id as id from native_batches where upstream_id = any($2::text[]) and id <> $1',
    [part, ids],
  );
  return new Set(rows.map(({ id }) => id));
}

/** A step failed; the job is tried again. */
export async function leavePart(db: Queryable, id: string, claim: string): Promise<void> {
  await db.query('update native_batches set claim = null where id = $1 and claim = $2', [id, claim]);
}
