/** The effective policy of a key: the most restrictive of its guardrails, its member's, its workspace's and the account's. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import type { Json } from '../workspaces/control.ts';
import { postThrough, postWith, startGuarded } from './guarded.ts';

const lasting = { after: (close: () => unknown) => after(close as () => Promise<void>) } as Parameters<
  typeof startGateway
>[0];
const clean = { zdr: true, trains: false, publishes: false, retains_for_safety: false };
const FREE = { prompt: '0', completion: '0' };
const models: Record<string, Json> = {
  a: {},
  b: {},
  zdr: { id: 'google/z', data_policy: clean },
  kept: { id: 'google/z', data_policy: { ...clean, retains_for_safety: true } },
  keeps: { id: 'anthropic/k', data_policy: { ...clean, zdr: false } },
  trains: { id: 'test/t', data_policy: { ...clean, trains: true } },
  freetrains: { id: 'test/ft', pricing: FREE, data_policy: { ...clean, trains: true } },
  freepublishes: { id: 'test/fp', pricing: FREE, data_policy: { ...clean, publishes: true } },
};
const { gateway, guarded, control } = await startGuarded(lasting, {
  providers: Object.fromEntries(Object.entries(models).map(([name, model]) => [name, { model }])),
  yaml: { hosts: { europe: ['eu.example.com'], us: ['us.example.com'] } },
});
for (const name of Object.keys(models)) gateway.upstream.script(name, chatWhole('fine'));

const ask = (model: string, more: Json = {}) => ({
  model,
  max_tokens: 100,
  messages: [{ role: 'user', content: 'hi' }],
  ...more,
});
const PATH = '/chat/completions';
const another = await startGateway(lasting, {
  target: gateway.target,
  providers: { a: {}, b: {} },
});
another.upstream.script('a', chatWhole('fine'));
another.upstream.script('b', chatWhole('fine'));

test('model and provider lists refuse with 403, by id, alias and variant, and allow the rest', async () => {
  const cases: [Json, string][] = [
    [{ allowed_models: ['test/b'] }, 'allowed_models'],
    [{ ignored_models: ['TEST/A'] }, 'ignored_models'],
    [{ allowed_providers: ['b'] }, 'allowed_providers'],
    [{ ignored_providers: ['Provider a'] }, 'ignored_providers'],
  ];
  for (const [rules, name] of cases) {
    const key = await guarded(rules);
    for (const model of ['test/a', 'test/a:nitro', 'test/a:floor']) {
      const { status, body } = await key.post(PATH, ask(model));
      assert.equal(status, 403, `${name} ${model} ${JSON.stringify(body)}`);
      assert.match(body.error.message, new RegExp(`${name} of the guardrails of this key`));
    }
    assert.equal((await key.post(PATH, ask('test/b'))).status, 200, name);
    const fallen = await key.post(PATH, ask('test/a', { models: ['test/b'] }));
    assert.deepEqual([fallen.status, fallen.body.model], [200, 'test/b']);
    const shown = (await (await gateway.get('/models/user', key.token)).json()) as Json;
    const ids = shown.data.map(({ id }: Json) => id);
    assert.deepEqual([ids.includes('test/a'), ids.includes('test/b')], [false, true], name);
  }
});

test('the lists of several guardrails are intersected', async () => {
  const key = await guarded({ allowed_models: ['test/a', 'test/b'] });
  const workspace = (await control.call('GET', `/keys/${key.hash}`)).body.data.workspace_id;
  const { default_guardrail_id: id } = (await control.call('GET', `/workspaces/${workspace}`)).body.data;
  await control.call('PATCH', `/guardrails/${id}`, { allowed_models: ['test/b', 'test/t'] });
  const statuses = [];
  for (const model of ['test/a', 'test/b', 'test/t']) statuses.push((await key.post(PATH, ask(model))).status);
  assert.deepEqual(statuses, [403, 200, 403]);
  const unassigned = await control.keyIn(undefined, 'only the default');
  assert.equal((await unassigned.ask({ model: 'test/t' })).status, 200, 'the default one needs no assignment');
  assert.equal((await unassigned.ask({ model: 'test/a' })).status, 403);
  await control.call('DELETE', `/guardrails/${id}`);
  assert.equal((await unassigned.ask({ model: 'test/a' })).status, 200);
});

test('zero retention is demanded by the vendor of the model, with or without retention for safety', async () => {
  const google = await guarded({ enforce_zdr_google: true });
  assert.equal((await google.post(PATH, ask('google/z'))).status, 200);
  assert.equal((await google.post(PATH, ask('anthropic/k'))).status, 200);
  const anthropic = await guarded({ enforce_zdr_anthropic: true });
  const refused = await anthropic.post(PATH, ask('anthropic/k'));
  assert.deepEqual([refused.status, refused.body.error.availability.code], [404, 'privacy_restricted']);
  assert.equal((await anthropic.post(PATH, ask('test/a'))).status, 200);
  const listed = async (token: string) => {
    const { data } = (await (await gateway.get('/endpoints/zdr', token)).json()) as Json;
    return data.map(({ provider_name }: Json) => provider_name).toSorted();
  };
  const fewer = await guarded({ enforce_zdr_google: true, allow_safety_retention_google: false });
  assert.ok((await listed(google.token)).includes('Provider kept'));
  assert.ok(!(await listed(fewer.token)).includes('Provider kept'));
  assert.ok((await listed(fewer.token)).includes('Provider zdr'));
  const strict = await guarded({ allow_safety_retention_google: false });
  const only = { provider: { only: ['kept'] } };
  assert.equal((await strict.post(PATH, ask('google/z', only))).status, 200, 'nobody asked for zero retention');
  assert.equal((await strict.post(PATH, ask('google/z', { provider: { ...only.provider, zdr: true } }))).status, 404);
  assert.equal((await google.post(PATH, ask('google/z', { provider: { ...only.provider, zdr: true } }))).status, 200);
});

test('a provider that the request wants is 403 if a guardrail forbids it, and 404 if the model has none of the name', async () => {
  const key = await guarded({ ignored_providers: ['kept'] });
  for (const [only, status] of [
    ['kept', 403],
    ['nobody', 404],
  ] as const) {
    const reply = await key.post(PATH, ask('google/z', { provider: { only: [only] } }));
    assert.equal(reply.status, status);
    assert.match(JSON.stringify(reply), /no allowed providers/);
  }
});

test('free and paid endpoints that train or publish are excluded apart', async () => {
  const cases: [string, number[]][] = [
    ['enable_paid_model_training', [404, 200, 200]],
    ['enable_free_model_training', [200, 404, 200]],
    ['enable_free_model_publication', [200, 200, 404]],
  ];
  for (const [flag, expected] of cases) {
    const key = await guarded({ [flag]: false });
    const statuses = [];
    for (const model of ['test/t', 'test/ft', 'test/fp']) statuses.push((await key.post(PATH, ask(model))).status);
    assert.deepEqual(statuses, expected, flag);
    const open = await guarded({ [flag]: true });
    assert.equal((await open.post(PATH, ask('test/t'))).status, 200);
  }
});

test('GET /key names the regions that all guardrails of the key allow', async () => {
  const key = await guarded({ allowed_data_regions: ['us', 'europe'] });
  const regions = async (token = key.token) => {
    const reply = (await (await gateway.get('/key', token)).json()) as Json;
    return reply.data.allowed_data_regions;
  };
  assert.deepEqual(await regions(), ['europe', 'us']);
  const open = await control.keyIn(undefined, 'without a guardrail');
  assert.deepEqual(await regions(open.token), ['global', 'europe', 'us']);
  const { data: workspaces } = (await control.call('GET', '/workspaces')).body;
  const standard = `/guardrails/${workspaces[0].default_guardrail_id}`;
  await control.call('PATCH', standard, { allowed_data_regions: ['us', 'global'] });
  assert.deepEqual(await regions(), ['us']);
  await control.call('PATCH', standard, { allowed_data_regions: ['global'] });
  assert.deepEqual(await regions(), []);
  await control.call('DELETE', standard);
});

test('requests through a region that is not allowed are refused with 403 whatever the operation', async () => {
  const key = await guarded({ allowed_data_regions: ['europe'] });
  const { body: refused } = await key.post(PATH, { ...ask('test/a'), models: ['test/b'] });
  assert.deepEqual(refused.error.availability, {
    code: 'region_restricted',
    retryable: false,
    requested_models: ['test/a', 'test/b'],
    excluded_by: ['data_region'],
    docs_url: '/docs',
  });
  const through = async (host: string, path: string, body: Json) =>
    (await postThrough(gateway, host, key.token, path, body)).status;
  assert.equal(await through('eu.example.com', PATH, ask('test/a')), 200);
  for (const [path, body] of [
    [PATH, ask('test/a')],
    ['/messages', ask('test/a')],
    ['/responses', { model: 'test/a', input: 'hi' }],
    ['/completions', { model: 'test/a', prompt: 'hi' }],
    ['/messages/count_tokens', ask('test/a')],
    ['/embeddings', { model: 'test/a', input: 'hi' }],
    ['/rerank', { model: 'test/a', query: 'q', documents: ['d'] }],
    ['/images', { model: 'test/a', prompt: 'p' }],
  ] as const) {
    assert.equal(await through('us.example.com', path, body), 403, path);
    assert.equal(await through('other.example.com', path, body), 403, path);
  }
});

test('a limit is each key its own, is 402 when it does not cover a request, and is whole again the next day', async () => {
  const rules = { limit_usd: 0.003, reset_interval: 'daily' };
  const key = await guarded(rules);
  const second = await control.keyIn(undefined, 'second');
  await control.call('POST', `/guardrails/${key.guardrailId}/assignments/keys`, { key_hashes: [second.hash] });
  const spend = async (token: string) =>
    (await postWith(gateway, token, PATH, ask('test/a', { max_tokens: 50 }))).status;
  const statuses = [];
  for (let turn = 0; turn < 40; turn++) statuses.push(await spend(key.token));
  const allowed = statuses.filter((status) => status === 200).length;
  assert.ok(allowed > 0 && allowed < 40, statuses.join(' '));
  const refused = await key.post(PATH, ask('test/a', { max_tokens: 50 }));
  assert.equal(refused.status, 402);
  assert.equal(refused.body.error.metadata.budget.scope, 'guardrail');
  assert.equal(await spend(second.token), 200);
  gateway.clock.jump(86_400_000);
  assert.equal(await spend(key.token), 200);
});

test('what is written on one process holds for the next request on another', async () => {
  const key = await guarded({});
  const elsewhere = (model: string) => postWith(another, key.token, PATH, ask(model)).then(({ status }) => status);
  assert.equal(await elsewhere('test/a'), 200);
  await control.call('PATCH', `/guardrails/${key.guardrailId}`, { ignored_models: ['test/a'] });
  assert.equal(await elsewhere('test/a'), 403);
  await control.call('POST', `/guardrails/${key.guardrailId}/assignments/keys/remove`, { key_hashes: [key.hash] });
  assert.equal(await elsewhere('test/a'), 200);
  const workspace = (await control.call('GET', `/keys/${key.hash}`)).body.data.workspace_id;
  const { default_guardrail_id: id } = (await control.call('GET', `/workspaces/${workspace}`)).body.data;
  await control.call('PATCH', `/guardrails/${id}`, { allowed_models: ['test/b'] });
  assert.equal(await elsewhere('test/a'), 403);
  await control.call('DELETE', `/guardrails/${id}`);
  assert.equal(await elsewhere('test/a'), 200);
});

test('500 keys are assigned in one call, and each is governed by the next request', async () => {
  const { guardrailId } = await guarded({ allowed_models: ['test/b'] });
  const keys = [];
  for (let made = 0; made < 500; made += 20) {
    keys.push(
      ...(await Promise.all(Array.from({ length: 20 }, (_, n) => control.keyIn(undefined, `bulk ${made + n}`)))),
    );
  }
  const first = keys[0]!;
  assert.equal((await first.ask({ model: 'test/a' })).status, 200);
  const { body } = await control.call('POST', `/guardrails/${guardrailId}/assignments/keys`, {
    key_hashes: keys.map(({ hash }) => hash),
  });
  assert.deepEqual(body, { assigned_count: 500 });
  for (const key of [first, keys[250]!, keys[499]!]) assert.equal((await key.ask({ model: 'test/a' })).status, 403);
});
