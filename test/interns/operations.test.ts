/** The resource: creation, settings, lists, and every refusal with its reason. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { connect } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { auditOf } from '../vault/vault.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { internsOf } from './interns.ts';

const gateway = await startGateway({ after: (close) => after(close as () => Promise<void>) });
const control = controlOf(gateway);
const { call, made, shown, refused } = internsOf(gateway);

async function internsIn(slug: string) {
  const { id } = await control.made({ name: slug, slug });
  const { token, hash } = await control.keyIn(id, slug);
  return { id, token, hash, ...internsOf(gateway, token) };
}

test('a new intern waits to be provisioned, with its own vault and a key of its own', async () => {
  const settings = { name: 'one', description: 'd', instructions: 'i' };
  const intern = await made(settings);
  const { id, vault_id, workspace_id, created_at, updated_at, ...rest } = intern;
  assert.deepEqual(rest, {
    ...settings,
    ...{ model: null, status: 'stopped', hostname: null, progress: null, last_failure_message: null },
    attached_vault_id: null,
  });
  assert.deepEqual(await shown(id.toUpperCase()), intern);
  assert.ok([vault_id, workspace_id, created_at].every((member) => typeof member === 'string'));
  assert.equal(created_at, updated_at);
  const { data: keys } = (await control.call('GET', '/keys')).body;
  const key = keys.find(({ name }: Json) => name === 'Intern one');
  assert.equal(key.workspace_id, workspace_id);
  const [entry] = await auditOf(gateway, 'intern');
  assert.deepEqual([entry.action, entry.resource_id, entry.after.name], ['intern.created', id, 'one']);
});

test('settings change and clear one by one, and an empty change changes nothing', async () => {
  const intern = await made({ name: 'settings', description: 'd', instructions: 'i' });
  const change = async (body: Json) => {
    const { status, body: changed } = await call('PATCH', `/${intern.id}`, body);
    assert.equal(status, 200, JSON.stringify(changed));
    return changed;
  };
  assert.deepEqual(await change({}), intern);
  gateway.clock.jump(1_000);
  const changed = await change({ model: 'acme/fast:free', name: 'renamed', description: null });
  assert.deepEqual(changed, {
    ...{ ...intern, model: 'acme/fast:free', name: 'renamed', description: null },
    updated_at: changed.updated_at,
  });
  assert.ok(changed.updated_at > intern.updated_at);
  assert.equal((await change({ model: null })).model, null);
});

test('a body that is repeated creates one intern, with a key of the client or without', async () => {
  const body = { name: 'twice', instructions: 'x' };
  const first = await made(body);
  assert.deepEqual(await call('POST', '', { ...body, provision: false }), { status: 200, body: first });
  await refused(call('POST', '', { ...body, instructions: 'y' }), 409, 'name_taken', /called twice/);

  const keyed = { name: 'keyed' };
  const header = { 'idempotency-key': 'k'.repeat(255) };
  const answers = await Promise.all([1, 2, 3].map(() => call('POST', '', keyed, header)));
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 200, 201]);
  assert.equal(new Set(answers.map(({ body: { id } }) => id)).size, 1);
  await refused(call('POST', '', { name: 'other' }, header), 409, 'invalid_idempotency_key');
  for (const key of ['', 'k'.repeat(256)]) {
    await refused(call('POST', '', { name: 'bad-key' }, { 'idempotency-key': key }), 400, 'invalid_idempotency_key');
  }
  // Its name is free again once the first is called otherwise.
  await call('PATCH', `/${first.id}`, { name: 'thrice' });
  assert.notEqual((await made(body)).id, first.id);
});

test('names are unique for a creator in a workspace', async () => {
  const team = await internsIn('names');
  const { data: members } = (await control.call('GET', '/organization/members')).body;
  const { token } = await control.keyIn(team.id, 'members', { creator_user_id: members[0].id });
  const theirs = internsOf(gateway, token);
  const nobody = internsOf(gateway, (await control.keyIn(team.id, 'none', { creator_user_id: null })).token);
  await theirs.made({ name: 'same' });
  await nobody.made({ name: 'same' });
  await refused(nobody.call('POST', '', { name: 'same', description: 'x' }), 409, 'name_taken');
  const other = await nobody.made({ name: 'other' });
  await refused(nobody.call('PATCH', `/${other.id}`, { name: 'same' }), 409, 'name_taken');
  assert.equal((await nobody.call('PATCH', `/${other.id}`, { name: 'other' })).status, 200);
});

test('lists are newest first, by status and in pages', async () => {
  const team = await internsIn('listed');
  const ids: string[] = [];
  for (const name of ['aa', 'bb', 'cc', 'dd', 'ee']) ids.unshift((await team.made({ name })).id);
  const seen: string[] = [];
  for (let cursor = ''; ; ) {
    const { body } = await team.call('GET', `?limit=2${cursor && `&starting_after=${cursor}`}`);
    seen.push(...body.data.map(({ id }: Json) => id));
    assert.equal('next_cursor' in body, body.has_more);
    if (!body.has_more) break;
    cursor = body.next_cursor;
  }
  assert.deepEqual(seen, ids);
  const count = async (query: string) => (await team.call('GET', `?${query}`)).body.data.length;
  assert.equal(await count('status=stopped,running,stopped'), 5);
  assert.equal(await count('status=running&status=failed'), 0);
  assert.equal(await count(`workspace_id=${team.id}`), 5);
  await refused(team.call('GET', '?status=asleep'), 400, 'bad_request', /^status /);
  await refused(team.call('GET', '?starting_after=x'), 400, 'bad_request', /^starting_after /);
  await refused(team.call('GET', '?limit=501'), 400, 'bad_request', /^limit /);
  await refused(team.call('GET', `?workspace_id=${crypto.randomUUID()}`), 400, 'bad_request', /^workspace_id /);
});

test('an intern of another workspace is not there', async () => {
  const [one, other] = [await internsIn('here'), await internsIn('there')];
  const { id } = await one.made({ name: 'hidden' });
  for (const [method, path, body] of [
    ['GET', ''],
    ['PATCH', '', {}],
    ['DELETE', ''],
    ['POST', '/provision'],
    ['POST', '/suspend'],
  ] as const) {
    await refused(other.call(method, `/${id}${path}`, body), 404, 'not_found');
    await refused(other.call(method, `/x${path}`, body), 404, 'not_found');
  }
});

test('a malformed body is refused with the path of the field', async () => {
  const bad: [Json, RegExp][] = [
    [{}, /name/],
    [{ name: 'A' }, /^name /],
    [{ name: 'a-' }, /^name /],
    [{ name: 'a'.repeat(18) }, /^name /],
    [{ name: 'ok', description: 'd'.repeat(2_001) }, /^description /],
    [{ name: 'ok', instructions: 'd'.repeat(100_001) }, /^instructions /],
    [{ name: 'ok', vault_id: crypto.randomUUID() }, /^vault_id /],
    [{ name: 'ok', workspace_id: crypto.randomUUID() }, /^workspace_id /],
    [{ name: 'ok', model: 'a/b' }, /model/],
    [{ name: 'ok', instructions: '\0' }, /U\+0000/],
    ['{', /JSON/],
  ];
  for (const [body, message] of bad) await refused(call('POST', '', body), 400, 'invalid_body', message);
  const { id } = await made({ name: 'refuses' });
  for (const model of ['x', 'a/b/c', '', '/b', `a/${'b'.repeat(200)}`, 'a b/c']) {
    await refused(call('PATCH', `/${id}`, { model }), 400, 'invalid_body', /^model /);
  }
  await refused(call('POST', `/${id}/provision`, { now: true }), 400, 'invalid_body');
  await refused(call('DELETE', `/${id}`, { acknowledge_workspace_loss: 1 }), 400, 'invalid_body');
  await refused(call('POST', '', '"x"', { 'content-type': 'text/plain' }), 415, 'unsupported_media_type');
  await refused(call('POST', '', `"${'x'.repeat(1_048_576)}"`), 413, 'payload_too_large');
  const { retryable } = await refused(call('PUT', ''), 405, 'bad_request').then(({ metadata }) => metadata);
  assert.equal(retryable, false);
});

test('a chunked body needs a media type only if it has content', async () => {
  const { id } = await made({ name: 'chunked' });
  const suspended = async (...chunks: string[]) => {
    const response = await fetch(`${gateway.api}/interns/${id}/suspend`, {
      method: 'POST',
      headers: { authorization: `Bearer ${INFERENCE_KEY}` },
      body: ReadableStream.from(chunks.map((chunk) => Buffer.from(chunk))),
      duplex: 'half',
    } as RequestInit);
    return { status: response.status, body: (await response.json()) as Json };
  };
  assert.deepEqual(await suspended(), { status: 200, body: { suspended: true } });
  await refused(suspended('{}'), 415, 'unsupported_media_type', /it is missing/);
});

test('a vault is borrowed from another intern of the workspace only', async () => {
  const [one, other] = [await internsIn('lender'), await internsIn('stranger')];
  const { vault_id } = await one.made({ name: 'lends' });
  assert.equal((await one.made({ name: 'borrows', vault_id })).attached_vault_id, vault_id);
  await refused(other.call('POST', '', { name: 'borrows', vault_id }), 400, 'invalid_body', /^vault_id /);
});

test('a deleted intern is gone with its vault and key', async () => {
  const team = await internsIn('deleted');
  const { id, vault_id } = await team.made({ name: 'leaves' });
  const borrower = await team.made({ name: 'borrows', vault_id });
  assert.deepEqual((await team.call('DELETE', `/${id}`)).body, { deleting: true });
  await team.ends(id);
  assert.equal((await team.shown(borrower.id)).attached_vault_id, null);
  const { data: keys } = (await control.call('GET', `/keys?workspace_id=${team.id}`)).body;
  assert.deepEqual(keys.map(({ name }: Json) => name).toSorted(), ['Intern borrows', 'deleted']);
  const actions = (await auditOf(gateway, 'intern')).filter(({ resource_id }) => resource_id === id);
  assert.deepEqual(
    actions.map(({ action }) => action),
    ['intern.deleted', 'intern.deletion_requested', 'intern.created'],
  );
});

test('the key of an intern sees that intern alone', async () => {
  const team = await internsIn('confined');
  const [own, other] = [await team.made({ name: 'own' }), await team.made({ name: 'other' })];
  const { token, hash } = await control.keyIn(team.id, 'of the intern');
  // No one gets an intern's key: one of another kind is made into it.
  const client = await connect(gateway.target);
  await client.query('update api_keys set deleted_at = now() where intern_id = $1', [own.id]);
  await client.query('update api_keys set intern_id = $1 where hash = $2', [own.id, hash]);
  await client.end();
  const its = internsOf(gateway, token);
  assert.equal((await its.shown(own.id)).id, own.id);
  for (const [method, path, body] of [
    ['GET', ''],
    ['POST', '', { name: 'made' }],
    ['GET', `/${other.id}`],
    ['DELETE', `/${other.id}`],
  ] as const) {
    const { status, body: answer } = await its.call(method, path, body);
    assert.deepEqual([status, Object.keys(answer.error)], [404, ['code', 'message']], `${method} ${path}`);
  }
});

test('callers outside of the programme learn nothing, and errors of authentication have no metadata', async () => {
  const outsider = internsOf(gateway, (await internsIn('outside')).token);
  gateway.app.reload({ ...gateway.config, internProgramme: { everyone: false, workspaces: [], keys: [] } });
  for (const path of ['', '/x', '/x/unknown']) {
    const { status, body } = await outsider.call('GET', path);
    assert.deepEqual([status, Object.keys(body.error)], [404, ['code', 'message']], path);
  }
  gateway.app.reload(gateway.config);
  for (const [token, status] of [
    ['sk-svc-v1-none', 401],
    [MANAGEMENT_KEY, 401],
  ] as const) {
    const answer = await internsOf(gateway, token).call('GET', '');
    assert.deepEqual([answer.status, Object.keys(answer.body.error)], [status, ['code', 'message']]);
  }
});

test('interns end with their workspace', async () => {
  const team = await internsIn('ends');
  const { id } = await team.made({ name: 'ends' });
  const { body: kept } = await control.call('DELETE', '/workspaces/ends');
  assert.match(kept.error.message, /2 active API keys/);
  for (const { hash } of (await control.call('GET', `/keys?workspace_id=${team.id}`)).body.data) {
    await control.call('PATCH', `/keys/${hash}`, { disabled: true });
  }
  assert.equal((await control.call('DELETE', '/workspaces/ends')).status, 200);
  const client = await connect(gateway.target);
  const { rows } = await client.query('select 1 from interns where id = $1', [id]);
  await client.end();
  assert.deepEqual(rows, []);
});
