/**
 * A process for the storage tests to kill: starts the embedded server of a data folder, opens the database and, in mode
 * `write`, inserts rows one after another. Arguments: the folder, `serve` or `write`, PostgreSQL settings as JSON. What it prints, a JSON value a line, is what the database has reported:
 * `{"serving":<pid of the server>}`, `{"failed":<message>}`, and a number for each row that was acknowledged. SIGINT
 * makes it stop in an orderly way, with one more statement on the way out: `{"drained":true}`.
 */
import { writeSync } from 'node:fs';
import { systemClock as clock } from '../../src/base/clock.ts';
import { createLog } from '../../src/base/log.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { startEmbedded } from '../../src/storage/embedded.ts';

const [dataFolder = '', mode, settings = '{}'] = process.argv.slice(2);
const log = createLog({ stream: process.stderr });

try {
  const server = await startEmbedded({ dataFolder, clock, log, settings: JSON.parse(settings) });
  const database = await openDatabase({ target: server, clock, log });
  await database.query('create table if not exists written (number bigint primary key)');
  let stopping = false;
  process.on('SIGINT', async () => {
    stopping = true;
    await database.query('select count(*) from written');
    print({ drained: true });
    await database.close();
    await server.stop();
    process.exit(0);
  });
  print({ serving: server.pid });
  for (let number = 1; mode === 'write' && !stopping; number++) {
    await database.query('insert into written values ((select coalesce(max(number), 0) + 1 from written))');
    print(number);
  }
} catch (error) {
  print({ failed: (error as Error).message });
  process.exit(1);
}

/** Straight into the pipe, so that a line is out before the next statement can begin. */
function print(value: unknown): void {
  writeSync(1, `${JSON.stringify(value)}\n`);
}
