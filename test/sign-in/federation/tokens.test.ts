/** What an access token may do: what its key may, for as long as both may. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { decodeProtectedHeader } from 'jose';
import { MANAGEMENT } from '../../../src/http/access-rule.ts';
import { migrations } from '../../../src/migrations.ts';
import { operations } from '../../../src/operations.ts';
import { emptyDatabase } from '../../../src/testing/database/database.ts';
import { tapDatabase } from '../../../src/testing/database/database-tap.ts';
import { rowsOnce } from '../../../src/testing/database/rows.ts';
import {
  type Gateway,
  type GatewayOptions,
  INFERENCE_KEY,
  startGateway,
} from '../../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../../src/testing/upstream/answers.ts';
import { controlOf, type Json } from '../../workspaces/control.ts';
import { accessToken, claimsAt, exchange, KEY_HASH, makeKey, sign } from './issuer.ts';

const ISSUER = 'https://issuer.test';
const CHAT = { model: 'test/a', messages: [{ role: 'user', content: 'hi' }], max_tokens: 16 };
const given = await makeKey('given', 'ES256');
const YAML = {
  federation: [
    {
      id: 'ci',
      issuer: ISSUER,
      audience: 'gatehouse',
      claims: { sub: 'repo:*' },
      key: KEY_HASH,
      jwks: { keys: [given.jwk] },
    },
  ],
};
/** For installations of several processes. */
const KEK = { GATEHOUSE_KEK: Buffer.alloc(32, 7).toString('base64') };

async function scene(t: TestContext, options: GatewayOptions = {}) {
  const gateway = await startGateway(t, { yaml: YAML, providers: { a: {} }, env: KEK, ...options });
  const told = { text: 'yes', usage: { input: 100, output: 20 } };
  gateway.upstream.script('a', { ...answerOf('chat', false, told), repeat: true });
  return { gateway, control: controlOf(gateway) };
}

const subjectToken = (gateway: Gateway) => sign(given, claimsAt(gateway.clock.now(), ISSUER));
const tokenOf = async (gateway: Gateway) => accessToken(gateway, await subjectToken(gateway));
/** The policy issues tokens for this key from now on. */
function standFor(gateway: Gateway, keyHash: string): void {
  const [policy] = gateway.config.federation;
  gateway.app.reload({ ...gateway.config, federation: [{ ...policy!, keyHash }] });
}

async function ask(gateway: Gateway, token: string, headers?: Record<string, string>) {
  const answer = await gateway.post('/chat/completions', CHAT, headers ?? { authorization: `Bearer ${token}` });
  return { status: answer.status, body: (await answer.json()) as Json };
}

async function refused(pending: ReturnType<typeof ask>, status: number, message: RegExp): Promise<void> {
  const answer = await pending;
  assert.equal(answer.status, status, JSON.stringify(answer.body));
  assert.match(answer.body.error.message, message);
}

test('an access token runs models as its key, whose spend it is entered on', async (t) => {
  const { gateway, control } = await scene(t);
  const token = await tokenOf(gateway);
  assert.ok(token.length > 512, 'a key of this length would not be taken');
  assert.equal((await ask(gateway, token)).status, 200);
  assert.equal((await ask(gateway, token, { authorization: '', 'x-api-key': token })).status, 200);
  const [one, two] = await rowsOnce(gateway.target, 2);
  assert.equal(one!.key, two!.key);
  const [own, its] = await Promise.all([
    control.call('GET', '/key', undefined, INFERENCE_KEY),
    control.call('GET', '/key', undefined, token),
  ]);
  assert.deepEqual(its, own);
  assert.ok(its.body.data.usage > 0);
});

test('every other operation answers an access token as it answers an inference key', async (t) => {
  const { gateway, control } = await scene(t);
  const token = await tokenOf(gateway);
  const contracts = operations({ limits: { inferenceBodyBytes: 1024 } } as Parameters<typeof operations>[0]);
  const closed = contracts.filter(({ access, root, opens }) => access === MANAGEMENT && !root && !opens);
  assert.ok(closed.length > 50);
  for (const { method, path } of closed) {
    const route = path.replaceAll(/\{\w+\}/g, 'x');
    const body = method === 'GET' ? undefined : {};
    const [own, its] = [
      await control.call(method, route, body, INFERENCE_KEY),
      await control.call(method, route, body, token),
    ];
    assert.equal(its.status, 403, `${method} ${path}`);
    assert.deepEqual(its, own, `${method} ${path}`);
  }
  const scim = await fetch(`${gateway.url}/scim/v2/Users`, { headers: { authorization: `Bearer ${token}` } });
  assert.equal(scim.status, 403);
});

test('a token that is issued is taken, whatever its subject is written in', async (t) => {
  const { gateway } = await scene(t);
  const subjects = ['x', '"', '\u00e9', '\u6f22', '\u0001', '\ud800'];
  for (const character of subjects) {
    const bytes = Buffer.byteLength(JSON.stringify(character)) - 2;
    const longest = `repo:${character.repeat(Math.floor((1_024 - 'repo:""'.length) / bytes))}`;
    const tokenFor = (sub: string) => sign(given, claimsAt(gateway.clock.now(), ISSUER, { sub }));
    const token = await accessToken(gateway, await tokenFor(longest));
    assert.equal((await ask(gateway, token)).status, 200, JSON.stringify(character));
    const longer = await exchange(gateway, await tokenFor(longest + character));
    assert.equal(longer.status, 400);
    assert.match(longer.body.error_description, /no valid claim sub/);
  }
});

test('what happens to the key happens to its tokens at once, in every process', async (t) => {
  const { gateway, control } = await scene(t);
  const { gateway: other } = await scene(t, { target: gateway.target });
  const key = await control.keyIn(undefined, 'workloads');
  for (const each of [gateway, other]) standFor(each, key.hash);
  const token = await tokenOf(gateway);
  const everywhere = async (status: number, message = /./) => {
    for (const each of [gateway, other]) {
      if (status === 200) assert.equal((await ask(each, token)).status, 200);
      else await refused(ask(each, token), status, message);
    }
  };
  const change = async (body: Json) =>
    assert.equal((await control.call('PATCH', `/keys/${key.hash}`, body)).status, 200);
  await everywhere(200);
  await change({ disabled: true });
  await everywhere(401, /disabled/);
  await change({ disabled: false, limit: 0.000001 });
  await everywhere(402);
  await change({ limit: null, rate_limits: { requests_per_day: 1 } });
  assert.equal((await ask(other, token)).status, 200);
  await everywhere(429);
  await change({ rate_limits: null });
  await everywhere(200);

  const rotated = await control.call('POST', `/keys/${key.hash}/rotate`, { revoke_previous_after_seconds: 0 });
  assert.equal(rotated.status, 201);
  assert.equal((await key.ask({ model: 'test/a' })).status, 401);
  await everywhere(200);
  assert.equal((await ask(other, await tokenOf(other))).status, 200, 'the policy goes on with the key');
  assert.equal((await control.call('DELETE', `/keys/${rotated.body.data.hash}`)).status, 200);
  await everywhere(401, /not known/);
});

test('a token of one process is known to the others, also when several make the first one at once', async (t) => {
  const { gateway } = await scene(t);
  const { gateway: other } = await scene(t, { target: gateway.target });
  const both = [gateway, other];
  const tokens = await Promise.all([...both, ...both, ...both].map(tokenOf));
  assert.equal(new Set(tokens.map((token) => decodeProtectedHeader(token).kid)).size, 1);
  for (const token of tokens) for (const each of both) assert.equal((await ask(each, token)).status, 200);
});

test('an access token ends with its time, to the second', async (t) => {
  const { gateway } = await scene(t);
  gateway.clock.stand();
  const token = await tokenOf(gateway);
  gateway.clock.goOn();
  const kept = await tokenOf(gateway);
  assert.equal((await ask(gateway, token)).status, 200);
  gateway.clock.jump(590_000);
  const verified = await ask(gateway, token);
  assert.equal(verified.status, 200);
  gateway.clock.jump(11_000);
  await refused(ask(gateway, token), 401, /has expired/);
  await refused(ask(gateway, kept), 401, /has expired/);
  await refused(ask(gateway, token), 401, /has expired/);
  assert.equal((await ask(gateway, INFERENCE_KEY)).status, 200);
});

test('a fake access token is refused', async (t) => {
  const { gateway } = await scene(t);
  const token = await tokenOf(gateway);
  const [header, payload, signature] = token.split('.') as [string, string, string];
  const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const { kid } = decodeProtectedHeader(token);
  const claims = JSON.parse(Buffer.from(payload, 'base64url').toString());
  const forged = { ...(await makeKey('x', 'ES256')), kid: String(kid) };
  const tokens = [
    `${header}.${json({ ...claims, exp: claims.exp + 1 })}.${signature}`,
    `${json({ alg: 'none', typ: 'at+jwt', kid })}.${payload}.`,
    `${json({ alg: 'ES256', typ: 'at+jwt', kid: 'unknown' })}.${payload}.${signature}`,
    `${json({ alg: 'ES256', typ: 'JWT', kid })}.${payload}.${signature}`,
    `${json({ alg: 'HS256', typ: 'at+jwt', kid })}.${payload}.${signature}`,
    `${header}.${payload}`,
    `${header}.${payload}.`,
    `${token}.`,
    `${header}..${signature}`,
    await sign(forged, claims, { typ: 'at+jwt' }),
    await subjectToken(gateway),
    `eyJ${'a'.repeat(5_000)}`,
    'eyJ',
  ];
  for (const each of tokens) await refused(ask(gateway, each), 401, /not (?:valid|known)/);
  assert.equal((await ask(gateway, token)).status, 200);
});

test('a secret of a partner that looks like a JWT is a key all the same', async (t) => {
  const { gateway, control } = await scene(t);
  const secret = await sign(given, { sub: 'partner' }, { typ: 'at+jwt' });
  await control.keyIn(undefined, 'partner', { external: { user: 'u', api_key: secret } });
  assert.ok(secret.length <= 512);
  assert.equal((await ask(gateway, secret)).status, 200);
});

test('a token that was presented before costs not one statement', async (t) => {
  const tap = await tapDatabase(t, await emptyDatabase(t, migrations, true));
  const { gateway } = await scene(t, { target: tap.target });
  t.after(() => tap.close());
  const tokens = [await tokenOf(gateway), await tokenOf(gateway)];
  for (const token of tokens) assert.equal((await ask(gateway, token)).status, 200);
  gateway.clock.stand();
  await tap.quiet();
  const before = tap.statements.length;
  for (let round = 0; round < 10; round++) {
    for (const token of [...tokens, INFERENCE_KEY]) assert.equal((await ask(gateway, token)).status, 200);
  }
  await exchange(gateway, await subjectToken(gateway));
  await tap.quiet();
  assert.deepEqual(tap.statements.slice(before), []);
  gateway.clock.goOn();
});

test('the key that signs gives way to another when it is old, and counts until its last token has ended', async (t) => {
  const { gateway, control } = await scene(t);
  const { gateway: other } = await scene(t, { target: gateway.target });
  const jump = (ms: number) => [gateway, other].map(({ clock }) => clock.jump(ms));
  const kids = async (from: Gateway) => {
    const { keys } = (await (await fetch(`${from.api}/oauth/jwks`)).json()) as Json;
    return keys.map(({ kid }: Json) => kid);
  };
  const first = await tokenOf(gateway);
  const [one] = await kids(gateway);
  jump(90 * 86_400_000 - 300_000);
  const last = await tokenOf(gateway);
  assert.equal(decodeProtectedHeader(last).kid, one);
  jump(300_001);
  const next = await tokenOf(other);
  const { kid: two } = decodeProtectedHeader(next);
  assert.notEqual(two, one);
  for (const each of [gateway, other]) {
    assert.deepEqual(await kids(each), [two, one]);
    for (const token of [last, next]) assert.equal((await ask(each, token)).status, 200);
    await refused(ask(each, first), 401, /expired/);
  }
  jump(900_000);
  for (const each of [gateway, other]) assert.deepEqual(await kids(each), [two]);
  const entries = (await control.call('GET', '/audit?resource_type=signing_key')).body.data as Json[];
  assert.deepEqual(
    entries.map(({ action, resource_id: id }) => [action, id]),
    [
      ['signing_key.rotated', two],
      ['signing_key.created', one],
    ],
  );
});
