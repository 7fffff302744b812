/**
 * Another process of an installation that change tests kill and freeze: subscribes to the topic `keys` and prints each
 * change as a JSON line, after `"listening"`.
 */
import { writeSync } from 'node:fs';
import { systemClock as clock } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { openDatabase } from '../../src/storage/database.ts';

const target = JSON.parse(process.argv[2] ?? '{}');
const database = await openDatabase({ target, clock, log });
const changes = await openChanges({ target, database, clock, log });
changes.subscribe('keys', print);
print('listening');
process.on('SIGTERM', async () => {
  await changes.close();
  await database.close();
});

function print(value: unknown): void {
  writeSync(1, `${JSON.stringify(value)}\n`);
}
