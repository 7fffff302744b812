/**
 * Vertex AI through a whole gateway: service account sign-in at a token server of the test, and the three formats of its
 * models.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import { type Answer, startUpstream, type Upstream } from '../../src/testing/upstream/upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of three formats
type Json = any;

const { privateKey } = generateKeyPairSync('rsa', {
  modulusLength: 2048,
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
});

function accountOf(name: string): string {
  return JSON.stringify({
    type: 'service_account',
    project_id: 'cloud-project',
    private_key_id: `key-of-${name}`,
    private_key: privateKey,
    client_email: `${name}@cloud-project.iam.gserviceaccount.com`,
    token_uri: 'https://oauth2.googleapis.com/token',
  });
}

const GEMINI = wholeOf({
  candidates: [{ content: { role: 'model', parts: [{ text: 'Hello' }] }, finishReason: 'STOP' }],
  usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 1, totalTokenCount: 4 },
});

function tokenOf(value: string, seconds = 3600): Answer {
  return wholeOf({ access_token: value, expires_in: seconds, token_type: 'Bearer' });
}

const ASKED = { messages: [{ role: 'user', content: 'hi' }], max_tokens: 100 };

describe('Vertex AI', () => {
  let gateway: Gateway;
  let tokens: Upstream;
  const closing: (() => Promise<void>)[] = [];

  before(async () => {
    tokens = await startUpstream();
    const vertex = { kind: 'vertex', project: 'cloud-project', sign_in_url: tokens.url };
    const named = (name: string, upstream_id: string, more = {}) => ({
      ...vertex,
      api_key: accountOf(name),
      model: { upstream_id, ...more },
    });
    gateway = await startGateway(
      { after: (close) => closing.push(close as () => Promise<void>) },
      {
        providers: {
          gemini: named('gemini', 'gemini-2.5-flash'),
          claude: { ...named('claude', 'claude-sonnet-4-5@20250929'), location: 'us-east5' },
          open: named('open', 'meta/llama-4-maverick-17b-128e-instruct-maas'),
          broken: named('broken', 'gemini-2.5-flash', { id: 'test/shared' }),
          spare: { kind: 'chat', model: { id: 'test/shared' } },
          tuned: named('gemini', 'endpoints/1234567890'),
          renewed: named('renewed', 'gemini-2.5-flash'),
          revoked: named('revoked', 'gemini-2.5-flash'),
          unreachable: { ...named('unreachable', 'gemini-2.5-flash'), sign_in_url: 'http://127.0.0.1:1' },
        },
      },
    );
  });

  after(async () => {
    for (const close of closing.toReversed()) await close();
    await tokens.close();
  });

  async function ask(model: string, body: Json = {}, route = '/chat/completions', headers = {}) {
    const response = await gateway.post(route, { model: `test/${model}`, ...ASKED, ...body }, headers);
    const text = await response.text();
    return { status: response.status, text };
  }

  const assertions = () => tokens.requests('token').map(({ body }) => new URLSearchParams(body.toString()));

  test('twenty requests at once sign in once, and carry the token', async () => {
    const before = tokens.requests('token').length;
    tokens.script('token', tokenOf('token-1'));
    gateway.upstream.script('gemini', GEMINI);
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask('gemini')));
    assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
    assert.equal(tokens.requests('token').length - before, 1);
    const asked = gateway.upstream.requests('gemini');
    assert.equal(asked.length, 20);
    assert.deepEqual(new Set(asked.map(({ headers }) => headers.authorization)), new Set(['Bearer token-1']));
    const parent = '/projects/cloud-project/locations/global/publishers/google';
    assert.equal(asked[0]!.path, `${parent}/models/gemini-2.5-flash:generateContent`);
    const claims = JSON.parse(
      Buffer.from(assertions().at(-1)!.get('assertion')!.split('.')[1]!, 'base64url').toString(),
    );
    assert.equal(claims.iss, 'gemini@cloud-project.iam.gserviceaccount.com');
    assert.equal(claims.scope, 'https://www.googleapis.com/auth/cloud-platform');
  });

  test('a token is renewed before it expires while calls use the old one', async () => {
    tokens.script('token', tokenOf('old'));
    gateway.upstream.script('renewed', GEMINI);
    await ask('renewed');
    gateway.clock.jump(57 * 60_000);
    // The server is silent, and nothing waits for it.
    tokens.script('token', [
      { ...tokenOf('new', 7200), chunks: [{ gate: 'renewal' }, ...tokenOf('new', 7200).chunks!] },
    ]);
    const { status } = await ask('renewed');
    assert.equal(status, 200);
    const bearers = () => gateway.upstream.requests('renewed').map(({ headers }) => headers.authorization);
    assert.deepEqual(bearers(), ['Bearer old', 'Bearer old']);
    tokens.open('renewal');
    for (let tries = 0; bearers().at(-1) !== 'Bearer new' && tries < 200; tries++) await ask('renewed');
    assert.equal(bearers().at(-1), 'Bearer new');
  });

  test('a sign-in that is refused gives way to the next endpoint, and shows nothing of the account', async () => {
    tokens.script(
      'token',
      wholeOf({ error: 'invalid_grant', error_description: 'account not found' }, { status: 400 }),
    );
    gateway.upstream.script('spare', answerOf('chat', false, { text: 'spare' }));
    const { status, text } = await ask('shared', { provider: { order: ['broken'] }, model: 'test/shared' });
    assert.equal(status, 200);
    assert.ok(text.includes('spare'));
    assert.equal(gateway.upstream.requests('broken').length, 0, 'nothing was sent without a token');

    gateway.upstream.script('spare', { status: 500, chunks: ['{}'] });
    const alone = await ask('shared', { provider: { only: ['broken'] }, model: 'test/shared' });
    assert.equal(alone.status, 502);
    for (const secret of ['PRIVATE KEY', 'cloud-project', 'invalid_grant', 'key-of-broken']) {
      assert.ok(!alone.text.includes(secret), alone.text);
    }
    gateway.clock.jump(11 * 60_000);
  });

  test('a sign-in service that is down or fails is the provider’s outage', async () => {
    const { status } = await ask('unreachable');
    assert.equal(status, 502);
    tokens.script('token', { status: 503, chunks: ['down'] });
    const failed = await ask('revoked');
    assert.equal(failed.status, 502);
    gateway.clock.jump(11 * 60_000);
  });

  test('a token that the service does not take is not used twice', async () => {
    tokens.script('token', [tokenOf('stale'), tokenOf('fresh')]);
    gateway.upstream.script('revoked', [
      wholeOf({ error: { code: 401, message: 'invalid credentials', status: 'UNAUTHENTICATED' } }, { status: 401 }),
      GEMINI,
    ]);
    assert.equal((await ask('revoked')).status, 502);
    gateway.clock.jump(60_000);
    assert.equal((await ask('revoked')).status, 200);
    const bearers = gateway.upstream.requests('revoked').map(({ headers }) => headers.authorization);
    assert.deepEqual(bearers, ['Bearer stale', 'Bearer fresh']);
  });

  test('Claude is relayed in its own format: the model in the path, the version in the body, betas in their header', async () => {
    tokens.script('token', tokenOf('token-2', 36_000));
    const parent = '/projects/cloud-project/locations/us-east5/publishers/anthropic/models';
    for (const stream of [false, true]) {
      gateway.upstream.script('claude', answerOf('messages', stream, { text: 'Hello' }));
      const more = { stream, future_field: 1.5, system: 'Be brief.' };
      const { status, text } = await ask('claude', more, '/messages', { 'anthropic-beta': 'context-1m' });
      assert.equal(status, 200, text);
      assert.ok(stream ? text.includes('message_stop') : JSON.parse(text).content[0].text === 'Hello', text);
      const asked = gateway.upstream.requests('claude').at(-1)!;
      assert.equal(asked.path, `${parent}/claude-sonnet-4-5%4020250929:${stream ? 'streamRawPredict' : 'rawPredict'}`);
      const body = asked.json as Json;
      assert.equal(body.anthropic_version, 'vertex-2023-10-16');
      assert.ok(!('model' in body));
      assert.deepEqual([body.future_field, body.system, body.max_tokens], [1.5, 'Be brief.', 100]);
      assert.equal(asked.headers['anthropic-beta'], 'context-1m');
      assert.equal(asked.headers.authorization, 'Bearer token-2');
      assert.equal(asked.headers['x-api-key'], undefined);
    }
    gateway.upstream.script('claude', answerOf('messages', false, { text: 'Hello', finish: 'stop' }));
    const chat = await ask('claude', {});
    assert.equal(JSON.parse(chat.text).choices[0].message.content, 'Hello');
    const translated = gateway.upstream.requests('claude').at(-1)!.json as Json;
    assert.equal(translated.anthropic_version, 'vertex-2023-10-16');
    assert.ok(!('model' in translated));
  });

  test('a tuned model is asked at its endpoint', async () => {
    gateway.upstream.script('tuned', GEMINI);
    assert.equal((await ask('tuned')).status, 200);
    const parent = '/projects/cloud-project/locations/global';
    assert.equal(gateway.upstream.requests('tuned').at(-1)!.path, `${parent}/endpoints/1234567890:generateContent`);
  });

  test('models of other publishers are asked by chat completions', async () => {
    gateway.upstream.script('open', answerOf('chat', false, { text: 'Hello' }));
    const { status, text } = await ask('open', { future_field: 1 });
    assert.equal(status, 200, text);
    const asked = gateway.upstream.requests('open').at(-1)!;
    assert.equal(asked.path, '/projects/cloud-project/locations/global/endpoints/openapi/chat/completions');
    assert.equal((asked.json as Json).model, 'meta/llama-4-maverick-17b-128e-instruct-maas');
    assert.equal((asked.json as Json).future_field, 1);
  });
});

test('a key file and a project in the environment switch Vertex on; the address follows the location', async (t) => {
  const gateway = await startGateway(t, {
    env: {
      GOOGLE_CLOUD_PROJECT: 'env-project',
      GOOGLE_APPLICATION_CREDENTIALS: '/run/key.json',
      GOOGLE_CLOUD_LOCATION: 'europe-west4',
    },
  });
  const [provider] = gateway.config.providers;
  assert.deepEqual(provider?.options, { project: 'env-project', location: 'europe-west4', key_file: '/run/key.json' });
});

test('a key file is reread at each sign-in, so that a mounted secret can be rotated', async (t) => {
  const tokens = await startUpstream();
  t.after(() => tokens.close());
  const first = await startGateway(t, {});
  const file = path.join(first.dataDir, 'key.json');
  writeFileSync(file, accountOf('mounted'));
  tokens.script('token', tokenOf('token-3'));
  const gateway = await startGateway(t, {
    providers: {
      file: {
        kind: 'vertex',
        project: 'p1',
        key_file: file,
        api_key: [],
        sign_in_url: tokens.url,
        model: { upstream_id: 'gemini-2.5-flash' },
      },
    },
  });
  gateway.upstream.script('file', GEMINI);
  const answer = await gateway.post('/chat/completions', { model: 'test/file', ...ASKED });
  assert.equal(answer.status, 200, await answer.text());
  assert.equal(gateway.upstream.requests('file')[0]!.headers.authorization, 'Bearer token-3');
});
