/** The life of keys: rotation, secrets of partners, creators that leave, expiry; and the members of the organization. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { directoryOf, startDirectory } from '../scim/directory.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const MODEL = { model: 'simulated/echo', max_tokens: 20 };
const SIMULATED = { yaml: { providers: [{ id: 'simulated', kind: 'simulated' }] } };
const hours = (clock: { now(): number }, count: number) => new Date(clock.now() + count * 3_600_000).toISOString();

test('a rotated key is the same key: spend, limit, guardrail, limits of requests and logging stay', async (t) => {
  const gateway = await startGateway(t, SIMULATED);
  const other = await startGateway(t, { ...SIMULATED, target: gateway.target });
  const { call, keyIn } = controlOf(gateway);
  const key = await keyIn(undefined, 'service', { limit: 5, rate_limits: { requests_per_day: 2 } });
  await call('PATCH', '/workspaces/default', { io_logging_api_key_ids: [key.id] });
  const { body: made } = await call('POST', '/guardrails', { name: 'g', allowed_models: ['simulated/echo'] });
  await call('POST', `/guardrails/${made.data.id}/assignments/keys`, { key_hashes: [key.hash] });
  assert.equal((await key.ask(MODEL)).status, 200);
  const { status, body } = await call('POST', `/keys/${key.hash}/rotate`, { revoke_previous_after_seconds: 3600 });
  assert.equal(status, 201, JSON.stringify(body));
  assert.equal(body.data.rotated_from_hash, key.hash);
  assert.notEqual(body.data.hash, key.hash);
  assert.ok(body.data.usage > 0);
  assert.equal(body.data.limit, 5);
  assert.equal(body.predecessor.hash, key.hash);
  assert.equal(body.predecessor.disabled, false);
  const theirs = controlOf(other);
  const asked = (token: string, more: Json = {}) =>
    theirs.call('POST', '/chat/completions', { ...MODEL, messages: [{ role: 'user', content: 'hi' }], ...more }, token);
  assert.equal((await asked(key.token)).status, 200, 'the secret from before goes on');
  assert.equal((await asked(body.key)).status, 429, 'both count as one');
  assert.equal((await asked(body.key, { model: 'simulated/script' })).status, 429);
  const listed = (await call('GET', `/guardrails/${made.data.id}/assignments/keys`)).body.data;
  assert.deepEqual(
    listed.map((each: Json) => each.key_hash),
    [body.data.hash],
  );
  // Named by either hash or by both, it is one key.
  const assignments = `/guardrails/${made.data.id}/assignments/keys`;
  const hashes = { key_hashes: [key.hash, body.data.hash] };
  assert.deepEqual((await call('POST', `${assignments}/remove`, { key_hashes: [key.hash] })).body, {
    unassigned_count: 1,
  });
  assert.deepEqual((await call('POST', assignments, { key_hashes: [key.hash] })).body, { assigned_count: 1 });
  assert.deepEqual((await call('POST', `${assignments}/remove`, hashes)).body, { unassigned_count: 1 });
  assert.deepEqual((await call('POST', assignments, hashes)).body, { assigned_count: 1 });
  assert.deepEqual((await call('GET', '/workspaces/default')).body.data.io_logging_api_key_ids, [body.data.id]);
  assert.equal((await call('GET', `/keys/${key.hash}`)).status, 404);
  gateway.clock.jump(3_600_000);
  other.clock.jump(3_600_000);
  assert.equal((await asked(key.token)).status, 401, 'and ends by the clock');
  assert.notEqual((await asked(body.key)).status, 401);
});

test('the secret from before a rotation ends at once, later, or by hand, and no secret is rotated twice', async (t) => {
  const gateway = await startGateway(t, SIMULATED);
  const other = await startGateway(t, { ...SIMULATED, target: gateway.target });
  const { call, keyIn, refused } = controlOf(gateway);
  const seen = async (token: string) => (await controlOf(other).call('GET', '/key', undefined, token)).status;
  const key = await keyIn(undefined, 'service');
  assert.equal(await seen(key.token), 200);
  const rotate = (hash: string, seconds: Json) =>
    call('POST', `/keys/${hash}/rotate`, { revoke_previous_after_seconds: seconds });
  const { body: first } = await rotate(key.hash, 0);
  assert.equal(await seen(key.token), 401);
  assert.equal(await seen(first.key), 200);
  assert.equal(first.predecessor.disabled, true);
  const { body: second } = await rotate(first.data.hash, null);
  assert.equal(second.predecessor.expires_at, null);
  assert.equal(await seen(first.key), 200);
  await refused(rotate(first.data.hash, 0), 409, /already rotated/);
  await refused(rotate('f'.repeat(64), 0), 404, /no inference key/);
  await refused(call('POST', `/keys/${second.data.hash}/rotate`, {}), 400, /revoke_previous_after_seconds/);
  assert.equal((await call('DELETE', `/keys/${first.data.hash}`)).status, 200);
  assert.equal(await seen(first.key), 401);
  assert.equal(await seen(second.key), 200);
  const { body: third } = await rotate(second.data.hash, 9_000_000_000);
  const endsInMs = Date.parse(third.predecessor.expires_at) - gateway.clock.now();
  assert.ok(Math.abs(endsInMs - 30 * 86_400_000) < 3_600_000, 'more than 30 days are 30 days');
  await call('DELETE', `/keys/${second.data.hash}`);
  assert.equal(await seen(third.key), 200);
  second.data.hash = third.data.hash;
  second.key = third.key;
  await call('PATCH', `/keys/${second.data.hash}`, { disabled: true });
  await refused(rotate(second.data.hash, 0), 409, /disabled/);
  assert.equal((await call('DELETE', `/keys/${second.data.hash}`)).status, 200);
  assert.equal(await seen(second.key), 401);
});

test("a partner's own secret works as the key, is shown nowhere, and belongs to one key only", async (t) => {
  const gateway = await startGateway(t, SIMULATED);
  const other = await startGateway(t, { ...SIMULATED, target: gateway.target });
  const { call, keyIn, refused } = controlOf(gateway);
  const secret = `partner-${'x'.repeat(40)}`;
  const seen = async (token: string) => controlOf(other).call('GET', '/key', undefined, token);
  assert.equal((await seen(secret)).status, 401);
  const external = { user: 'end-user-7', api_key: secret };
  const key = await keyIn(undefined, 'partner', { external });
  assert.equal((await seen(secret)).body.data.label, (await seen(key.token)).body.data.label);
  const { body } = await call('GET', `/keys/${key.hash}`);
  assert.equal(body.data.external_user, 'end-user-7');
  assert.ok(!JSON.stringify(body).includes(secret));
  await refused(call('POST', '/keys', { name: 'again', external }), 409, /external.api_key/);
  await refused(call('POST', '/keys', { name: 'own', external: { user: 'u', api_key: key.token } }), 409, /external/);
  await refused(
    call('POST', '/keys', { name: 'short', external: { user: 'u', api_key: 'x'.repeat(31) } }),
    400,
    /api_key/,
  );
  await call('PATCH', `/keys/${key.hash}`, { disabled: true });
  assert.equal((await seen(secret)).status, 401);
  await call('PATCH', `/keys/${key.hash}`, { disabled: false });
  assert.equal((await seen(secret)).status, 200);
  const { body: rotated } = await call('POST', `/keys/${key.hash}/rotate`, { revoke_previous_after_seconds: 0 });
  assert.equal((await seen(secret)).status, 200);
  await call('DELETE', `/keys/${rotated.data.hash}`);
  assert.equal((await seen(secret)).status, 401);
});

test('when the maker of a key leaves, every inference operation of every process refuses the key at once', async (t) => {
  const directory = await startDirectory(t, SIMULATED);
  const other = await startGateway(t, { ...SIMULATED, target: directory.gateway.target });
  const { id } = await directory.user('leaver@example.test', { name: { givenName: 'Lea', familyName: 'Ver' } });
  const key = await directory.control.keyIn(undefined, 'theirs', { creator_user_id: id });
  const turns = { ...MODEL, messages: [{ role: 'user', content: 'hi' }] };
  const bodies: Record<string, Json> = {
    '/chat/completions': turns,
    '/completions': { ...MODEL, prompt: 'hi' },
    '/messages': turns,
    '/messages/count_tokens': turns,
    '/responses': { model: 'simulated/echo', input: 'hi' },
    '/embeddings': { model: 'simulated/echo', input: 'hi' },
    '/rerank': { model: 'simulated/echo', query: 'q', documents: ['d'] },
    '/images': { model: 'simulated/echo', prompt: 'p' },
    '/images/generations': { model: 'simulated/echo', prompt: 'p' },
  };
  const both = [directory.gateway, other].map((gateway) => controlOf(gateway));
  for (const { call } of both) assert.equal((await call('POST', '/chat/completions', turns, key.token)).status, 200);
  assert.equal((await directory.scim('DELETE', `/Users/${id}`)).status, 204);
  for (const { call } of both) {
    for (const [route, body] of Object.entries(bodies)) {
      const refused = await call('POST', route, body, key.token);
      assert.equal(refused.status, 403, `${route}: ${JSON.stringify(refused.body)}`);
      assert.match(JSON.stringify(refused.body), /no longer a member/);
    }
  }
});

test('a key ends at its time by the clock, and lists leave out disabled ones unless they are asked for', async (t) => {
  const gateway = await startGateway(t, SIMULATED);
  const { call, keyIn, made, refused } = controlOf(gateway);
  const key = await keyIn(undefined, 'short', { expires_at: hours(gateway.clock, 1) });
  assert.equal((await key.ask(MODEL)).status, 200);
  gateway.clock.jump(3_600_000);
  assert.equal((await key.ask(MODEL)).status, 401);
  await refused(call('POST', '/keys', { name: 'late', expires_at: hours(gateway.clock, -1) }), 400, /expires_at/);
  await refused(call('POST', '/keys', { name: 'late', expires_at: '2099-01-01T00:00Z' }), 400, /expires_at/);
  await refused(call('POST', '/keys', { name: 'x', creator_user_id: 'user_nobody' }), 400, /creator_user_id/);
  const { id } = await made({ name: 'Team', slug: 'team' });
  const theirs = await keyIn(id, 'theirs');
  await call('PATCH', `/keys/${theirs.hash}`, { disabled: true });
  const names = async (query: string) =>
    ((await call('GET', `/keys?workspace_id=${id}${query}`)).body.data as Json[]).map(({ name }) => name);
  assert.deepEqual(await names(''), []);
  assert.deepEqual(await names('&include_disabled=true'), ['theirs']);
});

test('the members of the organization are listed by page, with names and roles', async (t) => {
  const directory = directoryOf(...(await startDirectory(t).then((d) => [d.gateway, d.token] as const)));
  const { call, refused } = directory.control;
  await directory.user('lea@example.test', { name: { givenName: 'Lea', familyName: 'Ver' } });
  await directory.user('only@example.test');
  const { body } = await call('GET', '/organization/members?limit=2');
  assert.equal(body.total_count, 3);
  assert.deepEqual(
    body.data.map((each: Json) => [each.first_name, each.last_name, each.role]),
    [
      ['Owner', null, 'org:admin'],
      ['Lea', 'Ver', 'org:member'],
    ],
  );
  assert.match(body.data[0].id, /^user_/);
  assert.equal(body.data[1].email, 'lea@example.test');
  assert.equal((await call('GET', '/organization/members?offset=2')).body.data.length, 1);
  await refused(call('GET', '/organization/members?limit=101'), 400, /limit/);
});
