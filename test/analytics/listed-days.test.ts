/** Lists of generations skip times without requests of the model, provider and so on, and no row. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type GenerationFilter, listGenerations } from '../../src/analytics/requests/store.ts';
import { generationId } from '../../src/base/ids.ts';
import { migrations } from '../../src/migrations.ts';
import type { ApiType, Generation } from '../../src/spend/index.ts';
import type { Database, Queryable } from '../../src/storage/database.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { countTotals, enterRows } from '../../src/testing/database/ledger-rows.ts';
import { samples } from '../../src/testing/laws/samples.ts';
import { sampleAccepted, sampleGeneration } from '../../src/testing/laws/spend-samples.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START = Date.UTC(2027, 0, 1);
const DAYS = 200;
const NOTHING: GenerationFilter = {
  ...{ organizationId: 'org-1', from: undefined, until: undefined, id: undefined, models: undefined },
  ...{ provider: undefined, keyIds: undefined, workspaceId: undefined, apiType: undefined, errorType: undefined },
  ...{ sessionId: undefined, externalUser: undefined, outcome: undefined, before: undefined, limit: 50 },
};

interface Placed {
  day: number;
  /** Around midnight, so that ids and times fall on different days. */
  minute: number;
  /** Minutes from the row's time to its id's. */
  apart: number;
  model: string;
  provider: string | null;
  apiType: ApiType;
  ended: 'well' | 'failed' | 'cancelled';
  key: string;
  workspace: string;
  organization: string;
  late: boolean;
  /** Ids of requests of batches begin with `gen-batch-`. */
  batch: boolean;
}

const placed: fc.Arbitrary<Placed> = fc.record({
  day: fc.oneof(fc.integer({ min: 0, max: DAYS }), fc.integer({ min: 100, max: 104 })),
  minute: fc.oneof(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 0, max: 1439 })),
  apart: fc.integer({ min: -59, max: 59 }),
  model: fc.constantFrom('often', 'often', 'often', 'rare', 'Rare'),
  provider: fc.constantFrom('Often', 'Often', 'Often', 'Rare', null),
  apiType: fc.constantFrom('completions', 'completions', 'completions', 'rerank'),
  ended: fc.constantFrom('well', 'well', 'failed', 'cancelled'),
  key: fc.constantFrom('k-1', 'k-1', 'k-2'),
  workspace: fc.constantFrom('w-1', 'w-1', 'w-2'),
  organization: fc.constantFrom('org-1', 'org-1', 'org-1', 'org-2'),
  late: fc.boolean(),
  batch: fc.boolean(),
});

function rowOf({ day, minute, apart, batch, ...of }: Placed): Generation {
  const createdAt = START + day * DAY_MS + minute * 60_000;
  const plain = generationId(createdAt + apart * 60_000);
  const id = batch ? plain.replace('gen-', 'gen-batch-') : plain;
  const accepted = sampleAccepted(id, {
    ...{ createdAt, workspaceId: of.workspace, organizationId: of.organization, keyId: of.key, apiType: of.apiType },
  });
  return sampleGeneration(accepted, {
    ...{ model: of.model, providerName: of.provider, cancelled: of.ended === 'cancelled' },
    ...(of.ended === 'failed' && { status: 502, error: { type: 'server', message: 'm' } }),
  });
}

const time = fc.option(
  fc.integer({ min: -2, max: DAYS * 24 + 48 }).map((hours) => new Date(START + hours * HOUR_MS + 1)),
  { nil: undefined },
);
const filters = fc
  .record({
    models: fc.constantFrom(undefined, ['often'], ['rare'], ['Rare', 'rare'], ['absent']),
    workspaceId: fc.constantFrom(undefined, 'w-1', 'w-2', 'w-3'),
    provider: fc.constantFrom(undefined, undefined, 'Often', 'Rare', 'rare'),
    apiType: fc.constantFrom(undefined, undefined, 'completions', 'rerank', 'tts'),
    errorType: fc.constantFrom(undefined, undefined, undefined, 'server', 'absent'),
    outcome: fc.constantFrom(undefined, undefined, 'succeeded' as const, 'failed' as const, 'cancelled' as const),
    keyIds: fc.constantFrom(undefined, undefined, ['k-1'], ['k-2', 'k-3'], []),
    from: time,
    until: time,
    // More than a step of days has.
    limit: fc.integer({ min: 1, max: 200 }),
    organizationId: fc.constantFrom('org-1', 'org-2', 'org-3'),
  })
  .map((given): GenerationFilter => ({ ...NOTHING, ...given }));

test('pages are those of a list that reads every row', async (t) => {
  const { database } = await freshDatabase(t, { migrations });
  // At midnight of every day, so that runs of days touch in rows.
  const daily = Array.from({ length: DAYS + 1 }, (_, day) => rowOf({ ...USUAL, day }));
  const given = fc.sample(placed, { numRuns: 400, seed: 7 });
  const late = given.filter(({ late }) => late).slice(0, 60);
  const entered = [...daily, ...given.filter(({ late }) => !late).map(rowOf)];
  const uncounted = late.map(rowOf);
  await enterRows(database, entered);
  await countTotals(database);
  await enterRows(database, uncounted);
  const made = ({ id }: Generation) => id.slice(-32);
  const all = [...entered, ...uncounted].sort((a, b) => (made(a) < made(b) ? 1 : -1));
  await fc.assert(
    fc.asyncProperty(filters, async (filter) => {
      const wanted = all.filter((row) => fulfills(row, filter)).map(({ id }) => id);
      let before: string | undefined;
      for (let at = 0; at <= wanted.length && at < 4 * filter.limit; at += filter.limit) {
        const page = await listed(database, { ...filter, before });
        assert.deepEqual(page, wanted.slice(at, at + filter.limit));
        before = page.at(-1);
        if (before === undefined) break;
      }
    }),
    { numRuns: samples(45) },
  );
});

const USUAL: Placed = {
  ...{ day: 0, minute: 0, apart: 0, model: 'often', provider: 'Often', apiType: 'completions', ended: 'well' },
  ...{ key: 'k-1', workspace: 'w-1', organization: 'org-1', late: false, batch: false },
};

async function listed(database: Database, filter: GenerationFilter): Promise<string[]> {
  return (await database.transaction((tx) => listGenerations(tx, filter, () => 10_000))).map(({ id }) => id);
}

function fulfills(row: Generation, filter: GenerationFilter): boolean {
  const { organizationId, models, keyIds, from, until, outcome } = filter;
  const failed = row.error !== null;
  const outcomes = { succeeded: !failed && !row.cancelled, failed, cancelled: row.cancelled, guarded: false };
  const equal: readonly [unknown, unknown][] = [
    [filter.workspaceId, row.workspaceId],
    [filter.provider, row.providerName],
    [filter.apiType, row.apiType],
    [filter.errorType, row.error?.type],
  ];
  return (
    row.organizationId === organizationId &&
    equal.every(([wanted, is]) => wanted === undefined || wanted === is) &&
    (outcome === undefined || outcomes[outcome]) &&
    (models === undefined || models.includes(row.model)) &&
    (keyIds === undefined || keyIds.includes(row.keyId)) &&
    (from === undefined || row.createdAt >= from.getTime()) &&
    (until === undefined || row.createdAt < until.getTime())
  );
}

test('times without the model, provider or API are not read', async (t) => {
  const { database } = await freshDatabase(t, { migrations });
  const at = (day: number, change: Partial<Placed> = {}) => rowOf({ ...USUAL, day, minute: 600, ...change });
  const rare = [3, 4, 90, 91, 120];
  await enterRows(database, [
    ...Array.from({ length: 150 }, (_, day) => at(day)),
    ...Array.from({ length: 24 }, (_, minute) => at(140, { provider: 'Busy', minute })),
    ...rare.map((day) => at(day, { model: 'rare', provider: 'Rare', apiType: 'rerank', ended: 'failed' })),
  ]);
  await countTotals(database);
  /** The hours whose rows were read, besides the one before and the one after. */
  const read = async (filter: Partial<GenerationFilter>) => {
    const ranges: number[][] = [];
    await database.transaction((tx) => listGenerations(recording(tx, ranges), { ...NOTHING, ...filter }, () => 10_000));
    return ranges;
  };
  const hour = (day: number) => [day * 24 + 10, day * 24 + 11];
  const filters: Partial<GenerationFilter>[] = [
    { models: ['rare'] },
    { provider: 'Rare' },
    { apiType: 'rerank' },
    { errorType: 'server' },
    { keyIds: ['k-1'], provider: 'Rare' },
    { outcome: 'failed', workspaceId: 'w-1' },
  ];
  for (const filter of filters)
    assert.deepEqual(await read(filter), rare.toReversed().map(hour), JSON.stringify(filter));
  assert.deepEqual(await read({ provider: 'Rare', limit: 2 }), [120, 91].map(hour));
  const absent: Partial<GenerationFilter>[] = [
    { models: ['absent'] },
    { workspaceId: 'w-2' },
    { provider: 'absent' },
    { apiType: 'tts' },
    { errorType: 'absent' },
    { keyIds: ['k-2'], apiType: 'completions' },
    { provider: 'Rare', outcome: 'succeeded' },
    { provider: 'Often', apiType: 'rerank' },
  ];
  for (const filter of absent) assert.deepEqual(await read(filter), [], JSON.stringify(filter));
  assert.deepEqual(await read({ provider: 'Busy' }), [[140 * 24, 141 * 24]], 'a day with many is read as a whole');
  await enterRows(database, [at(150)]);
  assert.deepEqual(await read({ provider: 'absent' }), [hour(150)], 'an hour that is not counted may have any');
});

/** @param ranges gets the hours of each statement that reads rows, without those of its slack: the first, and the one after the last */
function recording(tx: Queryable, ranges: number[][]): Queryable {
  return {
    query(sql: string, parameters?: unknown[]) {
      const ids = (parameters ?? []).filter((each): each is string => /^gen-[0-9a-f]{12}$/.test(String(each))).sort();
      const [from, until] = ids.map((id) => (Number.parseInt(id.slice(4), 16) - START) / HOUR_MS);
      if (from !== undefined && until !== undefined) ranges.push([from + 1, until - 1]);
      return tx.query(sql, parameters);
    },
  } as Queryable;
}
