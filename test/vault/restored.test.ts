/** Vaults and their certificate authorities after the database was restored from an older backup. */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import path from 'node:path';
import { after, test } from 'node:test';
import { operatorAuthor } from '../../src/audit/index.ts';
import { silentLog } from '../../src/base/log.ts';
import { SOCKET_NAME } from '../../src/egress-proxy/index.ts';
import { migrations } from '../../src/migrations.ts';
import { backup } from '../../src/storage/archive/backup.ts';
import { restore } from '../../src/storage/archive/restore.ts';
import { emptyDatabase, emptyFolder } from '../../src/testing/database/database.ts';
import { startTlsHost } from '../../src/testing/egress-proxy/hosts.ts';
import { rawIn } from '../../src/testing/egress-proxy/setup.ts';
import { startSupervised } from '../../src/testing/egress-proxy/supervised.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { checkVaults, rotateAuthorities, rotateVaultKeys, SecretReleases } from '../../src/vault/index.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { partsOf, vaultOf } from './vault.ts';

const API = 'api.test';
const TABLES = ['vaults', 'vault_secrets', 'vault_authorities'];
const end = { after: (close: unknown) => after(close as () => Promise<void>) };
const api = await startTlsHost(API);
after(() => api.close());
const gateway = await startGateway(end);
const { proxy } = startSupervised(end, { [API]: api.port });
const parts = (await partsOf(end, gateway))();
const { database } = parts;
const errors: string[] = [];
const log = { ...silentLog, error: (_event: string, fields?: Json) => void errors.push(String(fields?.['error'])) };
const control = controlOf(gateway);
const [{ id: organizationId }] = (await database.query('select id from organizations')) as [{ id: string }];
let boxes = 0;

/** The releases of a process with this view of the database. */
function releasesOf(its: typeof parts) {
  const releases = new SecretReleases({ ...its, log, settings: () => ({ domains: ['*'], ports: [443] }) });
  after(() => releases.end());
  return releases;
}

async function workspace(name: string) {
  const { id } = await control.made({ name, slug: name });
  return {
    owner: { type: 'workspace', id, organizationId, workspaceId: id } as const,
    vault: vaultOf(gateway, (await control.keyIn(id, 'key')).token),
  };
}

async function sandbox(releases: SecretReleases, owner: Awaited<ReturnType<typeof workspace>>['owner']) {
  boxes += 1;
  const id = `box-${boxes}`;
  const held = { owner, hold: async () => {} };
  const egress = await releases.prepare(id, { held, borrowedVaultId: null, domains: ['*'] });
  const { network } = egress;
  const folder = await proxy.open(id, { ...network, gid: null });
  const inside = { socketPath: path.join(folder, SOCKET_NAME), authority: network };
  return {
    fingerprint: new X509Certificate(network.certificate).fingerprint256,
    names: Object.keys(egress.environment()),
    /** What the host gets for the secret. */
    async arrives() {
      const before = api.seen.length;
      const request = `GET / HTTP/1.1\r\nHost: ${API}\r\nauthorization: ${egress.environment()['KEPT']}\r\nconnection: close\r\n\r\n`;
      await rawIn(inside, API, request).catch(() => {});
      return api.seen.slice(before)[0]?.headers['authorization'];
    },
    close: () => proxy.close(id),
  };
}

/** What happens to a vault after the backup. */
async function moveOn({ owner, vault }: Awaited<ReturnType<typeof workspace>>) {
  await rotateAuthorities(parts, owner.id, operatorAuthor);
  await vault.put('kept', 'newer', [API]);
  await vault.put('later', 'later', [API]);
  await rotateVaultKeys(parts, owner.id, operatorAuthor);
}

test('a restored gateway continues with the authority and the secrets of the backup', async (t) => {
  const team = await workspace('restored');
  await team.vault.put('kept', 'older', [API]);
  const first = await sandbox(releasesOf(parts), team.owner);
  const file = path.join(emptyFolder(t), 'backup');
  await backup({ target: gateway.target, file, version: '0', now: 0 });
  await moveOn(team);
  const target = await emptyDatabase(t);
  await restore({ target, file, migrations, log: silentLog });
  const restored = (await partsOf(t, { target, config: gateway.config }))();
  assert.deepEqual((await checkVaults(restored)).unreadable, []);
  const again = await sandbox(releasesOf(restored), team.owner);
  assert.deepEqual([again.fingerprint, again.names], [first.fingerprint, ['KEPT']]);
  assert.equal(await again.arrives(), 'older');
  await Promise.all([first.close(), again.close()]);
});

test('a sandbox whose authority is not in the restored database has no way out, and the next one is complete', async () => {
  const team = await workspace('replaced');
  await team.vault.put('kept', 'older', [API]);
  const releases = releasesOf(parts);
  const first = await sandbox(releases, team.owner);
  for (const table of TABLES) await database.query(`create table old_${table} as table ${table}`);
  await moveOn(team);
  const running = await sandbox(releases, team.owner);
  assert.equal(await running.arrives(), 'newer');
  await database.transaction(async (tx) => {
    for (const table of TABLES.toReversed()) await tx.query(`delete from ${table}`);
    for (const table of TABLES) await tx.query(`insert into ${table} select * from old_${table}`);
  });
  // As when the connections to the database come back.
  await releases.reload();
  assert.equal(await running.arrives(), undefined);
  assert.match(errors.join(), /certificate authority is gone/);
  const next = await sandbox(releases, team.owner);
  assert.deepEqual([next.fingerprint, next.names], [first.fingerprint, ['KEPT']]);
  assert.equal(await next.arrives(), 'older');
  await Promise.all([first, running, next].map(({ close }) => close()));
});

test('a partly restored database releases nothing, and says why', async () => {
  const team = await workspace('partly');
  await team.vault.put('kept', 'older', [API]);
  const releases = releasesOf(parts);
  await (await sandbox(releases, team.owner)).close();
  const [{ data_key: older }] = (await database.query('select data_key from vaults where owner_id = $1', [
    team.owner.id,
  ])) as [Json];
  await rotateVaultKeys(parts, team.owner.id, operatorAuthor);
  await database.query('update vaults set data_key = $2 where owner_id = $1', [team.owner.id, older]);
  await assert.rejects(sandbox(releases, team.owner), { status: 503 });
  const { unreadable } = await checkVaults(parts);
  assert.match(unreadable.map(({ problem }) => problem).join(), /encrypted with another key|needs version/);
});
