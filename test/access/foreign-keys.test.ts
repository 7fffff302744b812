/** Keys and what hangs on them, asked for by those whose they are not. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { wholeDatabase } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf, inDatabase, type Json } from '../workspaces/control.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) }, { providers: { a: {} } });
const { call, keyIn, made, refused } = controlOf(gateway);
const STRANGER = '00000000-0000-7000-8000-00000000000';
const FOREIGN = 'f'.repeat(64);

/** Another organization in the same database, with a workspace, a key, a BYOK credential and a guardrail. */
await inDatabase(gateway, [
  `insert into organizations select (jsonb_populate_record(o, '{"id":"org_other","default_workspace_id":null}')).* from organizations o`,
  `insert into workspaces select (jsonb_populate_record(w, '{"id":"${STRANGER}1","organization_id":"org_other"}')).*
     from workspaces w where slug = 'default'`,
  `insert into api_keys select (jsonb_populate_record(k, '{"id":"${STRANGER}2","hash":"${FOREIGN}",
     "organization_id":"org_other","workspace_id":"${STRANGER}1","created_by":null}')).* from api_keys k
     where kind = 'inference'`,
  `insert into byok_keys (id, organization_id, workspace_id, provider, label, sealed, sealed_at, sort_order, disabled,
     is_fallback, is_required, is_byok_only, created_at)
     values ('${STRANGER}3', 'org_other', null, 'a', '...', '\\x00', now(), 0, true, false, false, false, now())`,
]);

test('what is of another organization is not there: keys, BYOK credentials, workspaces, in paths, bodies and lists', async () => {
  const rows = await wholeDatabase(gateway.target);
  assert.ok(rows.includes(FOREIGN) && rows.includes(`${STRANGER}3`) && rows.includes(`${STRANGER}1`));
  const rotation = { revoke_previous_after_seconds: 0 };
  for (const [method, route, body] of [
    ['GET', `/keys/${FOREIGN}`],
    ['PATCH', `/keys/${FOREIGN}`, { disabled: true }],
    ['DELETE', `/keys/${FOREIGN}`],
    ['POST', `/keys/${FOREIGN}/rotate`, rotation],
    ['GET', `/byok/${STRANGER}3`],
    ['PATCH', `/byok/${STRANGER}3`, { name: 'mine' }],
    ['PATCH', `/byok/${STRANGER}3`, { key: 'sk-of-somebody-else' }],
    ['DELETE', `/byok/${STRANGER}3`],
    ['GET', `/workspaces/${STRANGER}1`],
  ] as const) {
    await refused(call(method, route, body), 404, /./);
  }
  for (const [route, body, field] of [
    ['/keys', { name: 'x', workspace_id: `${STRANGER}1` }, /workspace_id/],
    ['/byok', { provider: 'a', key: 'sk-1', workspace_id: `${STRANGER}1` }, /workspace_id/],
    ['/byok', { provider: 'a', key: 'sk-1', allowed_api_key_hashes: [FOREIGN] }, /allowed_api_key_hashes\[0\]/],
    ['/auth/keys/code', { callback_url: 'https://a.test', workspace_id: `${STRANGER}1` }, /workspace_id/],
  ] as const) {
    await refused(call('POST', route, body), 400, field);
  }
  const lists = await Promise.all(
    ['/keys?include_disabled=true', '/byok', '/workspaces'].map((route) => call('GET', route)),
  );
  for (const { status, body } of lists) {
    assert.equal(status, 200);
    assert.ok(!JSON.stringify(body).includes(STRANGER) && !JSON.stringify(body).includes(FOREIGN));
  }
});

test('an inference key manages nothing, not even itself, and wrong keys learn nothing', async () => {
  const { id: workspace } = await made({ name: 'Team', slug: 'attack-team' });
  const own = await keyIn(workspace, 'own');
  const other = await keyIn(undefined, 'other');
  for (const target of [own, other]) {
    for (const [method, route, body] of [
      ['GET', `/keys/${target.hash}`],
      ['PATCH', `/keys/${target.hash}`, { limit: null }],
      ['DELETE', `/keys/${target.hash}`],
      ['POST', `/keys/${target.hash}/rotate`, { revoke_previous_after_seconds: 0 }],
      ['GET', '/keys'],
      ['POST', '/keys', { name: 'more' }],
      ['POST', '/auth/keys/code', { callback_url: 'https://a.test' }],
      ['GET', '/byok'],
      ['POST', '/byok', { provider: 'a', key: 'sk-1' }],
      ['GET', '/audit'],
    ] as const) {
      await refused(call(method, route, body, own.token), 403, /management/);
      await refused(call(method, route, body, `${own.token.slice(0, -1)}x`), 401, /./);
    }
  }
});

test('invalid hashes in paths and read-only members are refused, never a 500', async () => {
  const { hash } = await keyIn(undefined, 'target');
  const odd = [
    hash.toUpperCase(),
    hash.slice(0, 63),
    `${hash}0`,
    `${hash}%00`,
    `%2e%2e%2fkeys%2f${hash}`,
    '*',
    '%25',
    "'%20or%201=1--",
    '%F0%9F%9A%AA',
    'a'.repeat(4_000),
  ];
  for (const path of odd) {
    for (const [method, body] of [['GET'], ['PATCH', { disabled: true }], ['DELETE']] as const) {
      const { status, body: answer } = await call(method, `/keys/${path}`, body);
      assert.ok([400, 404].includes(status), `${method} ${path}: ${status} ${JSON.stringify(answer)}`);
    }
  }
  for (const member of [
    'hash',
    'organization_id',
    'workspace_id',
    'usage',
    'kind',
    'is_management_key',
    'creator_user_id',
  ]) {
    const { status, body } = await call('PATCH', `/keys/${hash}`, { [member]: 'x' });
    assert.equal(status, 400, `${member}: ${JSON.stringify(body)}`);
  }
  assert.equal((await call('GET', `/keys/${hash}`)).body.data.disabled, false);
});

test('a rotated key: the old secret ends when it should, twice at once gives one successor, and limits go along', async () => {
  const first = await keyIn(undefined, 'rotates', { limit: 5 });
  const rotate = (hash: string, seconds: number | null) =>
    call('POST', `/keys/${hash}/rotate`, { revoke_previous_after_seconds: seconds });
  const answers = await Promise.all([rotate(first.hash, 60), rotate(first.hash, 60), rotate(first.hash, 60)]);
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 409, 409]);
  const { body } = answers.find(({ status }) => status === 201)!;
  assert.equal(body.data.limit, 5);
  const works = async (token: string) => (await call('GET', '/key', undefined, token)).status;
  assert.deepEqual([await works(first.token), await works(body.key)], [200, 200]);
  gateway.clock.jump(61_000);
  assert.deepEqual([await works(first.token), await works(body.key)], [401, 200]);
  for (const seconds of [-1, 0.5, '0']) {
    await refused(rotate(body.data.hash, seconds as number), 400, /revoke_previous_after_seconds/);
  }
});

test("a partner's secret is shown nowhere, belongs to one key only, and ends with it", async () => {
  const secret = 'canary-partner-secret-0123456789-abcdef';
  const one = await call('POST', '/keys', { name: 'one', external: { user: 'u1', api_key: secret } });
  assert.equal(one.status, 201);
  const told: Json[] = [one.body];
  const again = await call('POST', '/keys', { name: 'two', external: { user: 'u2', api_key: secret } });
  assert.equal(again.status, 409);
  told.push(again.body);
  for (const token of [MANAGEMENT_KEY, INFERENCE_KEY, one.body.key]) {
    await refused(
      call('POST', '/keys', { name: 'taken', external: { user: 'u', api_key: token } }),
      409,
      /external\.api_key/,
    );
  }
  for (const route of ['/keys', `/keys/${one.body.data.hash}`, '/audit?limit=100'])
    told.push((await call('GET', route)).body);
  await refused(call('GET', '/keys', undefined, secret), 403, /management/);
  assert.equal((await call('GET', '/key', undefined, secret)).status, 200);
  assert.equal((await call('DELETE', `/keys/${one.body.data.hash}`)).status, 200);
  assert.equal((await call('GET', '/key', undefined, secret)).status, 401);
  for (const answer of told) assert.ok(!JSON.stringify(answer).includes('canary-partner'), JSON.stringify(answer));
  assert.ok(!(await wholeDatabase(gateway.target)).includes('canary-partner'));
});
