import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as nodeFiles from 'node:fs';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { after, type TestContext, test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { uuidv7 } from '../../src/base/ids.ts';
import { silentLog } from '../../src/base/log.ts';
import { type Generation, type Reservation, spendMigrations } from '../../src/spend/index.ts';
import { Journal } from '../../src/spend/journal.ts';
import { encodeAttempt, encodeIntent, encodeProgress, encodeSettled } from '../../src/spend/record.ts';
import { replayDead, replayJournal } from '../../src/spend/replay.ts';
import { decodeRow, encodeRow } from '../../src/spend/row.ts';
import { generationById } from '../../src/spend/store.ts';
import type { Database } from '../../src/storage/database.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { faulty, SpendProcess } from '../../src/testing/database/spend-process.ts';
import { samples } from '../../src/testing/laws/samples.ts';
import {
  begin,
  enter,
  NOON,
  sampleAccepted,
  sampleAttempt,
  sampleGeneration,
  settle,
} from '../../src/testing/laws/spend-samples.ts';

const folders: string[] = [];
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), 'replay-'));
  folders.push(path);
  return path;
}

async function freshLedger(t: TestContext): Promise<Database> {
  return (await freshDatabase(t, { migrations: spendMigrations })).database;
}

async function rowOf(database: Database, id: string): Promise<Generation> {
  return decodeRow((await generationById(database, id))!);
}

interface Totals {
  rows: number;
  cost: string;
  spent: string;
}

async function totals(database: Database): Promise<Totals> {
  const [found] = await database.query<Totals>(
    `SELECT (SELECT count(*)::int FROM generations) AS rows,
       (SELECT coalesce(sum(cost_nano), 0)::text FROM generations) AS cost,
       (SELECT coalesce(sum(spent_nano), 0)::text FROM spend_windows WHERE id LIKE 'account/%/lifetime/0') AS spent`,
  );
  return found!;
}

/** Journal of a dead process, with a request in every state. */
async function writeJournal(directory: string): Promise<void> {
  mkdirSync(directory, { recursive: true });
  const journal = new Journal({ directory, clock: systemClock, ballastBytes: 1 });
  const intent = (id: string) => encodeIntent({ accepted: sampleAccepted(id), attempt: sampleAttempt(), held: [] });
  for (const id of ['settled', 'silent', 'streaming', 'reported', 'second']) journal.append('I', intent(id));
  const row = sampleGeneration(sampleAccepted('settled'));
  journal.append('S', encodeSettled({ id: 'settled', row: encodeRow(row), taken: [] }));
  journal.append('P', encodeProgress('streaming', { outputBytes: 41, usage: null, charge: null }));
  journal.append('P', encodeProgress('streaming', { outputBytes: 81, usage: null, charge: null }));
  const usage = { input: 90, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 5, reasoning: 0 };
  const charge = { creditNano: 700n, byokNano: 0n };
  journal.append('P', encodeProgress('reported', { outputBytes: 40, usage, charge }));
  journal.append('P', encodeProgress('second', { outputBytes: 400, usage: null, charge: null }));
  const retry = sampleAttempt({ model: 'other/small', promptNano: 60n, earlier: { creditNano: 1_000n, byokNano: 0n } });
  journal.append('A', encodeAttempt('second', retry));
  await journal.close(false);
}

test('a replay enters settled rows, streams as far as seen, and unanswered requests at their prompt cost', async (t) => {
  const database = await freshLedger(t);
  const directory = join(folder(), 'dead');
  await writeJournal(directory);
  const counts = await replayJournal(directory, 'dead', database, silentLog);
  assert.deepEqual(counts, { settled: 1, estimated: 2, unconfirmed: 2, damaged: 0 });
  assert.deepEqual(await rowOf(database, 'settled'), sampleGeneration(sampleAccepted('settled')));
  const silent = await rowOf(database, 'silent');
  assert.deepEqual([silent.costNano, silent.unconfirmed, silent.estimated], [500n, true, false]);
  assert.equal(silent.usage?.input, 100);
  const streaming = await rowOf(database, 'streaming');
  // 81 bytes are 21 tokens at 20 nano-dollars each.
  assert.deepEqual([streaming.costNano, streaming.unconfirmed, streaming.estimated], [500n + 420n, false, true]);
  assert.equal(streaming.usage?.output, 21);
  const reported = await rowOf(database, 'reported');
  // 40 bytes are 10 tokens, 5 of which the upstream had reported.
  assert.deepEqual([reported.costNano, reported.usage?.input, reported.usage?.output], [700n + 100n, 90, 10]);
  const second = await rowOf(database, 'second');
  assert.deepEqual([second.costNano, second.model, second.unconfirmed], [1_060n, 'other/small', true]);
});

test('what a dead process spent over a BYOK credential is kept apart from credits, attempt by attempt', async (t) => {
  const database = await freshLedger(t);
  const directory = join(folder(), 'dead');
  mkdirSync(directory, { recursive: true });
  const journal = new Journal({ directory, clock: systemClock, ballastBytes: 1 });
  const own = sampleAttempt({ isByok: true });
  journal.append('I', encodeIntent({ accepted: sampleAccepted('own'), attempt: own, held: [] }));
  journal.append('P', encodeProgress('own', { outputBytes: 81, usage: null, charge: null }));
  journal.append('I', encodeIntent({ accepted: sampleAccepted('mixed'), attempt: own, held: [] }));
  const shared = sampleAttempt({ promptNano: 60n, earlier: { creditNano: 0n, byokNano: 500n } });
  journal.append('A', encodeAttempt('mixed', shared));
  await journal.close(false);
  await replayJournal(directory, 'dead', database, silentLog);
  const streamed = await rowOf(database, 'own');
  assert.deepEqual(
    [streamed.isByok, streamed.costNano, streamed.byokNano, streamed.upstreamCostNano],
    [true, 0n, 920n, 920n],
  );
  const mixed = await rowOf(database, 'mixed');
  assert.deepEqual([mixed.isByok, mixed.costNano, mixed.byokNano], [false, 60n, 500n]);
});

test('the bound of open requests beyond their rows stays held, including growth of the last attempt', async (t) => {
  const database = await freshLedger(t);
  const window = 'key/key-1/lifetime/0';
  const origin = join(folder(), 'dead');
  mkdirSync(origin, { recursive: true });
  const journal = new Journal({ directory: origin, clock: systemClock, ballastBytes: 1 });
  const held = [{ windowId: window, nano: 10_000n, includeByok: false }];
  const intent = (id: string) => encodeIntent({ accepted: sampleAccepted(id), attempt: sampleAttempt(), held });
  for (const id of ['silent', 'streaming', 'grown', 'older', 'settled']) journal.append('I', intent(id));
  journal.append('P', encodeProgress('streaming', { outputBytes: 81, usage: null, charge: null }));
  const again = sampleAttempt({ earlier: { creditNano: 10_000n, byokNano: 0n } });
  journal.append('A', encodeAttempt('grown', again, { creditNano: 25_000n, byokNano: 7n }));
  // The format of earlier versions.
  journal.append('A', encodeAttempt('older', sampleAttempt({ promptNano: 600n })));
  const row = sampleGeneration(sampleAccepted('settled'));
  const taken = [{ windowId: window, nano: 1_500n, forcedNano: 0n }];
  journal.append('S', encodeSettled({ id: 'settled', row: encodeRow(row), taken }));
  await journal.close(false);
  await database.query(`INSERT INTO spend_windows VALUES ($1, 0, 0, 100000)`, [window]);
  await database.query(`INSERT INTO spend_leases VALUES ('dead', $1, 100000)`, [window]);
  const rest = 10_000 - 500 + (10_000 - 920) + (25_000 - 10_500) + (10_000 - 600);
  for (let transactions = 0; transactions < 5; transactions++) {
    const directory = join(folder(), 'dead');
    cpSync(origin, directory, { recursive: true });
    await replayJournal(directory, 'dead', faulty(database, transactions), silentLog).catch(() => {});
  }
  const [state] = await database.query<{ spent: string; leased: string; held: string; open: number }>(
    `SELECT spent_nano::text AS spent, leased_nano::text AS leased, amount_nano::text AS held, open_requests AS open
     FROM spend_windows JOIN spend_leases ON window_id = spend_windows.id
     JOIN spend_processes process ON process.id = process_id WHERE window_id = $1`,
    [window],
  );
  const spent = 500 + 920 + 10_500 + 600 + 1_500;
  assert.deepEqual(state, { spent: String(spent), leased: String(rest), held: String(rest), open: 4 });
});

test('a replay that is interrupted anywhere and then repeated enters every row once', async (t) => {
  const database = await freshLedger(t);
  const origin = join(folder(), 'dead');
  await writeJournal(origin);
  for (let transactions = 0; transactions < 4; transactions++) {
    const directory = join(folder(), 'dead');
    cpSync(origin, directory, { recursive: true });
    const interrupted = replayJournal(directory, 'dead', faulty(database, transactions), silentLog);
    if (transactions < 3) await assert.rejects(interrupted, { status: 503 });
    else await interrupted;
  }
  await replayJournal(origin, 'dead', database, silentLog);
  const { rows, cost, spent } = await totals(database);
  assert.equal(rows, 5);
  assert.equal(cost, String(1_500 + 500 + 920 + 800 + 1_060));
  assert.equal(spent, cost);
});

test('a journal torn at any byte is replayed safely, and never enters more than the complete one', async (t) => {
  const database = await freshLedger(t);
  const origin = join(folder(), 'dead');
  await writeJournal(origin);
  const whole = readFileSync(join(origin, '00000001.log'));
  const lines = whole.toString('latin1').split('\n').slice(0, -1);
  const borders = lines.map((_, index) => lines.slice(0, index).join('\n').length + (index > 0 ? 1 : 0));
  const cuts = new Set(
    borders.flatMap((border) => [border - 1, border, border + 1, border + 9]).filter((cut) => cut > 0),
  );
  for (const cut of [...cuts].sort((a, b) => a - b)) {
    await database.query('TRUNCATE generations, spend_windows');
    const directory = join(folder(), 'dead');
    mkdirSync(directory);
    writeFileSync(join(directory, '00000001.log'), whole.subarray(0, cut));
    await replayJournal(directory, 'dead', database, silentLog);
    const begun = lines.filter((line, index) => line[0] === 'I' && borders[index]! + line.length < cut).length;
    const { rows, cost, spent } = await totals(database);
    assert.equal(rows, begun, `cut at ${cut}`);
    assert.equal(spent, cost);
  }
});

test('the next start replays the journal of a killed process, and ignores that of a live one', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations: spendMigrations });
  const dataDir = folder();
  const alive = await SpendProcess.start({ database, target, dataDir, now: () => NOON });
  const dead = join(dataDir, 'journal', uuidv7(NOON));
  mkdirSync(join(dataDir, 'journal', 'lost+found'));
  await writeJournal(dead);
  writeFileSync(join(dead, 'owner.json'), JSON.stringify({ pid: 2 ** 22 + 1, startTicks: '1', place: null }));
  await replayDead(
    join(dataDir, 'journal'),
    database,
    { ...systemClock, now: () => systemClock.now() + 60_000 },
    silentLog,
  );
  assert.deepEqual(readdirSync(join(dataDir, 'journal')).sort(), [alive.processId, 'lost+found']);
  assert.equal((await totals(database)).rows, 5);
  await alive.close();
});

test('rows wait in the journal while the database is down, with bounded memory, and all are entered later', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations: spendMigrations });
  const options = { ledger: { memoryRows: 20, flushMs: 10 }, journal: { segmentBytes: 20_000, ballastBytes: 1 } };
  const process = await SpendProcess.start({ database, target, dataDir: folder(), now: () => NOON, options });
  const { spend } = process;
  const enterMany = async (count: number) => {
    for (let n = 0; n < count; n++) {
      const accepted = sampleAccepted(`gen-${entered++}`);
      const reservation = spend.reserve([], { creditNano: 0n, byokNano: 0n }, NOON) as Reservation;
      await enter(spend, accepted, reservation);
    }
  };
  let entered = 0;
  process.fault('down');
  await enterMany(200);
  await spend.flush();
  await enterMany(100);
  process.fault(undefined);
  await spend.flush();
  await enterMany(100);
  await spend.flush();
  const { rows, cost, spent } = await totals(database);
  assert.equal(rows, 400);
  assert.equal(spent, cost);
  await process.close();
});

test('a row that could not be journaled at first is entered once, and running requests keep their intents', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations: spendMigrations });
  const dataDir = folder();
  let full = false;
  const files = {
    ...nodeFiles,
    writeSync(descriptor: number, bytes: Uint8Array, offset: number, length: number, position: number): number {
      if (full) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' });
      return nodeFiles.writeSync(descriptor, bytes, offset, length, position);
    },
  };
  const options = { ledger: { memoryRows: 1 }, journal: { files, ballastBytes: 1 } };
  const process = await SpendProcess.start({ database, target, dataDir, now: () => NOON, options });
  const { spend } = process;
  const free = () => spend.reserve([], { creditNano: 0n, byokNano: 0n }, NOON) as Reservation;
  const accepted = ['gen-memory', 'gen-spilled', 'gen-late', 'gen-running'].map((id) => sampleAccepted(id));
  const open = await Promise.all(accepted.map((one) => begin(spend, one, free())));
  process.fault('down');
  await settle(open[0]!, sampleGeneration(accepted[0]!));
  await settle(open[1]!, sampleGeneration(accepted[1]!));
  full = true;
  await settle(open[2]!, sampleGeneration(accepted[2]!));
  full = false;
  await spend.flush();
  process.fault(undefined);
  await spend.flush();
  assert.equal((await totals(database)).rows, 3);
  // After a failure the journal starts a new segment and deletes unused ones.
  for (let again: unknown; again === undefined; ) {
    again = await begin(spend, sampleAccepted('gen-again'), free()).catch(() => undefined);
  }
  await process.kill();
  const directory = join(dataDir, 'journal', process.processId);
  await replayJournal(directory, process.processId, database, silentLog);
  assert.equal((await totals(database)).rows, 5);
});

test('a full journal refuses new requests until the database is back', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations: spendMigrations });
  const options = { ledger: { journalBytes: 50_000 }, journal: { segmentBytes: 10_000, ballastBytes: 1 } };
  const process = await SpendProcess.start({ database, target, dataDir: folder(), now: () => NOON, options });
  const { spend } = process;
  let entered = 0;
  const enterOne = async () => {
    const accepted = sampleAccepted(`gen-${entered}`);
    const reservation = spend.reserve([], { creditNano: 0n, byokNano: 0n }, NOON) as Reservation;
    await enter(spend, accepted, reservation);
    entered += 1;
  };
  process.fault('down');
  const endless = async () => {
    for (;;) await enterOne();
  };
  await assert.rejects(endless, { status: 503 });
  process.fault(undefined);
  await spend.flush();
  await enterOne();
  await spend.flush();
  assert.equal((await totals(database)).rows, entered);
  await process.close();
});

test('closing while the database is down keeps the journal, and its replay enters the waiting rows', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations: spendMigrations });
  const dataDir = folder();
  const process = await SpendProcess.start({ database, target, dataDir, now: () => NOON });
  const accepted = sampleAccepted('gen-waiting');
  const reservation = process.spend.reserve([], { creditNano: 0n, byokNano: 0n }, NOON) as Reservation;
  process.fault('down');
  await enter(process.spend, accepted, reservation);
  await process.spend.close();
  await process.kill();
  const directory = join(dataDir, 'journal', process.processId);
  const counts = await replayJournal(directory, process.processId, database, silentLog);
  assert.deepEqual(counts, { settled: 1, estimated: 0, unconfirmed: 0, damaged: 0 });
  assert.deepEqual(await rowOf(database, accepted.id), sampleGeneration(accepted));
});

test('a stream that is open when the process is killed is entered as far as seen', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations: spendMigrations });
  const dataDir = folder();
  const process = await SpendProcess.start({ database, target, dataDir, now: () => NOON });
  const accepted = sampleAccepted('gen-open');
  const reservation = process.spend.reserve([], { creditNano: 0n, byokNano: 0n }, NOON) as Reservation;
  const open = await begin(process.spend, accepted, reservation);
  const directory = join(dataDir, 'journal', process.processId);
  const segment = join(directory, '00000001.log');
  const told = () => readFileSync(segment, 'utf8').split('\nP').length - 1;
  open.seen(1);
  assert.equal(told(), 1, 'the beginning of an answer is in the journal at once');
  for (let bytes = 2; bytes <= 80; bytes++) open.seen(bytes);
  await until(() => told() === 2, 'the progress is in the journal');
  await process.kill();
  const counts = await replayJournal(directory, process.processId, database, silentLog);
  assert.deepEqual(counts, { settled: 0, estimated: 1, unconfirmed: 0, damaged: 0 });
  const row = await rowOf(database, accepted.id);
  assert.deepEqual([row.estimated, row.usage?.output, row.costNano], [true, 20, 500n + 400n]);
});

test('kill -9 during writes loses no row that was reported as settled, in any of several rounds', async (t) => {
  const database = await freshLedger(t);
  const seen = { settled: 0, estimated: 0, unconfirmed: 0 };
  const rounds = samples(18);
  for (let round = 0; round < rounds; round++) {
    const directory = join(folder(), 'dead');
    mkdirSync(directory);
    const said = await runAndKill(directory, `gen-${round}`, 20 + Math.floor((round * 180) / rounds));
    const counts = await replayJournal(directory, 'dead', database, silentLog);
    for (const kind of ['settled', 'estimated', 'unconfirmed'] as const) seen[kind] += counts[kind];
    const rows = await database.query<{ id: string; estimated: boolean; unconfirmed: boolean }>(
      'SELECT id, estimated, unconfirmed FROM generations WHERE id LIKE $1',
      [`gen-${round}-%`],
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    for (const [id, state] of said) {
      const row = byId.get(id);
      assert.ok(row, `${id} was ${state} and has no row`);
      if (state === 'settled') assert.deepEqual([row.estimated, row.unconfirmed], [false, false], id);
    }
  }
  t.diagnostic(JSON.stringify(seen));
  // Of five lines two are of settled rows, and a third of the requests stays open.
  assert.ok(seen.settled > 10 * rounds && seen.unconfirmed > rounds, JSON.stringify(seen));
  const { cost, spent } = await totals(database);
  assert.equal(spent, cost);
});

/** What the child reported for each id before it was killed after `lines` lines. */
async function runAndKill(directory: string, prefix: string, lines: number): Promise<Map<string, string>> {
  const program = new URL('./journal-writer.ts', import.meta.url).pathname;
  const child = spawn(process.execPath, [program, directory, prefix], { stdio: ['ignore', 'pipe', 'inherit'] });
  const said = new Map<string, string>();
  let count = 0;
  for await (const line of createInterface({ input: child.stdout })) {
    const [state = '', id = ''] = line.split(' ');
    said.set(id, state);
    if (++count === lines) child.kill('SIGKILL');
  }
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  return said;
}
