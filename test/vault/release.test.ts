/** What a sandbox gets of vaults, through the real proxy: values only at their hosts, and every change while it runs. */
import assert from 'node:assert/strict';
import { randomUUID, X509Certificate } from 'node:crypto';
import path from 'node:path';
import { after, test } from 'node:test';
import { operatorAuthor } from '../../src/audit/index.ts';
import { SOCKET_NAME } from '../../src/egress-proxy/index.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { startTlsHost } from '../../src/testing/egress-proxy/hosts.ts';
import { rawIn } from '../../src/testing/egress-proxy/setup.ts';
import { startSupervised } from '../../src/testing/egress-proxy/supervised.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { rotateAuthorities, rotateVaultKeys, type SandboxPolicy, SecretReleases } from '../../src/vault/index.ts';
import { type HeldOwner, storeSecret } from '../../src/vault/secrets.ts';
import * as store from '../../src/vault/store.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { auditOf, partsOf, vaultOf } from './vault.ts';

const end = { after: (close: unknown) => after(close as () => Promise<void>) };
const [API, OTHER] = ['api.test', 'other.test'];
const api = await startTlsHost(API);
const other = await startTlsHost(OTHER);
after(() => Promise.all([api.close(), other.close()]));
const gateway = await startGateway(end);
const parts = (await partsOf(end, gateway))();
const { database, log } = parts;
const { proxy, logged } = startSupervised(end, { [API]: api.port, [OTHER]: other.port });
const settings = { domains: ['*'], ports: [443, 80] };
const errors: string[] = [];
const releases = new SecretReleases({
  ...parts,
  log: {
    ...log,
    error: (event, fields) => errors.push(`${event} ${(fields?.['error'] as Error | undefined)?.message}`),
  },
  settings: () => settings,
});
after(() => releases.end());
const control = controlOf(gateway);
const [{ id: organizationId }] = (await database.query('select id from organizations')) as [{ id: string }];
let sandboxes = 0;

/** A new workspace and its vault. */
async function workspace() {
  sandboxes += 1;
  const { id } = await control.made({ name: `w${sandboxes}`, slug: `w${sandboxes}` });
  const owner = { type: 'workspace', id, organizationId, workspaceId: id } as const;
  return { id, owner, vault: vaultOf(gateway, (await control.keyIn(id, 'key')).token) };
}

const heldBy = (owner: store.VaultOwner): HeldOwner => ({ owner, hold: async () => {} });

/** A sandbox, as seen from inside. */
async function sandbox(owner: store.VaultOwner, more: Partial<SandboxPolicy> = {}) {
  sandboxes += 1;
  const id = `box-${sandboxes}`;
  const policy = { held: heldBy(owner), borrowedVaultId: null, domains: ['*'], ...more };
  const egress = await releases.prepare(id, policy);
  const folder = await proxy.open(id, { ...egress.network, gid: null });
  const inside = { socketPath: path.join(folder, SOCKET_NAME), authority: egress.network };
  return {
    id,
    egress,
    inside,
    /** What it gets back for a header. */
    send: (value: string, host = API) =>
      rawIn(inside, host, `GET / HTTP/1.1\r\nHost: ${host}\r\nauthorization: ${value}\r\nconnection: close\r\n\r\n`),
    close: () => proxy.close(id),
  };
}

const arrived = () => api.seen.at(-1)!.headers['authorization'];

test('a sandbox has a placeholder for each secret, and the host gets the value of now', async () => {
  const { owner, vault } = await workspace();
  await vault.put('github_token', 'value-one', [API]);
  await vault.put('path', 'value-two', [API]);
  const box = await sandbox(owner);
  const variables = box.egress.environment();
  assert.deepEqual(Object.keys(variables), ['GITHUB_TOKEN']);
  assert.match(variables['GITHUB_TOKEN']!, /^ghsecret[0-9a-f]{40}$/);
  assert.deepEqual(
    box.egress.withheld().map(({ name, problem }) => [name, /PATH has another meaning/.test(problem)]),
    [['path', true]],
  );
  const answer = await box.send(`Bearer ${variables['GITHUB_TOKEN']}`);
  assert.equal(arrived(), 'Bearer value-one');
  assert.ok(answer.includes(variables['GITHUB_TOKEN']!) && !answer.includes('value-one'));

  await vault.put('github_token', 'value-three', [API]);
  await vault.put('another', 'value-four', [API]);
  assert.equal(box.egress.environment()['GITHUB_TOKEN'], variables['GITHUB_TOKEN']);
  await box.send(`${variables['GITHUB_TOKEN']} ${box.egress.environment()['ANOTHER']}`);
  assert.equal(arrived(), 'value-three value-four');

  await vault.put('github_token', 'value-three', [OTHER]);
  assert.match(await box.send(variables['GITHUB_TOKEN']!), /^HTTP\/1.1 403 .*not released to api\.test/s);
  assert.match(await box.send(variables['GITHUB_TOKEN']!, OTHER), /^HTTP\/1.1 200/);
  await until(async () => (await audited(owner.id)).length > 0, 'the refusal is audited');
  const [entry] = await audited(owner.id);
  assert.deepEqual(
    [entry.action, entry.resource_id, entry.actor.type],
    ['vault_secret.refused', 'github_token', 'gateway'],
  );
  assert.deepEqual(entry.after, { sandbox: box.id, reason: 'secret_elsewhere', host: API, port: 443, count: 1 });

  for (const name of ['github_token', 'another', 'path']) await vault.call('DELETE', `secrets/${name}`);
  assert.deepEqual(box.egress.environment(), {});
  await box.send(variables['GITHUB_TOKEN']!);
  assert.equal(arrived(), variables['GITHUB_TOKEN']);
  await box.close();
  await assert.rejects(box.send('x'));
});

async function audited(workspaceId: string): Promise<Json[]> {
  const entries = await auditOf(gateway, 'vault_secret');
  return entries.filter(({ action, workspace_id }) => action.endsWith('refused') && workspace_id === workspaceId);
}

test('an intern has its own secrets and those that it borrows', async () => {
  const { id: workspaceId } = await workspace();
  const intern = (): store.VaultOwner => ({ type: 'intern', id: randomUUID(), organizationId, workspaceId });
  const [own, lender] = [intern(), intern()];
  const put = (owner: store.VaultOwner, name: string, value: string) =>
    storeSecret(parts, operatorAuthor(organizationId, 0), heldBy(owner), { name, hosts: [API], value });
  await put(own, 'both', 'of its own');
  await put(lender, 'both', 'of the lender');
  await put(lender, 'lent', 'only lent');
  const box = await sandbox(own, { borrowedVaultId: (await store.vaultIdOf(database, lender))! });
  const { BOTH, LENT } = box.egress.environment();
  await box.send(`${BOTH}, ${LENT}`);
  assert.equal(arrived(), 'of its own, only lent');
  await put(lender, 'lent', 'changed');
  await box.send(`${BOTH}, ${LENT}`);
  assert.equal(arrived(), 'of its own, changed');
  await database.query('delete from vaults where owner_id = $1', [lender.id]);
  await put(own, 'both', 'alone');
  assert.deepEqual(Object.keys(box.egress.environment()), ['BOTH']);
  await box.send(BOTH!);
  assert.equal(arrived(), 'alone');
  await box.close();
});

test('a secret that cannot be decrypted stops the whole release, at the start and while a sandbox runs', async () => {
  const { owner, vault } = await workspace();
  await vault.put('good', 'good-value', [API]);
  await vault.put('bad', 'bad-value', [API]);
  const box = await sandbox(owner);
  const { GOOD } = box.egress.environment();
  const [{ sealed }] = (await database.query(`select sealed from vault_secrets where name = 'bad' and vault_id = $1`, [
    await store.vaultIdOf(database, owner),
  ])) as [{ sealed: Buffer }];
  const bad = (record: Buffer) =>
    database.query(
      `update vault_secrets set sealed = $2 where name = 'bad' and vault_id =
      (select id from vaults where owner_id = $1)`,
      [owner.id, record],
    );
  await bad(Buffer.alloc(40, 1));
  await assert.rejects(sandbox(owner), { status: 503 });
  const reported = errors.length;
  await vault.put('good', 'newer-value', [API]);
  await assert.rejects(box.send(GOOD!));
  assert.match(errors.slice(reported).join(), /has no egress.*the secret bad of the vault/s);
  await bad(sealed);
  await vault.put('good', 'newest-value', [API]);
  await box.send(GOOD!);
  assert.equal(arrived(), 'newest-value');
  await box.close();
});

test('a rotated authority counts from the next start, and running sandboxes keep theirs', async () => {
  const { id, owner, vault } = await workspace();
  await vault.put('token', 'the-value', [API]);
  const before = await sandbox(owner);
  const { TOKEN } = before.egress.environment();
  assert.equal(await rotateAuthorities(parts, id, operatorAuthor), 1);
  const next = await sandbox(owner);
  const of = ({ inside }: typeof before) => new X509Certificate(inside.authority.certificate).fingerprint256;
  assert.notEqual(of(next), of(before));
  await vault.put('token', 'second-value', [API]);
  await rotateVaultKeys(parts, id, operatorAuthor);
  process.kill(proxy.pid!, 'SIGKILL');
  for (const box of [before, next]) {
    const token = box.egress.environment()['TOKEN']!;
    await until(
      () =>
        box.send(token).then(
          () => true,
          () => false,
        ),
      'the proxy is back',
    );
    assert.equal(arrived(), 'second-value');
  }
  assert.notEqual(next.egress.environment()['TOKEN'], TOKEN);
  const [rotated] = (await auditOf(gateway, 'vault')).filter(({ action }) => action === 'vault.authority_rotated');
  assert.deepEqual(
    [rotated.before.certificate_fingerprint, rotated.after.certificate_fingerprint],
    [of(before), of(next)],
  );
  // Retired ones go with the first rotation after their time.
  await database.query(`update vault_authorities set retired_at = retired_at - interval '31 days'`);
  await rotateAuthorities(parts, id, operatorAuthor);
  const ownId = (await store.vaultIdOf(database, owner))!;
  assert.equal((await store.authoritiesOf(database, ownId)).length, 2);
  await Promise.all([before.close(), next.close()]);
});

test('an authority that was exchanged with that of another vault, or altered, is not used', async () => {
  const [one, two] = [await workspace(), await workspace()];
  for (const { owner } of [one, two]) await (await sandbox(owner)).close();
  const ids = await Promise.all([one, two].map(({ owner }) => store.vaultIdOf(database, owner)));
  const exchange = (columns: string) =>
    database.query(
      `update vault_authorities a set (${columns}) = (select ${columns} from vault_authorities b
      where b.vault_id = any($1) and b.vault_id <> a.vault_id) where a.vault_id = any($1)`,
      [ids],
    );
  for (const columns of [
    'certificate, sealed',
    'sealed, certificate',
    'sealed, created_at',
    'certificate, created_at',
  ]) {
    await exchange(columns);
    for (const { owner } of [one, two]) await assert.rejects(sandbox(owner), { status: 503 }, columns);
    await exchange(columns);
  }
  await (await sandbox(one.owner)).close();
});

test('a sandbox reaches only what both its list and that of the installation allow', async () => {
  const { owner, vault } = await workspace();
  await vault.put('token', 'the-value', [API, OTHER]);
  settings.domains = ['*.test'];
  const box = await sandbox(owner, { domains: [API, 'else.example'] });
  await box.send('x');
  await assert.rejects(box.send('x', OTHER), /403/);
  await assert.rejects(box.send('x', 'else.example'), /403/);
  settings.domains = ['other.test'];
  await releases.reload();
  await assert.rejects(box.send('x'), /403/);
  settings.domains = ['*'];
  await box.close();
  assert.deepEqual(
    logged.filter((line) => !line.includes('is being restarted')),
    [],
  );
});
