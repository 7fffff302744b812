/** POST /oauth/token: what is exchanged, and everything that is not. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import {
  createLocalJWKSet,
  decodeJwt,
  decodeProtectedHeader,
  exportSPKI,
  importJWK,
  type JWTPayload,
  jwtVerify,
} from 'jose';
import { createLog } from '../../../src/base/log.ts';
import { type Gateway, INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../../src/testing/gateway/gateway.ts';
import { controlOf, type Json } from '../../workspaces/control.ts';
import {
  AUDIENCE,
  accessToken,
  claimsAt,
  type Exchanged,
  exchange,
  FORM,
  hashOf,
  type Issuer,
  KEY_HASH,
  makeKey,
  postForm,
  SUBJECT,
  sign,
  startIssuer,
} from './issuer.ts';

const CHAT = { model: 'simulated/echo', messages: [{ role: 'user', content: 'hi' }], max_tokens: 16 };

interface Scene {
  issuer: Issuer;
  gateway: Gateway;
  /** What was logged. */
  lines: Json[];
}

async function scene(t: TestContext, policies: (issuer: Issuer) => Json[], alg = 'RS256'): Promise<Scene> {
  const issuer = await startIssuer(t);
  await issuer.add('first', alg);
  const lines: Json[] = [];
  const log = createLog({ stream: { write: (line) => void lines.push(JSON.parse(line)) } });
  const yaml = { egress: issuer.egress, federation: policies(issuer) };
  return { issuer, gateway: await startGateway(t, { yaml, log }), lines };
}

function refused({ status, body, headers }: Exchanged, error: string, description: RegExp, expected = 400): void {
  assert.equal(status, expected, JSON.stringify(body));
  assert.deepEqual(Object.keys(body).toSorted(), ['error', 'error_description']);
  assert.equal(body.error, error, body.error_description);
  assert.match(body.error_description, description);
  assert.match(body.error_description, /^[\x20\x21\x23-\x5b\x5d-\x7e]+$/);
  if (expected !== 413 && expected !== 415) assert.equal(headers.get('cache-control'), 'no-store');
}

test('the JWT of an identity provider becomes an access token of this gateway that its public keys verify', async (t) => {
  const { issuer, gateway, lines } = await scene(t, (issuer) => [issuer.policy({ lifetime: '300s' })]);
  const jwks = async () => {
    const response = await fetch(`${gateway.api}/oauth/jwks`);
    assert.equal(response.status, 200);
    return response.json() as Promise<Json>;
  };
  assert.deepEqual(await jwks(), { keys: [] });
  const subjectToken = await issuer.token(gateway);
  const { status, headers, body } = await exchange(gateway, subjectToken);
  assert.equal(status, 200, JSON.stringify(body));
  assert.equal(headers.get('cache-control'), 'no-store');
  const { access_token: token, ...rest } = body;
  assert.deepEqual(rest, {
    expires_in: 300,
    issued_token_type: 'urn:ietf:params:oauth:token-type:access_token',
    token_type: 'Bearer',
    scope: 'inference',
  });

  const { keys } = await jwks();
  assert.equal(keys.length, 1);
  const { x, y, kid, ...fixed } = keys[0];
  assert.deepEqual(fixed, { alg: 'ES256', crv: 'P-256', kty: 'EC', use: 'sig' });
  assert.ok(x.length === 43 && y.length === 43);
  assert.deepEqual(decodeProtectedHeader(token), { alg: 'ES256', typ: 'at+jwt', kid });
  const currentDate = new Date(gateway.clock.now());
  const { payload } = await jwtVerify(token, createLocalJWKSet({ keys }), { currentDate });
  const { iss, aud, iat, exp, jti, ...claims } = payload;
  assert.match(String(iss), /^urn:gatehouse:org_/);
  assert.equal(aud, iss);
  assert.equal(exp! - iat!, 300);
  assert.match(String(jti), /^[0-9a-f-]{36}$/);
  assert.deepEqual(claims, { sub: SUBJECT, client_id: 'ci', scope: 'inference', key_hash: KEY_HASH });

  const line = lines.find(({ event }) => event === 'token exchanged');
  assert.deepEqual([line.policy, line.subject, line.token_id, line.expires_in], ['ci', SUBJECT, jti, 300]);
  const logged = JSON.stringify(lines);
  for (const secret of [token, subjectToken, INFERENCE_KEY]) assert.ok(!logged.includes(secret));

  const entries = (await controlOf(gateway).call('GET', '/audit?resource_type=signing_key')).body.data as Json[];
  assert.deepEqual(
    entries.filter(({ action }) => action === 'signing_key.created').map(({ resource_id: id }) => id),
    [kid],
  );
});

for (const alg of ['RS384', 'RS512', 'PS256', 'ES256', 'ES384', 'ES512', 'EdDSA']) {
  test(`keys of ${alg} are taken, with and without the algorithm in the key`, async (t) => {
    const { issuer, gateway } = await scene(t, (issuer) => [issuer.policy()], alg);
    const second = await issuer.add('second', alg);
    delete second.jwk['alg'];
    for (const key of issuer.keys) await accessToken(gateway, await issuer.token(gateway, {}, key));
  });
}

test('keys in the configuration need no fetch', async (t) => {
  const key = await makeKey('given', 'ES256');
  const policy = (issuer: Issuer) => issuer.policy({ jwks: { keys: [key.jwk, { ...key.jwk, kid: 'other' }] } });
  const { issuer, gateway } = await scene(t, (issuer) => [policy(issuer)]);
  await accessToken(gateway, await issuer.token(gateway, {}, key));
  refused(await exchange(gateway, await issuer.token(gateway)), 'invalid_grant', /does not publish/);
  const nameless = await sign(key, claimsAt(gateway.clock.now(), issuer.url), { kid: undefined });
  refused(await exchange(gateway, nameless), 'invalid_grant', /names no kid/);
  assert.deepEqual(issuer.asked, []);
});

test('a token without a kid is taken where one key alone could have signed it', async (t) => {
  const { issuer, gateway } = await scene(t, (issuer) => [issuer.policy({ jwks_uri: `${issuer.url}/keys` })]);
  await issuer.add('another-kind', 'ES256');
  const token = await sign(issuer.keys[0]!, claimsAt(gateway.clock.now(), issuer.url), { kid: undefined });
  await accessToken(gateway, token);
  assert.deepEqual(issuer.asked, ['/keys']);
});

test('a token that was altered, or signed otherwise than by the issuer, is refused', async (t) => {
  const { issuer, gateway, lines } = await scene(t, (issuer) => [issuer.policy()]);
  const [key] = issuer.keys;
  const claims = claimsAt(gateway.clock.now(), issuer.url);
  const good = await sign(key!, claims);
  await accessToken(gateway, good);
  const [header, payload, signature] = good.split('.') as [string, string, string];
  const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const pem = await exportSPKI(
    (await importJWK(key!.jwk, 'RS256', { extractable: true })) as Parameters<typeof exportSPKI>[0],
  );
  const hmac = (secret: string, head: object) => {
    const text = `${json(head)}.${payload}`;
    return `${text}.${createHmac('sha256', secret).update(text).digest('base64url')}`;
  };
  const impostor = { ...(await makeKey('first')), kid: 'first' };
  const embedded = { alg: 'RS256', kid: 'first', jwk: impostor.jwk, jku: `${issuer.url}/keys` };
  const cases: [string, string, RegExp][] = [
    ['no algorithm', `${json({ alg: 'none' })}.${payload}.`, /not a signed JWT/],
    ['no algorithm, and something as a signature', `${json({ alg: 'none' })}.${payload}.${signature}`, /algorithm/],
    ['None', `${json({ alg: 'None', kid: 'first' })}.${payload}.${signature}`, /algorithm/],
    ['the public key as a secret', hmac(pem, { alg: 'HS256', kid: 'first' }), /algorithm/],
    ['the public modulus as a secret', hmac(String(key!.jwk['n']), { alg: 'HS256', kid: 'first' }), /algorithm/],
    [
      'another algorithm of the kind',
      `${json({ alg: 'PS256', kid: 'first' })}.${payload}.${signature}`,
      /does not publish/,
    ],
    ['a key of its own under the kid', await sign(impostor, claims), /signature/],
    ['a key that it brings along', await sign(impostor, claims, embedded), /signature/],
    ['a kid of nobody', await sign(await makeKey('elsewhere'), claims), /does not publish/],
    ['another payload', `${header}.${json({ ...claims, sub: 'repo:acme/app:x' })}.${signature}`, /signature/],
    ['a broken signature', `${header}.${payload}.${signature.slice(0, -8)}AAAAAAAA`, /signature/],
    [
      'a critical header',
      `${json({ alg: 'RS256', kid: 'first', crit: ['x'], x: 1 })}.${payload}.${signature}`,
      /well-formed/,
    ],
    [
      'a payload that is not encoded',
      `${json({ alg: 'RS256', kid: 'first', crit: ['b64'], b64: false })}.${payload}.${signature}`,
      /signature|well-formed/,
    ],
    ['a payload that is no object', `${header}.${Buffer.from('[]').toString('base64url')}.${signature}`, /signature/],
    ['no JWT', 'three.little.parts', /well-formed/],
    ['two parts', `${header}.${payload}`, /not a signed JWT/],
    ['an encrypted one', `${header}.a.b.c.d`, /not a signed JWT/],
    ['spaces', ` ${good}`, /not a signed JWT/],
    ['a key of ours', INFERENCE_KEY, /not a signed JWT/],
    ['a long one', `${header}.${payload}.${'A'.repeat(16_384)}`, /longer than/],
  ];
  for (const [name, token, description] of cases) {
    assert.notEqual(token, good, name);
    refused(await exchange(gateway, token), 'invalid_grant', description);
  }
  assert.equal(lines.filter(({ event }) => event === 'token exchange refused').length, cases.length);
  assert.ok(!JSON.stringify(lines).includes(signature));
});

test('issuer, audience, times and claims are those of the policy to the letter, or it is refused', async (t) => {
  const { issuer, gateway } = await scene(t, (issuer) => [
    issuer.policy({
      audience: ['other', AUDIENCE],
      claims: {
        sub: 'repo:acme/app:*',
        environment: ['production', 'staging-*'],
        verified: true,
        attempt: 1,
        groups: 'deployers',
      },
    }),
  ]);
  const now = Math.floor(gateway.clock.now() / 1000);
  const right = { environment: 'production', verified: true, attempt: 1, groups: ['readers', 'deployers'] };
  const fits: JWTPayload[] = [
    {},
    { aud: ['x', 'other'] },
    { environment: 'staging-7' },
    { nbf: now + 20, iat: now + 20 },
    { iat: undefined, nbf: undefined },
    { sub: 'repo:acme/app:' },
  ];
  for (const more of fits) await accessToken(gateway, await issuer.token(gateway, { ...right, ...more }));
  const cases: [JWTPayload, RegExp][] = [
    [{ iss: `${issuer.url}/` }, /claim iss that/],
    [{ iss: issuer.url.toUpperCase() }, /claim iss that/],
    [{ iss: undefined }, /lacks the claim iss/],
    [{ aud: 'Gatehouse' }, /claim aud that/],
    [{ aud: ['x', 'y'] }, /claim aud that/],
    [{ aud: undefined }, /lacks the claim aud/],
    [{ exp: now - 1 }, /expired/],
    [{ exp: now }, /expired/],
    [{ exp: undefined }, /lacks the claim exp/],
    [{ exp: '9999999999' as never }, /claim exp that/],
    [{ nbf: now + 60 }, /not valid yet/],
    [{ nbf: 'now' as never }, /not valid yet|another nbf/],
    [{ iat: now + 60 }, /in the future/],
    [{ sub: undefined }, /no valid claim sub/],
    [{ sub: 7 as never }, /no valid claim sub/],
    [{ sub: `repo:acme/app:${'x'.repeat(1_024)}` }, /no valid claim sub/],
    [{ sub: 'repo:acme/application:ref' }, /claim sub/],
    [{ sub: 'xrepo:acme/app:ref' }, /claim sub/],
    [{ sub: 'repo:ACME/app:ref' }, /claim sub/],
    [{ environment: 'production-2' }, /claim environment/],
    [{ environment: undefined }, /claim environment/],
    [{ environment: { production: true } }, /claim environment/],
    [{ verified: 'true' }, /claim verified/],
    [{ attempt: '1' }, /claim attempt/],
    [{ groups: ['readers'] }, /claim groups/],
    [{ groups: 'deployer' }, /claim groups/],
  ];
  for (const [more, description] of cases) {
    refused(await exchange(gateway, await issuer.token(gateway, { ...right, ...more })), 'invalid_grant', description);
  }
});

test('a form that is not as it should be is refused in the words of OAuth', async (t) => {
  const { issuer, gateway } = await scene(t, (issuer) => [issuer.policy()]);
  const token = await issuer.token(gateway);
  const cases: [Record<string, string | undefined>, string, RegExp][] = [
    [{ grant_type: undefined }, 'invalid_request', /grant_type is missing/],
    [{ grant_type: '' }, 'invalid_request', /grant_type is missing/],
    [{ grant_type: 'client_credentials' }, 'unsupported_grant_type', /grant_type/],
    [{ subject_token: undefined }, 'invalid_request', /subject_token is missing/],
    [{ subject_token_type: undefined }, 'invalid_request', /subject_token_type is missing/],
    [{ subject_token_type: 'urn:ietf:params:oauth:token-type:id_token' }, 'invalid_request', /subject_token_type/],
    [
      { requested_token_type: 'urn:ietf:params:oauth:token-type:refresh_token' },
      'invalid_request',
      /requested_token_type/,
    ],
    [{ federation_policy_id: undefined }, 'invalid_request', /federation_policy_id is missing/],
    [{ federation_policy_id: 'unknown"\\\n' }, 'invalid_grant', /not known/],
    [{ federation_policy_id: '__proto__' }, 'invalid_grant', /not known/],
    [{ scope: 'inference management' }, 'invalid_scope', /scope/],
    [{ scope: 'management' }, 'invalid_scope', /scope/],
    [{ audience: 'elsewhere' }, 'invalid_target', /audience/],
    [{ resource: 'https://elsewhere.test' }, 'invalid_target', /resource/],
    [{ actor_token: token }, 'invalid_request', /actor_token/],
  ];
  for (const [more, error, description] of cases) refused(await exchange(gateway, token, more), error, description);

  const whole = new URLSearchParams({ ...FORM, subject_token: token }).toString();
  for (const field of ['scope=inference&scope=inference', `subject_token=${token}`, 'federation_policy_id=ci']) {
    refused(
      await postForm(gateway, `${whole}&${field}`),
      'invalid_request',
      new RegExp(`^${field.split('=')[0]} is given more than once`),
    );
  }
  refused(await postForm(gateway, 'no form at all'), 'invalid_request', /grant_type is missing/);
  const unknown = await postForm(gateway, `${whole}&scope=&client_id=x&requested_token_type=`);
  assert.equal(unknown.status, 200, JSON.stringify(unknown.body));

  const send = async (type: string, body: string) => {
    const response = await fetch(`${gateway.api}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': type },
      body,
    });
    return { status: response.status, headers: response.headers, body: await response.json() } as Exchanged;
  };
  const json = JSON.stringify({ ...FORM, subject_token: token });
  refused(await send('application/json', json), 'invalid_request', /x-www-form-urlencoded/, 415);
  const huge = `${whole}&more=${'x'.repeat(30_000)}`;
  refused(await send('application/x-www-form-urlencoded', huge), 'invalid_request', /larger than/, 413);
  const { status } = await fetch(`${gateway.api}/oauth/token`);
  assert.equal(status, 405);
  const elsewhere = await fetch(`${gateway.url}/v1/oauth/token`, { method: 'POST', body: new URLSearchParams(whole) });
  assert.equal(elsewhere.status, 200);
});

test('an access token ends with its subject token and with its key, and after a quarter of an hour at the latest', async (t) => {
  const { issuer, gateway } = await scene(t, (issuer) => [issuer.policy()]);
  const lifeOf = async (seconds: number) => {
    const now = Math.floor(gateway.clock.now() / 1000);
    const { body } = await exchange(gateway, await issuer.token(gateway, { exp: now + seconds }));
    const { iat, exp } = decodeJwt(body.access_token);
    assert.equal(body.expires_in, exp! - iat!);
    return { seconds: body.expires_in, exp: exp!, latest: now + seconds };
  };
  const short = await lifeOf(100);
  assert.equal(short.exp, short.latest);
  assert.equal((await lifeOf(3_600)).seconds, 900);
  assert.equal((await lifeOf(1e15)).seconds, 900);

  const expiresAt = Math.floor(gateway.clock.now() / 1000) + 200;
  const { hash } = await controlOf(gateway).keyIn(undefined, 'short', {
    expires_at: new Date(expiresAt * 1000).toISOString(),
  });
  const [policy] = gateway.config.federation;
  gateway.app.reload({ ...gateway.config, federation: [{ ...policy!, keyHash: hash }] });
  assert.equal((await lifeOf(3_600)).exp, expiresAt);
});

test('the key of a policy must be an inference key that works', async (t) => {
  const policies: [string, string][] = [
    ['none', 'f'.repeat(64)],
    ['management', hashOf(MANAGEMENT_KEY)],
  ];
  const { issuer, gateway, lines } = await scene(t, (issuer) => [
    issuer.policy(),
    ...policies.map(([id, key]) => issuer.policy({ id, key })),
  ]);
  const token = await issuer.token(gateway);
  const asked = (federation_policy_id: string) => exchange(gateway, token, { federation_policy_id });
  refused(await asked('none'), 'invalid_grant', /key .* not usable: .*not known/);
  refused(await asked('management'), 'invalid_grant', /not usable: It is not an inference key/);
  const { call } = controlOf(gateway);
  assert.equal((await call('PATCH', `/keys/${KEY_HASH}`, { disabled: true })).status, 200);
  refused(await asked('ci'), 'invalid_grant', /disabled/);
  assert.equal(lines.filter(({ event }) => event === 'the key of a federation policy is not usable').length, 3);
});

test('too many exchanges get 429 with Retry-After, without a request to the issuer', async (t) => {
  const { issuer, gateway } = await scene(t, (issuer) => [issuer.policy()]);
  gateway.clock.stand();
  for (let count = 0; count < 300; count++) await postForm(gateway, 'grant_type=x');
  const answer = await exchange(gateway, await issuer.token(gateway));
  refused(answer, 'temporarily_unavailable', /Too many/, 429);
  assert.equal(answer.headers.get('retry-after'), '1');
  assert.deepEqual(issuer.asked, []);
  gateway.clock.goOn();
  gateway.clock.jump(1_000);
  assert.equal((await exchange(gateway, await issuer.token(gateway))).status, 200);
});

test('the other operations keep working', async (t) => {
  const { gateway } = await scene(t, () => []);
  refused(await exchange(gateway, 'a.b.c'), 'invalid_grant', /not known/);
  assert.equal((await gateway.post('/chat/completions', CHAT)).status, 200);
});
