/** Vaults of workspaces and interns in the database: what an intern gets, copies, and vaults that end. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { operatorAuthor } from '../../src/audit/index.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { checkVaults } from '../../src/vault/index.ts';
import { copySecrets, deleteSecret, type HeldOwner, storeSecret } from '../../src/vault/secrets.ts';
import * as store from '../../src/vault/store.ts';
import { openVaultKey } from '../../src/vault/vault-key.ts';
import { endInternVault, VAULTS_TOPIC } from '../../src/vault/vaults.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { auditOf, partsOf, vaultOf } from './vault.ts';

const end = { after: (close: unknown) => after(close as () => Promise<void>) };
const gateway = await startGateway(end);
const parts = (await partsOf(end, gateway))();
const { database, changes, sealing } = parts;
const control = controlOf(gateway);
const [{ id: organizationId }] = (await database.query('select id from organizations')) as [{ id: string }];
const author = operatorAuthor(organizationId, 0);
let workspaces = 0;

/** A new workspace with its vault, and interns in it. */
async function workspace() {
  workspaces += 1;
  const { id } = await control.made({ name: `w${workspaces}`, slug: `w${workspaces}` });
  const intern = (): HeldOwner => ({
    owner: { type: 'intern', id: randomUUID(), organizationId, workspaceId: id },
    hold: async () => {},
  });
  const { token, hash } = await control.keyIn(id, 'key');
  return { id, hash, intern, vault: vaultOf(gateway, token) };
}

const put = (intern: HeldOwner, name: string, value: string, hosts = ['a.test']) =>
  storeSecret(parts, author, intern, { name, hosts, value });
const ownId = async ({ owner }: HeldOwner) => (await store.vaultIdOf(database, owner)) ?? null;

/** Names and values that a sandbox of the intern gets. */
async function effective(own: HeldOwner, borrowed?: HeldOwner): Promise<Record<string, string>> {
  const vaults = { ownId: await ownId(own), borrowedId: borrowed === undefined ? null : await ownId(borrowed) };
  const secrets = await store.effectiveSecrets(database, vaults);
  const listed = await store.listEffectiveSecrets(database, vaults, { limit: 1_000, offset: 0 });
  assert.deepEqual(
    listed.map(({ name, fingerprint }) => [name, fingerprint]),
    secrets.map(({ name, fingerprint }) => [name, fingerprint]),
  );
  const ids = [...new Set(secrets.map(({ vaultId }) => vaultId))];
  const keys = new Map<string, Awaited<ReturnType<typeof openVaultKey>>>();
  for (const vault of await store.holdVaults(database, ids)) {
    keys.set(vault.id, await openVaultKey(sealing, database, vault));
  }
  return Object.fromEntries(secrets.map((secret) => [secret.name, keys.get(secret.vaultId)!.open(secret)]));
}

test('an intern gets its own secrets and the borrowed ones, and its own win', async () => {
  const { intern } = await workspace();
  const names = fc.uniqueArray(fc.constantFrom('a', 'b', 'c', 'd', 'e_1'), { maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(names, names, async (mine, theirs) => {
      const [own, lender] = [intern(), intern()];
      for (const name of mine) await put(own, name, `own ${name}`);
      for (const name of theirs) await put(lender, name, `borrowed ${name}`);
      const all = [...new Set([...mine, ...theirs])].toSorted();
      const expected = all.map((name) => [name, `${mine.includes(name) ? 'own' : 'borrowed'} ${name}`]);
      assert.deepEqual(Object.entries(await effective(own, lender)), expected);
      assert.deepEqual(Object.keys(await effective(own)), mine.toSorted());
    }),
    { numRuns: 8 },
  );
});

test('pages of effective secrets join without gaps', async () => {
  const { intern } = await workspace();
  const [own, lender] = [intern(), intern()];
  for (const name of ['a', 'c', 'e']) await put(own, name, 'v');
  for (const name of ['b', 'c', 'd']) await put(lender, name, 'v');
  const vaults = { ownId: await ownId(own), borrowedId: await ownId(lender) };
  for (let limit = 1; limit <= 3; limit += 1) {
    const seen: string[] = [];
    for (let offset = 0; offset < 5; offset += limit) {
      seen.push(...(await store.listEffectiveSecrets(database, vaults, { limit, offset })).map(({ name }) => name));
    }
    assert.deepEqual(seen, ['a', 'b', 'c', 'd', 'e']);
  }
});

test('only a vault of an intern of the same workspace can be borrowed', async () => {
  const [here, there] = [await workspace(), await workspace()];
  const lender = here.intern();
  await put(lender, 'token', 'v');
  await here.vault.put('token', 'v');
  const id = (await ownId(lender))!;
  const shared = await store.vaultIdOf(database, { type: 'workspace', id: here.id });
  assert.equal(await store.isLendable(database, here.id, id), true);
  assert.equal(await store.isLendable(database, there.id, id), false);
  assert.equal(await store.isLendable(database, here.id, shared!), false);
});

test('a copy has value and hosts of the secret, the time of the copy, and is independent of it', async () => {
  const { vault, intern, id: workspaceId } = await workspace();
  const own = intern();
  const first = await put(own, 'token', 'old', ['old.test']);
  const shown = await vault.put('token', 'new', ['a.test', 'b.test']);
  await vault.put('other', 'of another', ['c.test']);
  const copies = await copySecrets(parts, author, own, ['other', 'token']);
  assert.deepEqual(
    copies.map(({ name, hosts }) => [name, hosts]),
    [
      ['other', ['c.test']],
      ['token', ['a.test', 'b.test']],
    ],
  );
  assert.deepEqual(copies[1]!.createdAt, first.createdAt);
  assert.notEqual(copies[1]!.fingerprint, shown.fingerprint);
  await vault.put('token', 'newer');
  await vault.call('DELETE', 'secrets/other');
  assert.deepEqual(await effective(own), { other: 'of another', token: 'new' });
  assert.deepEqual((await checkVaults(parts)).unreadable, []);
  const entries = (await auditOf(gateway, 'vault_secret')).filter((entry) => entry.workspace_id === workspaceId);
  const copied = entries.filter(({ resource_id }: Json) => resource_id.startsWith(own.owner.id));
  assert.deepEqual(copied.map(({ action, resource_id }: Json) => [action, resource_id.split('/')[1]]).toReversed(), [
    ['vault_secret.created', 'token'],
    ['vault_secret.created', 'other'],
    ['vault_secret.updated', 'token'],
  ]);
});

test('a copy is all or nothing', async () => {
  const { vault, intern } = await workspace();
  const own = intern();
  await put(own, 'a', 'kept');
  await vault.put('a', 'v');
  await vault.put('b', 'v');
  const copy = (names: string[]) => copySecrets(parts, author, own, names);
  await assert.rejects(copy(['a', 'missing', 'b']), { status: 404, message: /names\[1\]/ });
  assert.deepEqual(await effective(own), { a: 'kept' });
  await database.query(
    `update vault_secrets set sealed = '\\x00' where name = 'b'
    and vault_id = (select id from vaults where owner_id = $1)`,
    [own.owner.workspaceId],
  );
  await assert.rejects(copy(['a', 'b']), { status: 503 });
  assert.deepEqual(await effective(own), { a: 'kept' });
  const gone: HeldOwner = {
    owner: own.owner,
    hold: async () => {
      throw new Error('the intern was deleted');
    },
  };
  await assert.rejects(copySecrets(parts, author, gone, ['a']), /the intern was deleted/);
  await assert.rejects(copySecrets(parts, author, (await workspace()).intern(), ['a']), { status: 404 });
});

test('a full vault takes no copy', async () => {
  const { vault, intern } = await workspace();
  const own = intern();
  await put(own, 'first', 'v');
  await database.query(
    `insert into vault_secrets select vault_id, 'filled' || n, hosts, fingerprint, sealed, created_at, updated_at
       from vault_secrets s, generate_series(1, 998) n where vault_id = $1`,
    [await ownId(own)],
  );
  for (const name of ['first', 'x', 'y']) await vault.put(name, 'v');
  await assert.rejects(copySecrets(parts, author, own, ['x', 'y']), { status: 400, message: /at most 1000/ });
  assert.equal((await copySecrets(parts, author, own, ['first', 'x'])).length, 2);
});

test('copies and writes at once neither block each other nor lose anything', async () => {
  const { vault, intern } = await workspace();
  const interns = [intern(), intern(), intern()];
  for (const name of ['a', 'b', 'c']) await vault.put(name, 'v');
  await Promise.all([
    ...interns.flatMap((one, at) => [
      copySecrets(parts, author, one, ['a', 'b']),
      copySecrets(parts, author, one, ['b', 'c']),
      put(one, 'own', `${at}`),
    ]),
    vault.put('a', 'w'),
    vault.put('c', 'w'),
  ]);
  for (const [at, one] of interns.entries()) {
    const { own, a, b, c } = await effective(one);
    assert.deepEqual([own, b], [`${at}`, 'v']);
    for (const value of [a, c]) assert.ok(value === 'v' || value === 'w');
  }
});

test('writes, deletions and copies are announced with the vault, and the end of a vault too', async () => {
  const { id: workspaceId, hash, vault, intern } = await workspace();
  const heard: (string | null)[] = [];
  changes.subscribe(VAULTS_TOPIC, (id) => void heard.push(id));
  const [one, other] = [intern(), intern()];
  await vault.put('token', 'v');
  await put(one, 'token', 'v');
  await copySecrets(parts, author, one, ['token']);
  await deleteSecret(parts, author, one.owner, 'token');
  await put(other, 'token', 'v');
  const shared = (await store.vaultIdOf(database, { type: 'workspace', id: workspaceId }))!;
  const [id, otherId] = [(await ownId(one))!, (await ownId(other))!];
  await database.transaction((tx) => endInternVault(changes, tx, one.owner.id));
  assert.equal(await ownId(one), null);
  await control.call('DELETE', `/keys/${hash}`);
  assert.equal((await control.call('DELETE', `/workspaces/${workspaceId}`)).status, 200);
  assert.equal(await ownId(other), null);
  const expected = [shared, id, id, id, otherId, id];
  assert.deepEqual(heard.slice(0, 6), expected);
  assert.deepEqual(new Set(heard.slice(6)), new Set([shared, otherId]));
});
