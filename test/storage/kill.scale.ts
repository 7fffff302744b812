/**
 * The kill loop: `node test/storage/kill.scale.ts [rounds]`. For each way of dying, a process writes rows, is killed at a
 * random moment, and the next start must find every acknowledged row. Prints the counts.
 */

import assert from 'node:assert/strict';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock as clock } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { processesIn } from '../../src/storage/embedded/processes.ts';
import { socketFolderOf, startEmbedded } from '../../src/storage/embedded.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { dataFolder } from '../../src/testing/database/database.ts';
import {
  descendantsOf,
  isAlive,
  type StartedProcess,
  sessionOf,
  startProcess,
} from '../../src/testing/process/process.ts';

const PROGRAM = path.join(import.meta.dirname, 'storage-process.ts');

const ROUNDS = Number(process.argv[2] ?? 20);
const DEADLINE_MS = 60_000;

/** Which processes are killed, in this order. */
const WAYS: Record<string, (writer: number, server: number) => number[]> = {
  'the process': (writer) => [writer],
  'process, guard, server and all its children': (writer, server) => [
    writer,
    ...sessionOf(server),
    server,
    ...descendantsOf(server),
  ],
  'process, guard and server, its children live on': (writer, server) => [writer, ...sessionOf(server), server],
  'process and guard, the server lives on': (writer, server) => [...sessionOf(server), writer],
  'server and process, the guard lives on': (writer, server) => [server, writer],
  'a backend, then the process': (writer, server) => [descendantsOf(server).at(-1) ?? server, writer],
};

for (const [name, victims] of Object.entries(WAYS)) {
  test(`killed: ${name}`, async (t) => {
    const folder = await dataFolder(t);
    const starts: number[] = [];
    let rows = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const writer = startProcess(t, PROGRAM, [folder, 'write']);
      const enough = 1 + Math.floor(Math.random() * 200);
      await until(() => writer.printed.length > enough || writer.ended, 'it writes', DEADLINE_MS);
      assert.ok(!writer.ended, JSON.stringify(writer.printed) + writer.errors());
      kill(victims(writer.pid, serverOf(writer)));
      await until(() => writer.ended, 'the process has ended', DEADLINE_MS);
      rows = await verify(folder, writer, starts);
    }
    report(t, rows, starts);
  });
}

test('killed: the process, at any moment of its start', async (t) => {
  const folder = await dataFolder(t);
  const starts: number[] = [];
  let rows = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const writer = startProcess(t, PROGRAM, [folder, 'write']);
    const at = clock.monotonic() + (600 * (round + Math.random())) / ROUNDS;
    await until(() => clock.monotonic() >= at, 'the moment has come', DEADLINE_MS);
    kill([writer.pid]);
    await until(() => writer.ended, 'the process has ended', DEADLINE_MS);
    rows = await verify(folder, writer, starts);
  }
  report(t, rows, starts);
});

/** Starts, compares and stops; yields the number of rows. */
async function verify(folder: string, writer: StartedProcess, starts: number[]): Promise<number> {
  const began = clock.monotonic();
  const server = await startEmbedded({ dataFolder: folder, clock, log });
  const database = await openDatabase({ target: server, clock, log });
  starts.push(clock.monotonic() - began);
  await database.query('create table if not exists written (number bigint primary key)');
  const [row] = await database.query<{ count: bigint; last: bigint | null }>(
    'select count(*) as count, max(number) as last from written',
  );
  const acknowledged = writer.printed.at(-1);
  const last = row?.last ?? 0n;
  if (typeof acknowledged === 'number') assert.ok(last >= BigInt(acknowledged), `${last} of ${acknowledged} rows`);
  assert.equal(row?.count, last);
  await database.close();
  await server.stop();
  assert.deepEqual(processesIn(socketFolderOf(folder)), []);
  assert.ok(!isAlive(serverOf(writer)), 'no server is left');
  return Number(last);
}

function report(t: TestContext, rows: number, starts: number[]): void {
  const sorted = starts.toSorted((a, b) => a - b).map(Math.round);
  t.diagnostic(
    `${ROUNDS} rounds, ${rows} rows, 0 lost, 0 orphans; next start ms p50 ${sorted[sorted.length >> 1]} max ${sorted.at(-1)}`,
  );
}

function serverOf(started: StartedProcess): number {
  return (started.printed[0] as { serving?: number } | undefined)?.serving ?? 0;
}

function kill(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has just ended on its own.
    }
  }
}
