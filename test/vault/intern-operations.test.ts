/** The operations on the secrets of an intern, with the key of its workspace and with its own. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { internsOf } from '../interns/interns.ts';
import { controlOf, inDatabase, type Json } from '../workspaces/control.ts';
import { stopsArriving, vaultOf } from './vault.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) });
const control = controlOf(gateway);
const WRITE = { value: 'v', hosts: ['api.test'] };
let teams = 0;

/** A new workspace with its vault and interns. */
async function team() {
  teams += 1;
  const { id } = await control.made({ name: `t${teams}`, slug: `t${teams}` });
  const { token } = await control.keyIn(id, 'key');
  const interns = internsOf(gateway, token);
  return { id, token, vault: vaultOf(gateway, token), interns, made: (body: Json) => interns.made({ ...body }) };
}

const names = ({ body }: { body: Json }) => body.data.map(({ name }: Json) => name);

test('secrets of an intern are stored, listed, replaced and deleted apart from those of the workspace', async () => {
  const { vault, made } = await team();
  const [one, other] = [await made({ name: 'one' }), await made({ name: 'other' })];
  const of = (intern: Json) => `interns/${intern.id}/secrets`;
  await vault.put('shared', 'v');
  const { status, body } = await vault.call('PUT', `${of(one)}/token`, { value: 'v', hosts: ['API.test.'] });
  assert.equal(status, 200);
  assert.deepEqual(body.data.hosts, ['api.test']);
  await vault.call('PUT', `${of(one)}/another`, WRITE);
  const page = await vault.call('GET', `${of(one)}?limit=1`);
  assert.deepEqual([names(page), page.body.has_more], [['another'], true]);
  assert.deepEqual(names(await vault.call('GET', of(other))), []);
  assert.deepEqual(names(await vault.call('GET', 'secrets')), ['shared']);
  assert.deepEqual(await vault.call('DELETE', `${of(one)}/token`), { status: 204, body: undefined });
  await vault.refused(vault.call('DELETE', `${of(one)}/token`), 404, /no secret with this name at the intern/);
  await vault.refused(vault.call('PUT', `${of(one)}/token`, { ...WRITE, hosts: ['a.test', '*'] }), 400, /^hosts\[1\] /);
  await vault.refused(vault.call('PUT', `${of(one)}/token`, JSON.stringify(WRITE).padEnd(425_001)), 413, /425000/);
});

test('a body that stops arriving is 408, for each operation of an intern that has one', async () => {
  const { token, vault, made } = await team();
  const { id } = await made({ name: 'slow' });
  for (const route of [
    `PUT /api/v1/vault/interns/${id}/secrets/slow`,
    `POST /api/v1/vault/interns/${id}/secrets/copy`,
  ]) {
    assert.equal((await stopsArriving(gateway, route, token)).status, 408, route);
  }
  assert.deepEqual(names(await vault.call('GET', `interns/${id}/secrets`)), []);
});

test('effective secrets are the own ones, and the borrowed ones of other names', async () => {
  const { vault, made } = await team();
  const lender = await made({ name: 'lender' });
  const borrower = await made({ name: 'borrower', vault_id: lender.vault_id });
  const put = async (intern: Json, name: string, value: string) =>
    (await vault.call('PUT', `interns/${intern.id}/secrets/${name}`, { ...WRITE, value })).body.data;
  await put(lender, 'both', 'lent');
  const lent = await put(lender, 'lent', 'lent');
  const own = await put(borrower, 'both', 'own');
  const effective = (query = '') => vault.call('GET', `interns/${borrower.id}/effective-secrets${query}`);
  assert.deepEqual((await effective()).body, { data: [own, lent], has_more: false });
  assert.deepEqual((await effective('?limit=1')).body, { data: [own], has_more: true });
  assert.deepEqual((await effective('?limit=1&offset=1')).body, { data: [lent], has_more: false });
  await vault.refused(effective('?limit=0'), 400, /limit/);
  const lenders = await vault.call('GET', `interns/${lender.id}/effective-secrets`);
  assert.deepEqual(names(lenders), ['both', 'lent']);
});

test('a copy takes every named secret of the workspace, or none', async () => {
  const { vault, made } = await team();
  const intern = await made({ name: 'copies' });
  for (const name of ['a', 'b', 'c']) await vault.put(name, name, [`${name}.test`]);
  const copy = (body: Json) => vault.call('POST', `interns/${intern.id}/secrets/copy`, body);
  const { status, body } = await copy({ names: ['c', 'a'] });
  assert.equal(status, 200);
  assert.deepEqual(
    body.data.map(({ name, hosts }: Json) => [name, hosts]),
    [
      ['c', ['c.test']],
      ['a', ['a.test']],
    ],
  );
  await vault.refused(copy({ names: ['b', 'missing'] }), 404, /names\[1\]/);
  await vault.refused(copy({ names: ['b', 'a', 'b'] }), 400, /^names\[2\] occurs twice/);
  await vault.refused(copy({ names: [] }), 400, /^names /);
  await vault.refused(copy({ names: ['NO'] }), 400, /^names\[0\] /);
  await vault.refused(copy({ names: Array.from({ length: 101 }, (_, at) => `n${at}`) }), 400, /^names /);
  await vault.refused(copy({ names: ['a'], more: 1 }), 400, /more/);
  const listed = await vault.call('GET', `interns/${intern.id}/secrets`);
  assert.deepEqual(listed.body.data, body.data.toReversed());
});

test('an intern of another workspace, or none, is 404, whatever is asked', async () => {
  const [here, there] = [await team(), await team()];
  const stranger = await there.made({ name: 'stranger' });
  for (const id of [stranger.id, '018f4d3c-6f0a-7000-8000-000000000000', 'x', 'a%20b']) {
    const path = `interns/${id}`;
    for (const [method, rest, body] of [
      ['GET', '/secrets'],
      ['GET', '/effective-secrets'],
      ['PUT', '/secrets/token', WRITE],
      ['DELETE', '/secrets/token'],
      ['POST', '/secrets/copy', { names: ['token'] }],
    ] as const) {
      await here.vault.refused(here.vault.call(method, path + rest, body), 404, /There is no intern with this id/);
    }
  }
  await here.vault.refused(vaultOf(gateway, MANAGEMENT_KEY).call('GET', 'interns/x/secrets'), 403, /Management keys/);
});

test('the own key of an intern reaches the secrets of that intern alone, and those of the workspace never', async () => {
  const { id: workspaceId, vault, made } = await team();
  const [own, other] = [await made({ name: 'own' }), await made({ name: 'other' })];
  await vault.put('shared', 'v');
  const { token, hash } = await control.keyIn(workspaceId, 'of the intern');
  // No one gets an intern's key: one of another kind is made into it.
  await inDatabase(gateway, [
    `update api_keys set deleted_at = now() where intern_id = '${own.id}'`,
    `update api_keys set intern_id = '${own.id}' where hash = '${hash}'`,
  ]);
  const its = vaultOf(gateway, token);
  assert.equal((await its.call('PUT', `interns/${own.id}/secrets/token`, WRITE)).status, 200);
  assert.deepEqual(names(await its.call('POST', `interns/${own.id}/secrets/copy`, { names: ['shared'] })), ['shared']);
  for (const list of ['secrets', 'effective-secrets']) {
    assert.deepEqual(names(await its.call('GET', `interns/${own.id}/${list}`)), ['shared', 'token']);
  }
  assert.equal((await its.call('DELETE', `interns/${own.id}/secrets/token`)).status, 204);
  for (const [method, path, body] of [
    ['GET', 'secrets'],
    ['PUT', 'secrets/token', WRITE],
    ['DELETE', 'secrets/shared'],
    ['GET', `interns/${other.id}/secrets`],
    ['GET', `interns/${other.id}/effective-secrets`],
    ['PUT', `interns/${other.id}/secrets/token`, WRITE],
    ['POST', `interns/${other.id}/secrets/copy`, { names: ['shared'] }],
  ] as const) {
    const error = await its.refused(its.call(method, path, body), 404, /There is no such resource/);
    assert.deepEqual(Object.keys(error), ['code', 'message']);
  }
});

test('writes of an intern are 503 while they are off, and its lists work', async () => {
  const { vault, made } = await team();
  const intern = await made({ name: 'off' });
  gateway.app.reload({ ...gateway.config, vault: { writes: false } });
  try {
    for (const [method, path, body] of [
      ['PUT', 'secrets/token', WRITE],
      ['DELETE', 'secrets/token'],
      ['POST', 'secrets/copy', { names: ['token'] }],
    ] as const) {
      await vault.refused(vault.call(method, `interns/${intern.id}/${path}`, body), 503, /writes are not enabled/);
    }
    assert.equal((await vault.call('GET', `interns/${intern.id}/effective-secrets`)).status, 200);
  } finally {
    gateway.app.reload(gateway.config);
  }
});

test('a write to an intern that is being deleted leaves no vault behind', async () => {
  const { vault, interns, made } = await team();
  const intern = await made({ name: 'ending' });
  const writes = Array.from({ length: 10 }, (_, at) => vault.call('PUT', `interns/${intern.id}/secrets/s${at}`, WRITE));
  assert.equal((await interns.call('DELETE', `/${intern.id}`)).status, 202);
  for (const { status } of await Promise.all(writes)) assert.ok([200, 404].includes(status), `${status}`);
  await until(async () => (await interns.call('GET', `/${intern.id}`)).status === 404, 'the intern is gone');
  await vault.refused(vault.call('PUT', `interns/${intern.id}/secrets/late`, WRITE), 404, /no intern/);
  await inDatabase(gateway, [
    `do $$ begin assert (select count(*) from vaults where owner_id = '${intern.id}') = 0; end $$`,
  ]);
});
