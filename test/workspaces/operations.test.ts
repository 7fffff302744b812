/** Workspaces over HTTP, status by status, with management keys. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { controlOf, inDatabase, type Json } from './control.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { a: {}, b: {} } },
);
const { call, made, refused, keyIn } = controlOf(gateway);

test('a new workspace has the defaults of the wire, and is found by id, in any case, and by slug', async () => {
  const workspace = await made({ name: '  Team one ', slug: 'team-1' });
  assert.deepEqual(Object.keys(workspace).toSorted(), [
    'created_at',
    'created_by',
    'default_guardrail_id',
    'default_image_model',
    'default_provider_sort',
    'default_text_model',
    'description',
    'disabled_server_tools',
    'id',
    'include_byok_in_budgets',
    'io_logging_api_key_ids',
    'io_logging_sampling_rate',
    'is_data_discount_logging_enabled',
    'is_observability_broadcast_enabled',
    'is_observability_io_logging_enabled',
    'name',
    'prompt_caching',
    'rate_limits',
    'slug',
    'updated_at',
  ]);
  assert.deepEqual(
    [workspace.name, workspace.description, workspace.disabled_server_tools, workspace.io_logging_sampling_rate],
    ['Team one', null, null, 1],
  );
  assert.match(workspace.default_guardrail_id, /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  assert.equal(workspace.updated_at, null);
  for (const reference of [workspace.id, workspace.id.toUpperCase(), 'team-1']) {
    const answer = await call('GET', `/workspaces/${reference}`);
    assert.deepEqual([answer.status, answer.body.data], [200, workspace]);
  }
  await refused(call('GET', '/workspaces/nobody'), 404, /no workspace/);
  await refused(call('GET', '/workspaces/00000000-0000-7000-8000-000000000000'), 404, /no workspace/);
});

test('every wrong field is refused with 400 and its path, and nothing is changed', async () => {
  const before = await made({ name: 'Wrong', slug: 'wrong' });
  const wrong: [Json, RegExp][] = [
    [{ name: '' }, /name/],
    [{ name: ' ' }, /name must not be blank/],
    [{ name: '\u200b\u202e \u3164' }, /name must not be blank/],
    [{ name: 'x'.repeat(101) }, /name/],
    [{ name: null }, /name/],
    [{ slug: 'Upper' }, /slug/],
    [{ slug: 'a--b' }, /slug/],
    [{ slug: '-a' }, /slug/],
    [{ slug: 'a'.repeat(51) }, /slug/],
    [{ slug: '01900000-0000-7000-8000-000000000000' }, /slug must not be a UUID/],
    [{ slug: 'default' }, /slug is already used/],
    [{ description: 'x'.repeat(501) }, /description/],
    [{ description: 'a\0b' }, /description must not contain/],
    [{ default_text_model: 'nobody/nothing' }, /default_text_model is not a model/],
    [{ default_image_model: 'nobody/nothing' }, /default_image_model is not a model/],
    [{ default_provider_sort: 'cheapest' }, /default_provider_sort/],
    [{ disabled_server_tools: ['svc:nothing'] }, /disabled_server_tools\[0\]/],
    [{ disabled_server_tools: ['svc:bash', 'web_search'] }, /disabled_server_tools\[1\]/],
    [{ disabled_server_tools: 'svc:bash' }, /disabled_server_tools/],
    [{ io_logging_api_key_ids: [1.5] }, /io_logging_api_key_ids\[0\]/],
    [{ io_logging_api_key_ids: [-1] }, /io_logging_api_key_ids\[0\]/],
    [{ io_logging_api_key_ids: ['mine'] }, /io_logging_api_key_ids\[0\]/],
    [{ io_logging_sampling_rate: 0 }, /io_logging_sampling_rate/],
    [{ io_logging_sampling_rate: 0.00009 }, /io_logging_sampling_rate/],
    [{ io_logging_sampling_rate: 1.01 }, /io_logging_sampling_rate/],
    [{ is_observability_broadcast_enabled: 'yes' }, /is_observability_broadcast_enabled/],
    [{ default_guardrail_id: null }, /default_guardrail_id/],
    [{ include_byok_in_budgets: true }, /include_byok_in_budgets/],
  ];
  for (const [body, message] of wrong) {
    await refused(call('PATCH', '/workspaces/wrong', body), 400, message);
    await refused(call('POST', '/workspaces', { name: 'New', slug: 'new', ...body }), 400, message);
  }
  await refused(call('POST', '/workspaces', { slug: 'nameless' }), 400, /name/);
  await refused(call('POST', '/workspaces', { name: 'Slugless' }), 400, /slug/);
  assert.deepEqual((await call('GET', '/workspaces/wrong')).body.data, before);
  await refused(call('GET', '/workspaces/new'), 404, /./);
});

test('PATCH changes what it names, null clears, and the rest stays', async () => {
  const key = await keyIn(undefined, 'logged');
  await made({ name: 'Changed', slug: 'changed' });
  const set = {
    name: 'Renamed',
    slug: 'renamed',
    description: 'What it is for',
    default_text_model: 'test/a',
    default_image_model: 'test/b',
    default_provider_sort: 'latency',
    disabled_server_tools: ['svc:web_search', 'openrouter:bash', 'svc:bash'],
    io_logging_api_key_ids: [key.id, String(key.id), key.hash, 12],
    io_logging_sampling_rate: 0.25,
    is_data_discount_logging_enabled: true,
    is_observability_broadcast_enabled: true,
    is_observability_io_logging_enabled: true,
  };
  const changed = await call('PATCH', '/workspaces/changed', set);
  assert.equal(changed.status, 200, JSON.stringify(changed.body));
  const shown = {
    ...set,
    disabled_server_tools: ['svc:web_search', 'svc:bash'],
    io_logging_api_key_ids: [key.id, 12],
  };
  const pick = (data: Json) => Object.fromEntries(Object.keys(shown).map((name) => [name, data[name]]));
  assert.deepEqual(pick(changed.body.data), shown);
  assert.notEqual(changed.body.data.updated_at, null);
  await refused(call('GET', '/workspaces/changed'), 404, /./);
  const same = await call('PATCH', '/workspaces/renamed', {});
  assert.deepEqual(pick(same.body.data), shown);
  const cleared = await call('PATCH', '/workspaces/renamed', {
    description: null,
    default_text_model: null,
    default_image_model: null,
    default_provider_sort: null,
    disabled_server_tools: [],
    io_logging_api_key_ids: null,
  });
  assert.deepEqual(pick(cleared.body.data), {
    ...shown,
    description: null,
    default_text_model: null,
    default_image_model: null,
    default_provider_sort: null,
    disabled_server_tools: null,
    io_logging_api_key_ids: null,
  });
});

test('of creations with one slug at the same time exactly one succeeds, and the slug of a deleted one is free', async () => {
  const race = await Promise.all(
    Array.from({ length: 6 }, () => call('POST', '/workspaces', { name: 'Race', slug: 'race' })),
  );
  assert.deepEqual(race.map(({ status }) => status).toSorted(), [201, 400, 400, 400, 400, 400]);
  assert.equal((await call('DELETE', '/workspaces/race')).status, 200);
  await made({ name: 'Race', slug: 'race' });
});

test('the list has pages with a count over all, each workspace once', async () => {
  for (let at = 0; at < 3; at++) await made({ name: `Page ${at}`, slug: `page-${at}` });
  const whole = (await call('GET', '/workspaces?limit=100')).body;
  assert.equal(whole.total_count, whole.data.length);
  assert.equal(whole.data[0].slug, 'default');
  const pages: string[] = [];
  for (let offset = 0; offset < whole.total_count; offset += 2) {
    const page = (await call('GET', `/workspaces?limit=2&offset=${offset}`)).body;
    assert.equal(page.total_count, whole.total_count);
    pages.push(...page.data.map(({ id }: Json) => id));
  }
  assert.deepEqual(
    pages,
    whole.data.map(({ id }: Json) => id),
  );
  await refused(call('GET', '/workspaces?limit=101'), 400, /limit/);
  await refused(call('GET', '/workspaces?offset=-1'), 400, /offset/);
});

test('a workspace with an active key stays; without one it goes, and its disabled keys cannot come back', async () => {
  const workspace = await made({ name: 'Ends', slug: 'ends' });
  const key = await keyIn(workspace.id, 'last');
  await refused(call('DELETE', '/workspaces/ends'), 400, /1 active API key/);
  gateway.upstream.script('a', chatWhole('hello'));
  assert.equal((await key.ask({ model: 'test/a' })).status, 200);
  assert.equal((await call('PATCH', `/keys/${key.hash}`, { disabled: true })).status, 200);
  await call('PUT', '/workspaces/ends/budgets/daily', { limit_usd: 5 });
  assert.deepEqual((await call('DELETE', '/workspaces/ends')).body, { deleted: true });
  await refused(call('GET', '/workspaces/ends'), 404, /./);
  await refused(call('GET', `/workspaces/${workspace.id}/budgets`), 404, /./);
  await refused(call('DELETE', '/workspaces/ends'), 404, /./);
  await refused(call('PATCH', `/keys/${key.hash}`, { disabled: false }), 400, /workspace of the key was deleted/);
  await refused(call('POST', '/keys', { name: 'late', workspace_id: workspace.id }), 400, /workspace_id/);
  assert.equal((await key.ask({ model: 'test/a' })).status, 401);
  assert.equal((await call('GET', `/keys/${key.hash}`)).body.data.disabled, true);
});

test('a workspace takes its guardrails with it, also from keys of other workspaces', async () => {
  const workspace = await made({ name: 'Guarded', slug: 'guarded' });
  const key = await keyIn(undefined, 'governed');
  const rules = { name: 'Only b', workspace_id: workspace.id, allowed_models: ['test/b'] };
  const { id } = (await call('POST', '/guardrails', rules)).body.data;
  await call('POST', `/guardrails/${id}/assignments/keys`, { key_hashes: [key.hash] });
  gateway.upstream.script('a', chatWhole('hello'));
  assert.equal((await key.ask({ model: 'test/a' })).status, 403);
  await call('PATCH', `/guardrails/${workspace.default_guardrail_id}`, { allowed_models: ['test/b'] });
  assert.equal((await call('DELETE', '/workspaces/guarded')).status, 200);
  assert.equal((await key.ask({ model: 'test/a' })).status, 200);
  await refused(call('GET', `/guardrails/${id}`), 404, /./);
  await refused(call('GET', `/guardrails/${workspace.default_guardrail_id}`), 404, /./);
});

test('members are added and removed with their roles; a member with an active key stays', async () => {
  const owner = (await call('GET', '/workspaces/default/members')).body.data[0].user_id;
  await inDatabase(gateway, [
    `insert into users (id, name, created_at) select 'user_' || n, 'U', now() from generate_series(1, 3) n`,
    `insert into members select organization_id, 'user_' || n, 'member', now() from members, generate_series(1, 3) n`,
  ]);
  const workspace = await made({ name: 'Members', slug: 'members' });
  const change = (how: string, ...user_ids: string[]) =>
    call('POST', `/workspaces/members/members/${how}`, { user_ids });
  const list = async (slug: string) => (await call('GET', `/workspaces/${slug}/members`)).body;
  assert.deepEqual(
    (await list('members')).data.map(({ user_id }: Json) => user_id),
    [owner],
    'who made it',
  );
  const added = await change('add', 'user_1', 'user_2', 'user_1', owner);
  assert.equal(added.body.added_count, 3);
  assert.deepEqual(
    added.body.data.map(({ user_id, role, workspace_id }: Json) => [user_id, role, workspace_id]).toSorted(),
    [
      ['user_1', 'member', workspace.id],
      ['user_2', 'member', workspace.id],
      [owner, 'admin', workspace.id],
    ].toSorted(),
  );
  assert.deepEqual(
    (await change('add', 'user_1')).body.data[0],
    added.body.data.find((one: Json) => one.user_id === 'user_1'),
  );
  await refused(
    change('add', 'user_3', 'user_9'),
    400,
    /user_ids names users that are not members of the organization: user_9/,
  );
  await refused(change('add'), 400, /user_ids/);
  await refused(change('add', ...Array.from({ length: 101 }, (_, n) => `user_${n}`)), 400, /user_ids/);
  assert.equal((await list('members')).total_count, 3);
  const page = (await call('GET', '/workspaces/members/members?limit=1&offset=1')).body;
  assert.deepEqual([page.data.length, page.total_count], [1, 3]);

  const key = await keyIn(workspace.id, 'theirs', { creator_user_id: 'user_1' });
  await refused(change('remove', 'user_2', 'user_1'), 400, /active API keys in the workspace: user_1/);
  assert.equal((await list('members')).total_count, 3, 'all or none');
  await call('DELETE', `/keys/${key.hash}`);
  assert.deepEqual((await change('remove', 'user_1', 'user_2', 'user_3', 'user_9')).body, { removed_count: 2 });
  await inDatabase(gateway, ['update workspace_members set scim_managed = true']);
  await refused(change('remove', owner), 403, /identity provider/);
});

test('to the default workspace every member belongs, without being added', async () => {
  const { data, total_count } = (await call('GET', '/workspaces/default/members')).body;
  assert.equal(data.length, total_count);
  assert.ok(total_count >= 1);
  const again = (await call('GET', '/workspaces/default/members')).body.data;
  assert.deepEqual(again, data, 'with lasting ids');
  const user_ids = [data[0].user_id];
  const added = await call('POST', '/workspaces/default/members/add', { user_ids });
  assert.deepEqual([added.body.added_count, added.body.data], [1, [data[0]]]);
  await refused(call('POST', '/workspaces/default/members/remove', { user_ids }), 400, /default workspace/);
});

test('two changes of one workspace at the same time are both kept', async () => {
  const { id } = await made({ name: 'Both', slug: 'both' });
  await Promise.all([
    call('PATCH', `/workspaces/${id}`, { description: 'kept' }),
    call('PATCH', `/workspaces/${id}`, { default_text_model: 'test/a' }),
    call('PATCH', `/workspaces/${id}`, { slug: 'both-moved' }),
  ]);
  const { data } = (await call('GET', '/workspaces/both-moved')).body;
  assert.deepEqual([data.description, data.default_text_model], ['kept', 'test/a']);
});

test('the default workspace is deleted only with confirmation; requests that rely on it must then name one', async (t) => {
  const own = await startGateway(t, { providers: { a: {} } });
  const control = controlOf(own);
  const kept = await control.made({ name: 'Kept', slug: 'kept' });
  const keptKey = await control.keyIn(kept.id, 'kept');
  const key = await control.keyIn(undefined, 'unscoped');
  await control.refused(control.call('DELETE', '/workspaces/default'), 400, /confirm_default_workspace_deletion/);
  const path = '/workspaces/default?confirm_default_workspace_deletion=true';
  assert.equal((await control.call('DELETE', path)).status, 200);
  own.upstream.script('a', chatWhole('hello'));
  assert.equal((await key.ask({ model: 'test/a' })).status, 401);
  assert.equal((await keptKey.ask({ model: 'test/a' })).status, 200);
  await control.refused(control.call('POST', '/keys', { name: 'k' }), 400, /workspace_id is required/);
  await control.refused(control.call('GET', '/keys'), 400, /workspace_id is required/);
  assert.equal((await control.call('GET', '/key')).body.data.is_management_key, true);
  assert.equal((await control.call('GET', `/keys?workspace_id=${kept.id}`)).body.data.length, 1);
});
