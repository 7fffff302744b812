import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { createJobs, type JobKind, type Jobs, type StartOfJobs } from '../../src/jobs/index.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { type Database, openDatabase } from '../../src/storage/database.ts';
import { TestClock, until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';

interface Process {
  database: Database;
  jobs: Jobs;
}

/** Processes on one database, with the kinds of job that `kinds` makes for each. */
async function processes(
  t: TestContext,
  count: number,
  kinds: (process: number) => JobKind[],
  { clock = systemClock, when }: { clock?: Clock; when?: StartOfJobs } = {},
): Promise<Process[]> {
  const target = await emptyDatabase(t, [], true);
  const all: Process[] = [];
  for (let number = 0; number < count; number += 1) {
    const database = await openDatabase({ target, clock: systemClock, log: silentLog });
    const changes = await openChanges({ target, database, clock: systemClock, log: silentLog });
    const jobs = createJobs({ database, changes, clock, log: silentLog });
    for (const kind of kinds(number)) jobs.register(kind);
    jobs.start(when);
    t.after(async () => {
      await jobs.close();
      await changes.close();
      await database.close();
    });
    all.push({ database, jobs });
  }
  return all;
}

/** Jobs that were run, and a promise for each next one. */
function record() {
  const runs: { process: number; data: object; attempt: number }[] = [];
  let waiting: { count: number; resolve(): void } | undefined;
  return {
    runs,
    add(run: (typeof runs)[number]) {
      runs.push(run);
      if (waiting !== undefined && runs.length >= waiting.count) waiting.resolve();
    },
    async until(count: number) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting = { count, resolve };
      if (runs.length < count) await promise;
    },
  };
}

const NOTHING = { name: 'test.nothing', runs: 'many', run: async () => {} } as const satisfies JobKind;

test('transactions that hold every connection can send the first jobs of a process', async (t) => {
  const seen = record();
  const kind: JobKind = {
    ...{ name: 'test.first', runs: 'many', atStart: true },
    run: async ({ data, attempt }) => seen.add({ process: 0, data, attempt }),
  };
  const [{ database, jobs } = assert.fail()] = await processes(t, 1, () => [kind], { when: 'sent' });
  const connections = 10;
  const { promise: together, resolve } = Promise.withResolvers<void>();
  let open = 0;
  const send = (item: number) =>
    database.transaction(async (tx) => {
      open += 1;
      if (open === connections) resolve();
      await together;
      await jobs.send(kind, { item }, { tx });
    });
  await Promise.all(Array.from({ length: connections }, (_, item) => send(item)));
  await seen.until(connections + 1);
});

test('a job that one process sends runs once, in one of the processes', async (t) => {
  const seen = record();
  const kind = (process: number): JobKind => ({
    name: 'test.work',
    runs: 'many',
    async run({ data, attempt }) {
      seen.add({ process, data, attempt });
    },
  });
  const [first] = await processes(t, 2, (number) => [kind(number)]);
  for (let item = 0; item < 20; item += 1) await first!.jobs.send(kind(0), { item });
  await seen.until(20);
  const items = seen.runs.map(({ data }) => (data as { item: number }).item);
  assert.deepEqual(
    items.toSorted((a, b) => a - b),
    Array.from({ length: 20 }, (_, item) => item),
  );
  assert.ok(seen.runs.every(({ attempt }) => attempt === 1));
});

test('a job that is sent in a transaction exists only when that commits', async (t) => {
  const seen = record();
  const kind: JobKind = {
    name: 'test.work',
    runs: 'many',
    async run({ data, attempt }) {
      seen.add({ process: 0, data, attempt });
    },
  };
  const [{ database, jobs }] = (await processes(t, 1, () => [kind])) as [Process];
  const failed = database.transaction(async (tx) => {
    await jobs.send(kind, { committed: false }, { tx });
    throw new Error('rolled back');
  });
  await assert.rejects(failed, /rolled back/);
  await database.transaction((tx) => jobs.send(kind, { committed: true }, { tx }));
  await seen.until(1);
  await jobs.close();
  assert.deepEqual(seen.runs, [{ process: 0, data: { committed: true }, attempt: 1 }]);
});

test('jobs of a kind that runs alone never overlap, and each one runs', async (t) => {
  let running = 0;
  let most = 0;
  const seen = record();
  const gates = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const begun = Promise.withResolvers<void>();
  const kind = (process: number): JobKind => ({
    name: 'test.alone',
    runs: 'one',
    async run({ data, attempt }) {
      running += 1;
      most = Math.max(most, running);
      begun.resolve();
      await gates[seen.runs.length]?.promise;
      running -= 1;
      seen.add({ process, data, attempt });
    },
  });
  const [first, second] = (await processes(t, 2, (number) => [kind(number)])) as [Process, Process];
  await first.jobs.send(kind(0), { number: 1 });
  await begun.promise;
  for (const number of [2, 3, 4]) await second.jobs.send(kind(1), { number });
  gates[0]!.resolve();
  gates[1]!.resolve();
  await seen.until(4);
  await first.jobs.close();
  await second.jobs.close();
  assert.equal(most, 1);
  assert.deepEqual(
    seen.runs.map(({ data }) => (data as { number: number }).number).toSorted((a, b) => a - b),
    [1, 2, 3, 4],
  );
});

test('a repeated job runs as often as the clock says', async (t) => {
  const clock = new TestClock();
  const seen = record();
  const kind: JobKind = {
    name: 'test.often',
    runs: 'one',
    everyMs: 60_000,
    async run({ data, attempt }) {
      seen.add({ process: 0, data, attempt });
    },
  };
  await processes(t, 1, () => [kind], { clock });
  assert.equal(seen.runs.length, 0);
  const { timers } = clock;
  for (let count = 1; count <= 3; count += 1) {
    clock.advance(60_000);
    await seen.until(count);
    await until(() => clock.timers === timers, 'the next one is due');
  }
  assert.equal(seen.runs.length, 3);
});

test('a job for the start runs without anybody sending it, once for processes that start together', async (t) => {
  const seen = record();
  const gate = Promise.withResolvers<void>();
  const kind = (process: number): JobKind => ({
    name: 'test.start',
    runs: 'one',
    everyMs: 60_000,
    atStart: true,
    async run({ data, attempt }) {
      seen.add({ process, data, attempt });
      await gate.promise;
    },
  });
  const [first, second] = (await processes(t, 2, (number) => [kind(number)], { clock: new TestClock() })) as [
    Process,
    Process,
  ];
  await seen.until(1);
  // Both have sent theirs by then: one runs, and at most one waits.
  for (const { jobs } of [first, second]) await jobs.send(kind(0), {});
  const rows = await first.database.query<{ state: string }>('select state from gatehouse_jobs.job order by state');
  gate.resolve();
  assert.deepEqual(
    rows.map(({ state }) => state),
    ['created', 'active'],
  );
});

test('closing aborts a running job, gives it back and begins no other', async (t) => {
  const begun = Promise.withResolvers<void>();
  const kind: JobKind = {
    name: 'test.long',
    runs: 'many',
    async run({ signal }) {
      begun.resolve();
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    },
  };
  const [{ database, jobs }] = (await processes(t, 1, () => [kind])) as [Process];
  await jobs.send(kind, {});
  await begun.promise;
  await jobs.close();
  const rows = await database.query<{ state: string }>('select state from gatehouse_jobs.job');
  assert.deepEqual(rows, [{ state: 'retry' }]);
  await assert.rejects(jobs.send(kind, {}), /closed/);
});

test('two kinds with one name are refused', async (t) => {
  const [{ jobs }] = (await processes(t, 1, () => [NOTHING])) as [Process];
  assert.throws(() => jobs.register(NOTHING), /test\.nothing/);
});
