/** What is pushed through one process holds for the next request of another; and kill -9 in the middle of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createOperatorKey, hashToken, revokeOperatorKey } from '../../src/access/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { embeddedTarget } from '../../src/testing/database/rows.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { startUpstream } from '../../src/testing/upstream/upstream.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { directoryOf, scimToken, startDirectory } from './directory.ts';

const ASK = { model: 'simulated/echo', messages: [{ role: 'user', content: 'hi' }] };

test('a user deactivated through one process is refused by the other at once', async (t) => {
  const a = await startDirectory(t);
  const second = await startGateway(t, { target: a.gateway.target });
  const b = directoryOf(second, a.token);
  const user = await a.user('both@example.test');
  const { body } = await a.control.call('POST', '/keys', { name: 'theirs', creator_user_id: user.id });
  const status = async (through: typeof a) =>
    (await through.control.call('POST', '/chat/completions', ASK, body.key)).status;
  for (let round = 0; round < 5; round++) {
    const [writes, asks] = round % 2 === 0 ? [a, b] : [b, a];
    assert.equal(await status(asks), 200);
    await writes.patch(`/Users/${user.id}`, { op: 'replace', path: 'active', value: false });
    assert.equal(await status(asks), 403);
    assert.equal(await status(writes), 403);
    await writes.patch(`/Users/${user.id}`, { op: 'replace', path: 'active', value: true });
  }
  await b.scim('DELETE', `/Users/${user.id}`);
  assert.equal(await status(a), 403);
});

test('changes that come through both at once lose nothing', async (t) => {
  const a = await startDirectory(t);
  const b = directoryOf(await startGateway(t, { target: a.gateway.target }), a.token);
  const users = await Promise.all(Array.from({ length: 20 }, (_, n) => (n % 2 ? a : b).user(`u${n}@example.test`)));
  const group = await a.group('Raced');
  const { id } = await a.control.made({ name: 'Raced', slug: 'raced' });
  await a.control.call('POST', '/scim/group-mappings', { scim_group_id: group.id, workspace_id: id, role: 'admin' });
  const changes = users.flatMap((user: Json, n) => {
    const path = `/Groups/${group.id}`;
    const added = (n % 2 ? a : b).patch(path, { op: 'add', path: 'members', value: [{ value: user.id }] });
    // Every fourth is made inactive meanwhile.
    return n % 4 ? [added] : [added, a.patch(`/Users/${user.id}`, { op: 'replace', path: 'active', value: 'False' })];
  });
  const twins = [a, b].map((each) => each.scim('POST', '/Users', { userName: 'twin@example.test' }));
  for (const { status } of await Promise.all(changes)) assert.ok(status === 200 || status === 204, String(status));
  assert.deepEqual((await Promise.all(twins)).map(({ status }) => status).toSorted(), [201, 409]);
  const roles = await b.rolesIn('raced');
  const expected = users.filter((_, n) => n % 4).map((user: Json) => [user.id, 'admin']);
  for (const [userId, role] of expected) assert.equal(roles[userId], role);
  assert.equal(users.filter((user: Json) => roles[user.id]).length, expected.length);
});

test('a revoked token is refused by every process at once', async (t) => {
  const a = await startDirectory(t);
  const b = directoryOf(await startGateway(t, { target: a.gateway.target }), a.token);
  const parts = { target: a.gateway.target, clock: systemClock, log: silentLog };
  const database = await openDatabase(parts);
  const changes = await openChanges({ ...parts, database });
  t.after(async () => {
    await changes.close();
    await database.close();
  });
  const token = await createOperatorKey({ database, changes, clock: systemClock }, 'scim', { name: 'second' });
  const [throughA, throughB] = [directoryOf(a.gateway, token), directoryOf(b.gateway, token)];
  assert.equal((await throughA.scim('GET', '/Users')).status, 200);
  assert.equal((await throughB.scim('GET', '/Users')).status, 200);
  await revokeOperatorKey({ database, changes, clock: systemClock }, hashToken(token));
  assert.equal((await throughA.scim('GET', '/Users')).status, 401);
  assert.equal((await throughB.scim('GET', '/Users')).status, 401);
  assert.equal((await a.scim('GET', '/Users')).status, 200, 'the other one goes on');
});

test('a job of a killed process is restarted by the next start, and pushes are all or nothing', async (t) => {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  const resources = [{ id: 'r1', userName: 'pulled@example.test' }];
  const users = JSON.stringify({ totalResults: 1, Resources: resources });
  const groups = JSON.stringify({
    totalResults: 1,
    Resources: [{ id: 'g1', displayName: 'Pulled', members: [{ value: 'r1' }] }],
  });
  upstream.script('idp', [
    { chunks: [{ gate: 'go' }, users] },
    { chunks: [users] },
    { chunks: [groups], repeat: true },
  ]);
  const yaml = {
    egress: { networks: ['127.0.0.0/8'], ports: ['1-65535'] },
    scim: { source: { base_url: `${upstream.url}/idp`, token: 'token-of-the-provider' } },
  };
  const first = await startGatewayProcess(t, { yaml });
  const token = await scimToken(embeddedTarget(first.home));
  const { call } = controlOf(first);
  const push = (n: number) =>
    fetch(`${first.url}/scim/v2/Users`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/scim+json' },
      body: JSON.stringify({ userName: `pushed-${n}` }),
    }).then(
      ({ status }) => status,
      () => 0,
    );
  const job = (await call('POST', '/scim/sync-jobs')).body.data;
  const becomes = async (api: { api: string }, ...statuses: string[]): Promise<Json> => {
    for (let look = 0; look < 20_000; look++) {
      const { data } = (await controlOf(api).call('GET', `/scim/sync-jobs/${job.id}`)).body;
      if (statuses.includes(data.status)) return data;
    }
    throw new Error(`the job does not become ${statuses}`);
  };
  await becomes(first, 'running');
  const pushes = Array.from({ length: 40 }, (_, n) => push(n));
  await pushes[5];
  await first.end('SIGKILL');
  const statuses = await Promise.all(pushes);
  const second = await startGatewayProcess(t, { home: first.home });
  const control = controlOf(second);
  const ended = await becomes(second, 'succeeded', 'failed');
  assert.deepEqual([ended.status, ended.synced_groups, ended.error_message], ['succeeded', 1, null]);
  const asked = await fetch(`${second.url}/scim/v2/Users?count=1000`, {
    headers: { authorization: `Bearer ${token}` },
  });
  const known: Json[] = ((await asked.json()) as Json).Resources;
  const members: Json[] = (await control.call('GET', '/workspaces/default/members?limit=100')).body.data;
  for (const [n, status] of statuses.entries()) {
    if (status === 201)
      assert.ok(
        known.some(({ userName }) => userName === `pushed-${n}`),
        'what was answered is there',
      );
  }
  for (const { id } of known)
    assert.ok(
      members.some(({ user_id }) => user_id === id),
      'who is told of is a member',
    );
  assert.ok(
    known.some(({ userName, groups: inside }) => userName === 'pulled@example.test' && inside[0].display === 'Pulled'),
  );
});
