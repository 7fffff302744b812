/** What identity providers and other gateways disagreed about, tried on a whole one. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Json } from '../workspaces/control.ts';
import { ENTERPRISE, startDirectory } from './directory.ts';

const directory = await startDirectory({ after: (close) => after(close as () => Promise<void>) });
const { scim, patch, refused, control } = directory;

async function keyStatus(userId: string): Promise<() => Promise<number>> {
  const { body } = await control.call('POST', '/keys', { name: 'theirs', creator_user_id: userId });
  const ask = { model: 'simulated/echo', messages: [{ role: 'user', content: 'hi' }] };
  return async () => (await control.call('POST', '/chat/completions', ask, body.key)).status;
}

const membersOf = async (id: string): Promise<string[]> =>
  ((await scim('GET', `/Groups/${id}`)).body.members as Json[]).map(({ value }) => value).toSorted();

test('bug 91: the string "False" deactivates a user, and dotted keys change the named attribute', async () => {
  const user = await directory.user('bug-91', { name: { familyName: 'Stays' } });
  const path = `/Users/${user.id}`;
  const status = await keyStatus(user.id);
  assert.equal(await status(), 200);
  const { body } = await patch(
    path,
    { op: 'Replace', path: 'active', value: 'False' },
    { op: 'Replace', value: { displayName: 'B', 'name.givenName': 'K', [`${ENTERPRISE}:employeeNumber`]: '7' } },
  );
  assert.deepEqual([body.active, body.displayName, body.name], [false, 'B', { familyName: 'Stays', givenName: 'K' }]);
  assert.equal(body[ENTERPRISE].employeeNumber, '7');
  assert.equal(await status(), 403);
  const unheardOf = await patch(path, {
    op: 'Replace',
    value: { nickName: 'N', 'urn:example:nobody:1.0:User:badge': '7', 'urn:example:else:1.0:User': { a: 1 } },
  });
  assert.deepEqual([unheardOf.status, unheardOf.body.nickName], [200, 'N']);
  for (const value of ['true', 'True', 'TRUE', true]) {
    await patch(path, { op: 'replace', path: 'active', value: false });
    assert.equal((await patch(path, { op: 'replace', path: 'active', value })).body.active, true, String(value));
    assert.equal(await status(), 200);
  }
  for (const value of ['maybe', '', 'yes', 1, 0, [], null]) {
    await refused(patch(path, { op: 'replace', path: 'active', value }), 400, 'invalidValue', /active|value/);
    assert.equal(await status(), 200, 'and it stays as it was');
  }
});

test('bug 92: a partial group without a path is merged; its own id means nothing, an empty list is a value', async () => {
  const user = await directory.user('bug-92');
  const group = await directory.group('Bug 92', [user.id]);
  const path = `/Groups/${group.id}`;
  const answer = await patch(path, { op: 'replace', value: { id: group.id, displayName: 'New', members: [] } });
  assert.equal(answer.status, 204);
  assert.deepEqual([(await scim('GET', path)).body.displayName, await membersOf(group.id)], ['New', []]);
  await refused(patch(path, { op: 'replace', value: { id: user.id, displayName: 'Newer' } }), 400, 'mutability', /id/);
  assert.equal((await scim('GET', path)).body.displayName, 'New');
});

test('bug 93: an operation that cannot be applied is refused, and none of its request is applied', async () => {
  const [one, nine] = [await directory.user('bug-93-1'), await directory.user('bug-93-9')];
  const group = await directory.group('Bug 93', [one.id]);
  const path = `/Groups/${group.id}`;
  const add = { op: 'add', path: 'members', value: [{ value: nine.id }] };
  await refused(patch(path, add, { op: 'move', path: 'members', value: one.id }), 400, 'invalidSyntax', /op/);
  await refused(patch(path, add, { op: 'add', path: 'owners', value: one.id }), 400, 'invalidPath', /owners/);
  assert.deepEqual(await membersOf(group.id), [one.id]);
  for (let time = 0; time < 2; time++) assert.equal((await patch(path, add)).status, 204);
  assert.deepEqual(await membersOf(group.id), [one.id, nine.id].toSorted());
});
