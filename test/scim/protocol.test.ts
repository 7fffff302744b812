/** The protocol itself (RFC 7644): resources, filters, pages, versions, refusals. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { INFERENCE_KEY, MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import type { Json } from '../workspaces/control.ts';
import { directoryOf, ENTERPRISE, GROUP, PATCH, startDirectory, USER } from './directory.ts';

const directory = await startDirectory({ after: (close) => after(close as () => Promise<void>) });
const { scim, patch, refused, control, gateway } = directory;

const list = async (path: string): Promise<Json> => {
  const { status, body } = await scim('GET', path);
  assert.equal(status, 200, JSON.stringify(body));
  return body;
};
const query = (filter: string, more = '') => `?filter=${encodeURIComponent(filter)}${more}`;
const namesBy = async (filter: string): Promise<string[]> =>
  (await list(`/Users${query(filter)}`)).Resources.map(({ userName }: Json) => userName).toSorted();

test('a user is created, read, replaced and deleted', async () => {
  const body = {
    schemas: [USER, ENTERPRISE],
    externalId: 'ext-1',
    userName: 'Ada@example.com',
    name: { givenName: 'Ada', familyName: 'Byron' },
    emails: [{ value: 'ada@example.com', type: 'work', primary: true }],
    password: 'never-kept',
    [ENTERPRISE]: { department: 'Engines', manager: { value: 'user_x' } },
    'urn:example:Custom:1.0:User': { badge: 7, nested: { kept: [true] } },
    unheardOf: 'passed over',
  };
  const made = await scim('POST', '/Users', body);
  assert.equal(made.status, 201);
  const { id, meta } = made.body;
  assert.match(id, /^user_[0-9a-f]{32}$/);
  assert.equal(meta.location, `${gateway.url}/scim/v2/Users/${id}`);
  assert.equal(made.headers.get('location'), meta.location);
  assert.equal(made.headers.get('etag'), 'W/"1"');
  assert.equal(meta.version, 'W/"1"');
  assert.equal(meta.resourceType, 'User');
  const { password: _password, unheardOf: _unknown, ...kept } = body;
  assert.deepEqual(
    { ...made.body, schemas: made.body.schemas.toSorted() },
    {
      ...kept,
      schemas: [USER, ENTERPRISE, 'urn:example:Custom:1.0:User'].toSorted(),
      id,
      active: true,
      meta,
    },
  );
  assert.deepEqual((await scim('GET', `/Users/${id}`)).body, made.body);
  const members = await control.call('GET', '/workspaces/default/members');
  assert.ok(members.body.data.some((member: Json) => member.user_id === id && member.role === 'member'));
  const replaced = await scim('PUT', `/Users/${id}`, { schemas: [USER], id, userName: 'ada', title: 'Countess', meta });
  assert.equal(replaced.status, 200);
  assert.deepEqual([replaced.body.title, replaced.body.name, replaced.body.active], ['Countess', undefined, true]);
  assert.equal(replaced.headers.get('etag'), 'W/"2"');
  const same = await scim('PUT', `/Users/${id}`, { userName: 'ada', title: 'Countess', active: true });
  assert.equal(same.headers.get('etag'), 'W/"2"', 'nothing differs, so the version stays');
  const gone = await scim('DELETE', `/Users/${id}`);
  assert.deepEqual([gone.status, gone.body], [204, undefined]);
  await refused(scim('GET', `/Users/${id}`), 404, undefined, /no user has the id/);
  await refused(scim('DELETE', `/Users/${id}`), 404, undefined, /no user/);
});

test('names are unique whatever their case, and free again with their user', async () => {
  const first = await directory.user('twin@example.com');
  await refused(
    scim('POST', '/Users', { userName: 'TWIN@example.com' }),
    409,
    'uniqueness',
    /userName is already used/,
  );
  const other = await directory.user('other@example.com');
  await refused(
    patch(`/Users/${other.id}`, { op: 'replace', path: 'userName', value: 'Twin@Example.com' }),
    409,
    'uniqueness',
    /already used/,
  );
  assert.equal(
    (await patch(`/Users/${first.id}`, { op: 'replace', path: 'userName', value: 'TWIN@example.com' })).status,
    200,
  );
  await scim('DELETE', `/Users/${first.id}`);
  await scim('DELETE', `/Users/${(await directory.user('twin@example.com')).id}`);
  const group = await directory.group('Twins');
  await refused(scim('POST', '/Groups', { displayName: 'twins' }), 409, 'uniqueness', /displayName is already used/);
  await scim('DELETE', `/Groups/${group.id}`);
  await scim('DELETE', `/Users/${other.id}`);
});

test('every operator filters on every kind of attribute', async (t) => {
  const people: Json[] = [
    {
      userName: 'anna',
      title: 'Engineer',
      emails: [
        { value: 'anna@work.test', type: 'work' },
        { value: 'a@home.test', type: 'home' },
      ],
    },
    { userName: 'BERT', active: false, name: { familyName: 'Berg "B" \\ son' }, [ENTERPRISE]: { department: 'Sales' } },
    {
      userName: 'cleo',
      title: 'engineering lead',
      externalId: 'Cleo-1',
      emails: [{ value: 'cleo@home.test', type: 'home' }],
    },
  ];
  for (const { userName, ...more } of people) await directory.user(userName, more);
  const group = await directory.group('Readers', [
    (await list(`/Users${query('userName eq "anna"')}`)).Resources[0].id,
  ]);
  const cases: Record<string, string[]> = {
    'userName eq "ANNA"': ['anna'],
    'USERNAME Eq "bert"': ['BERT'],
    'userName ne "anna"': ['BERT', 'cleo'],
    'userName co "e"': ['BERT', 'cleo'],
    'userName sw "A"': ['anna'],
    'userName ew "rt"': ['BERT'],
    'userName gt "anna"': ['BERT', 'cleo'],
    'userName ge "bert" and userName le "bert"': ['BERT'],
    'userName lt "b"': ['anna'],
    'title pr': ['anna', 'cleo'],
    'not (title pr)': ['BERT'],
    'title ne "Engineer"': ['BERT', 'cleo'],
    'title eq null': ['BERT'],
    'title co "%"': [],
    'externalId eq "Cleo-1"': ['cleo'],
    'externalId eq "cleo-1"': [],
    'active eq false': ['BERT'],
    'active eq "True"': ['anna', 'cleo'],
    'name.familyName eq "Berg \\"B\\" \\\\ son"': ['BERT'],
    'name.familyName pr': ['BERT'],
    'emails eq "anna@work.test"': ['anna'],
    'emails.value ew "home.test"': ['anna', 'cleo'],
    'emails[type eq "work"].value ew "work.test"': ['anna'],
    'emails[type eq "work" and value co "home"]': [],
    'emails[type eq "home" and not (value sw "cleo")]': ['anna'],
    'emails pr and title sw "engineering"': ['cleo'],
    'emails.type ne "home"': ['BERT', 'anna'],
    [`${ENTERPRISE}:department eq "sales"`]: ['BERT'],
    [`${USER}:userName eq "anna"`]: ['anna'],
    'userName eq "anna" or userName eq "bert" and active eq true': ['anna'],
    '(userName eq "anna" or userName eq "bert") and active eq false': ['BERT'],
    'meta.created gt "2020-01-01T00:00:00Z"': ['BERT', 'anna', 'cleo'],
    'meta.lastModified lt "2020-01-01T00:00:00Z"': [],
    'meta.lastModified ge "2020-01-01T00:00:00.5"': ['BERT', 'anna', 'cleo'],
    'meta.resourceType eq "User"': ['BERT', 'anna', 'cleo'],
    'groups.display eq "readers"': ['anna'],
    [`groups[value eq "${group.id}"]`]: ['anna'],
    'groups pr': ['anna'],
    [`schemas eq "${USER}"`]: ['BERT', 'anna', 'cleo'],
    'userName eq "6f1ed002-ab55-4ad2-a4c1-aa6c3dcb1b4a"': [],
    'userName eq "\'; drop table users; --"': [],
  };
  for (const [filter, names] of Object.entries(cases)) {
    await t.test(filter, async () => assert.deepEqual(await namesBy(filter), names));
  }
  const members = await list(`/Groups${query(`members eq "${group.members[0].value}"`)}`);
  assert.equal(members.totalResults, 1);
  assert.equal(
    (await list(`/Groups${query('members[display co "nn"] and displayName eq "readers"')}`)).totalResults,
    1,
  );
});

test('a filter that cannot be asked is refused and says why', async () => {
  const wrong: [string, RegExp][] = [
    ['', /cannot be parsed/],
    ['userName', /cannot be parsed/],
    ['userName eq', /cannot be parsed/],
    ['userName eq "a" and', /cannot be parsed/],
    ['userName is "a"', /cannot be parsed/],
    ['(userName eq "a"', /cannot be parsed/],
    ['userName eq anna', /cannot be parsed/],
    ['shoeSize eq "44"', /no attribute shoeSize/],
    ['name.shoe eq "44"', /no attribute name.shoe/],
    ['emails[shoe eq "44"]', /no attribute shoe/],
    ['userName[type eq "x"]', /cannot have brackets/],
    ['password eq "x"', /cannot be used in a filter/],
    ['active gt true', /only be compared with eq or ne/],
    ['active eq "maybe"', /true or false/],
    ['userName eq 7', /a string in quotes/],
    ['name eq "x"', /is an object/],
    ['meta.created eq "yesterday"', /must be compared with a complete time/],
    ['meta.created gt "2020"', /must be compared with a complete time/],
    ['meta.created gt "2026-02-30T00:00:00Z"', /must be compared with a complete time/],
    ['meta.created gt "0000-01-01T00:00:00Z"', /must be compared with a complete time/],
    ['meta.created lt "+275760-09-13T00:00:00Z"', /must be compared with a complete time/],
    ['meta.location eq "x"', /cannot be used in a filter/],
    ['userName eq "a\u0000"', /control character/],
    [`userName eq "${'\n'.repeat(60)}`, /control character/],
    ['userName eq "\\u0000"', /U\+0000/],
    ['userName eq "\\ud83d"', /surrogate/],
    [`${'('.repeat(2_000)}userName pr${')'.repeat(2_000)}`, /too many parts|cannot be parsed|^/],
    [Array.from({ length: 150 }, () => 'userName pr').join(' or '), /too many parts/],
    [`userName eq "${'x'.repeat(5_000)}"`, /more than 4096/],
    ['('.repeat(4_000), /^the filter (?:has too many parts|cannot be parsed: Unexpected)/],
  ];
  for (const [filter, message] of wrong) {
    const pending = scim('POST', '/Users/.search', { filter });
    if (filter.endsWith('))')) assert.ok([200, 400].includes((await pending).status));
    else await refused(pending, 400, 'invalidFilter', message);
  }
  await refused(scim('GET', '/Users?count=many'), 400, 'invalidSyntax', /count/);
  await refused(scim('GET', '/Users?sortBy=shoe'), 400, 'invalidValue', /sortBy/);
});

test('pages begin at 1, are bounded and complete, and may be sorted', async () => {
  const all = await list('/Users?count=1000');
  assert.equal(all.totalResults, all.Resources.length);
  const seen: string[] = [];
  for (let startIndex = 1; seen.length < all.totalResults; startIndex += 2) {
    const page = await list(`/Users?startIndex=${startIndex}&count=2`);
    assert.deepEqual([page.startIndex, page.totalResults], [startIndex, all.totalResults]);
    assert.equal(page.itemsPerPage, page.Resources.length);
    seen.push(...page.Resources.map(({ id }: Json) => id));
  }
  assert.deepEqual(
    seen,
    all.Resources.map(({ id }: Json) => id),
  );
  assert.equal((await list('/Users?startIndex=-4&count=1')).startIndex, 1);
  const none = await list('/Users?count=0');
  assert.deepEqual([none.totalResults, none.Resources], [all.totalResults, []]);
  assert.equal((await list('/Users?count=-1')).itemsPerPage, 0);
  assert.deepEqual((await list('/Users?startIndex=99999')).Resources, []);
  for (const path of ['/Users', '/Groups']) {
    assert.deepEqual((await list(`${path}?startIndex=1e300`)).Resources, [], 'past what the database can count');
    const searched = await scim('POST', `${path}/.search`, { startIndex: Number.MAX_VALUE });
    assert.deepEqual([searched.status, searched.body.Resources], [200, []]);
  }
  const empty = await list('/Users?attributes=&excludedAttributes=&sortBy=&sortOrder=');
  assert.deepEqual(empty.Resources, (await list('/Users')).Resources, 'what is empty asks for nothing');
  const unassigned = { filter: null, sortBy: null, sortOrder: null, startIndex: null, count: null, attributes: null };
  assert.deepEqual((await scim('POST', '/Users/.search', unassigned)).body.Resources, empty.Resources);
  const sorted = await list('/Users?sortBy=userName&sortOrder=descending');
  assert.deepEqual(
    sorted.Resources.map(({ userName }: Json) => userName),
    ['cleo', 'BERT', 'anna'],
  );
  const byEmail = await list('/Users?sortBy=emails');
  assert.deepEqual(
    byEmail.Resources.map(({ userName }: Json) => userName),
    ['anna', 'cleo', 'BERT'],
  );
  for (const sortBy of [
    'id',
    'externalId',
    'schemas',
    'active',
    'meta.resourceType',
    'meta.created',
    'name.familyName',
  ]) {
    assert.equal((await list(`/Users?sortBy=${sortBy}`)).itemsPerPage, 3, sortBy);
    assert.equal(
      (await list(`/Groups?sortBy=${sortBy.replace(/active|name.*/, 'displayName')}`)).startIndex,
      1,
      sortBy,
    );
  }
});

test('resources are sorted by the primary item of a list, and those without a value are last, or first descending', async () => {
  const { id } = await directory.user('dora', {
    emails: [{ value: 'a@first.test' }, { value: 'z@primary.test', primary: true }],
    title: 'a',
  });
  const sorted = async (sortBy: string, sortOrder: string) =>
    (await list(`/Users?sortBy=${sortBy}&sortOrder=${sortOrder}`)).Resources.map(({ userName }: Json) => userName);
  assert.deepEqual(await sorted('emails', 'ascending'), ['anna', 'cleo', 'dora', 'BERT']);
  assert.deepEqual(await sorted('emails.value', 'descending'), ['BERT', 'dora', 'cleo', 'anna']);
  assert.deepEqual((await sorted('title', 'ascending')).at(-1), 'BERT');
  assert.deepEqual((await sorted('title', 'descending'))[0], 'BERT');
  assert.equal((await scim('DELETE', `/Users/${id}`)).status, 204);
});

test('only requested attributes are returned', async () => {
  const [anna] = (await list(`/Users${query('userName eq "anna"')}`)).Resources;
  const told = async (more: string) => (await scim('GET', `/Users/${anna.id}?${more}`)).body;
  assert.deepEqual(Object.keys(await told('attributes=username,emails.value')).toSorted(), [
    'emails',
    'id',
    'schemas',
    'userName',
  ]);
  assert.deepEqual((await told('attributes=emails.value')).emails, [
    { value: 'anna@work.test' },
    { value: 'a@home.test' },
  ]);
  assert.equal((await told('excludedAttributes=emails,id')).emails, undefined);
  assert.equal((await told('excludedAttributes=emails,id')).id, anna.id);
  const group = await list('/Groups?excludedAttributes=members');
  assert.equal(group.Resources[0].members, undefined);
  const searched = await scim('POST', '/Users/.search', { filter: 'title pr', attributes: ['title'], count: 1 });
  assert.deepEqual(Object.keys(searched.body.Resources[0]).toSorted(), ['id', 'schemas', 'title']);
  assert.equal(searched.body.totalResults, 2);
});

test('a write that is meant for another version is refused', async () => {
  const { id } = await directory.user('versioned');
  const write = (version: string) =>
    scim('PUT', `/Users/${id}`, { userName: 'versioned', title: version }, { 'if-match': version });
  assert.equal((await write('W/"1"')).status, 200);
  await refused(write('W/"1"'), 412, undefined, /the current version is W\/"2"/);
  await refused(write('nonsense'), 412, undefined, /the current version/);
  assert.equal((await write('W/"7", W/"2"')).status, 200);
  assert.equal((await write('*')).status, 200);
  await refused(scim('DELETE', `/Users/${id}`, undefined, { 'if-match': 'W/"1"' }), 412, undefined, /version/);
  assert.equal((await scim('DELETE', `/Users/${id}`, undefined, { 'if-match': 'W/"4"' })).status, 204);
});

test('invalid bodies are refused with the position of the fault', async () => {
  const post = (body: Json) => scim('POST', '/Users', body);
  await refused(post('{"userName": '), 400, 'invalidSyntax', /JSON/i);
  await refused(post('[]'), 400, 'invalidSyntax', /object/);
  await refused(post({}), 400, 'invalidValue', /userName is required/);
  await refused(post({ userName: '  ' }), 400, 'invalidValue', /userName is required/);
  await refused(post({ userName: { a: 1 } }), 400, 'invalidValue', /userName must be a string/);
  await refused(post({ userName: 'x', active: 'maybe' }), 400, 'invalidValue', /active must be true or false/);
  await refused(post({ userName: 'x', emails: [{ value: {} }] }), 400, 'invalidValue', /emails\[0\]\.value/);
  await refused(post({ userName: 'x', username: 'y' }), 400, 'invalidSyntax', /appears twice/);
  await refused(post({ userName: 'x', externalId: 'a', externalid: 'b' }), 400, 'invalidSyntax', /externalId appears/);
  const twice = { [ENTERPRISE]: { department: 'a' }, [ENTERPRISE.toUpperCase()]: { department: 'b' } };
  await refused(post({ userName: 'x', ...twice }), 400, 'invalidSyntax', /appears twice/);
  await refused(post({ userName: 'x\u0000' }), 400, 'invalidSyntax', /U\+0000/);
  await refused(post({ userName: 'x', title: 'y'.repeat(200_000) }), 400, 'invalidValue', /characters/);
  await refused(
    post({ userName: 'x', emails: Array.from({ length: 300 }, () => ({ value: 'a' })) }),
    400,
    'invalidValue',
    /200/,
  );
  await refused(post({ userName: 'x', 'urn:a:b': { c: 'y'.repeat(140_000) } }), 400, 'invalidValue', /bytes/);
  await refused(post({ userName: 'x', [USER]: { title: 'y' } }), 400, 'invalidSyntax', /User is not an extension/);
  await refused(scim('POST', '/Users', 'x', { 'content-type': 'text/plain' }), 415, undefined, /content-type/);
  const groups = (body: Json) => scim('POST', '/Groups', body);
  await refused(groups({ schemas: [GROUP] }), 400, 'invalidValue', /displayName is required/);
  await refused(groups({ displayName: 'g', members: [{ value: 'user_none' }] }), 400, 'invalidValue', /user_none/);
  await refused(groups({ displayName: 'g', members: [{ value: 'x', type: 'Group' }] }), 400, 'invalidValue', /group/);
  await refused(groups({ displayName: 'g', members: [{}] }), 400, 'invalidValue', /members\[0\]/);
  assert.equal((await list(`/Groups${query('displayName eq "g"')}`)).totalResults, 0, 'nothing of it was kept');
  await refused(scim('GET', '/Groups/not-a-uuid'), 404, undefined, /no group/);
  await refused(scim('GET', '/Users/a%00b'), 404, undefined, /U\+0000/);
});

test('the service describes itself', async () => {
  const config = await list('/ServiceProviderConfig');
  assert.deepEqual(
    [config.patch.supported, config.bulk.supported, config.filter],
    [true, false, { supported: true, maxResults: 1000 }],
  );
  const types = await list('/ResourceTypes');
  assert.deepEqual(
    types.Resources.map(({ endpoint }: Json) => endpoint),
    ['/Users', '/Groups'],
  );
  const schemas = await list('/Schemas');
  assert.deepEqual(
    schemas.Resources.map(({ id }: Json) => id),
    [USER, ENTERPRISE, GROUP],
  );
  const user = await list(`/Schemas/${USER}`);
  assert.equal(user.attributes.find(({ name }: Json) => name === 'userName').uniqueness, 'server');
  assert.equal((await list('/ResourceTypes/Group')).schema, GROUP);
  await refused(scim('GET', '/Schemas/urn:none'), 404, undefined, /urn:none/);
  await refused(scim('GET', '/Schemas?filter=x'), 403, undefined, /does not support filters/);
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
    await refused(scim(method, '/Me'), 501, undefined, /\/Me is not supported/);
  }
  await refused(scim('POST', '/Bulk', { schemas: [], Operations: [] }), 501, undefined, /bulk/);
  await refused(scim('PUT', '/Users', {}), 405, undefined, /allowed: /);
  for (const path of ['/Devices', '/Users/a/b', '', '/users']) {
    await refused(scim('GET', path), 404, undefined, /no resource at \/scim\/v2/);
  }
});

test('keys of the gateway are refused here, and this token everywhere else', async () => {
  for (const key of [MANAGEMENT_KEY, INFERENCE_KEY]) {
    await refused(directoryOf(gateway, key).scim('GET', '/Users'), 403, undefined, /Only SCIM tokens/);
  }
  for (const key of ['unknown', directory.token.slice(0, -1)]) {
    await refused(directoryOf(gateway, key).scim('GET', '/Users'), 401, undefined, /not known/);
  }
  for (const path of ['/key', '/keys', '/workspaces', '/models', '/scim/groups']) {
    const { status, body } = await control.call('GET', path, undefined, directory.token);
    assert.equal(status, 403, path);
    assert.match(body.error.message, /SCIM tokens can only be used/);
  }
  const chat = { model: 'simulated/echo', messages: [{ role: 'user', content: 'hi' }] };
  assert.equal((await control.call('POST', '/chat/completions', chat, directory.token)).status, 403);
  assert.equal(
    (await scim('PATCH', '/Users/none', { schemas: [PATCH], Operations: [{ op: 'add', path: 'title', value: 'x' }] }))
      .status,
    404,
  );
});
