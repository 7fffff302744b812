/** BYOK credentials in the memory of several processes, and encrypted values that were altered in the database. */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { systemClock as clock } from '../../src/base/clock.ts';
import { silentLog as log } from '../../src/base/log.ts';
import { startByokCache } from '../../src/byok/index.ts';
import { migrations } from '../../src/migrations.ts';
import { Sealing } from '../../src/sealing/index.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { type Database, openDatabase } from '../../src/storage/database.ts';
import { TestFreshness } from '../../src/testing/clock/freshness.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf, inDatabase } from '../workspaces/control.ts';

const PROVIDER = { id: 'a', kindId: 'chat' };

/** A second process of the gateway's installation, as far as BYOK is concerned. */
async function follow(t: TestContext, { target, config }: Gateway) {
  const database = await openDatabase({ target, clock, log });
  const changes = await openChanges({ target, database, clock, log });
  const sealing = new Sealing({ database, clock, settings: config.sealing });
  const parts = { database, changes, clock, log, sealing, providers: () => config.providers, otherNames: () => [] };
  const keys = await startByokCache(parts);
  t.after(async () => {
    keys.close();
    await changes.close();
    await database.close();
  });
  return keys;
}

test('a completed change of a BYOK credential applies in every process, to the keys that it covers', async (t) => {
  const gateway = await startGateway(t, { providers: { a: {} } });
  const { call } = controlOf(gateway);
  const keys = await follow(t, gateway);
  assert.equal(keys.any, false);
  const give = async (body: object) => (await call('POST', '/byok', { provider: 'a', ...body })).body.data;
  const last = await give({ key: 'own-last', is_fallback: true });
  const first = await give({ key: 'own-first', allowed_models: ['Test/A'], is_byok_only: true });
  const { organization_id: organizationId } = (await call('GET', '/key')).body.data;
  const caller = { organizationId, workspaceId: first.workspace_id, keyId: 'none', userId: null };
  const values = (who = caller, model = 'test/a') => keys.of(who, PROVIDER, model).map(({ value }) => value);
  assert.deepEqual(values(), ['own-first', 'own-last']);
  assert.deepEqual(values(caller, 'test/b'), ['own-last']);
  assert.equal(keys.closes(caller, PROVIDER, 'test/b'), true, 'the whole provider is for BYOK credentials only');
  assert.deepEqual(values({ ...caller, workspaceId: 'another' }), []);
  assert.deepEqual(values({ ...caller, organizationId: 'another' }), []);
  assert.deepEqual(keys.of(caller, { id: 'b', kindId: 'chat' }, 'test/a'), []);
  await call('PATCH', `/byok/${first.id}`, { key: 'own-other' });
  assert.deepEqual(values(), ['own-other', 'own-last']);
  await call('PATCH', `/byok/${last.id}`, { allowed_user_ids: ['user_1'] });
  assert.deepEqual(values(), ['own-other']);
  assert.deepEqual(values({ ...caller, userId: 'user_1' } as never), ['own-other', 'own-last']);
  await call('PATCH', `/byok/${first.id}`, { disabled: true });
  assert.deepEqual([values(), keys.closes(caller, PROVIDER, 'test/a')], [[], false]);
  await call('DELETE', `/byok/${last.id}`);
  assert.equal(keys.any, false);
});

test('what changes while a process starts holds there, however late the start hears what was before', async (t) => {
  const gateway = await startGateway(t, { providers: { a: {} } });
  const { call } = controlOf(gateway);
  const { id } = (await call('POST', '/byok', { provider: 'a', key: 'own' })).body.data;
  // One connection: its answers come in the order of the questions.
  const database = await openDatabase({ target: gateway.target, clock, log, poolSize: 1 });
  t.after(() => database.close());
  const [read, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let first = true;
  const late: Database = {
    ...database,
    query: async <Row>(sql: string, values?: readonly unknown[]) => {
      const rows = await database.query<Row>(sql, values);
      if (first && sql.includes('from byok_keys')) {
        first = false;
        read.resolve();
        await released.promise;
      }
      return rows;
    },
  };
  const subscribers: ((id: string | null) => unknown)[] = [];
  const changes = {
    freshness: new TestFreshness(clock),
    subscribe(_topic: string, changed: (id: string | null) => unknown) {
      subscribers.push(changed);
    },
  };
  const sealing = new Sealing({ database, clock, settings: gateway.config.sealing });
  const configured = { providers: () => gateway.config.providers, otherNames: () => [] };
  const following = startByokCache({ database: late, changes, clock, log, sealing, ...configured });
  await read.promise;
  await call('DELETE', `/byok/${id}`);
  const heard = subscribers.map((changed) => changed(id));
  await database.query('select 1');
  released.resolve();
  const keys = await following;
  t.after(() => keys.close());
  await Promise.all(heard);
  assert.equal(keys.any, false);
});

test('a credential that is put into another row does not open there, and the word of its key still counts', async (t) => {
  const gateway = await startGateway(t, { providers: { a: {} } });
  const { call } = controlOf(gateway);
  const give = async (body: object) => (await call('POST', '/byok', { provider: 'a', ...body })).body.data;
  const [one, two] = [await give({ key: 'own-one' }), await give({ key: 'own-two', is_required: true })];
  await inDatabase(gateway, [
    `update byok_keys set sealed = (select sealed from byok_keys where id = '${one.id}') where id = '${two.id}'`,
  ]);
  const keys = await follow(t, gateway);
  const { organization_id: organizationId } = (await call('GET', '/key')).body.data;
  const caller = { organizationId, workspaceId: one.workspace_id, keyId: 'none', userId: null };
  assert.deepEqual(
    keys.of(caller, PROVIDER, 'test/a').map(({ value }) => value),
    ['own-one'],
  );
  assert.equal(keys.closes(caller, PROVIDER, 'test/a'), true);
});

test('processes that seal their first value at once agree on the keys; a file that others can read is refused', async (t) => {
  const { database } = await freshDatabase(t, { migrations });
  const folder = mkdtempSync(path.join(tmpdir(), 'gatehouse-kek-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = path.join(folder, 'keys', 'kek');
  const settings = { current: { kind: 'file' as const, path: file }, previous: null };
  const process = () => new Sealing({ database, clock, settings });
  const boxes = await Promise.all([process(), process(), process()].map((one) => one.sealer('test')));
  for (const from of boxes) {
    const record = from.seal('1', 'value', 'ä secret');
    for (const to of boxes) assert.equal(to.open('1', 'value', record), 'ä secret');
    for (const [id, column] of [
      ['2', 'value'],
      ['1', 'other'],
    ] as const) {
      assert.throws(() => from.open(id, column, record), /cannot be decrypted/);
    }
    for (let at = 0; at < record.length; at++) {
      const altered = Buffer.from(record);
      altered[at]! ^= 1;
      assert.throws(() => from.open('1', 'value', altered), { name: 'SealingError' });
    }
  }
  assert.equal(Buffer.from(readFileSync(file, 'utf8'), 'base64').length, 32);
  chmodSync(file, 0o640);
  await assert.rejects(process().check(), /is readable by other users/);
});
