/** Rotation of encryption keys, also with processes that die meanwhile. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, type TestContext, test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import type { KeySource, SealingSettings } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { Secret } from '../../src/base/secret.ts';
import { createJobs } from '../../src/jobs/index.ts';
import {
  followNewKeys,
  rotateInstallationKey,
  SEALING_TOPIC,
  Sealing,
  sealingMigrations,
  sweep,
  sweepJob,
} from '../../src/sealing/index.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { TestClock, until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase, emptyFolder } from '../../src/testing/database/database.ts';
import { THINGS, thingsTable } from './things.ts';

const migrations = [...sealingMigrations, thingsTable];
const COUNT = 3;
/** Two dozen processes load the same modules: they take them compiled from here. */
const COMPILED = emptyFolder({ after: (remove) => after(remove as () => void) });

async function installation(t: TestContext) {
  const target = await emptyDatabase(t, migrations, true);
  const database = await openDatabase({ target, clock: systemClock, log: silentLog });
  t.after(() => database.close());
  const folder = emptyFolder(t);
  const file = path.join(folder, 'keys', 'kek');
  const usual: SealingSettings = { current: { kind: 'file', path: file }, previous: null };
  const process = (settings = usual) => new Sealing({ database, clock: systemClock, settings });
  const store = async (sealing: Sealing, id: string) => {
    const sealed = (await sealing.sealer('things')).seal(id, 'sealed', `secret of ${id}`);
    const sql = 'insert into things values ($1, $2) on conflict (id) do update set sealed = excluded.sealed';
    await database.query(sql, [id, sealed]);
  };
  /** How many values there are under each version of their key; every one of them opens. */
  const opened = async (sealing: Sealing) => {
    const rows = await database.query<{ id: string; sealed: Buffer }>('select id, sealed from things order by id');
    const records = rows.map(({ sealed }) => sealed);
    const box = await sealing.opener('things', records);
    for (const { id, sealed } of rows) assert.equal(box.open(id, 'sealed', sealed), `secret of ${id}`);
    return Object.fromEntries(
      Map.groupBy(records, (record) => record.readUInt32BE(1))
        .entries()
        .map(([version, { length }]) => [version, length]),
    );
  };
  for (let n = 0; n < COUNT; n++) await store(process(), `thing-${n}`);
  return { database, target, folder, file, usual, process, store, opened };
}

function die(target: unknown, file: string, change: string, killAt: number): number | 'killed' {
  const args = [path.join(import.meta.dirname, 'dying.ts'), JSON.stringify({ target, file, change, killAt })];
  const env = { NODE_COMPILE_CACHE: COMPILED };
  const { signal, status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', env });
  if (signal === 'SIGKILL') return 'killed';
  assert.equal(status, 0, stderr);
  return Number(stdout);
}

test("a process that dies at any step of a change of the installation's key leaves one that fits, and the change is carried on", async (t) => {
  const { database, target, folder, file, usual, process, store, opened } = await installation(t);
  const live = process();
  await opened(live);
  const roles = new Set<string>();
  for (let killAt = 1; ; killAt++) {
    const before = readFileSync(file, 'utf8');
    const outcome = die(target, file, 'key', killAt);
    roles.add((await process().check())!.role);
    assert.deepEqual(await opened(process()), { 1: COUNT }, `killed at ${killAt}`);
    await store(live, 'thing-0');
    assert.deepEqual(await opened(process()), { 1: COUNT });
    if (outcome !== 'killed') {
      assert.ok(killAt > 7, `only ${outcome} steps`);
      break;
    }
    await rotateInstallationKey({ database, settings: usual });
    assert.equal((await process().check())!.role, 'current');
    assert.notEqual(readFileSync(file, 'utf8'), before);
    assert.deepEqual(readdirSync(path.join(folder, 'keys')).sort(), ['kek', 'kek.previous']);
  }
  assert.ok(roles.has('next') && roles.has('current'));
  chmodSync(file, 0o644);
  await assert.rejects(process().check(), /is readable by other users/);
});

test('a process that dies at any step of a data key rotation leaves every value readable, and the next one continues', async (t) => {
  const { database, target, file, process, opened } = await installation(t);
  for (let killAt = 1; ; killAt++) {
    const outcome = die(target, file, 'data keys', killAt);
    await opened(process());
    const sealing = process();
    const swept = () => sweep({ database, sealing, rows: [THINGS], log: silentLog });
    // The server may still be ending the transaction of the dead one, whose rows are passed over until then.
    await until(async () => (await swept()).left === 0, 'everything is under the newest key');
    assert.equal(Object.keys(await opened(process())).length, 1, 'all are under one key');
    if (outcome !== 'killed') {
      assert.ok(killAt > COUNT, `only ${outcome} steps`);
      break;
    }
  }
});

test('processes that hold older keys open what others sealed with newer ones, and seal with them once they have heard', async (t) => {
  const { database, target, process, store, opened } = await installation(t);
  const [one, other] = [process(), process()];
  await opened(one);
  await opened(other);
  const late = (await process().sealer('things')).seal('thing-2', 'sealed', 'secret of thing-2');
  const clock = new TestClock();
  const changes = await openChanges({ target, database, clock: systemClock, log: silentLog });
  const jobs = createJobs({ database, changes, clock, log: silentLog });
  const kind = sweepJob({ database, sealing: process(), rows: [THINGS], log: silentLog });
  jobs.register(kind);
  followNewKeys(changes, one, () => void jobs.send(kind, {}));
  jobs.start();
  t.after(async () => {
    await jobs.close();
    await changes.close();
  });
  assert.equal(await database.transaction((tx) => other.addKey(tx, 'things')), 2);
  other.forget();
  await store(other, 'thing-1');
  assert.deepEqual(await opened(one), { 1: COUNT - 1, 2: 1 });
  await database.transaction((tx) => changes.announce(tx, SEALING_TOPIC, 'things'));
  await until(async () => (await opened(process()))[2] === COUNT, 'everything is under the newest key');
  // Sealed before the change, stored after the sweep.
  await database.query('update things set sealed = $1 where id = $2', [late, 'thing-2']);
  assert.deepEqual(await opened(one), { 1: 1, 2: COUNT - 1 });
  clock.advance(600_000);
  await until(async () => (await opened(process()))[2] === COUNT, 'the next sweep re-encrypts it');
  await store(one, 'thing-0');
  assert.deepEqual(await opened(other), { 2: COUNT });
  assert.equal(await database.transaction((tx) => other.addKey(tx, 'nothing sealed')), undefined);
});

test('values that were altered stay as they are and do not keep the others from the newer key', async (t) => {
  const { database, process } = await installation(t);
  await database.query(
    `update things set sealed = set_byte(sealed, 19, get_byte(sealed, 19) # 255) where id = 'thing-1'`,
  );
  const [before] = await database.query<{ sealed: Buffer }>(`select sealed from things where id = 'thing-1'`);
  const sealing = process();
  await database.transaction((tx) => sealing.addKey(tx, 'things'));
  sealing.forget();
  const swept = await sweep({ database, sealing, rows: [THINGS], log: silentLog });
  assert.deepEqual(swept, { resealed: COUNT - 1, unreadable: 1, left: 1 });
  const [after] = await database.query<{ sealed: Buffer }>(`select sealed from things where id = 'thing-1'`);
  assert.deepEqual(after, before);
});

test('keys that variables, files and commands give are changed with both given, in whatever order processes start', async (t) => {
  const { database, file, folder, process, opened } = await installation(t);
  const [first, second] = [readFileSync(file, 'utf8').trim(), Buffer.alloc(32, 7).toString('base64')];
  const value = (key: string, variable = 'GATEHOUSE_KEK'): KeySource => ({
    kind: 'value',
    variable,
    key: new Secret(key),
  });
  const named = path.join(folder, 'third');
  writeFileSync(named, Buffer.alloc(32, 9).toString('base64'), { mode: 0o600 });
  const inFile: KeySource = { kind: 'file', variable: 'GATEHOUSE_KEK_FILE', path: named };
  const printed: KeySource = { kind: 'command', variable: 'GATEHOUSE_KEK_COMMAND', command: `cat '${named}'` };
  const rotate = (current: KeySource, previous: KeySource | null = null) =>
    rotateInstallationKey({ database, settings: { current, previous } });

  await assert.rejects(rotate(value(first)), /only configured key.*GATEHOUSE_KEK_PREVIOUS/);
  await assert.rejects(rotate(value(second)), /GATEHOUSE_KEK is not the key/);
  const both = { current: value(second), previous: value(first) };
  assert.equal((await process(both).check())!.role, 'previous');
  assert.deepEqual(await opened(process(both)), { 1: COUNT });
  assert.equal(await rotate(both.current, both.previous), 'rotated');
  assert.equal((await process(both).check())!.role, 'current');
  assert.equal(await rotate(both.current, both.previous), 'already');
  await assert.rejects(process().check(), /is not the key/);
  assert.equal(await rotate(inFile, value(second)), 'rotated');
  assert.deepEqual(await opened(process({ current: printed, previous: null })), { 1: COUNT });
  for (const [command, message] of [
    ['exit 3', /ended with 3/],
    ['echo secret-words; echo more >&2', /must contain 32 random bytes/],
    ['head -c 9999 /dev/zero', /printed too much/],
  ] as const) {
    const failing: KeySource = { kind: 'command', variable: 'GATEHOUSE_KEK_COMMAND', command };
    await assert.rejects(process({ current: failing, previous: null }).check(), (error: Error) => {
      assert.match(error.message, message);
      return !error.message.includes('secret-words') && !error.message.includes('more');
    });
  }
});

test('of several that change the key at once all end with one that fits, and what was backed up before opens after', async (t) => {
  const { database, folder, usual, process, opened } = await installation(t);
  const old = await database.query<{ sealed: Buffer }>('select sealed from sealing_canary');
  const wrapped = await database.query<{ wrapped: Buffer }>('select wrapped from sealing_keys');
  await Promise.all([1, 2, 3].map(() => rotateInstallationKey({ database, settings: usual })));
  assert.equal((await process().check())!.role, 'current');
  assert.deepEqual(await opened(process()), { 1: COUNT });
  assert.ok(!existsSync(path.join(folder, 'keys', 'kek.next')));
  assert.notDeepEqual(await database.query('select wrapped from sealing_keys'), wrapped);
  assert.notDeepEqual(await database.query('select sealed from sealing_canary'), old);
  // As a restored backup has it that was made before the last change.
  const canary = await database.query<{ sealed: Buffer }>('select sealed from sealing_canary');
  const keys = await database.query<{ wrapped: Buffer }>('select wrapped from sealing_keys');
  assert.equal(await rotateInstallationKey({ database, settings: usual }), 'rotated');
  await database.query('update sealing_canary set sealed = $1', [canary[0]!.sealed]);
  await database.query('update sealing_keys set wrapped = $1', [keys[0]!.wrapped]);
  assert.equal((await process().check())!.role, 'previous');
  assert.deepEqual(await opened(process()), { 1: COUNT });
  assert.equal(await rotateInstallationKey({ database, settings: usual }), 'rotated');
  assert.equal((await process().check())!.role, 'current');
});

test('a sweep in a process that has not heard of a new key never encrypts with the older one', async (t) => {
  const { database, process, store, opened } = await installation(t);
  const [unaware, other] = [process(), process()];
  await opened(unaware);
  await database.transaction((tx) => other.addKey(tx, 'things'));
  other.forget();
  await store(other, 'thing-1');
  const { run } = sweepJob({ database, sealing: unaware, rows: [THINGS], log: silentLog });
  await run({ data: {}, attempt: 1, signal: new AbortController().signal });
  assert.deepEqual(await opened(process()), { 2: COUNT });
});

test('a sweep that is stopped begins no further batch', async (t) => {
  const { database, process, opened } = await installation(t);
  const sealing = process();
  await database.transaction((tx) => sealing.addKey(tx, 'things'));
  const { run } = sweepJob({ database, sealing, rows: [THINGS], log: silentLog });
  await assert.rejects(run({ data: {}, attempt: 1, signal: AbortSignal.abort(new Error('closing')) }), /closing/);
  assert.deepEqual(await opened(process()), { 1: COUNT });
});
