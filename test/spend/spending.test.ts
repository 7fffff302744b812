import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Clock, systemClock } from '../../src/base/clock.ts';
import { generationId } from '../../src/base/ids.ts';
import { silentLog } from '../../src/base/log.ts';
import type { Charge } from '../../src/spend/budget.ts';
import {
  createSpend,
  type Reservation,
  type Spend,
  type SpendOptions,
  spendMigrations,
} from '../../src/spend/index.ts';
import { replayJournal } from '../../src/spend/replay.ts';
import { openChanges } from '../../src/storage/changes.ts';
import type { Database } from '../../src/storage/database.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import {
  begin,
  enter,
  NOON,
  SAMPLE_USAGE,
  sampleAccepted,
  sampleBudget,
  sampleGeneration,
} from '../../src/testing/laws/spend-samples.ts';

const FREE: Charge = { creditNano: 0n, byokNano: 0n };

/** Real timers; the wall time starts at noon of a Wednesday. */
const clock: Clock = { ...systemClock, now: () => NOON + Math.round(systemClock.monotonic()) };

interface Setting {
  spend: Spend;
  database: Database;
  dataDir: string;
}

async function start(test: TestContext, change: Partial<SpendOptions> = {}): Promise<Setting> {
  const { database, target } = await freshDatabase(test, { migrations: spendMigrations });
  const changes = await openChanges({ target, database, clock, log: silentLog });
  const dataDir = mkdtempSync(join(tmpdir(), 'spend-'));
  const spend = await createSpend({ database, changes, clock, log: silentLog, dataDir, ...change });
  test.after(async () => {
    await spend.close();
    await changes.close();
    rmSync(dataDir, { recursive: true, force: true });
  });
  return { spend, database, dataDir };
}

function unlimited(spend: Spend): Reservation {
  return spend.reserve([], FREE, NOON) as Reservation;
}

test('a settled generation is found at once, and unchanged after it is flushed', async (t) => {
  const { spend } = await start(t);
  const accepted = sampleAccepted(generationId(NOON), { metadata: { team: 'a\0b \ud800 ü' } });
  const row = sampleGeneration(accepted, {
    usage: { ...SAMPLE_USAGE, inputAudio: 3, webSearches: 2 },
    upstreamCostNano: 77n,
    cacheDiscountNano: -5n,
    error: { type: 'server', message: 'x' },
    media: { promptMedia: 2 },
  });
  await enter(spend, accepted, unlimited(spend), row);
  const stored = { ...row, metadata: { team: 'a\ufffdb \ufffd ü' } };
  assert.deepEqual(await spend.findGeneration(row.id, { organizationId: 'org-1' }), stored);
  await spend.flush();
  assert.deepEqual(await spend.findGeneration(row.id, { organizationId: 'org-1' }), stored);
});

test('a generation is visible only to its key, its workspace and its organization', async (t) => {
  const { spend } = await start(t);
  const accepted = sampleAccepted(generationId(NOON));
  for (const flushed of [false, true]) {
    if (flushed) await spend.flush();
    else await enter(spend, accepted, unlimited(spend));
    const sees = async (viewer: Parameters<Spend['findGeneration']>[1]) =>
      (await spend.findGeneration(accepted.id, viewer)) !== undefined;
    assert.equal(await sees({ organizationId: 'org-1', keyId: 'key-1' }), true);
    assert.equal(await sees({ organizationId: 'org-1', workspaceId: 'workspace-1' }), true);
    assert.equal(await sees({ organizationId: 'org-2' }), false);
    assert.equal(await sees({ organizationId: 'org-1', keyId: 'key-2' }), false);
    assert.equal(await sees({ organizationId: 'org-1', workspaceId: 'workspace-2' }), false);
  }
});

test('usage of a key counts in the windows of acceptance, with BYOK spend separate', async (t) => {
  const { spend } = await start(t);
  const dayMs = 86_400_000;
  // Wednesday noon; Tuesday of the same week; the Sunday before; the previous month.
  for (const [at, cost] of [
    [NOON, 1n],
    [NOON - dayMs, 10n],
    [NOON - 3 * dayMs, 100n],
    [NOON - 20 * dayMs, 1_000n],
  ] as const) {
    const accepted = sampleAccepted(generationId(at), { createdAt: at });
    const row = sampleGeneration(accepted, { costNano: cost, byokNano: 2n * cost });
    await enter(spend, accepted, unlimited(spend), row);
  }
  await spend.flush();
  const usage = await spend.usageOf(['key-1', 'key-2']);
  assert.deepEqual(usage.get('key-1'), {
    usage: { lifetime: 1_111n, monthly: 111n, weekly: 11n, daily: 1n },
    byok: { lifetime: 2_222n, monthly: 222n, weekly: 22n, daily: 2n },
  });
  assert.equal(usage.get('key-2')?.usage.lifetime, 0n);
});

test('settling twice is a bug that throws, and enters one row', async (t) => {
  const { spend, database } = await start(t);
  const accepted = sampleAccepted(generationId(NOON));
  const open = await begin(spend, accepted, unlimited(spend));
  open.settle(sampleGeneration(accepted));
  assert.throws(() => open.settle(sampleGeneration(accepted)), /twice/);
  await spend.flush();
  assert.deepEqual(await database.query('SELECT count(*)::int AS rows FROM generations'), [{ rows: 1 }]);
});

test('rows beyond the memory limit do not end a turn early, and all of them are entered', async (t) => {
  const ends: (() => void)[] = [];
  const { spend, database } = await start(t, { endOfTurn: (run) => ends.push(run), ledger: { memoryRows: 2 } });
  const endTurn = () => {
    for (const run of ends.splice(0)) run();
  };
  const turn = async (count: number) => {
    const all = Array.from({ length: count }, () => sampleAccepted(generationId(NOON)));
    const begun = all.map((accepted) => begin(spend, accepted, unlimited(spend)));
    endTurn();
    const told: string[] = [];
    for (const [at, open] of (await Promise.all(begun)).entries()) {
      open.settle(sampleGeneration(all[at]!), () => told.push(all[at]!.id));
    }
    let begunEarly = false;
    const late = sampleAccepted(generationId(NOON));
    const next = begin(spend, late, unlimited(spend)).then((open) => {
      begunEarly = told.length === 0;
      open.settle(sampleGeneration(late));
    });
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual([told, begunEarly], [[], false]);
    endTurn();
    await next;
    assert.deepEqual(
      told,
      all.map(({ id }) => id),
    );
    endTurn();
  };
  await turn(5);
  await turn(3);
  await spend.flush();
  await turn(1);
  await spend.flush();
  const [found] = await database.query('SELECT count(*)::int AS rows, sum(cost_nano)::bigint AS cost FROM generations');
  // Twelve rows of 1,500 nano-dollars each.
  assert.deepEqual(found, { rows: 12, cost: 18_000n });
  assert.deepEqual(spend.backlog.rows, 0);
});

test('a row settled while the process closes is in its journal, although its turn never ends', async (t) => {
  const ends: (() => void)[] = [];
  const { spend, dataDir, database } = await start(t, { endOfTurn: (run) => ends.push(run) });
  const accepted = [sampleAccepted(generationId(NOON)), sampleAccepted(generationId(NOON))];
  const begun = accepted.map((one) => begin(spend, one, unlimited(spend)));
  for (const run of ends.splice(0)) run();
  const [first, second] = await Promise.all(begun);
  first!.settle(sampleGeneration(accepted[0]!));
  const closing = spend.close();
  // The transaction that takes the first row takes several turns.
  await new Promise((resolve) => setImmediate(resolve));
  second!.settle(sampleGeneration(accepted[1]!));
  await closing;
  const [processId] = readdirSync(join(dataDir, 'journal'));
  assert.equal(spend.backlog.open, 0);
  const counts = await replayJournal(join(dataDir, 'journal', processId!), processId!, database, silentLog);
  assert.deepEqual(counts, { settled: 2, estimated: 0, unconfirmed: 0, damaged: 0 });
});

test('closing removes the journal and all leases', async (t) => {
  const { spend, database, dataDir } = await start(t);
  const budget = sampleBudget(1_000_000n);
  const reservation = await spend.reserve([budget], { creditNano: 2_000n, byokNano: 0n }, NOON);
  assert.ok(!reservation.refused);
  const accepted = sampleAccepted(generationId(NOON));
  await enter(spend, accepted, reservation);
  await spend.close();
  assert.deepEqual(readdirSync(join(dataDir, 'journal')), []);
  assert.deepEqual(await database.query('SELECT * FROM spend_leases'), []);
  assert.deepEqual(
    await database.query("SELECT spent_nano, leased_nano FROM spend_windows WHERE id LIKE 'key/%/daily/%'"),
    [{ spent_nano: 1_500n, leased_nano: 0n }],
  );
});

test('a budget holds the bound, returns the unused part, and a refusal names the budget and the amount', async (t) => {
  const { spend } = await start(t);
  const budgets = [sampleBudget(10_000n), sampleBudget(50_000n, { scope: 'workspace', scopeId: 'workspace-1' })];
  const bound = (creditNano: bigint) => ({ creditNano, byokNano: 0n });
  const first = await spend.reserve(budgets, bound(9_000n), NOON);
  assert.ok(!first.refused);
  const accepted = sampleAccepted(generationId(NOON));
  await enter(spend, accepted, first, sampleGeneration(accepted, { costNano: 4_000n }));
  const refused = await spend.reserve(budgets, bound(6_001n), NOON);
  assert.ok(refused.refused);
  assert.equal(refused.budget, budgets[0]);
  assert.equal(refused.leftNano, 6_000n);
  assert.equal(refused.spentNano, 4_000n);
  assert.equal(refused.neededNano, 6_001n);
  assert.equal(refused.resetsAt, Date.UTC(2026, 2, 19));
  const fits = await spend.reserve(budgets, bound(6_000n), NOON);
  assert.ok(!fits.refused);
  fits.release();
  await spend.flush();
  const [state] = await spend.stateOf(budgets);
  assert.equal(state?.remainingNano, 6_000n);
});
