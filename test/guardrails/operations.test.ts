/** Guardrails over HTTP, status by status, with management keys. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf, inDatabase, type Json } from '../workspaces/control.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { a: {}, b: {} } },
);
const { call, made: madeWorkspace, refused, keyIn } = controlOf(gateway);

async function made(body: Json): Promise<Json> {
  const answer = await call('POST', '/guardrails', body);
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.data;
}

test('a new guardrail has only the given settings, and reads back as created', async () => {
  const guardrail = await made({ name: ' Plain ' });
  const { id, name, workspace_id, created_at, updated_at, include_byok_in_budgets, ...rest } = guardrail;
  assert.equal(name, 'Plain');
  assert.equal(updated_at, null);
  assert.equal(include_byok_in_budgets, false);
  assert.ok(Date.parse(created_at) > 0);
  assert.match(workspace_id, /^[0-9a-f-]{36}$/);
  assert.ok(Object.values(rest).every((value) => value === null));
  for (const member of [
    'allow_safety_retention_google',
    'allow_safety_retention_other',
    'enforce_zdr_xai',
    'limit_usd',
  ]) {
    assert.ok(member in rest, member);
  }
  assert.deepEqual((await call('GET', `/guardrails/${id.toUpperCase()}`)).body.data, guardrail);
});

test('every wrong field is refused with 400 and its path', async () => {
  const wrong: [Json, RegExp][] = [
    [{}, /name/],
    [{ name: '' }, /name/],
    [{ name: ' ' }, /name must not be blank/],
    [{ name: 'x'.repeat(201) }, /name/],
    [{ name: 'x', description: 'x'.repeat(1001) }, /description/],
    [{ name: 'x', description: 'a\0' }, /description must not contain the character U\+0000/],
    [{ name: 'x', allowed_models: ['a', 'b\0'] }, /allowed_models\[1\] must not contain the character U\+0000/],
    [
      { name: 'x', content_filter_builtins: [{ slug: 'email', action: 'redact', label: '\0' }] },
      /content_filter_builtins\[0\]\.label must not contain the character U\+0000/,
    ],
    [
      { name: 'x', content_filters: [{ pattern: 'a\0', action: 'flag' }] },
      /content_filters\[0\]\.pattern must not contain the character U\+0000/,
    ],
    [
      { name: 'x', content_filters: [{ pattern: 'a', action: 'redact', label: '\0' }] },
      /content_filters\[0\]\.label must not contain the character U\+0000/,
    ],
    [{ name: 'x', allowed_data_regions: [] }, /allowed_data_regions/],
    [{ name: 'x', allowed_data_regions: ['mars'] }, /allowed_data_regions/],
    [{ name: 'x', allowed_models: [] }, /allowed_models/],
    [{ name: 'x', allowed_providers: [' '] }, /allowed_providers\[0\] must not be blank/],
    [{ name: 'x', ignored_models: [1] }, /ignored_models/],
    [{ name: 'x', ignored_providers: [] }, /ignored_providers/],
    [{ name: 'x', limit_usd: 1 }, /reset_interval is required/],
    [{ name: 'x', reset_interval: 'daily' }, /limit_usd is required/],
    [{ name: 'x', limit_usd: null, reset_interval: 'daily' }, /limit_usd is required/],
    [{ name: 'x', limit_usd: 1, reset_interval: null }, /reset_interval is required/],
    [{ name: 'x', limit_usd: 0, reset_interval: 'daily' }, /limit_usd/],
    [{ name: 'x', limit_usd: 1, reset_interval: 'lifetime' }, /reset_interval/],
    [{ name: 'x', content_filter_builtins: [{ slug: 'nothing', action: 'block' }] }, /must be one of email, phone/],
    [{ name: 'x', content_filter_builtins: [{ slug: 'email', action: 'delete' }] }, /action/],
    [
      { name: 'x', content_filter_builtins: [{ slug: 'email', action: 'flag', scan_scope: 'user_only' }] },
      /scan_scope is only valid for regex-prompt-injection/,
    ],
    [
      {
        name: 'x',
        content_filter_builtins: [
          { slug: 'email', action: 'flag' },
          { slug: 'email', action: 'block' },
        ],
      },
      /\[1\]\.slug "email" is listed twice/,
    ],
    [{ name: 'x', content_filters: [{ pattern: 'a', action: 'block', label: 'x'.repeat(101) }] }, /label/],
    [{ name: 'x', content_filters: [{ pattern: '', action: 'block' }] }, /pattern/],
    [{ name: 'x', enforce_zdr_google: true, enforce_zdr_vendor_c: false }, /must equal enforce_zdr_vendor_c/],
    [{ name: 'x', apply_to: ['response'] }, /apply_to/],
    [{ name: 'x', workspace_id: '00000000-0000-7000-8000-000000000000' }, /workspace_id is not a workspace/],
  ];
  for (const [body, message] of wrong) await refused(call('POST', '/guardrails', body), 400, message);
});

test('a pattern that cannot be matched in linear time or read is refused with its position', async () => {
  const wrong: [string, RegExp][] = [
    ['a(?=b)', /invalid_regex_pattern: lookahead is not supported at position 1/],
    ['x(?!y)', /lookahead is not supported at position 1/],
    ['(?<=a)b', /lookbehind is not supported at position 0/],
    ['(?<!a)b', /lookbehind is not supported at position 0/],
    ['(a)\\1', /backreferences are not supported at position 3/],
    ['(?<n>a)\\k<n>', /backreferences are not supported at position 7/],
    ['(a+)+', /nested quantifiers are not supported at position 4/],
    ['x((?:a*b)*c){2,}', /nested quantifiers are not supported at position 9/],
    ['a++', /possessive quantifiers are not supported at position 2/],
    ['ab[c', /missing closing \] at position 2/],
    ['(ab', /missing closing \)/],
    ['a{1001}', /invalid repeat count at position 1/],
    ['*a', /at position 0/],
    ['a*', /matches empty text/],
    ['\\b', /have no characters/],
  ];
  for (const [pattern, message] of wrong) {
    const body = { name: 'x', content_filters: [{ pattern, action: 'flag' }] };
    await refused(call('POST', '/guardrails', body), 400, message);
  }
  const right = [
    'a[(?=]b',
    '\\(?=x',
    '[)+]+',
    '(?:\\d{3}-){2}\\d{4}',
    '(?i)code ?name',
    '\\u{1F600}|\\u0041',
    '(?<year>\\d{4})',
  ];
  const guardrail = await made({
    name: 'right',
    content_filters: right.map((pattern) => ({ pattern, action: 'flag' })),
  });
  assert.deepEqual(
    guardrail.content_filters.map(({ pattern }: Json) => pattern),
    right,
  );
});

test('a change replaces lists, null clears, and what is not named stays', async () => {
  const before = await made({
    name: 'Changing',
    description: 'first',
    allowed_models: ['test/a'],
    allowed_data_regions: ['europe', 'europe'],
    content_filter_builtins: [
      { slug: 'email', action: 'redact', label: 'mine' },
      { slug: 'ssn', action: 'redact' },
    ],
    content_filters: [{ pattern: 'secret', action: 'block' }],
    limit_usd: 5,
    reset_interval: 'weekly',
    include_byok_in_budgets: true,
  });
  assert.deepEqual(before.content_filter_builtins, [
    { slug: 'email', action: 'redact', label: 'mine' },
    { slug: 'ssn', action: 'redact', label: '[SSN]' },
  ]);
  assert.deepEqual(before.content_filters, [{ pattern: 'secret', action: 'block', label: null }]);
  assert.deepEqual(before.allowed_data_regions, ['europe']);
  const path = `/guardrails/${before.id}`;
  const unchanged = (await call('PATCH', path, {})).body.data;
  assert.deepEqual({ ...unchanged, updated_at: null }, before);
  assert.ok(Date.parse(unchanged.updated_at) > 0);
  const changed = (
    await call('PATCH', path, { allowed_models: ['test/b', 'test/c'], description: null, name: 'Changed' })
  ).body.data;
  assert.deepEqual(changed.allowed_models, ['test/b', 'test/c']);
  assert.deepEqual([changed.description, changed.name], [null, 'Changed']);
  assert.deepEqual([changed.limit_usd, changed.reset_interval, changed.include_byok_in_budgets], [5, 'weekly', true]);
  assert.deepEqual(changed.content_filters, before.content_filters);
  const cleared = await call('PATCH', path, {
    allowed_models: null,
    allowed_data_regions: null,
    content_filter_builtins: null,
    content_filters: [],
    limit_usd: null,
    reset_interval: null,
  });
  assert.equal(cleared.status, 200);
  for (const member of [
    'allowed_models',
    'allowed_data_regions',
    'content_filter_builtins',
    'content_filters',
    'limit_usd',
    'reset_interval',
  ]) {
    assert.equal(cleared.body.data[member], null, member);
  }
  await refused(call('PATCH', path, { limit_usd: 3 }), 400, /reset_interval is required/);
  await refused(
    call('PATCH', path, { content_filters: [{ pattern: '(', action: 'flag' }] }),
    400,
    /invalid_regex_pattern/,
  );
  await refused(call('PATCH', path, { workspace_id: before.workspace_id }), 400, /workspace_id/);
});

test('the deprecated zdr member is copied into every one by vendor that is not given or null', async () => {
  const guardrail = await made({
    name: 'zdr',
    enforce_zdr: true,
    enforce_zdr_openai: false,
    enforce_zdr_vendor_d: null,
  });
  assert.deepEqual(
    [
      guardrail.enforce_zdr,
      guardrail.enforce_zdr_vendor_a,
      guardrail.enforce_zdr_anthropic,
      guardrail.enforce_zdr_vendor_b,
      guardrail.enforce_zdr_google,
      guardrail.enforce_zdr_xai,
      guardrail.enforce_zdr_other,
    ],
    [true, true, true, false, true, true, true],
  );
  const changed = await call('PATCH', `/guardrails/${guardrail.id}`, { enforce_zdr_other: false });
  assert.deepEqual([changed.body.data.enforce_zdr_other, changed.body.data.enforce_zdr_google], [false, true]);
  const unset = await call('PATCH', `/guardrails/${guardrail.id}`, { enforce_zdr_other: null });
  assert.equal(unset.body.data.enforce_zdr_other, true);
  const none = await call('PATCH', `/guardrails/${guardrail.id}`, { enforce_zdr: null, enforce_zdr_xai: null });
  assert.deepEqual([none.body.data.enforce_zdr_google, none.body.data.enforce_zdr_xai], [null, null]);
});

test('lists are of one workspace, in pages, with the count of all of them', async () => {
  const workspace = await madeWorkspace({ name: 'Lists', slug: 'lists' });
  const path = `/guardrails?workspace_id=${workspace.id}`;
  assert.deepEqual((await call('GET', path)).body, { data: [], total_count: 0 });
  for (const name of ['one', 'two', 'three']) {
    gateway.clock.jump(1000);
    await made({ name, workspace_id: workspace.id });
  }
  await call('PATCH', `/guardrails/${workspace.default_guardrail_id}`, { enforce_zdr: true });
  const names = async (query: string) =>
    (await call('GET', path + query)).body.data.map(({ name }: Json) => name.replace(workspace.id, '*'));
  assert.deepEqual(await names(''), ['Workspace * Default', 'three', 'two', 'one']);
  assert.deepEqual(await names('&offset=1&limit=2'), ['three', 'two']);
  assert.equal((await call('GET', `${path}&offset=3&limit=1`)).body.total_count, 4);
  for (const query of ['&limit=0', '&limit=101', '&offset=-1'])
    await refused(call('GET', path + query), 400, /limit|offset/);
  await refused(call('GET', '/guardrails?workspace_id=00000000-0000-7000-8000-000000000000'), 400, /workspace_id/);
});

test('the default guardrail of a workspace is there before it was set, and again after it was deleted', async () => {
  const workspace = await madeWorkspace({ name: 'Fresh', slug: 'fresh' });
  const path = `/guardrails/${workspace.default_guardrail_id}`;
  const unset = (await call('GET', path)).body.data;
  assert.deepEqual(
    [unset.id, unset.workspace_id, unset.enforce_zdr],
    [workspace.default_guardrail_id, workspace.id, null],
  );
  assert.equal(unset.updated_at, null);
  const set = await call('PATCH', path, { allowed_models: ['test/a'] });
  assert.equal(set.status, 200);
  assert.deepEqual((await call('GET', path)).body.data.allowed_models, ['test/a']);
  assert.deepEqual((await call('DELETE', path)).body, { deleted: true });
  assert.deepEqual((await call('GET', path)).body.data, unset);
  const racing = await Promise.all([1, 2, 3, 4].map((n) => call('PATCH', path, { description: String(n) })));
  assert.ok(racing.every(({ status }) => status === 200 || status === 409));
  assert.ok(racing.some(({ status }) => status === 200));
});

test('what is not there is 404, and deleting ends it', async () => {
  const { id } = await made({ name: 'Short' });
  assert.equal((await call('DELETE', `/guardrails/${id}`)).status, 200);
  for (const unknown of [id, 'nothing', '00000000-0000-7000-8000-000000000000']) {
    await refused(call('GET', `/guardrails/${unknown}`), 404, /no guardrail/);
    await refused(call('PATCH', `/guardrails/${unknown}`, {}), 404, /no guardrail/);
    await refused(call('DELETE', `/guardrails/${unknown}`), 404, /no guardrail/);
    await refused(call('GET', `/guardrails/${unknown}/assignments/keys`), 404, /no guardrail/);
    await refused(call('POST', `/guardrails/${unknown}/assignments/keys`, { key_hashes: ['x'] }), 404, /no guardrail/);
    await refused(
      call('POST', `/guardrails/${unknown}/assignments/members/remove`, { member_user_ids: ['x'] }),
      404,
      /no/,
    );
  }
});

test('one of several concurrent deletions of a guardrail succeeds, and is logged once', async () => {
  const { id, workspace_id: workspaceId } = await made({ name: 'Contested' });
  const answers = await Promise.all(Array.from({ length: 6 }, () => call('DELETE', `/guardrails/${id}`)));
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 404, 404, 404, 404, 404]);
  const entries = async (resourceId: string) =>
    (await call('GET', `/audit?resource_id=${resourceId}&action=guardrail.deleted`)).body.data.length;
  assert.equal(await entries(id), 1);
  const { default_guardrail_id: unset } = (await call('GET', `/workspaces/${workspaceId}`)).body.data;
  const before = await entries(unset);
  assert.deepEqual((await call('DELETE', `/guardrails/${unset}`)).body, { deleted: true });
  assert.equal(await entries(unset), before, 'nothing was there to delete');
});

test('a key holds one guardrail: assigning replaces, removing counts, and deleting the guardrail removes', async () => {
  const first = await made({ name: 'First' });
  const second = await made({ name: 'Second' });
  const key = await keyIn(undefined, 'held');
  const assign = (guardrail: Json, key_hashes: string[], way = '') =>
    call('POST', `/guardrails/${guardrail.id}/assignments/keys${way}`, { key_hashes });
  assert.deepEqual((await assign(first, [key.hash, key.hash, 'f'.repeat(64), 'unknown'])).body, { assigned_count: 1 });
  const { body } = await call('GET', `/guardrails/${first.id}/assignments/keys`);
  assert.equal(body.total_count, 1);
  const [assignment] = body.data;
  assert.deepEqual([assignment.key_hash, assignment.key_name, assignment.guardrail_id], [key.hash, 'held', first.id]);
  assert.match(assignment.key_label, /\.\.\.|…|\*/);
  assert.deepEqual((await assign(second, [key.hash])).body, { assigned_count: 1 });
  assert.equal((await call('GET', `/guardrails/${first.id}/assignments/keys`)).body.total_count, 0);
  assert.ok(
    (await call('GET', '/guardrails/assignments/keys')).body.data.some((one: Json) => one.guardrail_id === second.id),
  );
  assert.deepEqual((await assign(first, [key.hash], '/remove')).body, { unassigned_count: 0 });
  assert.deepEqual((await assign(second, [key.hash], '/remove')).body, { unassigned_count: 1 });
  await assign(second, [key.hash]);
  await call('DELETE', `/guardrails/${second.id}`);
  const { data } = (await call('GET', '/guardrails/assignments/keys')).body;
  assert.ok(data.every((one: Json) => one.key_hash !== key.hash));
  await refused(assign(first, []), 400, /key_hashes/);
  await refused(
    assign(
      first,
      Array.from({ length: 501 }, (_, n) => `k${n}`),
    ),
    400,
    /key_hashes/,
  );
});

test('a member holds at most one guardrail, and a workspace default needs no assignment', async () => {
  const guardrail = await made({ name: 'Members' });
  const key = await keyIn(undefined, 'of a member');
  const creator = (await call('GET', `/keys/${key.hash}`)).body.data.creator_user_id;
  assert.match(creator, /^user_/);
  const path = `/guardrails/${guardrail.id}/assignments/members`;
  assert.deepEqual((await call('POST', path, { member_user_ids: [creator, 'user_nobody'] })).body, {
    assigned_count: 1,
  });
  const listed = (await call('GET', path)).body;
  assert.deepEqual(
    [listed.total_count, listed.data[0].user_id, listed.data[0].guardrail_id],
    [1, creator, guardrail.id],
  );
  assert.equal((await call('GET', '/guardrails/assignments/members')).body.total_count, 1);
  assert.deepEqual((await call('POST', `${path}/remove`, { member_user_ids: [creator] })).body, {
    unassigned_count: 1,
  });
  const workspace = await madeWorkspace({ name: 'Assigned', slug: 'assigned' });
  const defaultPath = `/guardrails/${workspace.default_guardrail_id}/assignments/keys`;
  await refused(call('POST', defaultPath, { key_hashes: [key.hash] }), 400, /default guardrail/);
});

test('a guardrail that an older version has stored says nothing about members that it did not know', async () => {
  const guardrail = await made({ name: 'Older', allowed_models: ['test/b'], enforce_zdr_other: true });
  await inDatabase(gateway, [
    `update guardrails set revision = gen_random_uuid(), settings = '{"allowedModels": ["test/b"], "zdr": {"other": true}}'
      where id = '${guardrail.id}'`,
  ]);
  const { updated_at, ...read } = (await call('GET', `/guardrails/${guardrail.id}`)).body.data;
  assert.deepEqual({ updated_at, ...read }, guardrail);
  const key = await keyIn(undefined, 'older');
  await call('POST', `/guardrails/${guardrail.id}/assignments/keys`, { key_hashes: [key.hash] });
  assert.equal((await key.ask({ model: 'test/a' })).status, 403);
  await call('PATCH', `/guardrails/${guardrail.id}`, { name: 'Newer' });
  assert.equal((await call('GET', `/guardrails/${guardrail.id}`)).body.data.enforce_zdr_other, true);
});
