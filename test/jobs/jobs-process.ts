/**
 * A process that runs background jobs, for tests to kill: prints `"ready"`, then the number of each job that it begins,
 * and never finishes one.
 */
import { writeSync } from 'node:fs';
import { systemClock as clock } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { createJobs } from '../../src/jobs/index.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { openDatabase } from '../../src/storage/database.ts';

const target = JSON.parse(process.argv[2] ?? '{}');
const database = await openDatabase({ target, clock, log });
const changes = await openChanges({ target, database, clock, log });
const jobs = createJobs({ database, changes, clock, log });
jobs.register<{ number: number }>({
  name: 'test.endless',
  runs: 'many',
  concurrency: 10,
  pollSeconds: 2,
  async run({ data }) {
    writeSync(1, `${data.number}\n`);
    await new Promise(() => {});
  },
});
jobs.start();
writeSync(1, '"ready"\n');
