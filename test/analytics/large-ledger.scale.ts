/**
 * Millions of rows in the ledger: `GET /activity`, `/generation`, `/generations` and `/analytics/query` keep their times.
 * GATEHOUSE_SCALE_ROWS is the number of rows (5 million; 50 million take some 50 GB of the folder for temporary files),
 * GATEHOUSE_SCALE_DAYS that of the days they are in, GATEHOUSE_SCALE_P95_MS the budget.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { installJobs } from '../../src/jobs/index.ts';
import { migrations } from '../../src/migrations.ts';
import type { Target } from '../../src/storage/connection.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { startEmbedded } from '../../src/storage/embedded.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { countTotals, DAY_COLUMNS, DAY_KEYS, DAY_SUMS } from '../../src/testing/database/ledger-rows.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { p95, scaleSize } from '../process/scale-size.ts';
import { controlOf, type TeamKey } from '../workspaces/control.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Fewer make more rows an hour. */
const DAYS = scaleSize('DAYS', 90);
const COUNTED_AFTER_MS = 5 * 60_000;
const ASKED = 60;
const KEYS = 50;
/** Rows of a key that has no others, the oldest of all. */
const RARE = 20;
/** Nothing here has to survive a crash, and a table that is made and filled in one transaction needs no write-ahead log. */
const FILLING = {
  ...{ fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off', autovacuum: 'off' },
  ...{ wal_level: 'minimal', max_wal_senders: '0', max_wal_size: '4GB', maintenance_work_mem: '256MB' },
};

type Client = Awaited<ReturnType<typeof connect>>;

interface Filling {
  count: number;
  nowMs: number;
  keys: readonly string[];
  rareKey: string;
}

/** By column, what differs between the rows; `i` counts from 1, `at` is the time. */
const VARIED: Readonly<Record<string, string>> = {
  id: `'gen-' || lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || '7' || lpad(to_hex(i), 19, '8')`,
  created_at: 'at',
  model: `'test/model-' || i % 40`,
  endpoint_id: `'endpoint-' || i % 60`,
  provider_name: `'Provider ' || i % 12`,
  session_id: `'session-' || i / 20`,
  external_user: `'user-' || i % 5000`,
  status: `case when i % 50 = 0 then 502 else 200 end`,
  error: `case when i % 50 = 0 then jsonb_build_object('type', case when i % 100 = 0 then 'server' else 'timeout' end, 'message', 'm') end`,
  latency_ms: `case when i % 50 = 0 then null else round(exp(5 + (i * 7919 % 1000) / 250.0)) end`,
  generation_ms: `500 + i * 7919 % 20000`,
  cost_nano: '1000 + i % 900000',
  output_tokens: '10 + i % 3000',
  input_tokens: '50 + i % 20000',
};

const DAY_TOTALS =
  'sum(requests) as requests, sum(prompt_tokens) as prompt, sum(completion_tokens) as completion, sum(cost_nano) as nano';
/** What the overview of the console asks for at once, and in its tables. */
const FIGURES = [
  ...[
    'total_usage',
    'request_count',
    'tokens_total',
    'tokens_prompt',
    'tokens_completion',
    'error_count',
    'error_rate',
  ],
  ...['latency_p50', 'latency_p95', 'throughput', 'cache_hit_rate', 'active_keys'],
];
const GROUPS = ['total_usage', 'request_count', 'tokens_total', 'error_rate'];
const DAYS_APART = `
  select day, model, endpoint_id, ${DAY_TOTALS} from generation_days group by 1, 2, 3
  except select day, model, endpoint_id, ${DAY_TOTALS} from generation_model_days group by 1, 2, 3`;

test('the ledger answers at p95 within its budget', async (t) => {
  const count = scaleSize('ROWS', 5_000_000);
  const budget = scaleSize('P95_MS', 100);
  const gateway = await startGateway(t, { providers: { one: {} }, target: await serverOnDisk(t) });
  gateway.upstream.script('one', [{ ...chatWhole('hi'), repeat: true }]);
  const asked = await gateway.post('/chat/completions', {
    model: 'test/one',
    messages: [{ role: 'user', content: 'x' }],
  });
  assert.equal(asked.status, 200, await asked.text());
  const client = await connect(gateway.target);
  t.after(() => client.end());
  await client.query('set statement_timeout = 0');
  const startedAt = performance.now();
  const { keyIn } = controlOf(gateway);
  const keys: TeamKey[] = [];
  for (let at = 0; at < KEYS; at++) keys.push(await keyIn(undefined, `key ${at}`));
  const rare = await keyIn(undefined, 'rare');
  const idOf = async ({ hash }: TeamKey) =>
    (await client.query<{ id: string }>('select id::text from api_keys where hash = $1', [hash])).rows[0]!.id;
  const ids: string[] = [];
  for (const key of keys) ids.push(await idOf(key));
  await fill(client, { count, nowMs: gateway.clock.now(), keys: ids, rareKey: await idOf(rare) });
  const filledMs = performance.now() - startedAt;
  const { rows: sizes } = await client.query(
    `select pg_size_pretty(sum(pg_total_relation_size(relid))) as size from pg_partition_tree('generations')`,
  );
  const database = await openDatabase({ target: gateway.target, clock: systemClock, log: silentLog, poolSize: 1 });
  t.after(() => database.close());
  const countedAt = performance.now();
  // As the job does, at the latest.
  await countTotals(database, gateway.clock.now() - COUNTED_AFTER_MS);
  await client.query('analyze generation_totals');
  t.diagnostic(`totals of ${DAYS} days in ${Math.round((performance.now() - countedAt) / 1000)} s`);
  t.diagnostic(`${count} rows in ${Math.round(filledMs / 1000)} s, ${sizes[0].size}`);
  const { rows: samples } = await client.query<{ id: string }>(
    `select id from generations tablesample system (${Math.min(100, 500_000 / count)}) limit $1`,
    [ASKED],
  );
  const today = Math.floor(gateway.clock.now() / DAY_MS) * DAY_MS;
  const start = (days: number, laterMs: number) => new Date(today - days * DAY_MS + laterMs).toISOString();
  const query = (dimensions: string[], days: number, laterMs = 0) => ({
    ...{ metrics: ['total_usage', 'request_count'], dimensions, granularity: 'day' },
    time_range: { start: start(days, laterMs), end: start(0, laterMs) },
  });
  // As the console asks, with an end in the hour that runs.
  const end = Math.ceil(gateway.clock.now() / 60_000) * 60_000;
  const overview = (hours: number, more: object) => ({
    ...{ metrics: ['latency_p50', 'latency_p95'], ...more },
    time_range: { start: new Date(end - hours * HOUR_MS).toISOString(), end: new Date(end).toISOString() },
  });
  const post = (body: object) => () =>
    fetch(`${gateway.api}/analytics/query`, {
      method: 'POST',
      headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  const cases: Record<string, (at: number) => Promise<Response>> = {
    '/activity': () => gateway.get('/activity', MANAGEMENT_KEY),
    '/generation': (at) => gateway.get(`/generation?id=${samples[at % samples.length]!.id}`, MANAGEMENT_KEY),
    '/generations, newest': () => gateway.get('/generations', MANAGEMENT_KEY),
    '/generations of a model': (at) => gateway.get(`/generations?model=test/model-${at % 40}`, MANAGEMENT_KEY),
    '/generations of a key': (at) => gateway.get(`/generations?api_key_id=${keys[at % KEYS]!.hash}`, MANAGEMENT_KEY),
    '/generations of a key with few': () => gateway.get(`/generations?api_key_id=${rare.hash}`, MANAGEMENT_KEY),
    '/generations that failed': () => gateway.get('/generations?outcome=failed', MANAGEMENT_KEY),
    '/generations, some page': (at) =>
      gateway.get(`/generations?cursor=${samples[at % samples.length]!.id}`, MANAGEMENT_KEY),
    '/generations of a session': (at) => gateway.get(`/generations?session_id=session-${at * 31}`, MANAGEMENT_KEY),
    '/generations of an end user': (at) => gateway.get(`/generations?external_user=user-${at * 31}`, MANAGEMENT_KEY),
    '/analytics/query by model, 30 days': post(query(['model'], 30)),
    '/analytics/query by model, 30 days from noon to noon': post(query(['model'], 30, -DAY_MS / 2)),
    '/generations of a provider': (at) =>
      gateway.get(`/generations?provider=${encodeURIComponent(`Provider ${at % 12}`)}`, MANAGEMENT_KEY),
    '/generations of no provider': () => gateway.get('/generations?provider=nobody', MANAGEMENT_KEY),
    '/generations of no API': () => gateway.get('/generations?api_type=tts', MANAGEMENT_KEY),
    '/generations of no error': () => gateway.get('/generations?error_type=nothing', MANAGEMENT_KEY),
    'figures of the overview, 24 hours': post(overview(24, { metrics: FIGURES })),
    'figures of the overview, 30 days': post(overview(720, { metrics: FIGURES })),
    'latency by hour, 7 days': post(overview(168, { granularity: 'hour' })),
    'latency by day, 30 days': post(overview(720, { granularity: 'day' })),
    'latency by provider and day, 30 days': post(
      overview(720, { granularity: 'day', dimensions: ['provider'], metrics: ['latency_p50'] }),
    ),
    'errors by kind and day, 30 days': post(
      overview(720, { granularity: 'day', dimensions: ['error_type'], metrics: ['error_count'] }),
    ),
    'errors by key, 30 days': post(overview(720, { dimensions: ['api_key_id'], metrics: GROUPS })),
    'errors by model, 30 days': post(overview(720, { dimensions: ['model'], metrics: GROUPS })),
  };
  const apart = await client.query(DAYS_APART);
  assert.deepEqual(apart.rows, [], 'the totals without the key are the sums of those with it');
  const late: string[] = [];
  for (const [name, ask] of Object.entries(cases)) {
    const times: number[] = [];
    for (let at = 0; at < ASKED; at++) {
      const before = performance.now();
      const response = await ask(at);
      const text = await response.text();
      assert.equal(response.status, 200, `${name}: ${text.slice(0, 300)}`);
      times.push(performance.now() - before);
    }
    t.diagnostic(
      `${name}: p95 ${p95(times).toFixed(1)} ms, median ${times.toSorted((a, b) => a - b)[ASKED / 2]!.toFixed(1)} ms`,
    );
    if (p95(times) > budget) late.push(`${name}: ${p95(times).toFixed(1)} ms`);
  }
  assert.deepEqual(late, []);
});

/**
 * Fills months with copies of the one row that is there. Each month becomes a partition when it is full, so its indexes are
 * made at once; the day's totals are entered as the ledger does, together with its rows.
 */
async function fill(client: Client, { count, nowMs, keys, rareKey }: Filling): Promise<void> {
  const { rows: columns } = await client.query<{ name: string }>(
    `select attname as name from pg_attribute
     where attrelid = 'generations'::regclass and attnum > 0 and not attisdropped and attgenerated = ''`,
  );
  const names = columns.map(({ name }) => name);
  const own = `case when i <= ${RARE} then '${rareKey}' else (array[${keys.map((id) => `'${id}'`)}])[1 + i * 7919 % ${keys.length}] end`;
  const values = names.map((name) => (name === 'key_id' ? own : (VARIED[name] ?? `g.${name}`)));
  await client.query('create temp table first as select * from generations limit 1');
  const perDay = Math.ceil(count / DAYS);
  const days = Array.from({ length: DAYS }, (_, at) => ({ at, startMs: nowMs - (DAYS - at) * DAY_MS }));
  // A day of rows is as long as a day of UTC and does not begin with one, so it may reach into the next month.
  const months = Map.groupBy(days, ({ startMs }) => monthOf(startMs + DAY_MS));
  await client.query('truncate generation_days');
  await client.query('truncate generation_model_days');
  await client.query('truncate generation_totals');
  for (const [month, ofMonth] of months) {
    const table = `generations_${month.replace('-', '_')}`;
    const next = new Date(Date.UTC(Number(month.slice(0, 4)), Number(month.slice(5)), 1)).toISOString().slice(0, 10);
    await client.query(`drop table if exists ${table}`);
    await client.query('begin');
    await client.query(`create table ${table} (like generations including defaults including generated)`);
    for (const { at, startMs } of ofMonth) {
      const from = Math.max(startMs, Date.parse(`${month}-01T00:00:00Z`));
      await client.query(
        `with entered as (
           insert into ${table} (${names.join(', ')})
           select ${values.join(', ')}
           from (select ${at * perDay}::bigint + n as i,
                   to_timestamp(${from / 1000} + ${(startMs + DAY_MS - from) / 1000}::float8 * (n - 1) / ${perDay}) as at
                 from generate_series(1, ${perDay}) n) s, first g
           returning ${DAY_COLUMNS}
         ), summed as (select ${DAY_SUMS} from entered group by ${DAY_KEYS})
         insert into generation_days as own (organization_id, day, workspace_id, key_id, model, endpoint_id, provider_name, requests,
           prompt_tokens, completion_tokens, reasoning_tokens, cost_nano, byok_nano)
         select organization_id, day::date, workspace_id, key_id, model, endpoint_id, provider_name, requests, prompt_tokens,
           completion_tokens, reasoning_tokens, cost_nano, byok_nano from summed
         on conflict (organization_id, day, workspace_id, key_id, model, endpoint_id) do update set
           requests = own.requests + excluded.requests, prompt_tokens = own.prompt_tokens + excluded.prompt_tokens,
           completion_tokens = own.completion_tokens + excluded.completion_tokens,
           reasoning_tokens = own.reasoning_tokens + excluded.reasoning_tokens,
           cost_nano = own.cost_nano + excluded.cost_nano, byok_nano = own.byok_nano + excluded.byok_nano`,
      );
    }
    await client.query('commit');
    await client.query(
      `alter table generations attach partition ${table} for values from ('${month}-01T00:00:00+00') to ('${next}T00:00:00+00')`,
    );
  }
  // Rows that were there before these totals.
  await client.query(
    `insert into generation_hours_to_count select at from generate_series(
       date_trunc('hour', to_timestamp($1), 'UTC'), to_timestamp($2), interval '1 hour') at on conflict do nothing`,
    [nowMs / 1000 - DAYS * 86_400, nowMs / 1000],
  );
  // With the summaries of the index by time that autovacuum makes while rows arrive.
  await client.query('vacuum analyze generations');
  await client.query('analyze generation_days');
  await client.query('analyze generation_model_days');
}

const monthOf = (ms: number) => new Date(ms).toISOString().slice(0, 7);

/** Its own server, on a disk: the memory that other tests have their databases in is too small. */
async function serverOnDisk(t: TestContext): Promise<Target> {
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-ledger-'));
  const server = await startEmbedded({ dataFolder: folder, clock: systemClock, log: silentLog, settings: FILLING });
  t.after(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const target = { socketFolder: server.socketFolder };
  await migrate({ target, migrations, log: silentLog });
  await installJobs(target);
  return target;
}
