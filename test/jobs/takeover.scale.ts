/** `node --test test/jobs/takeover.scale.ts`: jobs of a process that is killed, in real time. */

import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { systemClock as clock } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { createJobs, type JobKind, type Jobs } from '../../src/jobs/index.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { startProcess } from '../../src/testing/process/process.ts';

const JOBS = 10;
const PROMISED_MS = 15_000;

test('another process takes over the jobs of a killed one within 15 s, each of them once', async (t) => {
  const target = await emptyDatabase(t, [], true);
  const victim = startProcess(t, path.join(import.meta.dirname, 'jobs-process.ts'), [JSON.stringify(target)]);
  await until(() => victim.printed.includes('ready'), 'the process runs jobs', PROMISED_MS);
  const database = await openDatabase({ target, clock, log });
  const changes = await openChanges({ target, database, clock, log });
  let heir: Jobs | undefined;
  t.after(async () => {
    await heir?.close();
    await changes.close();
    await database.close();
  });
  const taken: number[] = [];
  const attempts = new Set<number>();
  const kind: JobKind<{ number: number }> = {
    name: 'test.endless',
    runs: 'many',
    concurrency: JOBS,
    pollSeconds: 1,
    async run({ data, attempt }) {
      attempts.add(attempt);
      taken.push(data.number);
    },
  };
  const sender = createJobs({ database, changes, clock, log });
  for (let number = 0; number < JOBS; number += 1) await sender.send(kind, { number });
  await until(() => victim.printed.length === JOBS + 1, 'it runs all jobs', PROMISED_MS);
  await sender.close();
  heir = createJobs({ database, changes, clock, log });
  heir.register(kind);
  heir.start();
  const killedAt = clock.monotonic();
  process.kill(victim.pid, 'SIGKILL');
  await until(() => taken.length === JOBS, 'every job is taken over', PROMISED_MS);
  t.diagnostic(`taken over after ${Math.round(clock.monotonic() - killedAt)} ms`);
  assert.deepEqual([...attempts], [2]);
  assert.deepEqual(
    taken.toSorted((a, b) => a - b),
    Array.from({ length: JOBS }, (_, number) => number),
  );
});
