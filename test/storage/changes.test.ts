import assert from 'node:assert/strict';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock as clock } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { LEASE_MS, openChanges } from '../../src/storage/changes.ts';
import type { Changes } from '../../src/storage/database.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { freshDatabase, type TestDatabase } from '../../src/testing/database/database.ts';
import { type StartedProcess, startProcess } from '../../src/testing/process/process.ts';

const DEADLINE_MS = 20_000;

test('when a write has settled, every process has heard of it', async (t) => {
  const here = await freshDatabase(t);
  const first = await join(t, here);
  const second = await join(t, here);
  for (const id of ['a', 'b', 'c']) {
    await (await announce(here, first.changes, id)).settled();
    assert.equal(first.heard.at(-1), id);
    assert.equal(second.heard.at(-1), id);
  }
  assert.deepEqual(second.heard, ['a', 'b', 'c']);
});

test('a rolled-back write and other topics notify no subscriber', async (t) => {
  const here = await freshDatabase(t);
  const { changes, heard } = await join(t, here);
  const work = here.database.transaction(async (tx) => {
    await changes.announce(tx, 'keys', 'never');
    throw new Error('rolled back');
  });
  await assert.rejects(work, /rolled back/);
  await here.database.transaction((tx) => changes.announce(tx, 'prices', 'other'));
  await (await announce(here, changes, 'after')).settled();
  assert.deepEqual(heard, ['after']);
});

test('writes that settle at once each wait for their own', async (t) => {
  const here = await freshDatabase(t);
  const first = await join(t, here);
  const second = await join(t, here);
  const ids = Array.from({ length: 20 }, (_, number) => String(number));
  await Promise.all(
    ids.map(async (id) => {
      await (await announce(here, first.changes, id)).settled();
      assert.ok(second.heard.includes(id));
    }),
  );
});

test('a subscriber that throws does not keep others from being notified', async (t) => {
  const here = await freshDatabase(t);
  const { changes } = await join(t, here);
  changes.subscribe('keys', () => {
    throw new Error('broken subscriber');
  });
  const heard: (string | null)[] = [];
  changes.subscribe('keys', (id) => heard.push(id));
  await (await announce(here, changes, 'a')).settled();
  assert.deepEqual(heard, ['a']);
});

test('a write waits for a subscriber that rereads, but not for one that fails', async (t) => {
  const here = await freshDatabase(t);
  const first = await join(t, here);
  const second = await join(t, here);
  let known = 'nothing';
  second.changes.subscribe('keys', async (id) => {
    await here.database.query('select 1');
    known = String(id);
  });
  second.changes.subscribe('keys', () => Promise.reject(new Error('broken subscriber')));
  for (const id of ['a', 'b', 'c']) {
    await (await announce(here, first.changes, id)).settled();
    assert.equal(known, id);
  }
});

test('a lost connection is opened again, and what may have been missed is forgotten before a write settles', async (t) => {
  const here = await freshDatabase(t);
  const first = await join(t, here);
  const second = await join(t, here);
  await cutListeners(here);
  await (await announce(here, first.changes, 'a')).settled();
  for (const { heard } of [first, second]) {
    assert.ok(heard.includes(null), 'it was told to forget everything');
    assert.ok(heard.length === 1 || heard.includes('a'));
  }
  await (await announce(here, second.changes, 'b')).settled();
  assert.equal(first.heard.at(-1), 'b');
});

test('a process that has died is waited for at most once, for its lease', async (t) => {
  const here = await freshDatabase(t);
  const { changes } = await join(t, here);
  const other = await startOther(t, here);
  await (await announce(here, changes, 'a')).settled();
  await until(() => other.printed.length === 2, 'what it heard is read here, too');
  assert.deepEqual(other.printed, ['listening', 'a']);
  other.child.kill('SIGKILL');
  await until(() => other.ended, 'it is dead');
  assert.ok((await settleTime(here, changes)) < LEASE_MS + 1_000);
  assert.ok((await settleTime(here, changes)) < LEASE_MS / 2, 'it is forgotten');
});

test('a process that has ended in good order is not waited for', async (t) => {
  const here = await freshDatabase(t);
  const { changes } = await join(t, here);
  const other = await startOther(t, here);
  await (await announce(here, changes, 'a')).settled();
  other.child.kill('SIGTERM');
  await until(() => other.ended, 'it has ended', DEADLINE_MS);
  assert.equal(other.errors(), '');
  assert.ok((await settleTime(here, changes)) < LEASE_MS / 2);
});

test('a frozen process is waited for as long as its lease, then disconnected, and forgets everything when it wakes', async (t) => {
  const here = await freshDatabase(t);
  const { changes } = await join(t, here);
  const other = await startOther(t, here);
  process.kill(other.pid, 'SIGSTOP');
  const waitedMs = await settleTime(here, changes);
  assert.ok(waitedMs >= LEASE_MS - 100 && waitedMs < LEASE_MS + 1_000, `${waitedMs} ms`);
  assert.ok((await settleTime(here, changes)) < LEASE_MS / 2, 'the others do not wait for it again');
  process.kill(other.pid, 'SIGCONT');
  await until(() => other.printed.includes(null), 'it forgets everything', DEADLINE_MS);
  await (await announce(here, changes, 'z')).settled();
  await until(() => other.printed.at(-1) === 'z', 'it hears again', DEADLINE_MS);
});

test('an id that no notification could hold is refused before the write commits', async (t) => {
  const here = await freshDatabase(t);
  const { changes } = await join(t, here);
  await assert.rejects(announce(here, changes, 'x'.repeat(1001)), RangeError);
});

test('waits end when the process closes', async (t) => {
  const here = await freshDatabase(t);
  const { changes } = await join(t, here);
  const other = await startOther(t, here);
  process.kill(other.pid, 'SIGSTOP');
  const settled = (await announce(here, changes, 'a')).settled();
  const began = clock.monotonic();
  await changes.close();
  await settled;
  assert.ok(clock.monotonic() - began < LEASE_MS / 2);
});

async function join(t: TestContext, { target, database }: TestDatabase) {
  const changes = await openChanges({ target, database, clock, log });
  t.after(() => changes.close());
  const heard: (string | null)[] = [];
  changes.subscribe('keys', (id) => heard.push(id));
  return { changes, heard };
}

function announce({ database }: TestDatabase, changes: Changes, id: string): Promise<{ settled(): Promise<void> }> {
  return database.transaction((tx) => changes.announce(tx, 'keys', id));
}

async function settleTime(here: TestDatabase, changes: Changes): Promise<number> {
  const { settled } = await announce(here, changes, 'timed');
  const began = clock.monotonic();
  await settled();
  return clock.monotonic() - began;
}

async function startOther(t: TestContext, { target }: TestDatabase): Promise<StartedProcess> {
  const other = startProcess(t, path.join(import.meta.dirname, 'changes-process.ts'), [JSON.stringify(target)]);
  await until(() => other.printed[0] === 'listening' || other.ended, 'it listens', DEADLINE_MS);
  assert.ok(!other.ended, other.errors());
  return other;
}

async function cutListeners({ database }: TestDatabase): Promise<void> {
  await database.query(
    `select pg_terminate_backend(pid, 5000) from pg_stat_activity
     where datname = current_database() and application_name like 'gatehouse/listener/%'`,
  );
}
