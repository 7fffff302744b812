/** Directories of thousands: a group of 5,000 comes, changes and goes in one piece, and memory and pages stay bounded. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { inDatabase, type Json } from '../workspaces/control.ts';
import { startDirectory } from './directory.ts';

const USERS = 5_000;
const directory = await startDirectory({ after: (close) => after(close as () => Promise<void>) });
const { scim, patch, control, gateway } = directory;

/** As if they had been pushed one by one, which `large.scale.ts` does. */
async function manyUsers(): Promise<string[]> {
  const ids = Array.from({ length: USERS }, (_, n) => `user_${String(n).padStart(32, '0')}`);
  const all = `from generate_series(0, ${USERS - 1}) as n`;
  const id = `'user_' || lpad(n::text, 32, '0')`;
  const organization = `(select id from organizations)`;
  await inDatabase(gateway, [
    `insert into users (id, name, created_at) select ${id}, 'Person ' || n, now() ${all}`,
    `insert into members select ${organization}, ${id}, 'member', now() ${all}`,
    `insert into scim_users select ${id}, ${organization}, 'person-' || n, null, true,
       jsonb_build_object('userName', 'person-' || n, 'active', true), 'push', 1, now(), now() ${all}`,
  ]);
  return ids;
}

test('a group of 5,000 with a mapping is put, changed by one, emptied, filled again and deleted', async () => {
  const ids = await manyUsers();
  const members = ids.map((value) => ({ value, display: 'somebody@a-long-name-of-a-company.example.test' }));
  const { id: workspace } = await control.made({ name: 'Large', slug: 'large' });
  const { id } = await directory.group('Large');
  await control.call('POST', '/scim/group-mappings', { scim_group_id: id, workspace_id: workspace, role: 'member' });
  const path = `/Groups/${id}`;
  const count = async () => (await control.call('GET', '/workspaces/large/members?limit=1')).body.total_count - 1;
  const none = await count();
  const put = await scim('PUT', path, { displayName: 'Large', members });
  assert.deepEqual([put.status, put.body.members.length], [200, USERS]);
  assert.equal(await count(), none + USERS);
  assert.equal((await patch(path, { op: 'remove', path: `members[value eq "${ids[7]}"]` })).status, 204);
  assert.equal(await count(), none + USERS - 1);
  assert.equal((await patch(path, { op: 'remove', path: 'members[display sw "Person 1"]' })).status, 204);
  assert.equal(await count(), none + USERS - 1 - 1_111);
  assert.equal((await patch(path, { op: 'remove', path: 'members' })).status, 204);
  assert.equal(await count(), none);
  const pieces = Array.from({ length: 10 }, (_, n) => ({
    op: 'Add',
    path: 'members',
    value: members.slice(n * 500, n * 500 + 500),
  }));
  assert.equal((await patch(path, ...pieces)).status, 204);
  assert.equal(await count(), none + USERS);
  const listed = await scim('GET', '/Groups?excludedAttributes=members');
  assert.equal(listed.body.Resources.length, 1);
  assert.equal((await scim('DELETE', path)).status, 204);
  assert.equal(await count(), none);
});

test('pages of groups hold as many as have 20,000 members, and lead to all of them', async () => {
  const organization = `(select id from organizations)`;
  await inDatabase(gateway, [
    `insert into scim_groups select ('00000000-0000-7000-8000-00000000000' || n)::uuid, ${organization}, 'G' || n, null,
       jsonb_build_object('displayName', 'G' || n), 'push', 1, now() + n * interval '1 s', now() from generate_series(0, 8) as n`,
    `insert into scim_group_members select g.id, u.user_id from scim_groups g, scim_users u`,
  ]);
  const names: string[] = [];
  for (let startIndex = 1; names.length < 9; ) {
    const { body } = await scim('GET', `/Groups?startIndex=${startIndex}&count=100`);
    assert.equal(body.totalResults, 9);
    assert.ok(body.Resources.length >= 1 && body.Resources.length <= 4, String(body.Resources.length));
    assert.ok(body.Resources.every(({ members }: Json) => members.length === USERS));
    names.push(...body.Resources.map(({ displayName }: Json) => displayName));
    startIndex += body.itemsPerPage;
  }
  assert.deepEqual(
    names,
    Array.from({ length: 9 }, (_, n) => `G${n}`),
  );
});

test('more members, operations or bytes than there may be are refused', async () => {
  const { id } = await directory.group('Bounded');
  const path = `/Groups/${id}`;
  const value = Array.from({ length: 50_001 }, (_, n) => `user_${n}`);
  await directory.refused(
    patch(path, { op: 'add', path: 'members', value }),
    400,
    'tooMany',
    /more than 50000 members/,
  );
  const operations = Array.from({ length: 1_001 }, () => ({ op: 'remove', path: 'members' }));
  await directory.refused(patch(path, ...operations), 400, 'tooMany', /more than 1000 operations/);
  const large = `{"displayName":"${'x'.repeat(17 * 1024 * 1024)}"}`;
  await directory.refused(scim('PUT', path, large), 413, undefined, /larger than/);
  const deep = `{"userName":"x","urn:a:b":${'['.repeat(200)}${']'.repeat(200)}}`;
  await directory.refused(scim('POST', '/Users', deep), 400, 'invalidSyntax', /nest|deep/);
});
