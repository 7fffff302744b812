import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../base/clock.ts';
import { lockDataFolder, ownerLives, renewOwner, thisProcess, writeOwner } from './owner.ts';

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'owner-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("a second gateway on a data folder is refused with the first one's process id, until that ends", async (t) => {
  const dataDir = folder(t);
  const lock = await lockDataFolder(dataDir, systemClock);
  await assert.rejects(
    lockDataFolder(dataDir, systemClock),
    new RegExp(`process ${process.pid}\\) runs on the data folder`),
  );
  lock.release();
  (await lockDataFolder(dataDir, systemClock)).release();
  assert.deepEqual(readdirSync(dataDir), []);
});

test('the lock and the journal of a killed process are free at once', async (t) => {
  const dataDir = folder(t);
  const script = `import { lockDataFolder } from ${JSON.stringify(new URL('./owner.ts', import.meta.url).href)};
    import { systemClock } from ${JSON.stringify(new URL('../base/clock.ts', import.meta.url).href)};
    await lockDataFolder(process.argv[1], systemClock);
    process.stdout.write('locked');
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script, dataDir]);
  await once(child.stdout, 'data');
  const path = join(dataDir, 'gateway.lock');
  assert.equal(ownerLives(path, systemClock), true);
  await assert.rejects(lockDataFolder(dataDir, systemClock), /another gateway/);
  child.kill('SIGKILL');
  await once(child, 'exit');
  assert.equal(ownerLives(path, systemClock), false);
  (await lockDataFolder(dataDir, systemClock)).release();
});

test('a reused process id does not count as alive', (t) => {
  const path = join(folder(t), 'owner.json');
  writeFileSync(path, JSON.stringify({ ...thisProcess(), startTicks: '1' }));
  assert.equal(ownerLives(path, systemClock), false);
});

test('an owner of another machine lives as long as it renews its file', (t) => {
  const path = join(folder(t), 'owner.json');
  writeFileSync(path, JSON.stringify({ ...thisProcess(), pidNamespace: 'elsewhere' }));
  assert.equal(ownerLives(path, systemClock), true);
  const silent = systemClock.now() / 1000 - 20;
  utimesSync(path, silent, silent);
  assert.equal(ownerLives(path, systemClock), false);
});

test('an owner file that is torn or gone has no owner', (t) => {
  const path = join(folder(t), 'owner.json');
  assert.equal(ownerLives(path, systemClock), false);
  writeOwner(path);
  const whole = readFileSync(path);
  writeFileSync(path, whole.subarray(0, whole.length >> 1));
  assert.equal(ownerLives(path, systemClock), false);
});

test('an owner whose folder was removed has nothing to renew', (t) => {
  const path = join(folder(t), 'gone', 'owner');
  renewOwner(path, systemClock);
  assert.equal(ownerLives(path, systemClock), false);
});
