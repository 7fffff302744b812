import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { auditMigrations } from '../../src/audit/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { generationId } from '../../src/base/ids.ts';
import { silentLog } from '../../src/base/log.ts';
import {
  type Budget,
  listProcesses,
  type Refusal,
  type Reservation,
  releaseProcess,
  type Spend,
  spendMigrations,
} from '../../src/spend/index.ts';
import { replayJournal } from '../../src/spend/replay.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { SpendProcess, type SpendWorld } from '../../src/testing/database/spend-process.ts';
import {
  begin,
  NOON,
  sampleAccepted,
  sampleAttempt,
  sampleBudget,
  sampleGeneration,
} from '../../src/testing/laws/spend-samples.ts';

const migrations = [...spendMigrations, ...auditMigrations];
const folders: string[] = [];
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const CENT = 10_000_000n;
const DOLLAR = 100n * CENT;

async function world(
  test: TestContext,
  options: SpendWorld['options'] = { leases: { patienceMs: 300 } },
): Promise<SpendWorld> {
  const { database, target } = await freshDatabase(test, { migrations });
  const dataDir = mkdtempSync(join(tmpdir(), 'spend-'));
  folders.push(dataDir);
  return { database, target, dataDir, now: () => NOON, options };
}

async function started(test: TestContext, place: SpendWorld, count: number): Promise<SpendProcess[]> {
  const processes: SpendProcess[] = [];
  for (let n = 0; n < count; n++) processes.push(await SpendProcess.start(place));
  test.after(() => Promise.all(processes.map((process) => process.close())));
  return processes;
}

/** Same as `gatehouse spend release`. */
async function release({ database, target, now }: SpendWorld, processId: string, force = false) {
  const changes = await openChanges({ target, database, clock: systemClock, log: silentLog });
  const clock = { ...systemClock, now };
  try {
    return await releaseProcess({ database, changes, clock, organizationId: 'org-1' }, processId, { force });
  } finally {
    await changes.close();
  }
}

/** Runs one request that takes a moment; returns whether it was admitted. */
async function request(spend: Spend, budgets: Budget[], bound: bigint, cost: bigint): Promise<boolean> {
  const reservation = await spend.reserve(budgets, { creditNano: bound, byokNano: 0n }, NOON);
  if (reservation.refused) return false;
  const accepted = sampleAccepted(generationId(NOON));
  const open = await begin(spend, accepted, reservation);
  await new Promise((resolve) => setImmediate(resolve));
  open.settle(sampleGeneration(accepted, { costNano: cost }));
  return true;
}

async function passed(processes: SpendProcess[], budgets: Budget[], bound: bigint, cost: bigint): Promise<number> {
  const requests = [];
  for (let n = 0; n < 2_000; n++) {
    requests.push(request(processes[n % processes.length]!.spend, budgets, bound, cost));
  }
  return (await Promise.all(requests)).filter(Boolean).length;
}

test('of 2,000 concurrent requests of one cent, two processes admit exactly 100 with a budget of one dollar', async (t) => {
  const place = await world(t);
  const processes = await started(t, place, 2);
  assert.equal(await passed(processes, [sampleBudget(DOLLAR)], CENT, CENT), 100);
  for (const { spend } of processes) await spend.flush();
  assert.deepEqual((await processes[0]!.spend.stateOf([sampleBudget(DOLLAR)]))[0]?.spentNano, DOLLAR);
});

test('a worst case of ten cents and an actual cost of one admits 90 to 100 requests', async (t) => {
  const processes = await started(t, await world(t), 2);
  const count = await passed(processes, [sampleBudget(DOLLAR)], 10n * CENT, CENT);
  assert.ok(count >= 90 && count <= 100, `${count} passed`);
});

test('idle leases of another process are recalled before a refusal', async (t) => {
  const [a, b] = await started(t, await world(t), 2);
  const budgets = [sampleBudget(DOLLAR)];
  assert.equal(await request(a!.spend, budgets, CENT, CENT), true);
  // The first process leases an eighth of the budget beyond its need; the second gets all but the cent spent.
  assert.equal(await request(b!.spend, budgets, 99n * CENT, CENT), true);
  const refused = (await a!.spend.reserve(budgets, { creditNano: 99n * CENT, byokNano: 0n }, NOON)) as Refusal;
  assert.equal(refused.refused, true);
});

test('a limit lowered below the spend refuses at once, even within an existing lease', async (t) => {
  const [a, b] = await started(t, await world(t), 2);
  assert.equal(await request(a!.spend, [sampleBudget(DOLLAR)], 20n * CENT, 20n * CENT), true);
  assert.equal(await request(b!.spend, [sampleBudget(DOLLAR)], CENT, CENT), true);
  await a!.spend.flush();
  await b!.spend.flush();
  const lowered = [sampleBudget(15n * CENT)];
  for (const { spend } of [a!, b!]) {
    const refusal = await spend.reserve(lowered, { creditNano: 1n, byokNano: 0n }, NOON);
    assert.ok(refusal.refused);
    assert.equal(refusal.leftNano, 0n);
  }
});

test('a request with an older version of a budget is held to the newer one and does not loosen it', async (t) => {
  const [a] = await started(t, await world(t), 1);
  const older = sampleBudget(DOLLAR, { version: 1 });
  const newer = sampleBudget(2n * CENT, { version: 2 });
  assert.equal(await request(a!.spend, [older], CENT, CENT), true);
  assert.equal(await request(a!.spend, [newer], CENT, CENT), true);
  const late = await a!.spend.reserve([older], { creditNano: CENT, byokNano: 0n }, NOON);
  assert.ok(late.refused);
  assert.equal(late.budget, newer);
  assert.ok((await a!.spend.reserve([newer], { creditNano: 1n, byokNano: 0n }, NOON)).refused);
  assert.equal(await request(a!.spend, [sampleBudget(DOLLAR, { version: 3 })], CENT, CENT), true);
});

test('a free request passes an exhausted budget, and a paid fallback of it does not', async (t) => {
  const [a] = await started(t, await world(t), 1);
  const budgets = [sampleBudget(CENT)];
  assert.equal(await request(a!.spend, budgets, CENT, CENT), true);
  const free = await a!.spend.reserve(budgets, { creditNano: 0n, byokNano: 0n }, NOON);
  assert.ok(!free.refused);
  const extended = await free.extend({ creditNano: 1n, byokNano: 0n });
  assert.ok(extended !== true && extended.refused);
  free.release();
});

test('several budgets are held together or not at all', async (t) => {
  const [a] = await started(t, await world(t), 1);
  const wide = sampleBudget(DOLLAR, { scope: 'workspace', scopeId: 'w' });
  const narrow = sampleBudget(CENT);
  assert.ok((await a!.spend.reserve([wide, narrow], { creditNano: 2n * CENT, byokNano: 0n }, NOON)).refused);
  assert.equal(await request(a!.spend, [wide], DOLLAR, CENT), true);
});

test('a request that waits for its key budget does not block the workspace budget for others', async (t) => {
  const [a] = await started(t, await world(t, { leases: { patienceMs: 60_000, waitMs: 60_000 } }), 1);
  const workspace = sampleBudget(10n * DOLLAR, { scope: 'workspace', scopeId: 'w' });
  const key = sampleBudget(DOLLAR);
  const reserve = (budgets: Budget[], creditNano: bigint) =>
    a!.spend.reserve(budgets, { creditNano, byokNano: 0n }, NOON);
  const running = await reserve([key, workspace], 60n * CENT);
  assert.ok(!running.refused);
  // The workspace lease covers the first of them, but not the second.
  const waiting = reserve([key, workspace], 50n * CENT);
  const other = await reserve([workspace], 5n * DOLLAR);
  assert.ok(!other.refused);
  running.release();
  assert.ok(!(await waiting).refused);
});

test('BYOK spend counts only in budgets that include it', async (t) => {
  const [a] = await started(t, await world(t), 1);
  const own = { creditNano: 0n, byokNano: 2n * CENT };
  assert.ok(!(await a!.spend.reserve([sampleBudget(CENT)], own, NOON)).refused);
  assert.ok((await a!.spend.reserve([sampleBudget(CENT, { scopeId: 'k', includeByok: true })], own, NOON)).refused);
});

test('spend at the last millisecond of a day counts to that day, and at midnight to the next', async (t) => {
  const [a] = await started(t, await world(t), 1);
  const midnight = Date.UTC(2026, 2, 19);
  const budgets = [sampleBudget(CENT)];
  const reserve = (at: number) => a!.spend.reserve(budgets, { creditNano: CENT, byokNano: 0n }, at);
  assert.ok(!(await reserve(midnight - 1)).refused);
  assert.ok(!(await reserve(midnight)).refused);
  assert.ok((await reserve(midnight - 1)).refused);
});

test('with the database down requests continue within the lease, and get 503, never 402, beyond it', async (t) => {
  const [a] = await started(t, await world(t), 1);
  const budgets = [sampleBudget(DOLLAR)];
  assert.equal(await request(a!.spend, budgets, CENT, CENT), true);
  a!.fault('down');
  let served = 0;
  const expectations = { status: 503 };
  await assert.rejects(async () => {
    for (;;) if (await request(a!.spend, budgets, CENT, CENT)) served += 1;
  }, expectations);
  assert.ok(served >= 10, `${served} served`);
  a!.fault(undefined);
  await a!.spend.flush();
  assert.equal(await request(a!.spend, budgets, CENT, CENT), true);
  await a!.spend.flush();
  const [state] = await a!.spend.stateOf(budgets);
  assert.equal(state?.spentNano, BigInt(served + 2) * CENT);
});

test('a lease of a killed process counts as spent until its journal is replayed, and the bounds of open requests until they are released', async (t) => {
  const place = await world(t);
  const [b] = await started(t, place, 1);
  const a = await SpendProcess.start(place);
  const budgets = [sampleBudget(DOLLAR)];
  const held = (await a.spend.reserve(budgets, { creditNano: 60n * CENT, byokNano: 0n }, NOON)) as Reservation;
  const accepted = sampleAccepted(generationId(NOON));
  await begin(a.spend, accepted, held, sampleAttempt({ promptNano: 3n * CENT }));
  await a.kill();
  const ask = () => b!.spend.reserve(budgets, { creditNano: 97n * CENT, byokNano: 0n }, NOON);
  assert.ok((await ask()).refused);
  const { database, dataDir } = place;
  const [{ process_id: dead }] = (await database.query<{ process_id: string }>(
    'SELECT process_id FROM spend_leases WHERE amount_nano >= 600000000',
  )) as [{ process_id: string }];
  const counts = await replayJournal(join(dataDir, 'journal', dead), dead, database, silentLog);
  assert.deepEqual(counts, { settled: 0, estimated: 0, unconfirmed: 1, damaged: 0 });
  const row = await b!.spend.findGeneration(accepted.id, { organizationId: 'org-1' });
  assert.equal(row?.unconfirmed, true);
  assert.equal(row?.costNano, 3n * CENT);
  // 60 cents stay held: 3 are spent, and 57 may have been spent at the upstream.
  assert.ok((await ask()).refused);
  const [state] = await b!.spend.stateOf(budgets);
  assert.deepEqual([state!.spentNano, state!.unreturnedNano], [3n * CENT, 57n * CENT]);
  const other = (await b!.spend.reserve(budgets, { creditNano: 40n * CENT, byokNano: 0n }, NOON)) as Reservation;
  assert.ok(!other.refused);
  other.release();
  await release(place, dead);
  assert.ok(!(await ask()).refused);
});

test('a process that dies with its disk loses a lease of a few requests, and a release returns it', async (t) => {
  let now = NOON;
  const place = { ...(await world(t)), now: () => now };
  const [last] = await started(t, place, 1);
  const budgets = [sampleBudget(10n * DOLLAR)];
  const lost: string[] = [];
  for (let n = 0; n < 8; n++) {
    const process = await SpendProcess.start(place);
    for (let served = 0; served < 10; served++) assert.ok(await request(process.spend, budgets, CENT, CENT));
    await process.spend.flush();
    await process.kill();
    rmSync(join(place.dataDir, 'journal', process.processId), { recursive: true });
    lost.push(process.processId);
  }
  const state = async () => (await last!.spend.stateOf(budgets))[0]!;
  const { spentNano, leasedNano } = await state();
  assert.equal(spentNano, 80n * CENT);
  assert.ok(leasedNano <= 40n * CENT, `${leasedNano} are lost`);
  await assert.rejects(release(place, lost[0]!), { status: 409 });
  now += 91_000;
  assert.equal((await state()).unreturnedNano, leasedNano);
  const gone = (await listProcesses(place.database, now)).filter(({ state }) => state === 'gone');
  assert.deepEqual(gone.map(({ id }) => id).sort(), lost.filter((id) => gone.some((each) => each.id === id)).sort());
  for (const { id } of gone) await release(place, id);
  assert.deepEqual(await state().then(({ leasedNano: leased, unreturnedNano }) => [leased, unreturnedNano]), [0n, 0n]);
  await assert.rejects(release(place, lost[0]!), { status: 404 });
  const entries = await place.database.query<{ id: string; before: { holds: object[] } }>(
    `SELECT resource_id AS id, before FROM audit_entries WHERE action = 'process.released'`,
  );
  assert.deepEqual(entries.map(({ id }) => id).sort(), gone.map(({ id }) => id).sort());
  assert.ok(entries.every(({ before }) => before.holds.length === 1));
});

test('a released process that returns with its journal has its rows entered once, with an audit entry', async (t) => {
  const place = await world(t);
  const [b] = await started(t, place, 1);
  const a = await SpendProcess.start(place);
  const budgets = [sampleBudget(DOLLAR)];
  a.fault('down');
  a.fault(undefined);
  assert.ok(await request(a.spend, budgets, 30n * CENT, 20n * CENT));
  a.fault('down');
  const open = (await a.spend.reserve(budgets, { creditNano: CENT, byokNano: 0n }, NOON)) as Reservation;
  await begin(a.spend, sampleAccepted(generationId(NOON)), open, sampleAttempt({ promptNano: 0n }));
  await a.kill();
  await release(place, a.processId, true);
  assert.ok(await request(b!.spend, budgets, DOLLAR, DOLLAR), 'what was released can be spent');
  await b!.spend.flush();
  const directory = join(place.dataDir, 'journal', a.processId);
  const counts = await replayJournal(directory, a.processId, place.database, silentLog);
  assert.deepEqual([counts.settled, counts.unconfirmed], [1, 1]);
  const [state] = await b!.spend.stateOf(budgets);
  assert.deepEqual([state!.spentNano, state!.leasedNano], [120n * CENT, 0n]);
  const entries = await place.database.query<{ id: string }>(
    `SELECT resource_id AS id FROM audit_entries WHERE action = 'process.returned'`,
  );
  assert.deepEqual(entries, [{ id: a.processId }]);
});

test('a request that waits for a budget continues when a lost process is released', async (t) => {
  const place = await world(t, { leases: { patienceMs: 60_000, waitMs: 60_000 } });
  const [b] = await started(t, place, 1);
  const a = await SpendProcess.start(place);
  const budgets = [sampleBudget(DOLLAR)];
  assert.ok(!(await a.spend.reserve(budgets, { creditNano: DOLLAR, byokNano: 0n }, NOON)).refused);
  await a.kill();
  const waiting = b!.spend.reserve(budgets, { creditNano: DOLLAR, byokNano: 0n }, NOON);
  await release(place, a.processId, true);
  assert.ok(!(await waiting).refused);
});
