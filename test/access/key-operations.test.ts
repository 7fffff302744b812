/** Keys through HTTP, with a fresh database: each operation, status by status. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { accessMigrations, type Caller } from '../../src/access/index.ts';
import { CreatedKeyEnvelope, CurrentKeyEnvelope, KeyEnvelope, KeyListEnvelope } from '../../src/access/schema.ts';
import { auditMigrations } from '../../src/audit/index.ts';
import { type AccessRule, ANY_KEY, INFERENCE, MANAGEMENT } from '../../src/http/access-rule.ts';
import { TestClock } from '../../src/testing/clock/clock.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import {
  type Answer,
  create,
  installation,
  KeyProcess,
  refused,
  type ShownKey,
} from '../../src/testing/database/keys.ts';

const matches = (schema: TSchema, value: unknown) => {
  const validator = Compile(schema);
  assert.ok(validator.Check(value), JSON.stringify([...validator.Errors(value)], null, 1));
};

test('GET /key returns the kind of a key and its spend', async (t) => {
  const { gate, keys } = await installation(t);
  const inference = await gate.call('GET', '/key', keys.inference);
  assert.equal(inference.status, 200);
  matches(CurrentKeyEnvelope, inference.body);
  const { data } = inference.body as { data: Record<string, unknown> };
  assert.equal(data['is_management_key'], false);
  assert.equal(data['limit'], null);
  assert.equal(data['limit_remaining'], null);
  assert.match(String(data['label']), /^sk-svc-v1-[0-9a-f]{3}\.\.\.[0-9a-f]{3}$/);
  assert.match(String(data['organization_id']), /^org_/);
  assert.match(String(data['creator_user_id']), /^user_/);
  assert.match(String(data['workspace_id']), /^[0-9a-f-]{36}$/);
  assert.deepEqual(data['rate_limit'], { interval: '10s', note: 'Deprecated: it has no effect.', requests: -1 });

  const management = (await gate.call('GET', '/key', keys.management)).body as { data: Record<string, unknown> };
  assert.equal(management.data['is_management_key'], true);
  assert.equal(management.data['is_provisioning_key'], true);
  assert.equal(management.data['workspace_id'], null);
});

test('a request without a valid key is refused with 401', async (t) => {
  const { gate } = await installation(t);
  refused(await gate.call('GET', '/key', undefined), 401, /No API key/);
  refused(await gate.call('GET', '/key', `sk-svc-v1-${'0'.repeat(64)}`), 401, /not known/);
  const answer = await gate.call('GET', '/key', 'invented');
  assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
});

test('an inference key gets 403 on every operation of management keys', async (t) => {
  const { gate, keys } = await installation(t);
  const { hash } = await create(gate, keys, { name: 'one' });
  const tries = [
    ['GET', '/keys'],
    ['POST', '/keys', { name: 'mine' }],
    ['GET', `/keys/${hash}`],
    ['PATCH', `/keys/${hash}`, { name: 'mine' }],
    ['DELETE', `/keys/${hash}`],
  ] as const;
  for (const [method, path, body] of tries) {
    refused(await gate.call(method, path, keys.inference, body), 403, /Only management keys/);
    refused(await gate.call(method, path, undefined, body), 401, /No API key/);
  }
});

test('a management key gets 403 where an inference key is required, and the reverse', async (t) => {
  const { gate, keys } = await installation(t);
  const management = await gate.access.authenticate({ authorization: `Bearer ${keys.management}` });
  const inference = await gate.access.authenticate({ authorization: `Bearer ${keys.inference}` });
  const forbidden = { name: 'GatewayError', status: 403 };
  const permit = (caller: Caller, rule: AccessRule) => gate.access.permit({ caller, params: {}, host: 'x' }, rule);
  assert.throws(() => permit(management, INFERENCE), forbidden);
  assert.throws(() => permit(inference, MANAGEMENT), forbidden);
  permit(management, MANAGEMENT);
  permit(inference, INFERENCE);
  for (const caller of [management, inference]) permit(caller, ANY_KEY);
});

test('POST /keys answers 201 with the token, which works at once and is never shown again', async (t) => {
  const { gate, keys } = await installation(t);
  const answer = await gate.call('POST', '/keys', keys.management, {
    name: ' team ',
    limit: 0.1 + 0.2,
    limit_reset: 'monthly',
    include_byok_in_limit: true,
    expires_at: '2026-02-01T00:00:00+01:00',
    external: { user: 'partner-7', api_key: 'e'.repeat(32) },
  });
  assert.equal(answer.status, 201);
  matches(CreatedKeyEnvelope, answer.body);
  const data = answer.body.data as ShownKey;
  assert.match(String(answer.body.key), /^sk-svc-v1-[0-9a-f]{64}$/);
  assert.equal(data.name, 'team');
  assert.equal(data['limit'], 0.3);
  assert.equal(data['limit_remaining'], 0.3);
  assert.equal(data['limit_reset'], 'monthly');
  assert.equal(data['include_byok_in_limit'], true);
  assert.equal(data['expires_at'], '2026-01-31T23:00:00.000Z');
  assert.equal(data['external_user'], 'partner-7');
  assert.equal(data['disabled'], false);
  assert.equal(data['created_at'], '2026-01-01T00:00:00.000Z');
  assert.equal(data['updated_at'], null);

  const caller = await gate.access.authenticate({ 'x-api-key': String(answer.body.key) });
  assert.equal(caller.keyHash, data.hash);
  assert.equal(caller.limitNano, 300_000_000n);
  const shown = await gate.call('GET', `/keys/${data.hash}`, keys.management);
  assert.equal(shown.status, 200);
  matches(KeyEnvelope, shown.body);
  assert.deepEqual(shown.body, { data });
});

test('a new key belongs to the owner of the management key, to another member, or to the organization', async (t) => {
  const { gate, keys } = await installation(t);
  const owner = (await gate.access.authenticate({ authorization: `Bearer ${keys.management}` })).userId;
  assert.equal((await create(gate, keys, { name: 'a' }))['creator_user_id'], owner);
  assert.equal((await create(gate, keys, { name: 'b', creator_user_id: owner }))['creator_user_id'], owner);
  assert.equal((await create(gate, keys, { name: 'c', creator_user_id: null }))['creator_user_id'], null);
  const stranger = await gate.call('POST', '/keys', keys.management, { name: 'd', creator_user_id: 'user_x' });
  refused(stranger, 400, /^creator_user_id is not a member/);
});

test('each wrong field of a new key is refused with 400 and its path', async (t) => {
  const { gate, keys } = await installation(t);
  const cases: [Record<string, unknown>, RegExp][] = [
    [{}, /name/],
    [{ name: '' }, /^name/],
    [{ name: '  ' }, /^name must not be blank/],
    [{ name: '\u2060\u200d' }, /^name must not be blank/],
    [{ name: 7 }, /^name/],
    [{ name: 'a\0b' }, /^name must not contain/],
    [{ name: 'a', external: { user: 'u\0' } }, /^external\.user must not contain/],
    [{ name: 'a', creator_user_id: 'user_\0' }, /^creator_user_id/],
    [{ name: 'a', limit: -1 }, /^limit/],
    [{ name: 'a', limit: '5' }, /^limit/],
    [{ name: 'a', limit: 1e-10 }, /^limit must be at least/],
    [{ name: 'a', limit: 1e10 }, /^limit must be at most/],
    [{ name: 'a', limit_reset: 'yearly' }, /^limit_reset/],
    [{ name: 'a', include_byok_in_limit: 'yes' }, /^include_byok_in_limit/],
    [{ name: 'a', expires_at: '2027-01-01' }, /^expires_at must be an ISO 8601 time with seconds/],
    [{ name: 'a', expires_at: '2027-01-01T00:00Z' }, /^expires_at must be an ISO 8601 time with seconds/],
    [{ name: 'a', expires_at: '2027-01-01T00:00:00' }, /^expires_at must be an ISO 8601 time with seconds and zone/],
    [{ name: 'a', expires_at: '2027-02-30T00:00:00Z' }, /^expires_at/],
    [{ name: 'a', expires_at: '2025-12-31T23:59:59Z' }, /^expires_at must be in the future/],
    [{ name: 'a', workspace_id: 'default' }, /^workspace_id/],
    [{ name: 'a', workspace_id: '0190a000-0000-7000-8000-000000000000' }, /^workspace_id is not a workspace/],
    [{ name: 'a', external: {} }, /external\.user/],
    [{ name: 'a', external: { user: 'u', api_key: 'e'.repeat(31) } }, /^external\.api_key/],
    [{ name: 'a', external: { user: 'u', api_key: 'é'.repeat(40) } }, /^external\.api_key must match/],
    [{ name: 'a', external: { user: 'u', api_key: `${'e'.repeat(40)} ` } }, /^external\.api_key must match/],
    [{ name: 'a', limt: 5 }, /limt/],
  ];
  for (const [body, message] of cases) refused(await gate.call('POST', '/keys', keys.management, body), 400, message);
  assert.equal(((await gate.call('GET', '/keys', keys.management)).body.data as unknown[]).length, 1);
});

test('GET /keys lists inference keys 100 at a time, newest first', async (t) => {
  const { gate, keys } = await installation(t);
  await gate.database.query(
    `insert into api_keys (id, hash, kind, organization_id, workspace_id, name, label, include_byok_in_limit, created_at)
     select gen_random_uuid(), encode(sha256(n::text::bytea), 'hex'), kind, organization_id, workspace_id, 'key ' || n,
       label, false, created_at + n * interval '1 ms'
     from api_keys, generate_series(1, 101) n where kind = 'inference'`,
  );
  const first = await gate.call('GET', '/keys', keys.management);
  matches(KeyListEnvelope, first.body);
  const names = (answer: Answer) => (answer.body.data as ShownKey[]).map(({ name }) => name);
  assert.equal(names(first).length, 100);
  assert.deepEqual(names(first).slice(0, 2), ['key 101', 'key 100']);
  assert.deepEqual(names(await gate.call('GET', '/keys?offset=100', keys.management)), [
    'key 1',
    'First inference key',
  ]);
  assert.deepEqual(names(await gate.call('GET', '/keys?offset=102', keys.management)), []);
  refused(await gate.call('GET', '/keys?offset=-1', keys.management), 400, /^offset/);
});

test('GET /keys omits disabled keys unless they are requested', async (t) => {
  const { gate, keys } = await installation(t);
  const { hash } = await create(gate, keys, { name: 'off' });
  await gate.call('PATCH', `/keys/${hash}`, keys.management, { disabled: true });
  const count = async (query: string) =>
    ((await gate.call('GET', `/keys${query}`, keys.management)).body.data as []).length;
  assert.equal(await count(''), 1);
  assert.equal(await count('?include_disabled=false'), 1);
  assert.equal(await count('?include_disabled=true'), 2);
  refused(await gate.call('GET', '/keys?include_disabled=maybe', keys.management), 400, /^include_disabled/);
});

test('GET /keys lists the default workspace unless another one is named', async (t) => {
  const { gate, keys } = await installation(t);
  const { organizationId } = await gate.access.authenticate({ authorization: `Bearer ${keys.management}` });
  const other = '0190a000-0000-7000-8000-00000000000a';
  await gate.database.query(
    `insert into workspaces (id, slug, name, organization_id, created_at) values ($1, 'other', 'Other', $2, now())`,
    [other, organizationId],
  );
  const { hash } = await create(gate, keys, { name: 'elsewhere', workspace_id: other });
  const hashes = async (query: string) =>
    ((await gate.call('GET', `/keys${query}`, keys.management)).body.data as ShownKey[]).map((key) => key.hash);
  assert.ok(!(await hashes('')).includes(hash));
  assert.deepEqual(await hashes(`?workspace_id=${other}`), [hash]);
  refused(await gate.call('GET', '/keys?workspace_id=other', keys.management), 400, /^workspace_id/);
  const nowhere = await gate.call('GET', '/keys?workspace_id=0190a000-0000-7000-8000-00000000000b', keys.management);
  refused(nowhere, 400, /^workspace_id is not a workspace/);
});

test('PATCH /keys/{hash} changes the named members, null clears, and others stay', async (t) => {
  const { gate, keys } = await installation(t);
  const { hash, token } = await create(gate, keys, { name: 'one', limit: 5, limit_reset: 'daily' });
  gate.clock.advance(1000);
  const patch = async (body: unknown) => {
    const answer = await gate.call('PATCH', `/keys/${hash}`, keys.management, body);
    assert.equal(answer.status, 200, JSON.stringify(answer.body));
    matches(KeyEnvelope, answer.body);
    return answer.body.data as ShownKey;
  };
  const renamed = await patch({ name: 'two' });
  assert.equal(renamed.name, 'two');
  assert.equal(renamed['limit'], 5);
  assert.equal(renamed['limit_reset'], 'daily');
  assert.equal(renamed['updated_at'], '2026-01-01T00:00:01.000Z');
  const cleared = await patch({ limit: null, limit_reset: null, include_byok_in_limit: true });
  assert.equal(cleared['limit'], null);
  assert.equal(cleared['limit_reset'], null);
  assert.equal(cleared['include_byok_in_limit'], true);
  assert.deepEqual({ ...(await patch({})), updated_at: '' }, { ...cleared, updated_at: '' });

  await patch({ disabled: true });
  refused(await gate.call('GET', '/key', token), 401, /disabled/);
  await patch({ disabled: false });
  assert.equal((await gate.call('GET', '/key', token)).status, 200);

  for (const body of [
    { name: '' },
    { limit: -1 },
    { disabled: null },
    { limit_reset: 'hourly' },
    { expires_at: null },
  ]) {
    const [field] = Object.keys(body);
    refused(await gate.call('PATCH', `/keys/${hash}`, keys.management, body), 400, new RegExp(String(field)));
  }
});

test('two changes of one key at the same time are both kept', async (t) => {
  const { gate, keys } = await installation(t);
  const { hash } = await create(gate, keys, { name: 'one' });
  const path = `/keys/${hash}`;
  await Promise.all([
    gate.call('PATCH', path, keys.management, { limit: 5 }),
    gate.call('PATCH', path, keys.management, { name: 'two' }),
    gate.call('PATCH', path, keys.management, { limit_reset: 'weekly' }),
  ]);
  const { data } = (await gate.call('GET', path, keys.management)).body as { data: ShownKey };
  assert.deepEqual([data['limit'], data.name, data['limit_reset']], [5, 'two', 'weekly']);
});

test('DELETE /keys/{hash} ends a key for good', async (t) => {
  const { gate, keys } = await installation(t);
  const { hash, token } = await create(gate, keys, { name: 'one' });
  assert.equal((await gate.call('GET', '/key', token)).status, 200);
  const answer = await gate.call('DELETE', `/keys/${hash}`, keys.management);
  assert.deepEqual([answer.status, answer.body], [200, { deleted: true }]);
  refused(await gate.call('GET', '/key', token), 401, /not known/);
  for (const method of ['GET', 'DELETE']) {
    refused(await gate.call(method, `/keys/${hash}`, keys.management), 404, /no inference key/);
  }
  refused(await gate.call('PATCH', `/keys/${hash}`, keys.management, { disabled: false }), 404, /no inference key/);
});

test('an unknown hash, and the hash of a management key, is not found', async (t) => {
  const { gate, keys } = await installation(t);
  const { keyHash } = await gate.access.authenticate({ authorization: `Bearer ${keys.management}` });
  for (const hash of [keyHash, '0'.repeat(64), 'x', '%00']) {
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const answer = await gate.call(method, `/keys/${hash}`, keys.management, method === 'PATCH' ? {} : undefined);
      refused(answer, 404, hash === '%00' ? /U\+0000/ : /no inference key/);
    }
  }
});

test('limit_remaining counts the window of the limit, and BYOK spend only if the key includes it', async (t) => {
  const { gate, keys } = await installation(t);
  const { hash, token } = await create(gate, keys, { name: 'one', limit: 10, limit_reset: 'daily' });
  const { keyId } = await gate.access.authenticate({ 'x-api-key': token });
  gate.usage.set(keyId, {
    usage: { daily: 4_000_000_000n, weekly: 5_000_000_000n, monthly: 6_000_000_000n, lifetime: 70_000_000_000n },
    byok: { daily: 1_500_000_000n, weekly: 2_000_000_000n, monthly: 3_000_000_000n, lifetime: 4_000_000_000n },
  });
  const remaining = async (change: unknown) => {
    const answer = await gate.call('PATCH', `/keys/${hash}`, keys.management, change);
    return (answer.body.data as ShownKey)['limit_remaining'];
  };
  const shown = (await gate.call('GET', '/key', token)).body as { data: Record<string, unknown> };
  assert.deepEqual(
    ['usage', 'usage_daily', 'usage_weekly', 'usage_monthly'].map((name) => shown.data[name]),
    [70, 4, 5, 6],
  );
  assert.deepEqual(
    ['byok_usage', 'byok_usage_daily', 'byok_usage_weekly', 'byok_usage_monthly'].map((name) => shown.data[name]),
    [4, 1.5, 2, 3],
  );
  assert.equal(shown.data['limit_remaining'], 6);
  assert.equal(await remaining({ limit_reset: 'weekly' }), 5);
  assert.equal(await remaining({ limit_reset: 'monthly' }), 4);
  assert.equal(await remaining({ include_byok_in_limit: true }), 1);
  assert.equal(await remaining({ limit_reset: null }), 0, 'never below zero');
  assert.equal(await remaining({ limit: null }), null);
});

test('a key stops working when it expires', async (t) => {
  const { gate, keys } = await installation(t);
  const { token } = await create(gate, keys, { name: 'short', expires_at: '2026-01-01T00:00:10Z' });
  assert.equal((await gate.call('GET', '/key', token)).status, 200);
  gate.clock.advance(9_999);
  assert.equal((await gate.call('GET', '/key', token)).status, 200);
  gate.clock.advance(1);
  refused(await gate.call('GET', '/key', token), 401, /expired/);
});

test('a write answers only once it holds in every process', async (t) => {
  const { gate: first, keys, target } = await installation(t);
  const second = await KeyProcess.start(t, target, first.clock);
  const { hash, token } = await create(first, keys, { name: 'one' });
  assert.equal((await second.call('GET', '/key', token)).status, 200);
  for (const disabled of [true, false, true]) {
    await first.call('PATCH', `/keys/${hash}`, keys.management, { disabled });
    assert.equal((await second.call('GET', '/key', token)).status, disabled ? 401 : 200);
  }
  await second.call('PATCH', `/keys/${hash}`, keys.management, { disabled: false });
  assert.equal((await first.call('GET', '/key', token)).status, 200);
  await second.call('DELETE', `/keys/${hash}`, keys.management);
  refused(await first.call('GET', '/key', token), 401, /not known/);
});

test('of processes that start at once exactly one creates the first keys', async (t) => {
  const clock = new TestClock();
  const { target, database } = await freshDatabase(t, { migrations: [...accessMigrations, ...auditMigrations] });
  const processes = await Promise.all([1, 2, 3].map(() => KeyProcess.start(t, target, clock)));
  const made = await Promise.all(processes.map(({ access }) => access.bootstrap()));
  assert.equal(made.filter((keys) => keys !== null).length, 1);
  const counts = await database.query<{ organizations: bigint; keys: bigint; workspaces: bigint; members: bigint }>(
    `select (select count(*) from organizations) as organizations, (select count(*) from api_keys) as keys,
       (select count(*) from workspaces) as workspaces, (select count(*) from members) as members`,
  );
  assert.deepEqual({ ...counts[0] }, { organizations: 1n, keys: 2n, workspaces: 1n, members: 1n });
});

test('tokens chosen by the operator become the first keys, on the first start only', async (t) => {
  const { target } = await freshDatabase(t, { migrations: [...accessMigrations, ...auditMigrations] });
  const gate = await KeyProcess.start(t, target, new TestClock());
  await assert.rejects(gate.access.bootstrap({ management: 'two words' }), /management key must be/);
  await assert.rejects(gate.access.bootstrap({ management: 'same-token', inference: 'same-token' }), /must differ/);
  const made = await gate.access.bootstrap({ management: 'chosen-management', inference: 'chosen-inference' });
  assert.deepEqual(
    made?.map(({ token, generated }) => [token, generated]),
    [
      ['chosen-management', false],
      ['chosen-inference', false],
    ],
  );
  assert.equal((await gate.call('GET', '/keys', 'chosen-management')).status, 200);
  assert.equal((await gate.call('GET', '/key', 'chosen-inference')).status, 200);
  assert.equal(await gate.access.bootstrap({ management: 'later-management' }), null);
  refused(await gate.call('GET', '/key', 'later-management'), 401, /not known/);
});

test('first keys that could not be shown do not exist, and the next start creates others', async (t) => {
  const { target } = await freshDatabase(t, { migrations: [...accessMigrations, ...auditMigrations] });
  const gate = await KeyProcess.start(t, target, new TestClock());
  const lost: string[] = [];
  const failing = gate.access.bootstrap({}, (made) => {
    lost.push(...made.map(({ token }) => token));
    throw new Error('the disk is full');
  });
  await assert.rejects(failing, /the disk is full/);
  const shown: string[] = [];
  await gate.access.bootstrap({}, (made) => shown.push(...made.map(({ token }) => token)));
  assert.equal(shown.length, 2);
  for (const token of shown) assert.equal((await gate.call('GET', '/key', token)).status, 200);
  for (const token of lost) refused(await gate.call('GET', '/key', token), 401, /not known/);
});

test('a key whose creator is no longer a member is refused with 403', async (t) => {
  const { gate, keys } = await installation(t);
  const { token } = await create(gate, keys, { name: 'theirs' });
  const { token: ours } = await create(gate, keys, { name: 'ours', creator_user_id: null });
  await gate.database.query('delete from members');
  refused(await gate.call('GET', '/key', token), 403, /no longer a member/);
  assert.equal((await gate.call('GET', '/key', ours)).status, 200);
});

test('no token appears in a row, a log line or an error', async (t) => {
  const { gate, keys } = await installation(t);
  const external = `canary-${'e'.repeat(32)}`;
  const { token, hash } = await create(gate, keys, { name: 'one', external: { user: 'u', api_key: external } });
  const invented = `sk-svc-v1-canary${'f'.repeat(58)}`;
  const seen: string[] = [];
  for (const each of [token, keys.inference, invented, `${invented} with a space`]) {
    for (const [method, path] of [
      ['GET', '/key'],
      ['GET', '/keys'],
      ['POST', '/keys'],
      ['GET', `/keys/${each}`],
    ] as const) {
      const answer = await gate.call(method, path, each, method === 'POST' ? { name: 'x' } : undefined);
      seen.push(JSON.stringify([answer.body, [...answer.headers]]));
    }
  }
  await gate.call('PATCH', `/keys/${hash}`, keys.management, { disabled: true });
  const tables = await gate.database.query<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public'`,
  );
  for (const { name } of tables) {
    const rows = await gate.database.query<{ row: string }>(`select t::text as row from ${name} t`);
    seen.push(...rows.map(({ row }) => row));
  }
  seen.push(...gate.lines);
  assert.ok(
    seen.some((text) => text.includes(hash)),
    'the search sees rows',
  );
  for (const secret of [token, keys.inference, keys.management, external, invented]) {
    const secretPart = secret.slice(-40);
    assert.deepEqual(
      seen.filter((text) => text.includes(secretPart)),
      [],
    );
  }
});
