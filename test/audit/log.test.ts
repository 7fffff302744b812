/** What the audit log holds, that it cannot be altered, and how it is read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOperatorKey, revokeOperatorKey } from '../../src/access/index.ts';
import { auditMigrations, gatewayAuthor, recordChange } from '../../src/audit/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { redact, silentLog } from '../../src/base/log.ts';
import { Secret } from '../../src/base/secret.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const change = { action: 'thing.updated', resourceType: 'thing', resourceId: 'one', workspaceId: null } as const;
const author = gatewayAuthor('org', 0);

test('no entry can be changed or removed, not even by the owner of the table', async (t) => {
  const { database } = await freshDatabase(t, { migrations: auditMigrations });
  await database.transaction((tx) => recordChange(tx, author, { ...change, after: { a: 1 } }));
  for (const statement of [
    `update audit_entries set actor_user_id = 'somebody'`,
    'delete from audit_entries',
    'delete from audit_entries where false',
    'truncate audit_entries',
    `insert into audit_entries overriding system value select * from audit_entries
       on conflict (place) do update set action = 'x'`,
  ]) {
    await assert.rejects(database.query(statement), /append-only/, statement);
  }
  await assert.rejects(
    database.transaction(async (tx) => {
      await tx.query(`set local session_replication_role = 'replica'`);
      await tx.query('delete from audit_entries');
    }),
    /append-only/,
  );
  assert.equal((await database.query('select 1 from audit_entries')).length, 1);
});

test('a change that is rolled back leaves no entry', async (t) => {
  const { database } = await freshDatabase(t, { migrations: auditMigrations });
  const undone = database.transaction(async (tx) => {
    await recordChange(tx, author, change);
    throw new Error('the change failed');
  });
  await assert.rejects(undone, /the change failed/);
  assert.deepEqual(await database.query('select 1 from audit_entries'), []);
});

test('of a change the members that differ are kept, without secrets and without what cannot be stored', async (t) => {
  const { database } = await freshDatabase(t, { migrations: auditMigrations });
  redact('registered-secret-of-the-test');
  const before = { same: { deep: [1] }, name: 'old', limit: 5n, gone: true };
  const after = {
    same: { deep: [1] },
    name: 'with registered-secret-of-the-test',
    limit: 6n,
    list: ['a\0b', '\ud800'],
    nested: { password: 'hunter2', client_secret: 'x', hash: 'kept' },
    token: 'sk-svc-v1-0123456789abcdef0123456789abcdef',
    note: 'look: sk-svc-v1-0123456789abcdef0123456789abcdef',
    label: 'sk-svc-v1-012...def',
    wrapped: new Secret('hunter3'),
    long: 'x'.repeat(200_000),
    absent: undefined,
    key: 'hunter4',
  };
  await database.transaction((tx) => recordChange(tx, author, { ...change, before, after }));
  const [row] = await database.query<{ before: Json; after: Json }>('select before, after from audit_entries');
  assert.deepEqual(row!.before, { name: 'old', limit: '5', gone: true });
  assert.deepEqual(row!.after, {
    name: 'with [redacted]',
    limit: '6',
    list: ['a\ufffdb', '\ufffd'],
    nested: { password: '[secret]', client_secret: '[secret]', hash: 'kept' },
    token: '[secret]',
    note: 'look: [secret]',
    label: 'sk-svc-v1-012...def',
    wrapped: '[secret]',
    long: { omitted_characters: 200_002 },
    key: '[secret]',
  });
});

test('entries contain no secret that was ever written', async (t) => {
  const gateway = await startGateway(t);
  const control = controlOf(gateway);
  const external = `sk-external-${'e'.repeat(40)}`;
  const made = await control.call('POST', '/keys', { name: 'one', external: { user: 'u', api_key: external } });
  const { key: token, data } = made.body;
  await control.call('PATCH', `/keys/${data.hash}`, { name: 'two', limit: 3 });
  await control.call('POST', '/guardrails', { name: 'g', content_filters: [{ pattern: 'a+', action: 'block' }] });
  await control.call('DELETE', `/keys/${data.hash}`);
  const database = await openDatabase({ target: gateway.target, clock: systemClock, log: silentLog });
  t.after(() => database.close());
  const changes = await openChanges({ target: gateway.target, database, clock: systemClock, log: silentLog });
  t.after(() => changes.close());
  const parts = { database, changes, clock: systemClock };
  const operators = await createOperatorKey(parts, 'scim', { name: 'of the command line' });
  const [newest] = await database.query<{ hash: string }>(`select hash from api_keys where kind = 'scim'`);
  await revokeOperatorKey(parts, newest!.hash);
  const rows = await database.query<{ row: string }>('select e::text as row from audit_entries e');
  const text = rows.map(({ row }) => row).join('\n');
  assert.ok(rows.length >= 8, text);
  for (const secret of [token, external, operators, MANAGEMENT_KEY, INFERENCE_KEY]) {
    assert.ok(!text.includes(secret), `${secret} stands in the log`);
    assert.ok(!text.includes(secret.slice(-24)), `the end of ${secret} stands in the log`);
  }
});

test('keys of the first start and of the command line are entered as the operator', async (t) => {
  const gateway = await startGateway(t);
  const { body } = await controlOf(gateway).call('GET', '/audit?actor_type=operator');
  assert.deepEqual(
    body.data.map((entry: Json) => [entry.action, entry.after.kind, entry.actor.type, entry.actor.key_hash]).toSorted(),
    [
      ['key.created', 'inference', 'operator', null],
      ['key.created', 'management', 'operator', null],
    ],
  );
});

test('entries are listed newest first, by every filter, in pages that neither repeat nor leave out', async (t) => {
  const gateway = await startGateway(t);
  const control = controlOf(gateway);
  const { id } = await control.made({ name: 'team', slug: 'team' });
  const list = async (query: string): Promise<Json> => {
    const { status, body } = await control.call('GET', `/audit?${query}`);
    assert.equal(status, 200, JSON.stringify(body));
    return body;
  };
  const between = gateway.clock.now();
  gateway.clock.jump(60_000);
  const key = await control.keyIn(id, 'key');
  await control.call('PATCH', `/keys/${key.hash}`, { name: 'renamed' });
  const [updated, created] = (await list(`resource_type=key&resource_id=${key.hash}`)).data;
  assert.deepEqual([updated.action, created.action], ['key.updated', 'key.created']);
  assert.deepEqual([updated.before.name, updated.after.name], ['key', 'renamed']);
  assert.deepEqual([created.before, created.after.label.includes('...'), created.workspace_id], [null, true, id]);
  const { key_hash: actor, user_id: userId } = created.actor;
  const actions = async (query: string) => (await list(query)).data.map(({ action }: Json) => action);
  assert.deepEqual(await actions(`workspace_id=${id}`), ['key.updated', 'key.created', 'workspace.created']);
  assert.deepEqual(await actions(`actor=${actor}`), ['key.updated', 'key.created', 'workspace.created']);
  assert.deepEqual(await actions(`actor=${userId}&action=key.created`), ['key.created']);
  assert.deepEqual(await actions(`workspace_id=${id}&end=${new Date(between + 1_000).toISOString()}`), [
    'workspace.created',
  ]);
  assert.deepEqual(await actions(`workspace_id=${id}&start=${new Date(between + 1_000).toISOString()}`), [
    'key.updated',
    'key.created',
  ]);
  assert.deepEqual(await actions('actor=user_nobody'), []);
  const paged: string[] = [];
  for (let cursor = ''; ; ) {
    const page = await list(`limit=2${cursor && `&cursor=${cursor}`}`);
    paged.push(...page.data.map((entry: Json) => entry.id));
    // New entries come before the first page.
    await control.call('PATCH', `/keys/${key.hash}`, { name: `renamed ${paged.length}` });
    if (!page.has_more) break;
    cursor = page.next_cursor;
  }
  assert.equal(new Set(paged).size, 5);
  assert.equal(paged.length, 5);
});

test('a question that is wrong is refused with 400 and the name of the parameter', async (t) => {
  const gateway = await startGateway(t);
  const control = controlOf(gateway);
  for (const [query, name] of [
    ['limit=0', 'limit'],
    ['limit=101', 'limit'],
    ['limit=x', 'limit'],
    ['cursor=x', 'cursor'],
    ['start=2026-01-01', 'start'],
    ['end=2026-02-30T00:00:00Z', 'end'],
    ['start=2026-01-02T00:00:00Z&end=2026-01-01T00:00:00Z', 'end'],
    ['workspace_id=x', 'workspace_id'],
    ['actor_type=x', 'actor_type'],
    ['action=', 'action'],
    ['action=%00', 'action'],
    ['nothing=1', 'nothing'],
  ] as const) {
    await control.refused(control.call('GET', `/audit?${query}`), 400, new RegExp(name));
  }
});
