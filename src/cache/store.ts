/** The SQL of the response cache. */
import { type Columns, excludedList, insertRow } from '../storage/columns.ts';
import type { Database } from '../storage/database.ts';
import type { CachedAnswer } from './answer.ts';

/** Ensures that only one process cleans up at a time. */
const ROOM_LOCK = 0x63616368;
/** Rows that one statement removes, so that none blocks others for long. */
const REMOVED_AT_ONCE = 500;

interface Row {
  key: Buffer;
  source_id: string;
  created_at: Date;
  expires_at: Date;
  model: string;
  endpoint_id: string | null;
  provider_name: string | null;
  finish_reason: string | null;
  native_finish_reason: string | null;
  body: Buffer;
}

/** The unexpired answers for the keys. */
export async function findAnswers(database: Database, keys: readonly Buffer[], nowMs: number): Promise<CachedAnswer[]> {
  const rows = await database.query<Row>(
    `select key, source_id, created_at, expires_at, model, endpoint_id, provider_name, finish_reason,
       native_finish_reason, body
     from cached_answers where key = any($1::bytea[]) and expires_at > $2`,
    [keys, new Date(nowMs)],
  );
  return rows.map((row) => ({
    key: row.key,
    sourceId: row.source_id,
    createdAt: row.created_at.getTime(),
    expiresAt: row.expires_at.getTime(),
    model: row.model,
    endpointId: row.endpoint_id,
    providerName: row.provider_name,
    finishReason: row.finish_reason,
    nativeFinishReason: row.native_finish_reason,
    body: row.body,
  }));
}

const COLUMNS: Columns<CachedAnswer & { size: number }> = {
  key: 'key',
  sourceId: 'source_id',
  createdAt: 'created_at',
  expiresAt: 'expires_at',
  model: 'model',
  endpointId: 'endpoint_id',
  providerName: 'provider_name',
  finishReason: 'finish_reason',
  nativeFinishReason: 'native_finish_reason',
  size: 'size',
  body: 'body',
};

/** Stores an answer; of two answers for one key, the newer one stays. */
export async function keepAnswer(database: Database, answer: CachedAnswer): Promise<void> {
  const row = {
    ...answer,
    createdAt: new Date(answer.createdAt),
    expiresAt: new Date(answer.expiresAt),
    size: answer.body.length,
  };
  const newer = `on conflict (key) do update set ${excludedList(COLUMNS)} where held.created_at <= excluded.created_at`;
  await insertRow(database, 'cached_answers as held', COLUMNS, row, newer);
}

/**
 * Removes expired answers, then the oldest above `mostBytes` in total. Does nothing while another process cleans up.
 */
export async function removeOldest(database: Database, nowMs: number, mostBytes: number): Promise<void> {
  for (;;) {
    const removed = await database.transaction(async (tx) => {
      const [lock] = await tx.query<{ held: boolean }>('select pg_try_advisory_xact_lock($1) as held', [ROOM_LOCK]);
      if (!lock!.held) return 0;
      const rows = await tx.query(
        `delete from cached_answers where key in
           (select key from cached_answers where expires_at <= $1 limit ${REMOVED_AT_ONCE}) returning 1`,
        [new Date(nowMs)],
      );
      if (rows.length > 0) return rows.length;
      const [all] = await tx.query<{ size: bigint | null }>('select sum(size)::bigint as size from cached_answers');
      if ((all!.size ?? 0n) <= BigInt(mostBytes)) return 0;
      const old = await tx.query(
        `delete from cached_answers where key in (
           select key from (
             select key, created_at, sum(size) over (order by created_at desc, key) as total from cached_answers
           ) as aged where total > $1 order by created_at limit ${REMOVED_AT_ONCE}) returning 1`,
        [mostBytes],
      );
      return old.length;
    });
    if (removed < REMOVED_AT_ONCE) return;
  }
}
