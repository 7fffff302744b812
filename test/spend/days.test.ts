import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { silentLog } from '../../src/base/log.ts';
import { sumLateRows } from '../../src/spend/days.sql.ts';
import type { Generation } from '../../src/spend/generation.ts';
import { spendMigrations } from '../../src/spend/index.ts';
import { enterBatch } from '../../src/spend/ledger.ts';
import { dropOldRows } from '../../src/spend/partitions/retention.ts';
import { encodeRow } from '../../src/spend/row.ts';
import type { Database } from '../../src/storage/database.ts';
import { migrate } from '../../src/storage/migrate.ts';
import { connectOnce, emptyDatabase, freshDatabase } from '../../src/testing/database/database.ts';
import { sampleAccepted, sampleGeneration } from '../../src/testing/laws/spend-samples.ts';

const DAY_MS = 86_400_000;
const NEW_YEAR = Date.UTC(2027, 0, 1);

const enter = (database: Database, process: string, rows: readonly Generation[]) =>
  enterBatch(
    database,
    process,
    rows.map((row) => ({ id: row.id, row: encodeRow(row), taken: [] })),
    silentLog,
  );

/** Around the end of a month; few keys and models, so that rows share totals. */
const generation = fc
  .record({
    id: fc.integer({ min: 0, max: 60 }),
    hour: fc.integer({ min: -40, max: 40 }),
    key: fc.integer({ min: 0, max: 2 }),
    model: fc.constantFrom('a', 'b', 'B', 'é'),
    endpointId: fc.constantFrom('one', 'two', '', null),
    tokens: fc.option(fc.tuple(fc.nat(1000), fc.nat(1000), fc.nat(1000), fc.nat(1000)), { nil: null }),
    cost: fc.bigInt({ min: 0n, max: 10n ** 15n }),
    byok: fc.bigInt({ min: 0n, max: 1000n }),
  })
  .map(({ id, hour, key, model, endpointId, tokens, cost, byok }) => {
    // The time is derived from the id, because one request is accepted once.
    const accepted = sampleAccepted(`row-${id}`, {
      createdAt: NEW_YEAR + ((id * 7 + Math.sign(hour)) % 40) * 3_600_000,
      keyId: `key-${key}`,
      workspaceId: `workspace-${key % 2}`,
    });
    const [input, cacheRead, output, reasoning] = tokens ?? [0, 0, 0, 0];
    return sampleGeneration(accepted, {
      model,
      endpointId,
      providerName: endpointId,
      usage: tokens && { input, cacheRead, cacheWrite5m: 1, cacheWrite1h: 2, output, reasoning },
      costNano: cost,
      byokNano: byok,
    });
  });

interface Sums {
  requests: bigint;
  prompt: bigint;
  completion: bigint;
  reasoning: bigint;
  cost: bigint;
  byok: bigint;
}

/** Totals of the stored rows, computed independently of the code under test. */
function expected(rows: readonly Record<string, unknown>[]): Record<string, Sums> {
  const sums: Record<string, Sums> = {};
  const number = (value: unknown) => BigInt((value ?? 0) as string | number);
  for (const row of rows) {
    const day = new Date(row['created_at'] as string).toISOString().slice(0, 10);
    const name = [day, row['workspace_id'], row['key_id'], row['model'], row['endpoint_id'] ?? ''].join('/');
    sums[name] ??= { requests: 0n, prompt: 0n, completion: 0n, reasoning: 0n, cost: 0n, byok: 0n };
    const own = sums[name];
    own.requests += 1n;
    for (const column of ['input_tokens', 'cache_read_tokens', 'cache_write_5m_tokens', 'cache_write_1h_tokens']) {
      own.prompt += number(row[column]);
    }
    own.completion += number(row['output_tokens']);
    own.reasoning += number(row['reasoning_tokens']);
    own.cost += number(row['cost_nano']);
    own.byok += number(row['byok_nano']);
  }
  return sums;
}

const OF_MODELS = `concat_ws('/', day, organization_id, workspace_id, model, endpoint_id) collate "C" as of, provider_name, requests,
  prompt_tokens, completion_tokens, reasoning_tokens, cost_nano, byok_nano`;

type Asks = Pick<Database, 'query'>;

async function assertAddsUp(database: Asks): Promise<void> {
  const rows = await database.query<Record<string, unknown>>('select * from generations');
  const days = await database.query<Record<string, unknown>>('select *, day::text as day from generation_days');
  const actual = days.map((row) => [
    ['day', 'workspace_id', 'key_id', 'model', 'endpoint_id'].map((column) => row[column]).join('/'),
    {
      requests: BigInt(row['requests'] as string),
      prompt: BigInt(row['prompt_tokens'] as string),
      completion: BigInt(row['completion_tokens'] as string),
      reasoning: BigInt(row['reasoning_tokens'] as string),
      cost: BigInt(row['cost_nano'] as string),
      byok: BigInt(row['byok_nano'] as string),
    },
  ]);
  assert.deepEqual(Object.fromEntries(actual), expected(rows));
  assert.deepEqual(
    await database.query(`select ${OF_MODELS} from generation_model_days order by 1`),
    await database.query(
      `select ${OF_MODELS} from (
       select day, workspace_id, organization_id, model, endpoint_id, max(provider_name) as provider_name,
         sum(requests)::bigint as requests, sum(prompt_tokens)::bigint as prompt_tokens,
         sum(completion_tokens)::bigint as completion_tokens, sum(reasoning_tokens)::bigint as reasoning_tokens,
         sum(cost_nano)::bigint as cost_nano, sum(byok_nano)::bigint as byok_nano
       from generation_days group by 1, 2, 3, 4, 5
     ) days order by 1`,
    ),
    'the totals without the key are the sums of those with it',
  );
}

test('daily totals equal the rows for any batches, repeated, concurrent or out of order', async (t) => {
  const { database } = await freshDatabase(t, { migrations: spendMigrations });
  const batches = fc.array(fc.array(generation, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 6 });
  await fc.assert(
    fc.asyncProperty(batches, fc.boolean(), async (all, atOnce) => {
      const unique = all.map((rows) => [...new Map(rows.map((row) => [row.id, row])).values()]);
      const runs = [...unique, unique[0]!];
      if (atOnce) await Promise.all(runs.map((rows, at) => enter(database, `process-${at}`, rows)));
      else for (const rows of runs) await enter(database, 'process', rows);
      await assertAddsUp(database);
    }),
    { numRuns: 25, seed: 20_261_128 },
  );
});

test('a refused batch adds nothing to the daily totals, and without the bad row it adds the others', async (t) => {
  const { database } = await freshDatabase(t, { migrations: spendMigrations });
  const good = sampleGeneration(sampleAccepted('good'));
  const bad = sampleGeneration(sampleAccepted('bad'), { status: 10 ** 12 });
  await enter(database, 'process', [good, bad]);
  await assertAddsUp(database);
  const [row] = await database.query<{ requests: bigint }>('select requests from generation_days');
  assert.equal(row?.requests, 1n);
});

test('the migration adds existing rows to the daily totals', async (t) => {
  const before = spendMigrations.filter(({ name }) => name < '0024');
  const target = await emptyDatabase(t, before);
  const client = await connectOnce(t, target);
  await client.query(
    `create table generations_2026_12 partition of generations for values from ('2026-12-01 00:00+00') to ('2027-01-01 00:00+00');
     create table generations_2027_01 partition of generations for values from ('2027-01-01 00:00+00') to ('2027-02-01 00:00+00')`,
  );
  const rows = [-1, 0, 1, DAY_MS - 1, DAY_MS].map((ms, at) =>
    JSON.parse(encodeRow(sampleGeneration(sampleAccepted(`row-${at}`, { createdAt: NEW_YEAR + ms })))),
  );
  await client.query('insert into generations select * from jsonb_populate_recordset(null::generations, $1::jsonb)', [
    JSON.stringify(rows),
  ]);
  // The time zone of the session must not move a row into another day.
  await client.query(`set time zone 'Pacific/Auckland'`);
  await migrate({ target, migrations: spendMigrations, log: silentLog });
  await assertAddsUp({ query: async (text) => (await client.query(text)).rows });
  const { rows: days } = await client.query('select day::text, requests::int from generation_days order by day');
  assert.deepEqual(days, [
    { day: '2026-12-31', requests: 1 },
    { day: '2027-01-01', requests: 3 },
    { day: '2027-01-02', requests: 1 },
  ]);
});

/** Enters rows like a process of a version without daily totals. */
async function enterAsBefore(database: Pick<Database, 'query'>, rows: readonly Generation[]): Promise<void> {
  const written = rows.map((row) => JSON.parse(encodeRow(row)));
  const columns = Object.keys(written[0])
    .map((name) => `"${name}"`)
    .join(', ');
  await database.query(
    `insert into generations (${columns}) select ${columns} from jsonb_populate_recordset(null::generations, $1::jsonb)`,
    [JSON.stringify(written)],
  );
}

test('rows entered later by an earlier version are added to the daily totals exactly once', async (t) => {
  const { database } = await freshDatabase(t, { migrations: spendMigrations });
  const at = (createdAt: number, id: string) => sampleGeneration(sampleAccepted(id, { createdAt, keyId: 'key' }));
  await enter(database, 'new', [at(NEW_YEAR - 1, 'new-1'), at(NEW_YEAR, 'new-2')]);
  await enterAsBefore(database, [at(NEW_YEAR - 1, 'old-1'), at(NEW_YEAR + 1, 'old-2'), at(NEW_YEAR + DAY_MS, 'old-3')]);
  await assert.rejects(assertAddsUp(database), 'the sums lack them');
  const enterMore = enter(database, 'new', [at(NEW_YEAR + 2, 'new-3'), at(NEW_YEAR - 1, 'old-1')]);
  await Promise.all([enterMore, ...Array.from({ length: 4 }, () => sumLateRows(database))]);
  await assertAddsUp(database);
  await sumLateRows(database);
  await assertAddsUp(database);
});

test('rows entered between the first totals and the summed marker are added to the daily totals', async (t) => {
  const target = await emptyDatabase(
    t,
    spendMigrations.filter(({ name }) => name < '0026'),
  );
  const client = await connectOnce(t, target);
  const asks = {
    query: async (text: string, values?: unknown[]) => (await client.query(text, values)).rows,
  } as Database;
  await client.query(
    `create table generations_2027_01 partition of generations for values from ('2027-01-01 00:00+00') to ('2027-02-01 00:00+00')`,
  );
  const row = (id: string) => sampleGeneration(sampleAccepted(id, { createdAt: NEW_YEAR }));
  await enterAsBefore(asks, [row('between')]);
  await migrate({ target, migrations: spendMigrations, log: silentLog });
  await assertAddsUp(asks);
  const { rows } = await client.query('select 1 from generations where not summed');
  assert.deepEqual(rows, [], 'it is not summed again');
});

test('daily totals are dropped with the rows of their month, and the others still equal their rows', async (t) => {
  const { database } = await freshDatabase(t, { migrations: spendMigrations });
  const at = (createdAt: number, id: string) => sampleGeneration(sampleAccepted(id, { createdAt }));
  await enter(database, 'process', [at(NEW_YEAR - 1, 'old'), at(NEW_YEAR, 'new')]);
  await dropOldRows(database, NEW_YEAR + 40 * DAY_MS, 30, silentLog);
  await assertAddsUp(database);
  assert.equal((await database.query('select 1 from generation_days')).length, 1);
  await enter(database, 'process', [at(NEW_YEAR - 2, 'late')]);
  await assertAddsUp(database);
});
