/**
 * A process that rotates keys and kills itself at the `killAt`th step with an effect: a file change, a database write before
 * it is sent, a commit also right after it. Prints how many steps there were when it survives.
 */
import fs from 'node:fs';
import { flushCompileCache, syncBuiltinESMExports } from 'node:module';
import pg from 'pg';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { rotateInstallationKey, Sealing, sweep } from '../../src/sealing/index.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { THINGS } from './things.ts';

const { target, file, killAt, change } = JSON.parse(process.argv[2]!);
let steps = 0;

function step(): void {
  steps += 1;
  if (steps === killAt) process.kill(process.pid, 'SIGKILL');
}

// Otherwise it is written at the end, which a killed process does not reach.
flushCompileCache();
const changing = fs as unknown as Record<string, (...args: unknown[]) => unknown>;
for (const name of ['writeSync', 'linkSync', 'renameSync', 'rmSync']) {
  const real = changing[name]!;
  changing[name] = (...args) => {
    step();
    return real(...args);
  };
}
syncBuiltinESMExports();
const client = pg.Client.prototype as unknown as { query(...args: unknown[]): unknown };
const query = client.query;
client.query = function (this: unknown, ...args: unknown[]) {
  const [first] = args as [string | { text?: string }];
  const text = (typeof first === 'string' ? first : (first.text ?? '')).trimStart();
  if (/^(insert|update|delete|commit)/i.test(text)) step();
  const pending = query.apply(this, args);
  if (/^commit/i.test(text)) step();
  return pending;
};

const settings = { current: { kind: 'file' as const, path: file as string }, previous: null };
const database = await openDatabase({ target, clock: systemClock, log: silentLog, poolSize: 2 });
if (change === 'key') await rotateInstallationKey({ database, settings });
else {
  const sealing = new Sealing({ database, clock: systemClock, settings });
  await database.transaction((tx) => sealing.addKey(tx, THINGS.purpose));
  sealing.forget();
  await sweep({ database, sealing, rows: [THINGS], log: silentLog });
}
await database.close();
process.stdout.write(String(steps));
