/**
 * BYOK credentials as management clients see them, over HTTP and through `@openrouter/sdk`, unmodified.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { createLog } from '../../src/base/log.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { SERVICE_ACCOUNT, serviceAccount } from '../../src/testing/upstream/service-account.ts';
import { controlOf, inDatabase, type Json } from '../workspaces/control.ts';

const SECRET = 'sk-own-0123456789-canary-of-a-customer';
const dataDir = mkdtempSync(path.join(tmpdir(), 'gatehouse-byok-'));
const lines: string[] = [];
const log = createLog({ stream: { write: (line: string) => lines.push(line) > 0 } as never, level: 'debug' });
const lasting = { after: (close: unknown) => after(close as () => Promise<void>) };
const options = { dataDir, log, env: { GATEHOUSE_NAMESPACE: 'openrouter' }, providers: { a: {}, b: {} } };
const gateway = await startGateway(lasting, options);
after(() => rmSync(dataDir, { recursive: true, force: true }));
const { call, made, refused } = controlOf(gateway);
const sdk = new OpenRouter({ apiKey: MANAGEMENT_KEY, serverURL: gateway.api, retryConfig: { strategy: 'none' } });

const give = async (body: Json = {}): Promise<Json> => {
  const answer = await call('POST', '/byok', { provider: 'a', key: SECRET, ...body });
  assert.equal(answer.status, 201, JSON.stringify(answer.body));
  return answer.body.data;
};
const refuse = (body: Json, message: RegExp) =>
  refused(call('POST', '/byok', { provider: 'a', key: SECRET, ...body }), 400, message);

test('the public client gives, lists, reads, changes and deletes BYOK credentials', async () => {
  const { data: key } = await sdk.byok.create({
    createBYOKKeyRequest: { provider: 'openai', key: SECRET, name: 'ours' },
  });
  assert.equal(key.provider, 'openai');
  assert.equal(key.label, 'sk-...mer');
  assert.deepEqual([key.isFallback, key.isRequired, key.isByokOnly, key.disabled], [false, false, false, false]);
  assert.deepEqual(
    [key.allowedModels, key.allowedApiKeyHashes, key.allowedUserIds, key.declaredZdr],
    [null, null, null, null],
  );
  const listed: unknown[] = [];
  for await (const page of await sdk.byok.list({ provider: 'openai' })) listed.push(...page.result.data);
  assert.deepEqual(listed, [key]);
  assert.deepEqual((await sdk.byok.get({ id: key.id })).data, key);
  const { data: changed } = await sdk.byok.update({
    id: key.id,
    updateBYOKKeyRequest: { key: 'sk-another-0123456789-canary', isFallback: true, declaredZdr: true, name: null },
  });
  assert.deepEqual(changed, { ...key, label: 'sk-...ary', isFallback: true, declaredZdr: true, name: null });
  assert.equal((await sdk.byok.delete({ id: key.id })).deleted, true);
  await assert.rejects(sdk.byok.get({ id: key.id }), (error) => (error as { statusCode?: number }).statusCode === 404);
});

test('a new key of a provider comes last, and a page has the number of all keys', async () => {
  const ids: string[] = [];
  for (const provider of ['b', 'a', 'a', 'a']) ids.push((await give({ provider })).id);
  const { body: all } = await call('GET', '/byok?limit=100');
  const order = all.data.filter(({ id }: Json) => ids.includes(id)).map((key: Json) => [key.provider, key.sort_order]);
  assert.deepEqual(order, [
    ['a', 0],
    ['a', 1],
    ['a', 2],
    ['b', 0],
  ]);
  const { body: page } = await call('GET', '/byok?provider=a&offset=1&limit=1');
  assert.deepEqual([page.data.length, page.data[0].id, page.total_count], [1, ids[2], 3]);
  const { body: none } = await call('GET', '/byok?provider=nobody');
  assert.deepEqual(none, { data: [], total_count: 0 });
  for (const query of ['limit=0', 'limit=101', 'offset=-1', 'workspace_id=x']) {
    await refused(call('GET', `/byok?${query}`), 400, new RegExp(query.split('=')[0]!));
  }
  for (const id of ids) await call('DELETE', `/byok/${id}`);
});

test('a key belongs to one workspace or to all of them, and goes with its workspace', async () => {
  const team = await made({ name: 'Team', slug: 'byok-team' });
  const [own, common] = [await give({ workspace_id: team.id }), await give({ workspace_id: null })];
  assert.deepEqual([own.workspace_id, common.workspace_id], [team.id, null]);
  const idsIn = async (query: string) => (await call('GET', `/byok${query}`)).body.data.map(({ id }: Json) => id);
  assert.deepEqual(await idsIn(`?workspace_id=${team.id.toUpperCase()}`), [own.id, common.id]);
  assert.deepEqual(await idsIn(''), [common.id]);
  const nowhere = '00000000-0000-7000-8000-000000000000';
  await refuse({ workspace_id: nowhere }, /workspace_id is not a workspace/);
  await refused(call('GET', `/byok?workspace_id=${nowhere}`), 400, /workspace_id is not a workspace/);
  assert.equal((await call('DELETE', `/workspaces/${team.id}`)).status, 200);
  await refused(call('GET', `/byok/${own.id}`), 404, /no provider credential/);
  await call('DELETE', `/byok/${common.id}`);
});

test('errors in a BYOK credential name the path', async () => {
  await refuse({ provider: 'nobody' }, /^provider must be a known provider.* amazon-bedrock, .*google-vertex/);
  await refuse({ provider: 'chat' }, /^provider must be a known provider/);
  await refuse({ key: '' }, /^key /);
  await refuse({ key: '  ' }, /^key must not be blank/);
  await refuse({ key: 'two words' }, /^key must have at most 8192 characters, without spaces/);
  await refuse({ key: 'x'.repeat(16_385) }, /^key /);
  await refuse({ key: '{"api_key":"x"}' }, /^key must be the plain key/);
  await refuse({ key: undefined }, /key/);
  await refuse({ name: 'x'.repeat(256) }, /^name /);
  await refuse({ name: 'a\0b' }, /^name must not contain/);
  await refuse({ is_fallback: true, is_byok_only: true }, /^is_fallback cannot be true together with is_byok_only/);
  await refuse({ allowed_models: Array(101).fill('a/b') }, /^allowed_models/);
  await refuse({ allowed_api_key_hashes: [] }, /^allowed_api_key_hashes/);
  await refuse({ allowed_api_key_hashes: ['0'.repeat(63)] }, /^allowed_api_key_hashes\[0\]/);
  await refuse({ allowed_api_key_hashes: ['0'.repeat(64)] }, /^allowed_api_key_hashes\[0\] is not a key/);
  await refuse({ allowed_user_ids: Array(101).fill('user_1') }, /^allowed_user_ids/);
  await refuse({ sort_order: 1 }, /sort_order/);
  for (const id of ['none', '00000000-0000-7000-8000-000000000000']) {
    await refused(call('GET', `/byok/${id}`), 404, /no provider credential/);
    await refused(call('PATCH', `/byok/${id}`, { key: SECRET }), 404, /no provider credential/);
    await refused(call('DELETE', `/byok/${id}`), 404, /no provider credential/);
  }
  assert.equal((await call('POST', '/byok', { provider: 'a', key: SECRET }, INFERENCE_KEY)).status, 403);
});

test('a change of one of two flags that exclude each other considers the other one', async () => {
  const { id } = await give({ is_byok_only: true, provider: 'b' });
  await refused(call('PATCH', `/byok/${id}`, { is_fallback: true }), 400, /^is_fallback cannot be true/);
  const { body } = await call('PATCH', `/byok/${id}`, { is_fallback: true, is_byok_only: false });
  assert.deepEqual([body.data.is_fallback, body.data.is_byok_only], [true, false]);
  await refused(call('PATCH', `/byok/${id}`, { is_byok_only: true }), 400, /^is_byok_only cannot be true/);
  await call('DELETE', `/byok/${id}`);
});

test('credentials of clouds are documents, checked and reduced to what signing in needs', async () => {
  const { label, id } = await give({ provider: 'google-vertex', key: serviceAccount() });
  assert.equal(label, 'svc@...mple');
  await call('DELETE', `/byok/${id}`);
  const vertex = (document: unknown, message: RegExp) =>
    refuse(
      { provider: 'google-vertex', key: typeof document === 'string' ? document : JSON.stringify(document) },
      message,
    );
  await vertex('no JSON', /^key must be a JSON document/);
  await vertex([SERVICE_ACCOUNT], /^key must be a JSON document/);
  await vertex({ ...SERVICE_ACCOUNT, type: 'external_account' }, /^key must be the key file of a service account/);
  await vertex({ ...SERVICE_ACCOUNT, private_key: 'none' }, /^key has an invalid private_key/);
  await vertex({ ...SERVICE_ACCOUNT, client_email: undefined }, /^key .* client_email/);
  await vertex({ ...SERVICE_ACCOUNT, universe_domain: 'evil.example' }, /^key has an unsupported universe_domain/);

  const aws = { accessKeyId: 'AKIAEXAMPLE12345', secretAccessKey: 'canary-secret', region: 'eu-central-1' };
  const bedrock = await give({ provider: 'amazon-bedrock', key: JSON.stringify(aws) });
  assert.equal(bedrock.label, 'AKIA...2345');
  await call('DELETE', `/byok/${bedrock.id}`);
  await refuse({ provider: 'amazon-bedrock', key: '{"accessKeyId":"x"}' }, /^key .* secretAccessKey/);
  await refuse({ provider: 'amazon-bedrock', key: '{' }, /^key must be a JSON document/);
});

test('a key that gets another secret stays in the list of those that may use a BYOK credential', async () => {
  const { body: created } = await call('POST', '/keys', { name: 'rotates' });
  const own = await give({ allowed_api_key_hashes: [created.data.hash] });
  assert.deepEqual(own.allowed_api_key_hashes, [created.data.hash]);
  const rotation = { revoke_previous_after_seconds: 0 };
  const { body: rotated } = await call('POST', `/keys/${created.data.hash}/rotate`, rotation);
  const { body } = await call('GET', `/byok/${own.id}`);
  assert.deepEqual(body.data.allowed_api_key_hashes, [rotated.data.hash]);
  assert.notEqual(rotated.data.hash, created.data.hash);
  await call('DELETE', `/byok/${own.id}`);
});

test('the audit log has every real change, and never a credential', async () => {
  const { id } = await give({ name: 'audited' });
  await call('PATCH', `/byok/${id}`, {});
  await call('PATCH', `/byok/${id}`, { name: 'audited', disabled: false });
  await call('PATCH', `/byok/${id}`, { key: `${SECRET}-2` });
  await call('DELETE', `/byok/${id}`);
  const { body } = await call('GET', '/audit?limit=100');
  const entries = body.data.filter((entry: Json) => JSON.stringify(entry).includes(id));
  assert.deepEqual(
    entries.map(({ action }: Json) => action),
    ['byok_key.deleted', 'byok_key.updated', 'byok_key.created'],
  );
  assert.deepEqual(Object.keys(entries[1].after), ['label', 'credential_given_at']);
});

test('no response, row or log line contains a credential, and the database not its encryption key', async () => {
  const { id } = await give();
  const client = await connect(gateway.target);
  const { rows: tables } = await client.query(`select tablename as name from pg_tables where schemaname = 'public'`);
  const kek = readFileSync(path.join(dataDir, 'keys', 'kek'), 'utf8').trim();
  for (const { name } of tables) {
    const { rows } = await client.query(`select t::text as row from "${name}" t`);
    const text = rows.map(({ row }) => row).join('\n');
    for (const secret of [
      SECRET,
      Buffer.from(SECRET).toString('hex'),
      kek,
      Buffer.from(kek, 'base64').toString('hex'),
    ]) {
      assert.ok(!text.includes(secret), `${name} has it`);
    }
  }
  await client.end();
  log.error('somebody writes it into a line', { credential: SECRET });
  log.flush();
  assert.ok(lines.length > 0 && !lines.join('').includes(SECRET));
  const { body } = await call('GET', '/byok');
  assert.ok(!JSON.stringify(body).includes(SECRET.slice(8)));
  await call('DELETE', `/byok/${id}`);
});

test('the key is a file of its owner alone, made once', async () => {
  assert.deepEqual(readdirSync(path.join(dataDir, 'keys')), ['kek']);
  assert.equal(statSync(path.join(dataDir, 'keys', 'kek')).mode & 0o777, 0o600);
});

test('after a restart BYOK credentials are what they were; without the key to them, or with another one, nothing starts', async (t) => {
  const { id, ...rest } = await give({ name: 'kept' });
  const again = await startGateway(t, { ...options, target: gateway.target });
  assert.deepEqual((await controlOf(again).call('GET', `/byok/${id}`)).body.data, { id, ...rest });
  const elsewhere = mkdtempSync(path.join(tmpdir(), 'gatehouse-byok-'));
  const start = (env: Record<string, string>) =>
    startGateway(t, { ...options, env: { ...options.env, ...env }, target: gateway.target, dataDir: elsewhere });
  await assert.rejects(start({}), /has encrypted credentials, but their key .*kek.* is missing/);
  assert.deepEqual(readdirSync(elsewhere).includes('keys'), false, 'no key was made in its place');
  await assert.rejects(start({ GATEHOUSE_KEK: Buffer.alloc(32).toString('base64') }), /GATEHOUSE_KEK is not the key/);
  await assert.rejects(start({ GATEHOUSE_KEK: 'short' }), /GATEHOUSE_KEK must contain 32 random bytes/);
  const kek = readFileSync(path.join(dataDir, 'keys', 'kek'), 'utf8').trim();
  const right = await start({ GATEHOUSE_KEK: kek });
  t.after(() => rmSync(elsewhere, { recursive: true, force: true }));
  assert.equal((await controlOf(right).call('GET', `/byok/${id}`)).status, 200);
  await inDatabase(gateway, [`update sealing_keys set wrapped = set_byte(wrapped, 29, get_byte(wrapped, 29) # 255)`]);
  await assert.rejects(start({ GATEHOUSE_KEK: kek }), /cannot be decrypted/);
});
