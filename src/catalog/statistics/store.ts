/** SQL of the statistics: every process writes its own slices and reads those of the others. */
import type { Database } from '../../storage/database.ts';
import { type ForeignSlice, oldestStart, type PublishedSlice, SPAN_NAMES, SPANS, type SpanName } from './slices.ts';

const ROWS_PER_STATEMENT = 500;

export interface PublishedRow extends PublishedSlice {
  endpointId: string;
}

/**
 * Inserts slices with their current counts. Repeating an insert replaces the row, so an uncertain write can simply be
 * retried.
 */
export async function publish(database: Database, processId: string, rows: readonly PublishedRow[]): Promise<void> {
  for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT) {
    await database.query(
      `insert into endpoint_statistics as held (endpoint_id, span, starts_at, process_id, answered, failed, rate_limited,
         tool_calls, invalid_tool_calls, latency, throughput)
       select endpoint_id, span, to_timestamp(starts_at / 1000.0), $1, answered, failed, rate_limited,
         tool_calls, invalid_tool_calls, latency, throughput
       from jsonb_to_recordset($2::jsonb) as row (endpoint_id text, span text, starts_at double precision,
         answered bigint, failed bigint, rate_limited bigint, tool_calls bigint, invalid_tool_calls bigint,
         latency jsonb, throughput jsonb)
       on conflict (endpoint_id, span, starts_at, process_id) do update set
         answered = excluded.answered, failed = excluded.failed, rate_limited = excluded.rate_limited,
         tool_calls = excluded.tool_calls, invalid_tool_calls = excluded.invalid_tool_calls,
         latency = excluded.latency, throughput = excluded.throughput, written_in = pg_current_xact_id()`,
      [processId, JSON.stringify(rows.slice(from, from + ROWS_PER_STATEMENT).map(encode))],
    );
  }
}

function encode(row: PublishedRow) {
  return {
    endpoint_id: row.endpointId,
    span: row.span,
    starts_at: row.startsAt,
    answered: row.answered,
    failed: row.failed,
    rate_limited: row.rateLimited,
    tool_calls: row.toolCalls,
    invalid_tool_calls: row.invalidToolCalls,
    latency: row.latency,
    throughput: row.throughput,
  };
}

interface ForeignRow {
  endpointId: string;
  span: SpanName;
  startsAt: number;
  processId: string;
  slice: ForeignSlice;
}

interface Row {
  endpoint_id: string;
  span: SpanName;
  starts_at: Date;
  process_id: string;
  answered: bigint;
  failed: bigint;
  rate_limited: bigint;
  tool_calls: bigint;
  invalid_tool_calls: bigint;
  latency: number[];
  throughput: number[];
}

/**
 * Slices that other processes wrote since `horizon` (null: all that a window overlaps), and the next horizon. That is
 * the oldest transaction still open, so a late commit is not missed; some slices are returned twice.
 */
export async function readOthers(
  database: Database,
  processId: string,
  horizon: string | null,
  nowMs: number,
): Promise<{ rows: ForeignRow[]; horizon: string }> {
  const open = await database.query<{ horizon: string }>(
    'select pg_snapshot_xmin(pg_current_snapshot())::text as horizon',
  );
  const rows = await database.query<Row>(
    `select endpoint_id, span, starts_at, process_id, answered, failed, rate_limited, tool_calls, invalid_tool_calls,
       latency, throughput
     from endpoint_statistics
     where written_in >= $1::text::xid8 and process_id <> $2
       and starts_at >= case span when 'minute' then $3::timestamptz when 'fiveMinutes' then $4 else $5 end`,
    [horizon ?? '0', processId, ...SPAN_NAMES.map((span) => new Date(oldestStart(span, nowMs)))],
  );
  return { rows: rows.map(decode), horizon: open[0]!.horizon };
}

function decode(row: Row): ForeignRow {
  return {
    endpointId: row.endpoint_id,
    span: row.span,
    startsAt: row.starts_at.getTime(),
    processId: row.process_id,
    slice: {
      answered: Number(row.answered),
      failed: Number(row.failed),
      rateLimited: Number(row.rate_limited),
      toolCalls: Number(row.tool_calls),
      invalidToolCalls: Number(row.invalid_tool_calls),
      latency: row.latency,
      throughput: row.throughput,
    },
  };
}

/** Deletes slices outside every window, plus one slice length of tolerance for processes with a slow clock. */
export async function removeExpired(database: Database, nowMs: number): Promise<void> {
  for (const span of SPAN_NAMES) {
    const before = new Date(oldestStart(span, nowMs) - SPANS[span].lengthMs);
    await database.query('delete from endpoint_statistics where span = $1 and starts_at < $2', [span, before]);
  }
}
