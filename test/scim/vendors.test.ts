/** What Microsoft Entra and Okta send, in the order in which they send it, written from their public protocol pages. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { Json } from '../workspaces/control.ts';
import { ENTERPRISE, GROUP, PATCH, startDirectory, USER } from './directory.ts';

const directory = await startDirectory({ after: (close) => after(close as () => Promise<void>) });
const { scim, patch, refused, control } = directory;
const encoded = encodeURIComponent;

const memberIds = async (groupId: string): Promise<string[]> =>
  ((await scim('GET', `/Groups/${groupId}`)).body.members as Json[]).map(({ value }) => value).toSorted();

/** A key whose creator is the user, and what a request with it answers. */
async function keyOf(userId: string) {
  const { body } = await control.call('POST', '/keys', { name: 'theirs', creator_user_id: userId });
  const ask = { model: 'simulated/echo', messages: [{ role: 'user', content: 'hi' }] };
  return async () => (await control.call('POST', '/chat/completions', ask, body.key)).status;
}

test('Entra: the connection test searches for a user that does not exist', async () => {
  const { status, body } = await scim(
    'GET',
    `/Users?filter=${encoded('userName eq "8b3ee7c4-2a5e-4a52-93cb-5d4d0c5a0c60"')}`,
  );
  assert.equal(status, 200);
  assert.deepEqual([body.totalResults, body.Resources], [0, []]);
  const groups = await scim('GET', `/Groups?excludedAttributes=members&filter=${encoded('displayName eq "nobody"')}`);
  assert.deepEqual([groups.status, groups.body.Resources], [200, []]);
});

test('Entra: an address that was typed in with a slash at its end, or two, leads to the same', async () => {
  const made = await scim('POST', '//Users', { schemas: [USER], userName: 'slash@contoso.test', active: true });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { id, meta } = made.body;
  assert.equal(meta.location, `${directory.gateway.url}/scim/v2/Users/${id}`);
  const question = `filter=${encoded('userName eq "slash@contoso.test"')}`;
  for (const path of [`//Users?${question}`, `///Users?${question}`, `/Users/?${question}`]) {
    assert.deepEqual((await scim('GET', path)).body.Resources, [made.body], path);
  }
  for (const path of [`//Users/${id}`, `/Users//${id}`, `/Users/${id}/`, `//Users//${id}//`]) {
    assert.deepEqual((await scim('GET', path)).body, made.body, path);
  }
  const off = await patch(`//Users/${id}`, { op: 'Replace', path: 'active', value: 'False' });
  assert.deepEqual([off.status, off.body.active], [200, false]);
  const searched = await scim('POST', '//Users/.search', { filter: 'userName eq "slash@contoso.test"' });
  assert.equal(searched.body.totalResults, 1);
  assert.equal((await scim('GET', '//ServiceProviderConfig')).status, 200);
  // Without the token it still belongs to no user, and without an id no user is deleted.
  const stranger = await fetch(`${directory.gateway.url}/scim/v2//Users`);
  assert.equal(stranger.status, 401);
  assert.equal((await scim('DELETE', '//Users//')).status, 405);
  for (const path of ['', '/', '//', '//users', '/Users%2F', `/Users%2F${id}`]) {
    await refused(scim('GET', path), 404, undefined, /no resource/);
  }
  assert.equal((await fetch(`${directory.gateway.url}/scim//v2/Users`)).status, 404);
  assert.equal((await scim('DELETE', `//Users/${id}`)).status, 204);
});

test('Entra: a user is made, changed by patches, disabled and enabled again', async () => {
  const body = {
    schemas: [USER, ENTERPRISE],
    externalId: '0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef',
    userName: 'kim@contoso.test',
    active: true,
    emails: [{ primary: true, type: 'work', value: 'kim@contoso.test' }],
    meta: { resourceType: 'User' },
    name: { formatted: 'Kim Abel', familyName: 'Abel', givenName: 'Kim' },
    roles: [],
  };
  const { status, body: user } = await scim('POST', '/Users', body);
  assert.equal(status, 201);
  const path = `/Users/${user.id}`;
  const found = await scim('GET', `/Users?filter=${encoded(`externalId eq "${body.externalId}"`)}`);
  assert.equal(found.body.Resources[0].id, user.id);
  const changed = await patch(
    path,
    { op: 'Replace', path: 'emails[type eq "work"].value', value: 'k.abel@contoso.test' },
    { op: 'Replace', path: 'name.familyName', value: 'Abel-Ruiz' },
    { op: 'Add', path: 'phoneNumbers[type eq "mobile"].value', value: '+1 555 0100' },
    { op: 'Add', path: `${ENTERPRISE}:department`, value: 'Finance' },
    { op: 'Add', path: `${ENTERPRISE}:manager`, value: 'user_boss' },
    { op: 'Add', path: 'roles[primary eq "True"].value', value: 'reader' },
    { op: 'Add', path: 'addresses[type eq "work"].country', value: 'CH' },
  );
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  assert.deepEqual(changed.body.emails, [{ primary: true, type: 'work', value: 'k.abel@contoso.test' }]);
  assert.equal(changed.body.name.familyName, 'Abel-Ruiz');
  assert.deepEqual(changed.body.phoneNumbers, [{ type: 'mobile', value: '+1 555 0100' }]);
  assert.deepEqual(changed.body[ENTERPRISE], { department: 'Finance', manager: { value: 'user_boss' } });
  assert.deepEqual(changed.body.roles, [{ primary: true, value: 'reader' }]);
  assert.deepEqual(changed.body.addresses, [{ type: 'work', country: 'CH' }]);
  assert.equal(
    (await patch(path, { op: 'Replace', path: 'phoneNumbers[type eq "mobile"].value', value: '+1 555 0199' })).body
      .phoneNumbers.length,
    1,
  );
  assert.equal((await patch(path, { op: 'Remove', path: 'title' })).status, 200);
  const removed = await patch(path, { op: 'Remove', path: `${ENTERPRISE}:department`, value: 'Finance' });
  assert.equal(removed.body[ENTERPRISE].department, undefined);
  const old = await patch(path, { op: 'Add', path: 'displayName', value: [{ $ref: null, value: 'Kim A.' }] });
  assert.equal(old.body.displayName, 'Kim A.');
  const ask = await keyOf(user.id);
  assert.equal(await ask(), 200);
  const disabled = await patch(path, { op: 'Replace', path: 'active', value: 'False' });
  assert.equal(disabled.body.active, false);
  assert.equal(await ask(), 403);
  assert.equal((await patch(path, { op: 'Replace', path: 'active', value: 'True' })).body.active, true);
  assert.equal(await ask(), 200);
  assert.equal((await scim('DELETE', path)).status, 204);
  assert.equal(await ask(), 403);
});

test('Entra: attributes of the enterprise extension without its name, and booleans as it writes them', async () => {
  const user = await directory.user('jo@contoso.test');
  const path = `/Users/${user.id}`;
  const changed = await patch(
    path,
    { op: 'Add', path: 'manager', value: [{ $ref: `../Users/${user.id}`, value: 'user_boss' }] },
    { op: 'Replace', path: 'department', value: 'Finance' },
    { op: 'Replace', value: { costCenter: '17', title: 'Head' } },
  );
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  const { [ENTERPRISE]: extension, title, schemas } = changed.body;
  assert.deepEqual(schemas.toSorted(), [USER, ENTERPRISE].toSorted());
  assert.deepEqual(
    [extension.manager.value, extension.department, extension.costCenter],
    ['user_boss', 'Finance', '17'],
  );
  assert.equal(title, 'Head');
  // It asks whether a reference is there yet, and reads it back.
  const referring = (boss: string) => `/Users?filter=${encoded(`id eq "${user.id}" and manager eq "${boss}"`)}`;
  assert.equal((await scim('GET', referring('user_boss'))).body.totalResults, 1);
  assert.equal((await scim('GET', referring('user_other'))).body.totalResults, 0);
  const told = (await scim('GET', `${path}?attributes=id,manager`)).body;
  assert.deepEqual(Object.keys(told).toSorted(), ['id', 'schemas', ENTERPRISE].toSorted());
  assert.deepEqual(Object.keys(told[ENTERPRISE]), ['manager']);
  const moved = await patch(path, { op: 'Replace', path: 'manager.value', value: 'user_chief' });
  assert.equal(moved.body[ENTERPRISE].manager.value, 'user_chief');
  const alone = await patch(path, { op: 'Remove', path: 'manager' });
  assert.equal(alone.body[ENTERPRISE].manager, undefined);
  const ids = async (filter: string) =>
    (await scim('GET', `/Users?filter=${encoded(filter)}`)).body.Resources?.map(({ id }: Json) => id);
  assert.ok((await ids('active eq True')).includes(user.id));
  assert.deepEqual(await ids(`userName eq "jo@contoso.test" and active EQ FALSE`), []);
  assert.deepEqual(await ids(`userName eq "jo@contoso.test" and nickName eq Null`), [user.id]);
  assert.deepEqual(await ids('title eq " eq True"'), [], 'a text stays as it is');
  const body = { schemas: [PATCH.toUpperCase()], Operations: [{ op: 'Replace', path: 'title', value: 'Lead' }] };
  assert.equal((await scim('PATCH', path, body)).body.title, 'Lead');
});

test('Entra: a group gets members and loses them in each way that it knows', async () => {
  const users = [
    await directory.user('e1@contoso.test'),
    await directory.user('e2@contoso.test'),
    await directory.user('e3@contoso.test'),
  ];
  const [a, b, c] = users.map(({ id }: Json) => id) as [string, string, string];
  const { body: group } = await scim('POST', '/Groups', {
    schemas: [GROUP, 'http://schemas.microsoft.com/2006/11/ResourceManagement/ADSCIM/2.0/Group'],
    externalId: '8aa1a0c0-c4c3-4bc0-b4a5-2ef676900159',
    displayName: 'Finance',
    meta: { resourceType: 'Group' },
  });
  const path = `/Groups/${group.id}`;
  const told = await scim('GET', `${path}?excludedAttributes=members`);
  assert.deepEqual([told.status, told.body.members, told.body.displayName], [200, undefined, 'Finance']);
  const add = (value: Json) => patch(path, { op: 'Add', path: 'members', value });
  assert.equal(
    (
      await add([
        { $ref: null, value: a },
        { $ref: null, value: b },
      ])
    ).status,
    204,
  );
  assert.equal((await add([{ $ref: null, value: a }])).status, 204, 'twice is no error');
  assert.equal((await add({ value: c })).status, 204);
  assert.deepEqual(await memberIds(group.id), [a, b, c].toSorted());
  const found = await scim('GET', `/Groups?excludedAttributes=members&filter=${encoded('displayName eq "Finance"')}`);
  assert.deepEqual([found.body.totalResults, found.body.Resources[0].members], [1, undefined]);
  const asked = await scim('GET', `/Groups?filter=${encoded(`id eq "${group.id}" and members eq "${a}"`)}`);
  assert.equal(asked.body.totalResults, 1);
  assert.equal((await patch(path, { op: 'Remove', path: 'members', value: [{ $ref: null, value: a }] })).status, 204);
  assert.deepEqual(await memberIds(group.id), [b, c].toSorted(), 'only who is named goes');
  assert.equal((await patch(path, { op: 'Remove', path: `members[value eq "${b}"]` })).status, 204);
  assert.deepEqual(await memberIds(group.id), [c]);
  assert.equal(
    (await patch(path, { op: 'Remove', path: `members[value eq "${b}"]` })).status,
    204,
    'who is gone already',
  );
  const renamed = await patch(`${path}?attributes=displayName`, {
    op: 'Replace',
    path: 'displayName',
    value: 'Treasury',
  });
  assert.deepEqual([renamed.status, renamed.body.displayName], [200, 'Treasury']);
  assert.equal((await patch(path, { op: 'Remove', path: 'members' })).status, 204);
  assert.deepEqual(await memberIds(group.id), []);
  assert.equal((await scim('DELETE', path)).status, 204);
});

test('Okta: a user is looked for, made, replaced as a whole, deactivated without a path', async () => {
  const search = await scim('GET', `/Users?filter=${encoded('userName eq "lee@okta.test"')}&startIndex=1&count=100`);
  assert.deepEqual([search.body.totalResults, search.body.startIndex, search.body.itemsPerPage], [0, 1, 0]);
  const { body: user } = await scim('POST', '/Users', {
    schemas: [USER],
    userName: 'lee@okta.test',
    name: { givenName: 'Lee', familyName: 'Park' },
    emails: [{ primary: true, value: 'lee@okta.test', type: 'work' }],
    displayName: 'Lee Park',
    locale: 'en-US',
    externalId: '00ujl29u0le5T6Aj10h7',
    groups: [],
    password: '1mz050nq',
    active: true,
  });
  const path = `/Users/${user.id}`;
  const ask = await keyOf(user.id);
  assert.equal(user.password, undefined);
  const replaced = await scim('PUT', path, { ...user, name: { givenName: 'Lee', familyName: 'Kim' }, middleName: 'x' });
  assert.deepEqual(
    [replaced.status, replaced.body.name.familyName, replaced.body.externalId],
    [200, 'Kim', user.externalId],
  );
  const off = await patch(path, { op: 'replace', value: { active: false } });
  assert.deepEqual([off.status, off.body.active, await ask()], [200, false, 403]);
  assert.equal(
    (await scim('PUT', path, { ...user, active: undefined })).body.active,
    false,
    'no word of it gives no access',
  );
  assert.equal(await ask(), 403);
  assert.equal((await scim('PUT', path, user)).body.active, true);
  assert.equal(await ask(), 200);
  assert.equal((await scim('PUT', path, { ...user, active: false })).body.active, false);
  assert.equal(await ask(), 403);
});

test('Okta: a group is pushed, renamed with its id, filled, emptied and deleted', async () => {
  const users = [await directory.user('o1@okta.test'), await directory.user('o2@okta.test')];
  const [a, b] = users.map(({ id }: Json) => id) as [string, string];
  const page = await scim('GET', '/Groups?startIndex=1&count=100');
  assert.equal(page.status, 200);
  const { body: group } = await scim('POST', '/Groups', {
    schemas: [GROUP],
    displayName: 'Pushed',
    members: [{ value: a, display: 'o1@okta.test' }],
  });
  const path = `/Groups/${group.id}`;
  assert.equal((await patch(path, { op: 'replace', value: { id: group.id, displayName: 'Pushed anew' } })).status, 204);
  assert.deepEqual(await memberIds(group.id), [a], 'who was in it stays');
  assert.equal(
    (await patch(path, { op: 'replace', path: 'members', value: [{ value: b, display: 'o2@okta.test' }] })).status,
    204,
  );
  assert.deepEqual(await memberIds(group.id), [b]);
  const both = await patch(
    path,
    { op: 'remove', path: `members[value eq "${b}"]` },
    { op: 'add', path: 'members', value: [{ value: a, display: 'o1@okta.test' }] },
  );
  assert.equal(both.status, 204);
  assert.deepEqual(await memberIds(group.id), [a]);
  const put = await scim('PUT', path, {
    schemas: [GROUP],
    id: group.id,
    displayName: 'Pushed anew',
    members: [{ value: a }, { value: b }],
  });
  assert.deepEqual([put.status, put.body.members.length], [200, 2]);
  assert.deepEqual(
    (await scim('GET', `/Users/${a}`)).body.groups.map(({ display }: Json) => display),
    ['Pushed anew'],
  );
  assert.equal((await scim('DELETE', path)).status, 204);
  assert.equal((await scim('GET', `/Users/${a}`)).body.groups, undefined);
});

test('a patch that cannot be done is refused as a whole and changes nothing', async () => {
  const user = await directory.user('whole@example.test', { emails: [{ value: 'a@b.test', type: 'home' }] });
  const group = await directory.group('Whole', [user.id]);
  const first = { op: 'replace', path: 'title', value: 'Changed' };
  const wrong: [Json, string, RegExp][] = [
    [{ op: 'move', path: 'title', value: 'x' }, 'invalidSyntax', /Operations\[1\]\.op/],
    [{ path: 'title', value: 'x' }, 'invalidSyntax', /Operations\[1\]\.op/],
    [{ op: 'add', path: 'title' }, 'invalidSyntax', /value is required/],
    [{ op: 'remove' }, 'noTarget', /path is required/],
    [{ op: 'replace', value: 'x' }, 'invalidSyntax', /must be an object/],
    [{ op: 'replace', path: 'shoeSize', value: '44' }, 'invalidPath', /known attribute: shoeSize/],
    [{ op: 'replace', value: { shoeSize: '44' } }, 'invalidPath', /known attribute: shoeSize/],
    [{ op: 'replace', path: `${USER}:shoeSize`, value: '44' }, 'invalidPath', /shoeSize/],
    [{ op: 'replace', path: `${ENTERPRISE}:shoeSize`, value: '44' }, 'invalidPath', /shoeSize/],
    [{ op: 'replace', path: 'title.x.y', value: '44' }, 'invalidPath', /path/],
    [{ op: 'replace', path: 'emails[', value: '44' }, 'invalidPath', /cannot be parsed/],
    [{ op: 'replace', path: '__proto__.polluted', value: true }, 'invalidPath', /cannot be parsed|known attribute/],
    [{ op: 'replace', path: 'title[type eq "x"]', value: '44' }, 'invalidPath', /brackets/],
    [{ op: 'replace', path: 'emails[shoe eq "x"].value', value: '44' }, 'invalidFilter', /shoe/],
    [{ op: 'replace', path: 'emails[type eq "work"].shoe', value: '44' }, 'invalidPath', /known attribute/],
    [{ op: 'replace', path: 'emails[value co "nobody"].type', value: 'x' }, 'noTarget', /matches nothing/],
    [{ op: 'replace', path: 7, value: 'x' }, 'invalidPath', /must be a string/],
    [{ op: 'replace', path: 'active', value: 'maybe' }, 'invalidValue', /true or false/],
    [{ op: 'replace', path: 'title', value: { a: 1 } }, 'invalidValue', /must be a string/],
    [{ op: 'replace', path: 'userName', value: null }, 'invalidValue', /userName is required/],
    [{ op: 'replace', path: 'id', value: 'user_other' }, 'mutability', /cannot be changed/],
    [{ op: 'replace', value: { id: 'user_other', title: 'x' } }, 'mutability', /cannot be changed/],
    [{ op: 'replace', path: 'meta.created', value: 'x' }, 'mutability', /cannot be changed/],
    [{ op: 'add', path: 'groups', value: [{ value: group.id }] }, 'mutability', /cannot be changed/],
  ];
  for (const [operation, scimType, detail] of wrong) {
    await refused(patch(`/Users/${user.id}`, first, operation), 400, scimType, detail);
  }
  const path = `/Users/${user.id}`;
  await refused(scim('PATCH', path, { schemas: [PATCH] }), 400, 'invalidSyntax', /Operations/);
  await refused(scim('PATCH', path, { schemas: [PATCH], Operations: [] }), 400, 'invalidSyntax', /Operations/);
  await refused(scim('PATCH', path, { schemas: ['x'], Operations: [first] }), 400, 'invalidSyntax', /schemas/);
  await refused(scim('PATCH', path, { schemas: [PATCH], Operations: [3] }), 400, 'invalidSyntax', /Operations\[0\]/);
  const now = await scim('GET', path);
  assert.deepEqual([now.body.title, now.body.meta.version], [undefined, 'W/"1"']);
  assert.equal(({} as Json).polluted, undefined);
  const other = await directory.user('other@example.test');
  const add = { op: 'add', path: 'members', value: [{ value: other.id }] };
  for (const [operation, scimType] of [
    [{ op: 'move', path: 'members', value: user.id }, 'invalidSyntax'],
    [{ op: 'add', path: 'members', value: [{ value: 'user_none' }] }, 'invalidValue'],
    [{ op: 'replace', path: `members[value eq "${user.id}"]`, value: {} }, 'invalidPath'],
    [{ op: 'replace', path: `members[value eq "${user.id}"].display`, value: 'x' }, 'mutability'],
    [{ op: 'remove', path: 'displayName' }, 'invalidValue'],
  ] as [Json, string][]) {
    await refused(patch(`/Groups/${group.id}`, add, operation), 400, scimType, /./);
  }
  assert.deepEqual(await memberIds(group.id), [user.id]);
});

test('lists have one primary item however they are written: the last that says so', async () => {
  const two = (first: Json, second: Json) => [
    { value: 'a@contoso.test', type: 'work', primary: first },
    { value: 'b@contoso.test', type: 'home', primary: second },
  ];
  const primaries = (emails: Json[]) => emails.filter(({ primary }) => primary === true).map(({ value }) => value);
  const user = await directory.user('primaries', { emails: two(true, 'True') });
  assert.deepEqual(user.emails, two(false, true));
  const put = await scim('PUT', `/Users/${user.id}`, { userName: 'primaries', emails: two(true, true) });
  assert.deepEqual(put.body.emails, two(false, true));
  const value = [{ value: 'c@contoso.test', primary: true }, ...two(true, false)];
  for (const operation of [
    { op: 'add', path: 'emails', value },
    { op: 'replace', value: { emails: value } },
  ]) {
    assert.deepEqual(primaries((await patch(`/Users/${user.id}`, operation)).body.emails), ['a@contoso.test']);
  }
  await patch(`/Users/${user.id}`, { op: 'replace', path: 'displayName', value: `${'n'.repeat(319)}💥` });
  const { body } = await control.call('GET', '/organization/members?limit=100');
  assert.equal(body.data.find(({ id }: Json) => id === user.id).first_name, 'n'.repeat(319));
  assert.equal(body.data.find(({ id }: Json) => id === user.id).email, 'a@contoso.test');
});

test('lists keep one primary item, lose what is named, and what is empty is no value', async () => {
  const { id } = await directory.user('lists@example.test', {
    emails: [
      { value: 'A@x.test', type: 'work', primary: true },
      { value: 'b@x.test', type: 'home' },
    ],
    'urn:example:Own:1.0:User': { badge: 1 },
  });
  const path = `/Users/${id}`;
  const emails = async (...operations: Json[]) => (await patch(path, ...operations)).body.emails;
  assert.deepEqual(await emails({ op: 'add', path: 'emails', value: [{ value: 'c@x.test', primary: 'true' }] }), [
    { value: 'A@x.test', type: 'work', primary: false },
    { value: 'b@x.test', type: 'home' },
    { value: 'c@x.test', primary: true },
  ]);
  assert.equal(
    (await emails({ op: 'add', path: 'emails', value: { value: 'b@x.test', type: 'home' } })).length,
    3,
    'no twin',
  );
  const many = Array.from({ length: 198 }, (_, index) => ({
    op: 'add',
    path: 'emails',
    value: [{ value: `${index}` }],
  }));
  await refused(patch(path, ...many), 400, 'invalidValue', /emails has more than 200 values/);
  assert.equal((await emails({ op: 'remove', path: 'emails', value: [{ value: 'a@X.test' }] })).length, 2);
  assert.deepEqual(await emails({ op: 'remove', path: 'emails[value ew "C@X.TEST"]' }), [
    { value: 'b@x.test', type: 'home' },
  ]);
  assert.deepEqual(await emails({ op: 'replace', path: 'emails.type', value: 'work' }), [
    { value: 'b@x.test', type: 'work' },
  ]);
  assert.equal(await emails({ op: 'replace', path: 'emails', value: [] }), undefined);
  assert.deepEqual(await emails({ op: 'replace', value: { 'emails[type eq "work"].value': 'z@x.test' } }), [
    { type: 'work', value: 'z@x.test' },
  ]);
  const own = (
    await patch(
      path,
      { op: 'replace', path: 'urn:example:Own:1.0:User:badge', value: 2 },
      { op: 'add', value: { 'urn:example:Own:1.0:User': { desk: 'x' } } },
    )
  ).body;
  assert.deepEqual(own['urn:example:Own:1.0:User'], { badge: 2, desk: 'x' });
  const none = (await patch(path, { op: 'remove', path: 'urn:example:Own:1.0:User' })).body;
  assert.equal(none['urn:example:Own:1.0:User'], undefined);
  // The id of an extension may end in a version.
  const versioned = 'urn:example:own:1.0';
  const patched = async (operation: Json) => (await patch(path, operation)).body[versioned];
  assert.deepEqual(await patched({ op: 'add', value: { [versioned]: { badge: 1 } } }), { badge: 1 });
  assert.deepEqual(await patched({ op: 'replace', path: versioned, value: { desk: 'x' } }), { badge: 1, desk: 'x' });
  assert.deepEqual(await patched({ op: 'remove', path: `${versioned}:badge` }), { desk: 'x' });
  assert.equal(await patched({ op: 'remove', path: versioned }), undefined);
});
