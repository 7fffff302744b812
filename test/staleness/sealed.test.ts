/** Two gateways on one database, of which one has another key for stored credentials and can decrypt none of them. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { sealedRows } from '../../src/sealed-rows.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import {
  type Gateway,
  INFERENCE_KEY,
  MANAGEMENT_KEY,
  startGateway,
  UPSTREAM_KEY,
} from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { accessToken, claimsAt, exchange, KEY_HASH, makeKey, sign } from '../sign-in/federation/issuer.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const ISSUER = 'https://issuer.test';
const given = await makeKey('given', 'ES256');
const policy = { id: 'ci', issuer: ISSUER, audience: 'gatehouse', claims: { sub: 'repo:*' }, key: KEY_HASH };
const YAML = { federation: [{ ...policy, jwks: { keys: [given.jwk] } }] };

/** Both start before anything is sealed. */
async function scene(t: TestContext) {
  const target = await emptyDatabase(t, migrations);
  const start = async (byte: number) => {
    const env = { GATEHOUSE_KEK: Buffer.alloc(32, byte).toString('base64') };
    const gateway = await startGateway(t, { yaml: YAML, providers: { a: {} }, env, target });
    gateway.upstream.script('a', {
      ...answerOf('chat', false, { text: 'yes', usage: { input: 1, output: 1 } }),
      repeat: true,
    });
    return gateway;
  };
  const [a, b] = [await start(1), await start(2)];
  const { call, keyIn } = controlOf(a);
  const key = await keyIn(undefined, 'customer');
  const change = async (method: string, path: string, body?: Json): Promise<Json> => {
    const answer = await call(method, path, body);
    assert.ok(answer.status < 300, JSON.stringify(answer.body));
    return answer.body.data;
  };
  /** What a request with the key gets, and the credentials that it went out with. */
  const ask = async (gateway: Gateway, token = key.token) => {
    const before = gateway.upstream.requests('a').length;
    const body = { model: 'test/a', max_tokens: 16, messages: [{ role: 'user', content: 'hi' }] };
    const answer = await controlOf(gateway).call('POST', '/chat/completions', body, token);
    const used = gateway.upstream
      .requests('a')
      .slice(before)
      .map(({ headers }) => headers.authorization);
    return { ...answer, used };
  };
  const closed = async (pending: ReturnType<typeof ask>, words: RegExp) => {
    const { status, body, used } = await pending;
    assert.deepEqual([status, used], [503, []], JSON.stringify(body));
    assert.match(body.error.message, words);
    assert.equal(body.error.metadata.retryable, true);
  };
  const ready = async (gateway: Gateway) => (await (await fetch(`${gateway.url}/ready`)).json()) as Json;
  return { a, b, change, ask, closed, ready };
}

const SHARED = [`Bearer ${UPSTREAM_KEY}`];

for (const rule of ['is_required', 'is_byok_only']) {
  test(`a machine that cannot decrypt a BYOK credential that is ${rule} refuses its requests, and follows what is not encrypted`, async (t) => {
    const { a, b, change, ask, closed, ready } = await scene(t);
    assert.deepEqual((await ask(b)).used, SHARED);
    assert.equal((await ready(b)).status, 'ok');
    const { id } = await change('POST', '/byok', { provider: 'a', key: 'own-canary', [rule]: true });
    assert.deepEqual((await ask(a)).used, ['Bearer own-canary']);
    await closed(ask(b), /BYOK credential, which cannot be decrypted on this machine/);
    const told = await ready(b);
    assert.equal(told.status, 'degraded');
    assert.match(told.problems.join(), /stored credentials cannot be decrypted/);
    assert.equal((await ready(a)).status, 'ok');
    const metrics = await fetch(`${b.url}/metrics`, { headers: { authorization: `Bearer ${MANAGEMENT_KEY}` } });
    assert.match(await metrics.text(), /^gatehouse_credentials_open 0$/m);

    await change('PATCH', `/byok/${id}`, { disabled: true });
    assert.deepEqual((await ask(b)).used, SHARED);
    await change('PATCH', `/byok/${id}`, { disabled: false, allowed_models: ['test/other'], is_byok_only: false });
    assert.deepEqual((await ask(b)).used, SHARED, 'it is for other models');
    await change('PATCH', `/byok/${id}`, { allowed_models: null, [rule]: false });
    assert.deepEqual((await ask(b)).used, SHARED, 'it is not required any more');
    await change('PATCH', `/byok/${id}`, { [rule]: true });
    await closed(ask(b), /cannot be decrypted/);
    await change('DELETE', `/byok/${id}`);
    assert.deepEqual((await ask(b)).used, SHARED);
    assert.equal((await ready(b)).status, 'ok');
  });
}

test('a machine that cannot decrypt the keys of access tokens answers 503 wherever they are needed', async (t) => {
  const { a, b, ask, closed, ready } = await scene(t);
  const subject = () => sign(given, claimsAt(a.clock.now(), ISSUER));
  const token = await accessToken(a, await subject());
  assert.equal((await ask(a, token)).status, 200);
  await closed(ask(b, token), /access tokens cannot be decrypted on this machine/);
  const exchanged = await exchange(b, await subject());
  assert.deepEqual([exchanged.status, exchanged.body.error], [503, 'temporarily_unavailable']);
  assert.match(exchanged.body.error_description, /cannot be decrypted on this machine/);
  const jwks = await fetch(`${b.api}/oauth/jwks`);
  assert.equal(jwks.status, 503);
  assert.match(((await jwks.json()) as Json).error.message, /cannot be decrypted on this machine/);
  assert.equal((await ready(b)).status, 'degraded');
});

test('a machine that cannot decrypt what a workspace has encrypted answers 503 where it is needed, and changes nothing', async (t) => {
  const { a, b } = await scene(t);
  const call = async (gateway: Gateway, method: string, path: string, body?: Json) => {
    const answer = await controlOf(gateway).call(method, path, body, INFERENCE_KEY);
    if (answer.status === 503) assert.match(answer.body.error.message, /on this machine at the moment/);
    return [answer.status, answer.body.data ?? answer.body] as const;
  };
  const secret = { value: 'canary', hosts: ['api.test'] };
  const stored = await call(a, 'PUT', '/vault/secrets/token', secret);
  const signing = await call(a, 'GET', '/batches/callback-secret');
  assert.deepEqual([stored[0], signing[0]], [200, 200]);
  const asked = { model: 'test/a', input: 'hi', store: true };
  const [, { id }] = await call(a, 'POST', '/responses', asked);
  assert.equal((await call(b, 'POST', '/responses', asked))[0], 503);
  assert.equal((await call(b, 'POST', '/responses', { ...asked, store: false, previous_response_id: id }))[0], 503);
  assert.equal((await call(b, 'GET', `/responses/${id}`))[0], 503);
  const [, conversation] = await call(a, 'POST', '/conversations', { metadata: { topic: 'x' } });
  assert.equal((await call(b, 'GET', `/conversations/${conversation.id}`))[0], 503);
  assert.equal((await call(b, 'POST', '/conversations', {}))[0], 503);
  a.upstream.script('a', [
    answerOf('chat', false, {
      calls: [
        {
          id: 'call_1',
          name: 'memory',
          arguments: JSON.stringify({ command: 'create', path: '/memories/a.md', file_text: 'canary' }),
        },
      ],
    }),
    answerOf('chat', false, { text: 'noted' }),
  ]);
  const tools = [{ type: 'svc:memory' }];
  assert.equal((await call(a, 'POST', '/responses', { ...asked, store: false, user: 'ann', tools }))[0], 200);
  const memories = async (gateway: Gateway, path = '') => controlOf(gateway).call('GET', `/memories${path}`);
  const [memory] = (await memories(b)).body.data;
  assert.equal((await memories(a, `/${memory.id}`)).body.data.files[0].content, 'canary');
  const closed = await memories(b, `/${memory.id}`);
  assert.deepEqual([closed.status, /on this machine/.test(closed.body.error.message)], [503, true]);
  assert.equal((await call(b, 'POST', '/vector_stores', {}))[0], 503);
  assert.equal((await call(b, 'PUT', '/vault/secrets/token', secret))[0], 503);
  assert.equal((await call(b, 'GET', '/batches/callback-secret'))[0], 503);
  assert.deepEqual(await call(b, 'GET', '/vault/secrets'), [200, [stored[1]]]);
  assert.deepEqual(await call(a, 'GET', '/batches/callback-secret'), signing);
});

test('a machine that cannot decrypt a destination changes none of its secrets, and requests do not notice', async (t) => {
  const { a, b, change, ask } = await scene(t);
  const config = { url: 'https://receiver.test/hook', headers: { authorization: 'Bearer canary' } };
  const { id } = await change('POST', '/observability/destinations', {
    ...{ name: 'hook', type: 'webhook', enabled: false, config },
  });
  const path = `/observability/destinations/${id}`;
  const shown = (await controlOf(a).call('GET', path)).body.data.config;
  assert.doesNotMatch(JSON.stringify(shown), /canary/);
  assert.deepEqual((await controlOf(b).call('GET', path)).body.data.config, shown);
  const refused = await controlOf(b).call('PATCH', path, { config: { ...shown, url: 'https://receiver.test/other' } });
  assert.equal(refused.status, 503, JSON.stringify(refused.body));
  assert.match(refused.body.error.message, /on this machine at the moment/);
  assert.deepEqual((await controlOf(a).call('GET', path)).body.data.config, shown);
  assert.deepEqual((await ask(b)).used, SHARED);
});

test('every encrypted column is tried above', () => {
  assert.deepEqual(
    sealedRows.map(({ purpose }) => purpose),
    [
      'byok',
      'federation',
      'batch_callbacks',
      'vault',
      'destinations',
      'destinations',
      'interns',
      'responses',
      'responses',
      'memories',
      'vector stores',
    ],
  );
});
