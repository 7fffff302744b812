/** Containers without a gateway around them: the way out, processes that die in the middle of a use, and the end of their time. */
import assert from 'node:assert/strict';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { DEFAULT_SANDBOXES } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { configuredBackends, createBlobs } from '../../src/blobs/index.ts';
import { Containers, expireContainersJob } from '../../src/containers/index.ts';
import { EgressProxy } from '../../src/egress-proxy/index.ts';
import { migrations } from '../../src/migrations.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { root, startTlsHost } from '../../src/testing/egress-proxy/hosts.ts';
import { entryFor, openFolder } from '../../src/testing/egress-proxy/supervised.ts';
import { JumpClock } from '../../src/testing/gateway/jump-clock.ts';
import { openSandboxes, shell, skip } from '../../src/testing/sandboxes/sandboxes.ts';

const place = { after: (close: () => unknown) => after(close as () => Promise<void>) };
const HOUR_MS = 3_600_000;
const never = new AbortController().signal;

describe('containers', { skip }, async () => {
  if (skip) return;
  const target = await emptyDatabase(place as never, migrations);
  const clock = new JumpClock();
  const database = await openDatabase({ target, clock, log: silentLog });
  place.after(() => database.close());
  const workspaceId = '0198c0de-0000-7000-8000-000000000001';
  await database.transaction(async (tx) => {
    const organization = `insert into organizations (id, name, default_workspace_id, created_at) values ('org_test', 'test', $1, now())`;
    await tx.query(organization, [workspaceId]);
    const workspace = `insert into workspaces (id, organization_id, slug, name, created_at) values ($1, 'org_test', 'a', 'a', now())`;
    await tx.query(workspace, [workspaceId]);
  });
  const owner = { keyId: '0198c0de-0000-7000-8000-000000000002', workspaceId, organizationId: 'org_test' };
  const folder = openFolder(place);
  const listed = await startTlsHost('api.listed.test');
  const other = await startTlsHost('other.test');
  place.after(() => Promise.all([listed.close(), other.close()]));
  const egressProxy = new EgressProxy({
    folder: path.join(folder, 'sockets'),
    settings: () => ({ networks: [], extraCa: root.certificate }),
    ...{ clock, log: silentLog },
    entry: entryFor(folder, { 'api.listed.test': listed.port, 'other.test': other.port }),
  });
  place.after(() => egressProxy.end());
  const blobs = createBlobs({
    ...{ database, clock, log: silentLog },
    ...configuredBackends({ blobs: { s3: null }, dataDir: folder, outgoing: { extraCa: null } } as never),
  });
  const { sandboxes } = openSandboxes(place, { folder, egressProxy, extraCa: root.certificate, blobs });
  let domains: readonly string[] = ['*'];
  const settings = { ...DEFAULT_SANDBOXES, containerMs: HOUR_MS };
  const egress = () => ({ domains, ports: [443, 80, 8443] });
  let claims = 0;
  const counting = {
    query(sql: string, values?: readonly unknown[]) {
      if (sql.includes('set holder = $2')) claims += 1;
      return database.query(sql, values);
    },
    transaction: (work: Parameters<typeof database.transaction>[0]) => database.transaction(work),
  } as unknown as typeof database;
  const process = (own = clock) =>
    new Containers({ sandboxes, settings, database: counting, blobs, egress, clock: own, log: silentLog });
  const containers = process();
  place.after(() => containers.close());
  const blobsLeft = async () => {
    const [row] = await database.query<{ count: number }>(
      "select count(*)::int as count from blobs where state = 'kept'",
    );
    return row!.count;
  };

  test('code reaches the hosts of its list, at the ports 80 and 443, within the rules of the installation', async () => {
    const use = await containers.open(owner, { name: 'net', domains: ['*.listed.test'] }, never);
    const ask = async (url: string) =>
      (await shell(use.sandbox, 'curl -s -o /dev/null -w "%{http_code}" "$1"', url)).out;
    assert.equal(await ask('https://api.listed.test/'), '200');
    assert.equal(await ask('https://other.test/'), '000');
    assert.equal(await ask('https://api.listed.test:8443/'), '000');
    domains = ['other.test'];
    await containers.reload();
    assert.equal(await ask('https://api.listed.test/'), '000');
    domains = ['*'];
    await use.end();
    const again = await containers.open(owner, { name: 'net' }, never);
    const { out } = await shell(again.sandbox, 'curl -s -o /dev/null -w "%{http_code}" https://api.listed.test/');
    assert.equal(out, '200', 'the policy lasts as long as the container');
    await again.end();
  });

  test('a process that dies holds its container for half a minute, and what it had not stored is lost', async () => {
    const before = await containers.open(owner, { name: 'held' }, never);
    before.isChanged = true;
    await shell(before.sandbox, 'echo stored > file');
    await before.end();
    const own = new JumpClock();
    own.stand();
    const dead = process(own);
    const use = await dead.open(owner, { name: 'held' }, never);
    use.isChanged = true;
    await shell(use.sandbox, 'echo lost > file');
    const asked = claims;
    const next = containers.open(owner, { name: 'held' }, never);
    await until(() => claims > asked, 'it waits for the container');
    clock.jump(20_001);
    await assert.rejects(next, /the container held is in use by another request/);
    clock.jump(10_001);
    const taken = await containers.open(owner, { name: 'held' }, never);
    assert.equal((await shell(taken.sandbox, 'cat file')).out, 'stored\n');
    own.jump(10_001);
    await until(() => use.isLost, 'the process learns that it was not alone');
    await use.end();
    await assert.rejects(use.sandbox.exec({ argv: ['true'] }), /was stopped/);
    await taken.end();
    assert.equal((await containers.find(owner, 'held'))?.version, 1);
    await dead.close();
  });

  test('an unused container ends after its time, with its files, and one in use does not', async () => {
    const used = await containers.open(owner, { name: 'used' }, never);
    clock.jump(HOUR_MS + 1);
    const use = await containers.open(owner, { name: 'idle' }, never);
    use.isChanged = true;
    await shell(use.sandbox, 'echo x > x');
    await use.end();
    assert.ok((await blobsLeft()) > 0);
    clock.stand();
    clock.jump(HOUR_MS + 1);
    assert.equal(await containers.find(owner, 'idle'), undefined);
    await expireContainersJob({ database, blobs, clock }).run({ data: {}, attempt: 1, signal: never });
    const left = await database.query<{ name: string }>('select name from containers');
    assert.deepEqual(left, [{ name: 'used' }]);
    assert.equal(await blobsLeft(), 0);
    clock.goOn();
    await used.end();
  });
});
