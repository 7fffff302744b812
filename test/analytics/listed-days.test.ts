/** Lists of generations skip days without requests of the model or workspace, and no row. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type GenerationFilter, listGenerations } from '../../src/analytics/requests/store.ts';
import { generationId } from '../../src/base/ids.ts';
import { migrations } from '../../src/migrations.ts';
import type { Generation } from '../../src/spend/index.ts';
import type { Database, Queryable } from '../../src/storage/database.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { enterRows } from '../../src/testing/database/ledger-rows.ts';
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
  workspace: string;
  organization: string;
  late: boolean;
}

const placed: fc.Arbitrary<Placed> = fc.record({
  day: fc.oneof(fc.integer({ min: 0, max: DAYS }), fc.integer({ min: 100, max: 104 })),
  minute: fc.oneof(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 0, max: 1439 })),
  apart: fc.integer({ min: -59, max: 59 }),
  model: fc.constantFrom('often', 'often', 'often', 'rare', 'Rare'),
  workspace: fc.constantFrom('w-1', 'w-1', 'w-2'),
  organization: fc.constantFrom('org-1', 'org-1', 'org-1', 'org-2'),
  late: fc.boolean(),
});

function rowOf({ day, minute, apart, model, workspace, organization }: Placed): Generation {
  const createdAt = START + day * DAY_MS + minute * 60_000;
  const id = generationId(createdAt + apart * 60_000);
  const accepted = sampleAccepted(id, { createdAt, workspaceId: workspace, organizationId: organization });
  return sampleGeneration(accepted, { model });
}

/** Rows as a process of a version without daily totals enters them: the totals do not contain them yet. */
async function enterLate(database: Database, rows: readonly Generation[]): Promise<void> {
  await database.query('create table totals as select * from generation_days');
  await enterRows(database, rows);
  await database.query('update generations set summed = false where id = any($1)', [rows.map(({ id }) => id)]);
  await database.query('truncate generation_days, generation_model_days');
  await database.query('insert into generation_days select * from totals');
}

const time = fc.option(
  fc.integer({ min: -2, max: DAYS * 24 + 48 }).map((hours) => new Date(START + hours * HOUR_MS + 1)),
  { nil: undefined },
);
const filters = fc
  .record({
    models: fc.constantFrom(undefined, ['often'], ['rare'], ['Rare', 'rare'], ['absent']),
    workspaceId: fc.constantFrom(undefined, 'w-1', 'w-2', 'w-3'),
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
  const daily = Array.from({ length: DAYS + 1 }, (_, day) => {
    return rowOf({ ...{ day, minute: 0, apart: 0, model: 'often' }, ...PLACE, late: false });
  });
  const given = fc.sample(placed, { numRuns: 400, seed: 7 });
  const late = given.filter(({ late }) => late).slice(0, 60);
  const entered = [...daily, ...given.filter(({ late }) => !late).map(rowOf)];
  const unsummed = late.map(rowOf);
  await enterRows(database, entered);
  await enterLate(database, unsummed);
  const all = [...entered, ...unsummed].sort((a, b) => (a.id < b.id ? 1 : -1));
  await fc.assert(
    fc.asyncProperty(filters, async (filter) => {
      const wanted = all.filter((row) => fulfils(row, filter)).map(({ id }) => id);
      let before: string | undefined;
      for (let at = 0; at <= wanted.length && at < 4 * filter.limit; at += filter.limit) {
        const page = await listed(database, { ...filter, before });
        assert.deepEqual(page, wanted.slice(at, at + filter.limit));
        before = page.at(-1);
        if (before === undefined) break;
      }
    }),
    { numRuns: samples(60) },
  );
});

const PLACE = { workspace: 'w-1', organization: 'org-1' };

async function listed(database: Database, filter: GenerationFilter): Promise<string[]> {
  return (await database.transaction((tx) => listGenerations(tx, filter, () => 10_000))).map(({ id }) => id);
}

function fulfils(row: Generation, { organizationId, models, workspaceId, from, until }: GenerationFilter): boolean {
  return (
    row.organizationId === organizationId &&
    (models === undefined || models.includes(row.model)) &&
    (workspaceId === undefined || row.workspaceId === workspaceId) &&
    (from === undefined || row.createdAt >= from.getTime()) &&
    (until === undefined || row.createdAt < until.getTime())
  );
}

test('days without the model are not read', async (t) => {
  const { database } = await freshDatabase(t, { migrations });
  const at = (day: number, model: string) => rowOf({ ...{ day, minute: 600, apart: 0, model }, ...PLACE, late: false });
  await enterRows(database, [
    ...Array.from({ length: 150 }, (_, day) => at(day, 'often')),
    ...[3, 4, 90, 91, 120].map((day) => at(day, 'rare')),
  ]);
  /** The ranges of ids that were read: their days. */
  const read = async (filter: Partial<GenerationFilter>) => {
    const ranges: number[][] = [];
    await database.transaction((tx) => listGenerations(recording(tx, ranges), { ...NOTHING, ...filter }, () => 10_000));
    return ranges;
  };
  assert.deepEqual(
    await read({ models: ['rare'] }),
    [[120], [90, 91], [3, 4]].map(([from, until = from]) => [from, until! + 1]),
  );
  assert.deepEqual(await read({ models: ['rare'], limit: 2 }), [
    [120, 121],
    [90, 92],
  ]);
  assert.deepEqual(await read({ models: ['absent'] }), []);
  assert.deepEqual(await read({ workspaceId: 'w-2' }), []);
});

/** @param ranges gets the days of each statement that reads rows: the first, and the one after the last */
function recording(tx: Queryable, ranges: number[][]): Queryable {
  return {
    query(sql: string, parameters?: unknown[]) {
      const ids = (parameters ?? []).filter((each): each is string => /^gen-[0-9a-f]{12}$/.test(String(each))).sort();
      if (ids.length > 0) ranges.push(ids.map((id) => Math.round((Number.parseInt(id.slice(4), 16) - START) / DAY_MS)));
      return tx.query(sql, parameters);
    },
  } as Queryable;
}
