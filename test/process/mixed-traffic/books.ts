/** The books after mixed traffic: what the upstream has logged, the ledger, the sums by day and the budgets agree. */
import assert from 'node:assert/strict';
import { connect, type Row, readRows } from '../../../src/testing/database/rows.ts';
import { type Plan, usageOf } from '../../../src/testing/upstream/planned-upstream.ts';
import type { startUpstream } from '../kill-rounds.ts';
import type { Traffic } from './traffic.ts';

type Target = Parameters<typeof connect>[0];
type Log = Awaited<ReturnType<typeof startUpstream>>;

const [PROMPT_NANO, COMPLETION_NANO] = [3_000n, 15_000n];
/** Statuses that any client may see while processes, the database and the network die. */
const OUTAGE = [0, 200, 502, 503, 504, 529];

/** @returns the figures for the report */
export async function checkBooks(target: Target, upstream: Log, traffic: Traffic): Promise<Record<string, unknown>> {
  const rows = await readRows(target);
  const byTag = Map.groupBy(rows, ({ tag }) => tag);
  checkAnswers(traffic, byTag);
  const exact = checkRows(rows, byTag, upstream, traffic);
  const total = rows.reduce((sum, { cost }) => sum + cost, 0n);
  await checkSums(target, total);
  return {
    requests: traffic.sent.size,
    rows: rows.length,
    exact: exact.length,
    estimated: rows.filter(({ estimated }) => estimated).length,
    unconfirmed: rows.filter(({ unconfirmed }) => unconfirmed).length,
    complete: traffic.complete.size,
    asked: upstream.entries('asked').length,
    nano: String(total),
    poorNano: String(spentOf(traffic, rows)),
  };
}

function checkAnswers(traffic: Traffic, byTag: ReadonlyMap<string, Row[]>): void {
  for (const [tag, { answer, form, key, forbidden }] of traffic.sent) {
    if (answer === undefined) continue;
    const { status, text } = answer;
    const told = `${tag} (${form}): ${status} ${text.slice(0, 500)}`;
    const allowed = [...OUTAGE, ...(key === traffic.keys.poor ? [402] : []), ...(forbidden ? [403] : [])];
    assert.ok(allowed.includes(status), told);
    assert.ok(!forbidden || status !== 200, `a forbidden text was answered: ${told}`);
    assert.ok((byTag.get(tag)?.length ?? 0) <= 1, `${tag} has two rows`);
  }
  for (const tag of traffic.complete) {
    const row = byTag.get(tag)?.[0];
    assert.ok(row && !row.estimated && !row.unconfirmed, `${tag} was complete: ${shown(row)}`);
  }
}

/** Each call of the upstream belongs to one row, and rows have the tokens that the upstream has reported. @returns the exact rows */
function checkRows(rows: readonly Row[], byTag: ReadonlyMap<string, Row[]>, upstream: Log, traffic: Traffic): Row[] {
  const asked = countOf(upstream.entries('asked'));
  // A gateway whose client leaves may have seen the usage of an answer that it left before its end.
  const ended = upstream.entries('left').filter(({ tag, events }) => events === traffic.sent.get(tag)!.plan.events);
  const sent = countOf([...upstream.entries('sent'), ...ended]);
  for (const [tag, calls] of asked) {
    const { plan, form, forbidden } = traffic.sent.get(tag)!;
    assert.ok(!forbidden, `the upstream saw the forbidden text of ${tag}`);
    const runs = byTag.get(tag)?.length ?? 0;
    // Each run of an item has a row, also one whose process was killed.
    if (form === 'batch') assert.ok(runs >= calls, `${tag}: ${calls} runs, and ${runs} rows`);
    else assert.ok(runs === 1 && calls <= turnsOf(plan), `${tag}: ${calls} calls, and ${runs} rows`);
  }
  const exact = rows.filter(({ tag, estimated, unconfirmed, cost }) => {
    const isRefused = cost === 0n && !asked.has(tag);
    return !estimated && !unconfirmed && !isRefused;
  });
  for (const row of rows) {
    const { tag, input, output, cost } = row;
    const outputNano = traffic.sent.get(tag)!.embeds ? 0n : COMPLETION_NANO;
    assert.equal(cost, (input ?? 0n) * PROMPT_NANO + (output ?? 0n) * outputNano, `${tag}: tokens times price`);
  }
  const left = new Map(sent);
  for (const row of exact.filter(({ cost }) => cost > 0n)) {
    const turns = exactTurns(row, traffic);
    left.set(row.tag, (left.get(row.tag) ?? 0) - turns);
    assert.ok(left.get(row.tag)! >= 0, `${row.tag} is exact more often than the upstream has answered: ${shown(row)}`);
  }
  return exact;
}

/** How many turns of the plan a row has, fewer than all if a later one failed. Each has reported the usage of the plan. */
function exactTurns(row: Row, traffic: Traffic): number {
  const { plan, embeds, form, answer } = traffic.sent.get(row.tag)!;
  const usage = usageOf(plan);
  const turns = Number(row.input) / usage.prompt_tokens;
  const told = `${form} ${JSON.stringify(plan)}: ${shown(row)} ${answer?.text.slice(-1_000)}`;
  assert.ok(Number.isInteger(turns) && turns > 0 && turns <= turnsOf(plan), told);
  assert.ok(turns === turnsOf(plan) || !traffic.complete.has(row.tag), `a turn is missing: ${told}`);
  if (!embeds) assert.equal(row.output, BigInt(usage.completion_tokens * turns), told);
  return turns;
}

function countOf(entries: readonly { tag: string }[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { tag } of entries) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return counts;
}

const turnsOf = ({ toolTurns = 0 }: Plan) => toolTurns + 1;

/** The sums by day, of every column and group, and every counter are those of the rows, and leases are returned. */
async function checkSums(target: Target, total: bigint): Promise<void> {
  const client = await connect(target);
  const rowsOf = async (sql: string) => (await client.query(sql)).rows;
  try {
    assert.deepEqual(await rowsOf(DAYS_APART), [], 'the sums by day are those of the rows');
    const days = await rowsOf('select sum(cost_nano)::bigint as nano from generation_days');
    assert.equal(days[0].nano, total);
    assert.deepEqual(await rowsOf(COUNTERS_APART), [], 'the counters of budgets are those of the rows');
    assert.deepEqual(await rowsOf(LEASES_APART), [], 'what a budget shows as leased is the sum of its leases');
    assert.deepEqual(await rowsOf(LEASES_OF_NONE), [], 'only bounds of requests that a kill left open stay held');
  } finally {
    await client.end();
  }
}

const SUMMED = `organization_id, (created_at at time zone 'UTC')::date as day, workspace_id, key_id, model,
  coalesce(endpoint_id, '') as endpoint_id, count(*)::bigint as requests,
  coalesce(sum(input_tokens + cache_read_tokens + cache_write_5m_tokens + cache_write_1h_tokens), 0)::bigint as prompt_tokens,
  coalesce(sum(output_tokens), 0)::bigint as completion_tokens, coalesce(sum(reasoning_tokens), 0)::bigint as reasoning_tokens,
  sum(cost_nano)::bigint as cost_nano, sum(byok_nano)::bigint as byok_nano`;

const DAYS_APART = `
  with computed as (select ${SUMMED} from generations group by 1, 2, 3, 4, 5, 6),
    kept as (select organization_id, day, workspace_id, key_id, model, endpoint_id, requests, prompt_tokens, completion_tokens,
      reasoning_tokens, cost_nano, byok_nano from generation_days)
  (select 'rows' as of, * from computed except select 'rows', * from kept)
  union all (select 'days', * from kept except select 'days', * from computed)`;

/** Lifetime counters of keys, workspaces and accounts that differ from the sum of their rows. */
const COUNTERS_APART = `
  with computed as (
    select 'key/' || key_id as of, sum(cost_nano) as nano from generations group by 1
    union all select 'workspace/' || workspace_id, sum(cost_nano) from generations group by 1
    union all select 'account/' || organization_id, sum(cost_nano) from generations group by 1
  ), kept as (
    select split_part(id, '/', 1) || '/' || split_part(id, '/', 2) as of, spent_nano as nano from spend_windows
    where split_part(id, '/', 1) in ('key', 'workspace', 'account') and split_part(id, '/', 3) = 'lifetime'
  )
  select of, computed.nano::text as rows, kept.nano::text as counter from computed full join kept using (of)
  where coalesce(computed.nano, 0) <> coalesce(kept.nano, 0)`;

const LEASES_APART = `
  select own.id, own.leased_nano::text as shown, coalesce(sum(lease.amount_nano), 0)::text as leases
  from spend_windows own left join spend_leases lease on lease.window_id = own.id
  group by own.id having own.leased_nano <> coalesce(sum(lease.amount_nano), 0)`;

const LEASES_OF_NONE = `
  select lease.* from spend_leases lease left join spend_processes process on process.id = lease.process_id
  where lease.amount_nano <> 0 and (process.replayed_at is null or process.open_requests = 0)`;

function spentOf(traffic: Traffic, rows: readonly Row[]): bigint {
  const spent = rows
    .filter(({ tag }) => traffic.sent.get(tag)?.key === traffic.keys.poor)
    .reduce((sum, { cost }) => sum + cost, 0n);
  assert.ok(
    spent <= traffic.keys.poorLimitNano,
    `${spent} nano-dollars were spent of a limit of ${traffic.keys.poorLimitNano}`,
  );
  return spent;
}

function shown(row: Row | undefined): string {
  return JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? String(value) : value)) ?? 'no row';
}
