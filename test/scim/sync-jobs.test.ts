/** Sync jobs: what they do with a source and without, and what becomes of them when something is in the way. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { type Answer, startUpstream } from '../../src/testing/upstream/upstream.ts';
import { controlOf, inDatabase, type Json } from '../workspaces/control.ts';
import { type Directory, directoryOf, scimToken, startDirectory } from './directory.ts';

/** The identity provider: another gateway, which answers as any service provider does. */
const remote = await startDirectory({ after: (close) => after(close as () => Promise<void>) });
const NOTHING = '00000000-0000-7000-8000-000000000000';

const sourced = (base_url = `${remote.gateway.url}/scim/v2/`, token = remote.token) => ({
  yaml: {
    egress: { networks: ['127.0.0.0/8'], ports: ['1-65535'] },
    scim: { source: { base_url, token } },
  },
});

const MOST_LOOKS = 10_000;

type Api = Parameters<typeof controlOf>[0];

async function begin({ api }: Api): Promise<Json> {
  const response = await fetch(`${api}/scim/sync-jobs`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}` },
  });
  assert.equal(response.status, 202);
  const { data } = (await response.json()) as Json;
  assert.deepEqual([data.status, data.started_at, data.finished_at, data.error_message], ['queued', null, null, null]);
  assert.equal(response.headers.get('location'), `/api/v1/scim/sync-jobs/${data.id}`);
  return data;
}

async function state(gateway: Api, { id }: Json): Promise<Json> {
  return (await controlOf(gateway).call('GET', `/scim/sync-jobs/${id}`)).body.data;
}

async function becomes(gateway: Api, job: Json, ...statuses: string[]): Promise<Json> {
  for (let look = 0; look < MOST_LOOKS; look++) {
    const now = await state(gateway, job);
    if (statuses.includes(now.status)) return now;
  }
  throw new Error(`the job does not become ${statuses}: ${JSON.stringify(await state(gateway, job))}`);
}

async function run(gateway: Api): Promise<Json> {
  const job = await becomes(gateway, await begin(gateway), 'succeeded', 'failed');
  assert.ok(job.started_at <= job.finished_at);
  return job;
}

async function mapped({ control }: Directory, groupId: string): Promise<string> {
  const { id } = await control.made({ name: 'Mapped', slug: 'mapped' });
  const body = { scim_group_id: groupId, workspace_id: id, role: 'member' };
  assert.equal((await control.call('POST', '/scim/group-mappings', body)).status, 201);
  return id;
}

test('without a source memberships are brought to what was pushed', async (t) => {
  const directory = await startDirectory(t);
  const { gateway, rolesIn, scim } = directory;
  const [a, b] = [await directory.user('a'), await directory.user('b', { active: false })];
  const { id } = await directory.group('Pushed', [a.id, b.id]);
  const workspace = await mapped(directory, id);
  const right = await rolesIn('default');
  await inDatabase(gateway, [
    `delete from members where user_id = '${a.id}'`,
    `insert into members select distinct organization_id, '${b.id}', 'admin', now() from members`,
  ]);
  assert.notDeepEqual(await rolesIn('default'), right);
  const job = await run(gateway);
  assert.deepEqual([job.status, job.synced_groups, job.deleted_groups, job.error_message], ['succeeded', 1, 0, null]);
  assert.deepEqual(await rolesIn('default'), right);
  assert.deepEqual((await rolesIn(workspace))[a.id], 'member');
  assert.equal((await scim('GET', `/Users/${b.id}`)).body.active, false);
  await directory.control.refused(controlOf(gateway).call('GET', `/scim/sync-jobs/${NOTHING}`), 404, /no sync job/);
  await directory.control.refused(controlOf(gateway).call('GET', '/scim/sync-jobs/x'), 404, /no sync job/);
});

test('with a source its users and groups are taken, kept in line, and ended with it', async (t) => {
  const gateway = await startGateway(t, sourced());
  const local = directoryOf(gateway, await scimToken(gateway.target));
  const pushed = await local.user('pushed@here.test', { title: 'Stays' });
  const [anna, bert] = [
    await remote.user('anna@idp.test', { displayName: 'Anna' }),
    await remote.user('bert@idp.test'),
  ];
  const group = await remote.group('Pulled', [anna.id, bert.id]);
  const other = await remote.group('Short-lived', [anna.id]);
  assert.deepEqual([(await run(gateway)).synced_groups, (await run(gateway)).deleted_groups], [2, 0]);
  const idOf = async (name: string) =>
    (await local.scim('GET', `/Users?filter=${encodeURIComponent(`userName eq "${name}"`)}`)).body.Resources[0];
  const [a, b] = [await idOf('anna@idp.test'), await idOf('bert@idp.test')];
  assert.deepEqual([a.displayName, a.externalId, a.meta.version], ['Anna', anna.id, 'W/"1"']);
  const { body } = await local.control.call('GET', '/scim/groups');
  const pulled = body.data.find((each: Json) => each.display_name === 'Pulled');
  assert.equal(pulled.external_id, group.id);
  const workspace = await mapped(local, pulled.id);
  const roles = await local.rolesIn(workspace);
  assert.deepEqual([roles[a.id], roles[b.id]], ['member', 'member']);
  const key = await local.control.call('POST', '/keys', { name: 'theirs', creator_user_id: b.id });
  const ask = { model: 'simulated/echo', messages: [{ role: 'user', content: 'hi' }] };
  const status = async () => (await local.control.call('POST', '/chat/completions', ask, key.body.key)).status;
  assert.equal(await status(), 200);
  await remote.patch(`/Groups/${group.id}`, { op: 'replace', value: { displayName: 'Renamed' } });
  await remote.patch(`/Users/${anna.id}`, { op: 'replace', path: 'displayName', value: 'Anna B.' });
  await remote.scim('DELETE', `/Users/${bert.id}`);
  await remote.scim('DELETE', `/Groups/${other.id}`);
  const job = await run(gateway);
  assert.deepEqual([job.status, job.synced_groups, job.deleted_groups], ['succeeded', 1, 1]);
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  upstream.script('empty', [{ chunks: ['{"totalResults":0,"Resources":[]}'], repeat: true }]);
  const { baseUrl: _own, ...source } = gateway.config.scim.source!;
  gateway.app.reload({ ...gateway.config, scim: { source: { ...source, baseUrl: `${upstream.url}/empty` } } });
  const emptied = await run(gateway);
  assert.match(emptied.error_message, /no users at all/, 'a provider that tells of nobody locks nobody out');
  assert.equal(await status(), 403, 'who is gone there is gone here');
  assert.equal((await local.rolesIn(workspace))[b.id], undefined);
  assert.equal((await idOf('anna@idp.test')).displayName, 'Anna B.');
  const groups = (await local.control.call('GET', '/scim/groups')).body.data;
  assert.deepEqual(
    groups.map((each: Json) => [each.id, each.display_name]),
    [[pulled.id, 'Renamed']],
  );
  assert.equal((await local.scim('GET', `/Users/${pushed.id}`)).body.meta.version, 'W/"1"', 'what was pushed stays');
});

test('a source that cannot be asked fails the job with the reason, and nothing changes', async (t) => {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  const answer = (body: string, status = 200): Answer => ({ status, chunks: [body], repeat: true });
  const first = await startGateway(t);
  const { target } = first;
  // It would run the jobs of the others.
  await first.close();
  const answers: [string, RegExp, number?][] = [
    ['{}', /status 500/, 500],
    ['<html>', /did not return JSON/],
    ['[]', /JSON object/],
    ['{}', /not a SCIM list/],
    ['{"totalResults":1,"Resources":[{}]}', /without an id/],
    ['{"totalResults":9,"Resources":[]}', /ends after 0 of 9/],
    ['{"totalResults":1,"Resources":[{"id":"u1"}]}', /the user u1 of the identity provider: userName is required/],
  ];
  const cases: [Parameters<typeof sourced>, RegExp][] = [
    [[undefined, 'wrong-token'], /returned status 401 for GET \/Users/],
    [['http://127.0.0.1:9/scim'], /could not be fetched/],
    ...answers.map(([body, message, status], index): [[string], RegExp] => {
      upstream.script(`idp${index}`, [answer(body, status)]);
      return [[`${upstream.url}/idp${index}`], message];
    }),
  ];
  for (const [args, message] of cases) {
    const gateway = await startGateway(t, { ...sourced(...args), target });
    const job = await run(gateway);
    assert.deepEqual([job.status, job.synced_groups, job.deleted_groups], ['failed', null, null]);
    assert.match(job.error_message, message);
    await gateway.close();
  }
  const closed = await startGateway(t, { yaml: { scim: sourced().yaml.scim }, target });
  const job = await run(closed);
  assert.equal(job.status, 'failed', 'the address of a source is checked as any other');
  assert.doesNotMatch(job.error_message, new RegExp(remote.token));
});

/** A provider without users that answers once it is released. */
async function slowSource(t: TestContext) {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  upstream.script('idp', [{ chunks: [{ gate: 'go' }, '{"totalResults":0,"Resources":[]}'], repeat: true }]);
  return { upstream, options: sourced(`${upstream.url}/idp`) };
}

test('one job runs at a time in all processes, and the others wait for it', async (t) => {
  const { upstream, options } = await slowSource(t);
  const first = await startGateway(t, options);
  const second = await startGateway(t, { ...options, target: first.target });
  const running = await begin(first);
  await becomes(second, running, 'running');
  const waiting = [await begin(second), await begin(first)];
  await Promise.all([begin(second), begin(first)]);
  for (const job of waiting) assert.equal((await state(first, job)).status, 'queued');
  assert.equal(upstream.requests('idp').length, 1);
  upstream.open('go');
  second.clock.jump(10_000);
  for (const job of [running, ...waiting])
    assert.equal((await becomes(second, job, 'succeeded', 'failed')).status, 'succeeded');
});

test('a job of a closing process is restarted by another; one that fails too often ends', async (t) => {
  const { upstream, options } = await slowSource(t);
  const first = await startGateway(t, options);
  const job = await begin(first);
  const { started_at } = await becomes(first, job, 'running');
  await first.close();
  const second = await startGateway(t, { ...options, target: first.target, jobs: 'now' });
  assert.equal((await state(second, job)).status, 'running');
  upstream.open('go');
  const ended = await becomes(second, job, 'succeeded', 'failed');
  assert.deepEqual([ended.status, ended.started_at], ['succeeded', started_at]);
  const stuck = await begin(second);
  await becomes(second, stuck, 'succeeded');
  await inDatabase(second, [`update scim_sync_jobs set status = 'running', attempts = 3 where id = '${stuck.id}'`]);
  assert.equal((await run(second)).status, 'succeeded');
  const failed = await state(second, stuck);
  assert.deepEqual([failed.status, failed.error_message], ['failed', 'the job was interrupted 3 times']);
});
