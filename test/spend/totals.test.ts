/** Totals of hours and days equal the rows of all hours that are not noted. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { type Generation, spendMigrations } from '../../src/spend/index.ts';
import { dropOldRows } from '../../src/spend/partitions/retention.ts';
import { encodeRow } from '../../src/spend/row.ts';
import { countTotalsJob } from '../../src/spend/totals/count.ts';
import { percentileSql } from '../../src/spend/totals/histogram.sql.ts';
import { countHour } from '../../src/spend/totals/store.ts';
import { type Database, openDatabase } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { TestClock, until } from '../../src/testing/clock/clock.ts';
import { connectOnce, emptyDatabase, freshDatabase } from '../../src/testing/database/database.ts';
import { countTotals, enterRows } from '../../src/testing/database/ledger-rows.ts';
import { samples } from '../../src/testing/laws/samples.ts';
import { sampleAccepted, sampleGeneration } from '../../src/testing/laws/spend-samples.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NEW_YEAR = Date.UTC(2027, 0, 1);
const FAR_MS = Date.UTC(2100, 0, 1);

/** Around the end of a month; few values, so that rows share totals. */
const generation = fc
  .record({
    id: fc.nat(200),
    hour: fc.integer({ min: -30, max: 30 }),
    key: fc.nat(2),
    model: fc.constantFrom('a', 'b'),
    provider: fc.constantFrom('One', 'Two', null),
    error: fc.constantFrom('server', 'timeout', null, null),
    latencyMs: fc.option(fc.double({ min: 0, max: 10 ** 6, noNaN: true }), { nil: null }),
    cost: fc.bigInt({ min: 0n, max: 10n ** 12n }),
  })
  .map(({ id, hour, key, error, model, provider, latencyMs, cost }) => {
    // The time is derived from the id, because one request is accepted once.
    const createdAt = NEW_YEAR + (((id * 7) % 60) - 30) * HOUR_MS + (hour < 0 ? 0 : 1);
    const accepted = sampleAccepted(`row-${id}-${hour < 0}`, {
      ...{ createdAt, keyId: `key-${key}`, workspaceId: `workspace-${key % 2}`, organizationId: `org-${id % 2}` },
    });
    return sampleGeneration(accepted, {
      ...{ model, providerName: provider, latencyMs, costNano: cost, cancelled: id % 3 === 0 },
      ...(error !== null && { status: 502, error: { type: error, message: 'm' } }),
    });
  });

type Asks = Pick<Database, 'query'>;

const SUMS = `sum(requests)::bigint as requests, sum(cost_nano)::bigint as cost, sum(completion_tokens)::bigint as output,
  coalesce(sum(errors), 0)::bigint as errors, coalesce(sum(cancelled), 0)::bigint as cancelled,
  coalesce(sum(latencies), 0)::bigint as latencies, sum(latency_us)::bigint as latency_us,
  sum(${Array.from({ length: 130 }, (_, at) => `coalesce(b${at}, 0)`).join(' + ')})::bigint as in_buckets`;
const OF_ROWS = `count(*) as requests, sum(cost_nano)::bigint as cost, sum(output_tokens)::bigint as output,
  count(error) as errors, count(*) filter (where cancelled) as cancelled, count(latency_ms) as latencies,
  sum(round(latency_ms * 1000)::bigint)::bigint as latency_us, count(latency_ms) as in_buckets`;
const ROUTE = 'model, endpoint_id, provider_name, api_type, status';

/** In hours that are not noted, and in days without such an hour. */
async function assertCounted(database: Asks): Promise<void> {
  for (const [unit, of, error] of [
    ['hour', ROUTE, `error ->> 'type'`],
    ['day', ROUTE, `error ->> 'type'`],
    ['key_hour', 'key_id', ''],
    ['key_day', 'key_id', ''],
    ['workspace_hour', 'workspace_id', ''],
    ['workspace_day', 'workspace_id', ''],
  ] as const) {
    const at = `date_trunc('${unit.replace(/^.*_/, '')}', created_at, 'UTC')`;
    const noted = `select date_trunc('${unit.replace(/^.*_/, '')}', hour, 'UTC') from generation_hours_to_count`;
    const totals = await database.query(
      `select at, organization_id, workspace_id, ${of} ${error && ', error_type'}, ${SUMS} from generation_totals
       where grain = '${unit}' and at not in (${noted}) group by at, organization_id, workspace_id, ${of} ${error && ', error_type'}
       order by 1, 2, 3, ${of}${error && ', error_type'}`,
    );
    const rows = await database.query(
      `select ${at} as at, organization_id, workspace_id, ${of} ${error && `, ${error} as error_type`}, ${OF_ROWS}
       from generations where ${at} not in (${noted})
       group by 1, organization_id, workspace_id, ${of} ${error && `, ${error}`} order by 1, 2, 3, ${of}${error && ', error_type'}`,
    );
    assert.deepEqual(totals, rows, unit);
  }
}

test('totals equal the rows, whatever is entered and counted, at the same time or again', async (t) => {
  const { database } = await freshDatabase(t, { migrations: spendMigrations });
  const steps = fc.array(
    fc.oneof(
      fc.array(generation, { minLength: 1, maxLength: 10 }).map((rows) => ({ rows })),
      fc.record({ counts: fc.integer({ min: 1, max: 4 }), beforeHour: fc.integer({ min: -30, max: 60 }) }),
    ),
    { minLength: 2, maxLength: 8 },
  );
  await fc.assert(
    fc.asyncProperty(steps, fc.boolean(), async (all, atOnce) => {
      const run = async (step: (typeof all)[number]) => {
        if ('rows' in step) return enterRows(database, [...new Map(step.rows.map((row) => [row.id, row])).values()]);
        const before = NEW_YEAR + step.beforeHour * HOUR_MS;
        await Promise.all(Array.from({ length: step.counts }, () => countHour(database, before)));
      };
      if (atOnce) await Promise.all(all.map(run));
      else for (const step of all) await run(step);
      await assertCounted(database);
    }),
    { numRuns: samples(15), seed: 20_261_130 },
  );
  await countTotals(database);
  await assertCounted(database);
  assert.deepEqual(await database.query('select hour from generation_hours_to_count'), []);
});

const rowAt = (id: string, createdAt: number) => sampleGeneration(sampleAccepted(id, { createdAt }));

test('an hour is counted when rows of it are committed, not before', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations: spendMigrations });
  await enterRows(database, [rowAt('first', NEW_YEAR)]);
  const client = await connectOnce(t, target);
  await client.query('begin');
  await insert(client, rowAt('slow', NEW_YEAR + 1));
  let done = false;
  const counting = countHour(database, FAR_MS).finally(() => {
    done = true;
  });
  await until(async () => (await database.query('select 1 from pg_locks where not granted')).length > 0, 'it waits');
  assert.equal(done, false);
  await client.query('commit');
  await counting;
  await assertCounted(database);
  assert.deepEqual(await database.query(`select requests from generation_totals where grain = 'day'`), [
    { requests: 2n },
  ]);
});

test('a process that dies while it counts leaves the hour to the next', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations: spendMigrations });
  await enterRows(database, [rowAt('first', NEW_YEAR), rowAt('second', NEW_YEAR + HOUR_MS)]);
  await countTotals(database);
  await enterRows(database, [rowAt('third', NEW_YEAR)]);
  const [client, killer] = [await connectOnce(t, target), await connectOnce(t, target)];
  await client.query('begin');
  // The count has deleted the totals of the hour when it waits for this lock.
  await client.query('lock table generations in access exclusive mode');
  const counting = assert.rejects(countHour(database, FAR_MS));
  const counter = await until(async () => {
    const { rows } = await killer.query<{ pid: number }>('select pid from pg_locks where not granted');
    return rows[0]?.pid;
  }, 'it counts');
  await killer.query('select pg_terminate_backend($1)', [counter]);
  await counting;
  await client.query('rollback');
  await assertCounted(database);
  assert.equal(await noted(database), 1n);
  await countTotals(database);
  await assertCounted(database);
});

/** As a process of an earlier version does, which knows nothing of these totals. */
async function insert(client: Awaited<ReturnType<typeof connectOnce>>, row: Generation): Promise<void> {
  const columns = Object.keys(JSON.parse(encodeRow(row)))
    .map((name) => `"${name}"`)
    .join(', ');
  await client.query(
    `insert into generations (${columns}) select ${columns} from jsonb_populate_record(null::generations, $1::jsonb)`,
    [encodeRow(row)],
  );
}

test('rows from before the migration are counted after it, the newest hours first', async (t) => {
  const target = await emptyDatabase(
    t,
    spendMigrations.filter(({ name }) => name < '0035'),
  );
  const client = await connectOnce(t, target);
  // The time zone of the session must not move a row into another day.
  await client.query(`set time zone 'Pacific/Auckland'`);
  await client.query(
    `create table generations_2027_01 partition of generations for values from ('2027-01-01 00:00+00') to ('2027-02-01 00:00+00')`,
  );
  await insert(client, rowAt('old', NEW_YEAR));
  await insert(client, rowAt('new', NEW_YEAR + 30 * HOUR_MS));
  await migrate({ target, migrations: spendMigrations, log: silentLog });
  const database = await openDatabase({ target, clock: systemClock, log: silentLog });
  t.after(() => database.close());
  const clock = new TestClock(NEW_YEAR + 31 * HOUR_MS);
  const { run } = countTotalsJob({ database, clock });
  const job = { data: {}, attempt: 1, signal: new AbortController().signal };
  await run(job);
  assert.equal(await noted(database), 24n - 6n, 'hours that are not over, and one that ended just now, wait');
  await clock.advance(18 * HOUR_MS + 120_000);
  await run(job);
  assert.equal(await noted(database), 0n);
  await assertCounted(database);
});

async function noted(database: Asks): Promise<bigint> {
  const [row] = await database.query<{ count: bigint }>('select count(*) as count from generation_hours_to_count');
  return row!.count;
}

test('totals are dropped with the rows of their month', async (t) => {
  const { database } = await freshDatabase(t, { migrations: spendMigrations });
  await enterRows(database, [rowAt('old', NEW_YEAR - 1), rowAt('new', NEW_YEAR)]);
  await countTotals(database);
  await dropOldRows(database, NEW_YEAR + 40 * DAY_MS, 30, silentLog);
  await assertCounted(database);
  await countTotals(database);
  await assertCounted(database);
  assert.equal((await database.query(`select 1 from generation_totals where grain = 'day'`)).length, 1);
});

test('a percentile of the buckets is at most 9 % from the exact one', async (t) => {
  const { database } = await freshDatabase(t, { migrations: spendMigrations });
  const latency = fc.oneof(fc.nat(400_000), fc.nat(2_000), fc.constantFrom(0, 8, 16, 1_024));
  let hour = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(latency, { minLength: 1, maxLength: 40 }), async (latencies) => {
      const createdAt = NEW_YEAR + hour++ * HOUR_MS;
      const rows = latencies.map((latencyMs, at) => ({ ...rowAt(`row-${hour}-${at}`, createdAt), latencyMs }));
      await enterRows(database, rows);
      await countTotals(database);
      const found = await database.query<{ share: number; about: number; exact: number }>(
        [0.5, 0.95, 0.99]
          .map(
            (share) => `select ${share}::float8 as share,
              (select ${percentileSql('g', share)} from generation_totals g where grain = 'hour' and at = $1) as about,
              percentile_cont(${share}) within group (order by latency_ms) as exact from generations where created_at = $1`,
          )
          .join(' union all '),
        [new Date(createdAt)],
      );
      for (const { about, exact } of found) {
        assert.ok(Math.abs(about - exact) <= 8 + exact * (2 ** (1 / 8) - 1), `${about}, not ${exact}`);
      }
    }),
    { numRuns: samples(12) },
  );
  const nothing = await database.query(
    `select ${percentileSql('g', 0.5)} as about from generation_totals g where false`,
  );
  assert.deepEqual(nothing, [{ about: null }]);
  const longest = { ...rowAt('longest', FAR_MS - DAY_MS), latencyMs: 10 ** 7 };
  await enterRows(database, [longest]);
  await countTotals(database);
  const [{ about } = { about: 0 }] = await database.query<{ about: number }>(
    `select ${percentileSql('g', 0.5)} as about from generation_totals g where grain = 'day' and at > $1`,
    [new Date(FAR_MS - 3 * DAY_MS)],
  );
  assert.equal(about, 8 * 2 ** 16, 'longer ones count as the last bound');
});
