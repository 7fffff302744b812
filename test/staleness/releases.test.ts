/** Sandboxes of a process that hears of no changes, while secrets are replaced, bound to other hosts and deleted through another one. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, test } from 'node:test';
import { SOCKET_NAME } from '../../src/egress-proxy/index.ts';
import { migrations } from '../../src/migrations.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { startTlsHost } from '../../src/testing/egress-proxy/hosts.ts';
import { rawIn } from '../../src/testing/egress-proxy/setup.ts';
import { startSupervised } from '../../src/testing/egress-proxy/supervised.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { SecretReleases } from '../../src/vault/index.ts';
import { partsOf, vaultOf } from '../vault/vault.ts';
import { controlOf } from '../workspaces/control.ts';
import { DatabaseLine } from './database-line.ts';

const [API, OTHER] = ['api.test', 'other.test'];
const end = { after: (close: unknown) => after(close as () => Promise<void>) };
const api = await startTlsHost(API);
after(() => api.close());
const target = await emptyDatabase(end, migrations);
const gateway = await startGateway(end, { target });
const line = await DatabaseLine.open(end, target);
// Another process, as far as the database is concerned.
const parts = (await partsOf(end, { target: line.target, config: gateway.config }))();
const { proxy } = startSupervised(end, { [API]: api.port });
const releases = new SecretReleases({ ...parts, settings: () => ({ domains: ['*'], ports: [443] }) });
after(() => releases.end());
const control = controlOf(gateway);
let sandboxes = 0;

/** A sandbox with one secret of a new vault. */
async function sandbox() {
  sandboxes += 1;
  const id = `box-${sandboxes}`;
  const workspace = await control.made({ name: id, slug: id });
  const [{ id: organizationId }] = (await parts.database.query('select id from organizations')) as [{ id: string }];
  const owner = { type: 'workspace', id: workspace.id, organizationId, workspaceId: workspace.id } as const;
  const vault = vaultOf(gateway, (await control.keyIn(workspace.id, 'key')).token);
  await vault.put('token', 'value-one', [API]);
  const held = { owner, hold: async () => {} };
  const egress = await releases.prepare(id, { held, borrowedVaultId: null, domains: ['*'] });
  const folder = await proxy.open(id, { ...egress.network, gid: null });
  const inside = { socketPath: path.join(folder, SOCKET_NAME), authority: egress.network };
  const { TOKEN } = egress.environment();
  /** What the host gets for the placeholder; undefined if nothing arrives. */
  const arrives = async () => {
    const before = api.seen.length;
    const request = `GET / HTTP/1.1\r\nHost: ${API}\r\nauthorization: ${TOKEN}\r\nconnection: close\r\n\r\n`;
    await rawIn(inside, API, request).catch(() => {});
    return api.seen.slice(before)[0]?.headers['authorization'];
  };
  return { vault, arrives, placeholder: TOKEN!, close: () => proxy.close(id) };
}

const WAYS: Record<string, () => void> = {
  'whose listening connection is cut and not let in again': () => {
    line.refuse('listener');
    line.cut('listener');
  },
  'that a pooler gives no notifications': () => {
    line.dropsNotifications = true;
  },
};

for (const [way, part] of Object.entries(WAYS)) {
  test(`the proxy of a process ${way} soon releases nothing that a write has taken away`, async (t) => {
    const { vault, arrives, placeholder, close } = await sandbox();
    t.after(close);
    t.after(() => line.mend());
    // Without news, secrets are read again every second.
    const soon = (expected: string) => until(async () => (await arrives()) === expected, expected);
    assert.equal(await arrives(), 'value-one');
    part();
    await vault.put('token', 'value-two', [API]);
    await soon('value-two');
    await vault.put('token', 'value-two', [OTHER]);
    // The host is not intercepted any more, and gets what the sandbox sent.
    await soon(placeholder);
    await vault.put('token', 'value-three', [API]);
    await soon('value-three');
    await vault.call('DELETE', 'secrets/token');
    await soon(placeholder);
    line.mend();
    await until(() => parts.changes.freshness.current, 'changes arrive again');
    await vault.put('token', 'value-four', [API]);
    assert.equal(await arrives(), 'value-four');
  });
}
