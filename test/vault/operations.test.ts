/** The operations on the secrets of a workspace, status by status. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { directoryOf, scimToken } from '../scim/directory.ts';
import { controlOf, inDatabase, type Json } from '../workspaces/control.ts';
import { auditOf, stopsArriving, vaultOf } from './vault.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) });
const control = controlOf(gateway);
const { call, put, list, refused } = vaultOf(gateway);
const WRITE = { value: 'v', hosts: ['api.test'] };

/** The vault of a new workspace. */
async function vaultIn(slug: string) {
  const { id } = await control.made({ name: slug, slug });
  const { token, hash } = await control.keyIn(id, slug);
  return { id, hash, ...vaultOf(gateway, token) };
}

test('a fingerprint is equal for equal values in one vault, and only for those', async () => {
  const [one, other] = [await vaultIn('one'), await vaultIn('other')];
  const value = fc.string({ minLength: 1, maxLength: 40, unit: 'grapheme' }).filter((text) => !text.includes('\0'));
  await fc.assert(
    fc.asyncProperty(value, value, async (a, b) => {
      const first = await one.put('first', a);
      const second = await one.put('second', b);
      assert.equal(first.fingerprint === second.fingerprint, a === b);
      assert.equal((await one.put('first', a, ['elsewhere.test'])).fingerprint, first.fingerprint);
      assert.notEqual((await other.put('first', a)).fingerprint, first.fingerprint);
    }),
    { numRuns: 15 },
  );
});

test('a replaced secret has the new value and hosts, and the time of the first', async () => {
  const vault = await vaultIn('replaced');
  const first = await vault.put('token', 'a', ['a.test']);
  gateway.clock.jump(60_000);
  const second = await vault.put('token', 'b', ['b.test', 'B.test.']);
  assert.deepEqual(second, { ...first, hosts: ['b.test'], fingerprint: second.fingerprint });
  assert.notEqual(second.fingerprint, first.fingerprint);
  assert.deepEqual(await vault.list(), { data: [second], has_more: false });
});

test('pages are in the order of names, and say whether more follow', async () => {
  const vault = await vaultIn('paged');
  const names = ['a', 'a1', 'a_1', 'aa', 'b', 'z9'];
  for (const name of names.toReversed()) await vault.put(name, name);
  const inOrder = names.toSorted((a, b) => (a < b ? -1 : 1));
  for (let limit = 1; limit <= 7; limit++) {
    for (let offset = 0; offset <= 7; offset++) {
      const { data, has_more } = await vault.list(`?limit=${limit}&offset=${offset}`);
      assert.deepEqual(
        data.map(({ name }: Json) => name),
        inOrder.slice(offset, offset + limit),
      );
      assert.equal(has_more, offset + limit < names.length);
    }
  }
  for (const query of ['?limit=0', '?limit=101', '?offset=-1', '?offset=10001', '?limit=x', '?workspace_id=x']) {
    await vault.refused(vault.call('GET', `secrets${query}`), 400, /limit|offset|workspace_id/);
  }
});

test('names are lower-case words with single underscores', async () => {
  for (const name of ['a', 'a1', 'a_b', 'github_token_2', `a${'b'.repeat(254)}`]) await put(name, 'v');
  for (const name of ['A', '1a', '_a', 'a_', 'a__b', 'a-b', 'a.b', 'ä', 'a%20b', 'a%0Ab', `a${'b'.repeat(255)}`]) {
    for (const method of ['PUT', 'DELETE']) {
      await refused(call(method, `secrets/${name}`, method === 'PUT' ? WRITE : undefined), 400, /^name /);
    }
  }
});

test('a body outside of the limits is 400 with the path of the field, and nothing is stored', async () => {
  const vault = await vaultIn('refusing');
  const hosts = (count: number) => Array.from({ length: count }, (_, at) => `h${at}.test`);
  const cases: [Json, RegExp][] = [
    [{}, /value|hosts/],
    [{ value: 'v' }, /^hosts /],
    [{ hosts: ['a.test'] }, /^value /],
    [{ ...WRITE, value: '' }, /^value /],
    [{ ...WRITE, value: 7 }, /^value /],
    [{ ...WRITE, value: null }, /^value /],
    [{ ...WRITE, value: 'v'.repeat(65_537) }, /^value /],
    [`{"value": "\\ud800", "hosts": ["a.test"]}`, /value|surrogate|Unicode/],
    [`{"value": "a\\u0000b", "hosts": ["a.test"]}`, /^value .*U\+0000/],
    [{ ...WRITE, hosts: [] }, /^hosts /],
    [{ ...WRITE, hosts: 'a.test' }, /^hosts /],
    [{ ...WRITE, hosts: hosts(101) }, /^hosts /],
    [{ ...WRITE, hosts: ['a.test', `${'a'.repeat(251)}.test`] }, /^hosts\[1\] /],
    [{ ...WRITE, hosts: ['a.test', 'b.test', ''] }, /^hosts\[2\] /],
    [{ ...WRITE, hosts: ['a.test', '*.test'] }, /^hosts\[1\] must be an exact DNS name/],
    [{ ...WRITE, hosts: ['127.0.0.1'] }, /^hosts\[0\] must be an exact DNS name/],
    [{ ...WRITE, note: 'x' }, /note/],
    ['{"value": ', /JSON/],
  ];
  for (const [body, message] of cases) await vault.refused(vault.call('PUT', 'secrets/token', body), 400, message);
  assert.deepEqual(await vault.list(), { data: [], has_more: false });
  const most = { value: '\u0001'.repeat(65_536), hosts: hosts(100) };
  assert.equal((await vault.call('PUT', 'secrets/token', most)).status, 200);
});

test('the largest allowed secret fits into the largest body, and one byte more is 413', async () => {
  const body = JSON.stringify(WRITE);
  assert.equal((await call('PUT', 'secrets/large', body.padEnd(425_000))).status, 200);
  await refused(call('PUT', 'secrets/large', body.padEnd(425_001)), 413, /425000 bytes/);
});

test('a body that stops arriving is 408', async () => {
  assert.equal((await stopsArriving(gateway, 'PUT /api/v1/vault/secrets/slow')).status, 408);
});

test('a secret that is not there is 404, also in a vault that was never used', async () => {
  const vault = await vaultIn('unused');
  await vault.refused(vault.call('DELETE', 'secrets/token'), 404, /There is no secret/);
  await vault.put('token', 'v');
  assert.deepEqual(await vault.call('DELETE', 'secrets/token'), { status: 204, body: undefined });
  await vault.refused(vault.call('DELETE', 'secrets/token'), 404, /There is no secret/);
  await put('token', 'v');
  await vault.refused(vault.call('DELETE', 'secrets/token'), 404, /There is no secret/);
});

test('a vault has at most a thousand secrets; those that it has can be replaced', async () => {
  const vault = await vaultIn('full');
  await vault.put('first', 'v');
  await inDatabase(gateway, [
    `insert into vault_secrets select vault_id, 'filled' || n, hosts, fingerprint, sealed, created_at, updated_at
       from vault_secrets s, generate_series(1, 999) n
      where vault_id = (select id from vaults where workspace_id = '${vault.id}')`,
  ]);
  await vault.refused(vault.call('PUT', 'secrets/another', WRITE), 400, /at most 1000 secrets/);
  await vault.put('first', 'w');
  assert.equal((await vault.list('?offset=900')).has_more, false);
  assert.equal((await vault.list('?offset=899')).has_more, true);
});

test('twenty first writes at once make one vault with twenty secrets', async () => {
  const vault = await vaultIn('at-once');
  const names = Array.from({ length: 20 }, (_, at) => `s${at}`);
  const stored = await Promise.all(names.map((name) => vault.put(name, 'same')));
  assert.equal(new Set(stored.map(({ fingerprint }) => fingerprint)).size, 1);
  assert.equal((await vault.list()).data.length, 20);
});

test('the audit log has names, hosts and fingerprints of changes, and nothing of a write that changes nothing', async () => {
  const vault = await vaultIn('audited');
  const [a] = [await vault.put('token', 'a'), await vault.put('token', 'a')];
  const b = await vault.put('token', 'b', ['b.test']);
  await vault.call('DELETE', 'secrets/token');
  const entries = (await auditOf(gateway, 'vault_secret')).filter((entry) => entry.workspace_id === vault.id);
  assert.deepEqual(
    entries.map(({ action, resource_id: id, before: was, after: is }) => [action, id, was, is]),
    [
      ['vault_secret.deleted', 'token', b, null],
      [
        'vault_secret.updated',
        'token',
        { hosts: a.hosts, fingerprint: a.fingerprint },
        { hosts: b.hosts, fingerprint: b.fingerprint },
      ],
      ['vault_secret.created', 'token', null, a],
    ],
  );
  for (const { actor } of entries) assert.equal(actor.type, 'key');
});

test('secrets end with their workspace, and a key that is used meanwhile stores no more', async () => {
  const vault = await vaultIn('ending');
  await vault.put('token', 'v');
  await control.call('DELETE', `/keys/${vault.hash}`);
  assert.equal((await control.call('DELETE', '/workspaces/ending')).status, 200);
  assert.equal((await vault.call('PUT', 'secrets/token', WRITE)).status, 401);
  await inDatabase(gateway, [
    `do $$ begin assert (select count(*) from vaults where workspace_id = '${vault.id}') = 0; end $$`,
  ]);
  const late = await vaultIn('late');
  await late.list();
  await inDatabase(gateway, [`update workspaces set deleted_at = now() where id = '${late.id}'`]);
  await late.refused(late.call('PUT', 'secrets/token', WRITE), 403, /workspace of this key was deleted/);
});

test('while writes are off, storing and deleting are 503 and lists still work', async () => {
  const stored = await put('kept', 'v');
  gateway.app.reload({ ...gateway.config, vault: { writes: false } });
  try {
    await refused(call('PUT', 'secrets/kept', WRITE), 503, /writes are not enabled/);
    await refused(call('DELETE', 'secrets/kept'), 503, /writes are not enabled/);
    assert.ok((await list()).data.some(({ fingerprint }: Json) => fingerprint === stored.fingerprint));
  } finally {
    gateway.app.reload(gateway.config);
  }
});

test('the programme has the keys and workspaces that the configuration names', async () => {
  const [member, other] = [await vaultIn('member'), await vaultIn('outside')];
  const { hash, token } = await control.keyIn(other.id, 'named');
  const outside = async (pending: ReturnType<typeof call>) => {
    const error = await refused(pending, 404, /There is no such resource/);
    assert.deepEqual(Object.keys(error), ['code', 'message']);
  };
  const programme = { everyone: false, workspaces: [member.id], keys: [hash] };
  gateway.app.reload({ ...gateway.config, internProgramme: programme });
  try {
    assert.equal((await member.call('GET', 'secrets')).status, 200);
    assert.equal((await vaultOf(gateway, token).call('GET', 'secrets')).status, 200);
    await outside(other.call('GET', 'secrets'));
    await outside(other.call('PUT', 'secrets/NOT A NAME', '{'));
    await outside(other.call('DELETE', 'secrets/x'));
    gateway.app.reload({ ...gateway.config, internProgramme: { everyone: true, workspaces: [], keys: [] } });
    assert.equal((await other.call('GET', 'secrets')).status, 200);
    gateway.app.reload({ ...gateway.config, internProgramme: { everyone: false, workspaces: [], keys: [] } });
    await outside(member.call('GET', 'secrets'));
  } finally {
    gateway.app.reload(gateway.config);
  }
});

test('without configuration every key is in the programme until the organization has a second member', async (t) => {
  const installation = await startGateway(t);
  const directory = directoryOf(installation, await scimToken(installation.target));
  const vault = vaultOf(installation);
  assert.equal((await vault.call('GET', 'secrets')).status, 200);
  const { id } = await directory.user('second');
  assert.equal((await vault.call('GET', 'secrets')).status, 404);
  assert.equal((await directory.scim('DELETE', `/Users/${id}`)).status, 204);
  assert.equal((await vault.call('GET', 'secrets')).status, 200);
});
