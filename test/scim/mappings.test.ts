/** Groups, mappings, and the roles that they grant. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Json } from '../workspaces/control.ts';
import { inDatabase } from '../workspaces/control.ts';
import { startDirectory } from './directory.ts';

const directory = await startDirectory({ after: (close) => after(close as () => Promise<void>) });
const { scim, patch, control, user, group, rolesIn, gateway } = directory;
const { call, made, refused } = control;
const NOBODY = '00000000-0000-7000-8000-000000000000';

let names = 0;
async function workspace(): Promise<string> {
  names += 1;
  const { id } = await made({ name: `W ${names}`, slug: `w-${names}` });
  // Who makes a workspace is its first member, which is of no interest here.
  await inDatabase(gateway, [`delete from workspace_members where workspace_id = '${id}'`]);
  return id;
}

async function people(...userNames: string[]): Promise<string[]> {
  const ids: string[] = [];
  for (const name of userNames) ids.push((await user(`${name}-${names}@people.test`)).id);
  return ids;
}

async function map(scim_group_id: string, workspace_id: string, role: string): Promise<Json> {
  const { status, body } = await call('POST', '/scim/group-mappings', { scim_group_id, workspace_id, role });
  assert.equal(status, 201, JSON.stringify(body));
  return body.data;
}

const unmap = (id: string, keep: boolean) => call('DELETE', `/scim/group-mappings/${id}?keep_members=${keep}`);
const addByHand = (ws: string, ids: string[]) => call('POST', `/workspaces/${ws}/members/add`, { user_ids: ids });
const removeByHand = (ws: string, ids: string[]) => call('POST', `/workspaces/${ws}/members/remove`, { user_ids: ids });

test('groups are listed with all of their fields, page by page', async () => {
  const { body: before } = await call('GET', '/scim/groups');
  assert.deepEqual(before, { data: [], total_count: 0 });
  const made = await scim('POST', '/Groups', { displayName: 'Listed', externalId: 'ext-7' });
  await group('Listed too');
  const { body } = await call('GET', '/scim/groups?limit=1');
  assert.equal(body.total_count, 2);
  const [first] = body.data;
  assert.match(first.organization_id, /^org_/);
  assert.deepEqual(first, {
    id: made.body.id,
    organization_id: first.organization_id,
    display_name: 'Listed',
    external_id: 'ext-7',
    created_at: made.body.meta.created,
    updated_at: made.body.meta.lastModified,
  });
  const second = await call('GET', '/scim/groups?limit=1&offset=1');
  assert.deepEqual([second.body.data[0].display_name, second.body.data[0].external_id], ['Listed too', null]);
  await refused(call('GET', '/scim/groups?limit=101'), 400, /limit/);
  await refused(call('GET', '/scim/groups?page=1'), 400, /page/);
});

test('a mapping grants its role to group members, and revokes it with the membership', async () => {
  const ws = await workspace();
  const [a, b, c] = (await people('a', 'b', 'c')) as [string, string, string];
  const { id } = await group('Engineers', [a]);
  const mapping = await map(id, ws, 'admin');
  assert.deepEqual(await rolesIn(ws), { [a]: 'admin' });
  await patch(`/Groups/${id}`, { op: 'add', path: 'members', value: [{ value: b }, { value: c }] });
  assert.deepEqual(await rolesIn(ws), { [a]: 'admin', [b]: 'admin', [c]: 'admin' });
  await patch(`/Groups/${id}`, { op: 'remove', path: `members[value eq "${a}"]` });
  await patch(`/Users/${b}`, { op: 'replace', path: 'active', value: false });
  assert.deepEqual(await rolesIn(ws), { [c]: 'admin' });
  await patch(`/Users/${b}`, { op: 'replace', path: 'active', value: true });
  assert.deepEqual(await rolesIn(ws), { [b]: 'admin', [c]: 'admin' }, 'who comes back has it again');
  await scim('DELETE', `/Users/${c}`);
  assert.deepEqual(await rolesIn(ws), { [b]: 'admin' });
  const changed = await call('PATCH', `/scim/group-mappings/${mapping.id}`, { role: 'member' });
  assert.equal(changed.body.data.role, 'member');
  assert.deepEqual(await rolesIn(ws), { [b]: 'member' });
  await scim('DELETE', `/Groups/${id}`);
  assert.deepEqual(await rolesIn(ws), {});
  await refused(call('GET', `/scim/group-mappings/${mapping.id}`), 404, /no group mapping/);
});

test('of several groups the highest role counts, and the next one when it ends', async () => {
  const ws = await workspace();
  const [a] = (await people('a')) as [string];
  const [low, high] = [await group('Low', [a]), await group('High', [a])];
  await map(low.id, ws, 'member');
  const mapping = await map(high.id, ws, 'admin');
  assert.deepEqual(await rolesIn(ws), { [a]: 'admin' });
  await patch(`/Groups/${high.id}`, { op: 'replace', path: 'members', value: [] });
  assert.deepEqual(await rolesIn(ws), { [a]: 'member' });
  await patch(`/Groups/${high.id}`, { op: 'add', path: 'members', value: [{ value: a }] });
  await unmap(mapping.id, false);
  assert.deepEqual(await rolesIn(ws), { [a]: 'member' });
});

test('memberships by hand are left alone, and granted ones cannot be ended by hand', async () => {
  const ws = await workspace();
  const [byHand, both, granted] = (await people('h', 'b', 'g')) as [string, string, string];
  await addByHand(ws, [byHand, both]);
  const { id } = await group('Mixed', [both, granted]);
  const mapping = await map(id, ws, 'admin');
  assert.deepEqual(await rolesIn(ws), { [byHand]: 'member', [both]: 'admin', [granted]: 'admin' });
  await refused(removeByHand(ws, [granted]), 403, /^user_ids names members .* identity provider/);
  await refused(removeByHand(ws, [both]), 403, /identity provider/);
  await unmap(mapping.id, false);
  assert.deepEqual(await rolesIn(ws), { [byHand]: 'member', [both]: 'member' });
  const again = await map(id, ws, 'member');
  await addByHand(ws, [granted]);
  await unmap(again.id, false);
  assert.deepEqual(
    await rolesIn(ws),
    { [byHand]: 'member', [both]: 'member', [granted]: 'member' },
    'added by hand meanwhile',
  );
  assert.equal((await removeByHand(ws, [byHand, both, granted])).body.removed_count, 3);
});

test('a deleted mapping can keep its members with their role', async () => {
  const ws = await workspace();
  const [a, b] = (await people('a', 'b')) as [string, string];
  const { id } = await group('Kept', [a]);
  const other = await group('Kept otherwise', [b]);
  const mapping = await map(id, ws, 'admin');
  await map(other.id, ws, 'member');
  const path = `/scim/group-mappings/${mapping.id}`;
  for (const query of [
    '',
    '?keep_members=',
    '?keep_members=1',
    '?keep_members=TRUE',
    '?keep_members=true&keep_members=false',
  ]) {
    await refused(call('DELETE', `${path}${query}`), 400, /keep_members/);
  }
  assert.deepEqual((await unmap(mapping.id, true)).body, { deleted: true });
  assert.deepEqual(await rolesIn(ws), { [a]: 'admin', [b]: 'member' });
  await patch(`/Groups/${id}`, { op: 'remove', path: 'members' });
  assert.deepEqual(await rolesIn(ws), { [a]: 'admin', [b]: 'member' });
  await refused(unmap(mapping.id, true), 404, /no group mapping/);
  assert.equal((await removeByHand(ws, [a])).status, 200);
});

test('a mapping to the default workspace raises the role there, and removes no member', async () => {
  const [a] = (await people('d')) as [string];
  const { body } = await call('GET', '/workspaces/default');
  const { id } = await group('Leads', [a]);
  const mapping = await map(id, body.data.id, 'admin');
  assert.equal((await rolesIn('default'))[a], 'admin');
  await unmap(mapping.id, false);
  assert.equal((await rolesIn('default'))[a], 'member');
});

test('a mapping is created once, from existing groups and workspaces, with valid roles', async () => {
  const ws = await workspace();
  const { id } = await group('Once');
  const body = { scim_group_id: id, workspace_id: ws, role: 'member' };
  const post = (more: Json) => call('POST', '/scim/group-mappings', { ...body, ...more });
  await refused(post({ role: 'owner' }), 400, /role/);
  await refused(post({ role: undefined }), 400, /role/);
  await refused(post({ extra: 1 }), 400, /extra/);
  await refused(post({ scim_group_id: 'x' }), 400, /scim_group_id/);
  await refused(post({ scim_group_id: NOBODY }), 404, /scim_group_id/);
  await refused(post({ workspace_id: NOBODY }), 404, /workspace_id/);
  const answers = await Promise.all([post({}), post({}), post({})]);
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [201, 409, 409]);
  const mapping = answers.find(({ status }) => status === 201)!.body.data;
  const path = `/scim/group-mappings/${mapping.id}`;
  assert.deepEqual((await call('GET', path)).body.data, mapping);
  gateway.clock.jump(5_000);
  assert.deepEqual((await call('PATCH', path, {})).body.data, mapping, 'an empty object changes nothing');
  assert.deepEqual((await call('PATCH', path, { role: 'member' })).body.data, mapping);
  await refused(call('PATCH', path, { role: null }), 400, /role/);
  await refused(call('PATCH', path, { workspace_id: ws }), 400, /workspace_id/);
  await refused(call('GET', '/scim/group-mappings/x'), 404, /no group mapping/);
  const list = await call('GET', '/scim/group-mappings?limit=100');
  assert.equal(list.body.total_count, list.body.data.length);
  assert.ok(list.body.data.some((each: Json) => each.id === mapping.id));
});

test('a workspace that ends takes its mappings along', async () => {
  const ws = await workspace();
  const [a] = (await people('w')) as [string];
  const { id } = await group('Ended', [a]);
  const mapping = await map(id, ws, 'member');
  assert.equal((await call('DELETE', `/workspaces/${ws}`)).status, 200);
  await refused(call('GET', `/scim/group-mappings/${mapping.id}`), 404, /no group mapping/);
  assert.equal((await patch(`/Groups/${id}`, { op: 'remove', path: 'members' })).status, 204);
  await refused(
    call('POST', '/scim/group-mappings', { scim_group_id: id, workspace_id: ws, role: 'member' }),
    404,
    /workspace_id/,
  );
});

test('an existing member that is provisioned stays the same member, with its keys', async () => {
  await inDatabase(gateway, [
    `insert into users (id, name, email, created_at) values ('user_before', 'Before', 'Before@People.test', now())`,
    `insert into members select distinct organization_id, 'user_before', 'admin', now() from members`,
  ]);
  const told = await user('before', { emails: [{ value: 'before@people.test', primary: true }] });
  assert.equal(told.id, 'user_before');
  assert.equal((await rolesIn('default'))['user_before'], 'admin');
  assert.equal((await patch('/Users/user_before', { op: 'replace', path: 'active', value: false })).status, 200);
  assert.equal((await rolesIn('default'))['user_before'], undefined);
});
