/** Reservations that outlive their process. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import fc from 'fast-check';
import { auditMigrations } from '../../src/audit/index.ts';
import { generationId } from '../../src/base/ids.ts';
import { silentLog } from '../../src/base/log.ts';
import { type Budget, listProcesses, type Reservation, type Spend, spendMigrations } from '../../src/spend/index.ts';
import { replayJournal } from '../../src/spend/replay.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { SpendProcess, type SpendWorld } from '../../src/testing/database/spend-process.ts';
import {
  NOON,
  sampleAccepted,
  sampleAttempt,
  sampleBudget,
  sampleGeneration,
} from '../../src/testing/laws/spend-samples.ts';

const CENT = 10_000_000n;
const DOLLAR = 100n * CENT;

async function world(t: TestContext): Promise<SpendWorld> {
  const { database, target } = await freshDatabase(t, { migrations: [...spendMigrations, ...auditMigrations] });
  const dataDir = mkdtempSync(join(tmpdir(), 'spend-'));
  t.after(() => rmSync(dataDir, { recursive: true, force: true }));
  return { database, target, dataDir, now: () => NOON, options: { leases: { patienceMs: 300 } } };
}

async function started(t: TestContext, place: SpendWorld): Promise<SpendProcess> {
  const process = await SpendProcess.start(place);
  t.after(() => process.close());
  return process;
}

async function reserve(spend: Spend, budgets: Budget[], nano: bigint): Promise<Reservation | undefined> {
  const answer = await spend.reserve(budgets, { creditNano: nano, byokNano: 0n }, NOON);
  return answer.refused ? undefined : answer;
}

const fits = async (spend: Spend, budgets: Budget[], nano: bigint) => {
  const held = await reserve(spend, budgets, nano);
  held?.release();
  return held !== undefined;
};

const row = (nano: bigint) => sampleGeneration(sampleAccepted(generationId(NOON)), { costNano: nano });

test('a hold survives kill -9 of its process, and no process can spend what it holds until it is released', async (t) => {
  const place = await world(t);
  const budgets = [sampleBudget(DOLLAR)];
  const first = await SpendProcess.start(place);
  const draft = first.spend.holds.draft();
  for (let n = 0; n < 6; n += 1) draft.add((await reserve(first.spend, budgets, 10n * CENT))!);
  await draft.keep('hold-1', async () => {});
  assert.equal(await fits(first.spend, budgets, 41n * CENT), false);
  await first.kill();
  const second = await started(t, place);
  assert.equal(await fits(second.spend, budgets, 41n * CENT), false);
  const [state] = await second.spend.stateOf(budgets);
  assert.deepEqual([state!.spentNano, state!.unreturnedNano], [0n, 0n]);
  assert.ok(state!.leasedNano >= 60n * CENT);
  assert.ok(!(await listProcesses(place.database, NOON)).some(({ id }) => id === 'hold-1'), 'it is no process');
  await second.spend.holds.enter('hold-1', async () => [row(25n * CENT)]);
  assert.equal((await second.spend.stateOf(budgets))[0]!.spentNano, 25n * CENT);
  assert.equal(await fits(second.spend, budgets, 41n * CENT), false);
  // The killed process also keeps what it had leased ahead of requests.
  const heldBy = async () => {
    const rows = await place.database.query<{ nano: bigint }>(
      `select coalesce(sum(amount_nano), 0)::bigint as nano from spend_leases where process_id = 'hold-1'`,
    );
    return BigInt(rows[0]!.nano);
  };
  assert.equal(await heldBy(), 35n * CENT);
  await place.database.transaction((tx) => second.spend.holds.release(tx, 'hold-1'));
  assert.equal(await heldBy(), 0n);
  assert.equal(await fits(second.spend, budgets, 50n * CENT), true);
});

test('a hold that cannot be kept, or is given up, returns everything', async (t) => {
  const place = await world(t);
  const { spend } = await started(t, place);
  const budgets = [sampleBudget(DOLLAR)];
  const failing = spend.holds.draft();
  failing.add((await reserve(spend, budgets, 90n * CENT))!);
  await assert.rejects(
    failing.keep('hold-1', async () => {
      throw new Error('the owner cannot be stored');
    }),
    /cannot be stored/,
  );
  assert.equal(await fits(spend, budgets, 90n * CENT), true);
  const dropped = spend.holds.draft();
  dropped.add((await reserve(spend, budgets, 90n * CENT))!);
  assert.equal(await fits(spend, budgets, 20n * CENT), false);
  dropped.release();
  assert.equal(await fits(spend, budgets, 100n * CENT), true);
});

test('rows and what their owner writes come together: a failure enters neither', async (t) => {
  const place = await world(t);
  const { spend } = await started(t, place);
  const budgets = [sampleBudget(DOLLAR)];
  const draft = spend.holds.draft();
  draft.add((await reserve(spend, budgets, 50n * CENT))!);
  await draft.keep('hold-1', async () => {});
  const enter = (fails: boolean) =>
    spend.holds.enter('hold-1', async (tx) => {
      await tx.query('create table if not exists owners (id int)');
      await tx.query('insert into owners values (1)');
      if (fails) throw new Error('the owner failed');
      return [row(10n * CENT)];
    });
  await assert.rejects(enter(true), /the owner failed/);
  await enter(false);
  assert.equal((await place.database.query('select 1 from owners')).length, 1);
  assert.equal((await spend.stateOf(budgets))[0]!.spentNano, 10n * CENT);
});

test('a request that was handed over outlives kill -9: its row is entered once, by whoever ends it first', async (t) => {
  const place = await world(t);
  const budgets = [sampleBudget(DOLLAR)];
  const first = await SpendProcess.start(place);
  const open = async () => {
    const accepted = sampleAccepted(generationId(NOON));
    const held = (await reserve(first.spend, budgets, 30n * CENT))!;
    const begun = (await first.spend.begin(accepted, sampleAttempt({ promptNano: 5n * CENT }), held, () => true))!;
    return { begun, row: sampleGeneration(accepted, { costNano: 20n * CENT }) };
  };
  const [handed, kept, refused] = [await open(), await open(), await open()];
  await handed.begun.handOver(async () => {});
  await kept.begun.handOver(async () => {});
  await assert.rejects(
    refused.begun.handOver(async () => {
      throw new Error('the owner cannot be stored');
    }),
    /cannot be stored/,
  );
  await new Promise<void>((resolve) => refused.begun.settle(refused.row, resolve));
  await first.spend.flush();
  // It only calls back: the owner enters the row.
  await new Promise<void>((resolve) => handed.begun.settle({ ...handed.row, costNano: 1n }, resolve));
  await first.kill();
  const { processId } = first.spend;
  await replayJournal(join(place.dataDir, 'journal', processId), processId, place.database, silentLog);
  const second = await started(t, place);
  assert.equal((await second.spend.stateOf(budgets))[0]!.spentNano, 20n * CENT, 'the replay leaves them alone');
  let written = 0;
  const settle = (spend: Spend) =>
    spend.holds.settle(handed.row, async () => {
      written += 1;
    });
  const third = await started(t, place);
  const [one, other] = await Promise.all([settle(second.spend), settle(third.spend)]);
  assert.deepEqual([one !== other, written], [true, 1]);
  assert.equal((await second.spend.stateOf(budgets))[0]!.spentNano, 40n * CENT);
  assert.equal(await fits(second.spend, budgets, 40n * CENT), false);
  await second.spend.holds.settle(kept.row, async () => {});
  assert.equal(await fits(second.spend, budgets, 39n * CENT), true);
});

test('whatever is held, entered and released, the leases of a window are what is held, and its spend the sum of the rows', async (t) => {
  const place = await world(t);
  const { spend } = await started(t, place);
  let next = 0;
  const hold = fc.record({
    bounds: fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
    costs: fc.array(fc.integer({ min: 0, max: 30 }), { maxLength: 5 }),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(hold, { minLength: 1, maxLength: 4 }), async (holds) => {
      const scopeId = `key-${next++}`;
      const budgets = [sampleBudget(100n * DOLLAR, { scopeId })];
      let [held, spent] = [0n, 0n];
      const kept: string[] = [];
      for (const { bounds, costs } of holds) {
        const id = `hold-${scopeId}-${kept.length}`;
        const draft = spend.holds.draft();
        for (const bound of bounds) draft.add((await reserve(spend, budgets, BigInt(bound) * CENT))!);
        await draft.keep(id, async () => {});
        kept.push(id);
        const rows = costs.map((cost) => ({ ...row(BigInt(cost) * CENT), keyId: scopeId }));
        await spend.holds.enter(id, async () => rows);
        const bound = BigInt(bounds.reduce((sum, each) => sum + each, 0)) * CENT;
        const cost = BigInt(costs.reduce((sum, each) => sum + each, 0)) * CENT;
        spent += cost;
        held += bound > cost ? bound - cost : 0n;
      }
      const [window] = await place.database.query<{ spent: string; held: string; leased: string }>(
        `select spent_nano::text as spent, leased_nano::text as leased,
          (select sum(amount_nano) from spend_leases where window_id = spend_windows.id and process_id like 'hold-%')::text as held
          from spend_windows where id like 'key/' || $1 || '/%' and leased_nano > 0`,
        [scopeId],
      );
      assert.deepEqual([BigInt(window?.spent ?? spent), BigInt(window?.held ?? 0)], [spent, held]);
      for (const id of kept) await place.database.transaction((tx) => spend.holds.release(tx, id));
      const [left] = await place.database.query<{ count: number }>(
        `select count(*)::int as count from spend_leases where process_id like 'hold-%'`,
      );
      assert.equal(left!.count, 0);
    }),
    { numRuns: 10 },
  );
});
