import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { operatorAuthor } from '../../../src/audit/index.ts';
import { GatewayError } from '../../../src/base/errors.ts';
import { silentLog } from '../../../src/base/log.ts';
import { Secret } from '../../../src/base/secret.ts';
import { migrations } from '../../../src/migrations.ts';
import { Sealing } from '../../../src/sealing/index.ts';
import { OwnAccessTokens } from '../../../src/sign-in/federation/access-tokens.ts';
import { rotateSigningKey } from '../../../src/sign-in/federation/signing-keys.ts';
import type { Changed, Database } from '../../../src/storage/database.ts';
import { OUTAGE_GRACE_MS } from '../../../src/storage/freshness.ts';
import { unavailable } from '../../../src/storage/unavailable.ts';
import { TestClock } from '../../../src/testing/clock/clock.ts';
import { TestFreshness } from '../../../src/testing/clock/freshness.ts';
import { freshDatabase } from '../../../src/testing/database/database.ts';

const KEY_HASH = 'ab'.repeat(32);

/** The tokens of one process, on a database that the test can take down. */
async function scene(t: TestContext) {
  const clock = new TestClock();
  const { database: real } = await freshDatabase(t, { migrations });
  await real.query(`insert into organizations (id, name, created_at) values ('org_one', 'One', now())`);
  const state = { up: true, statements: 0, held: Promise.resolve() };
  const database: Database = {
    query: async (...asked) => {
      state.statements += 1;
      await state.held;
      return state.up ? real.query(...asked) : Promise.reject(unavailable('away'));
    },
    transaction: (work) => (state.up ? real.transaction(work) : Promise.reject(unavailable('away'))),
    ...{ up: true, close: async () => {} },
  };
  const key = new Secret(Buffer.alloc(32, 1).toString('base64'));
  const settings = { current: { kind: 'value', variable: 'GATEHOUSE_KEK', key }, previous: null } as const;
  let tell: Changed = () => {};
  const parts = {
    ...{ database, clock, log: silentLog, sealing: new Sealing({ database, clock, settings }) },
    changes: {
      freshness: new TestFreshness(clock),
      subscribe: (_topic: string, changed: Changed) => {
        tell = changed;
      },
      announce: async () => ({ settled: async () => void (await tell('one')) }),
    },
  };
  const tokens = new OwnAccessTokens(parts);
  const issue = async () => {
    const ends = { lifetimeMs: 900_000, endsBy: Number.POSITIVE_INFINITY };
    return (await tokens.issue({ subject: 's', policyId: 'ci', keyHash: KEY_HASH, ...ends }))!.token;
  };
  /** A token signed with the real key, with other claims. */
  const signed = async (claims: JWTPayload, header: object = {}) => {
    const { key, issuer } = await tokens.keys.signer();
    const exp = Math.floor(clock.now() / 1000) + 900;
    const usual = { iss: issuer, aud: issuer, exp, scope: 'inference', key_hash: KEY_HASH };
    return new SignJWT({ ...usual, ...claims })
      .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: key.id, ...header })
      .sign(key.privateKey);
  };
  return { clock, real, state, parts, tokens, issue, signed, tell: (id: string | null) => tell(id) };
}

async function status(tokens: OwnAccessTokens, token: string): Promise<number | string | undefined> {
  try {
    return await tokens.keyHashOf(token);
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return error.status;
  }
}

test('a token is verified once and then returned without a promise until it expires', async (t) => {
  const { clock, tokens, issue } = await scene(t);
  const token = await issue();
  const first = tokens.keyHashOf(token);
  assert.ok(first instanceof Promise);
  assert.equal(tokens.keyHashOf(token), first, 'several who come at once wait for one look');
  assert.equal(await first, KEY_HASH);
  assert.equal(tokens.keyHashOf(token), KEY_HASH);
  clock.advance(899_999);
  assert.equal(tokens.keyHashOf(token), KEY_HASH);
  clock.advance(1);
  assert.throws(() => tokens.keyHashOf(token), /expired/);
  assert.equal(await status(tokens, token), 401);
});

test('a JWT signed with our own key is only an access token if it has all required claims', async (t) => {
  const { tokens, signed } = await scene(t);
  assert.equal(await status(tokens, await signed({})), KEY_HASH);
  const wrong: JWTPayload[] = [
    { iss: 'urn:gatehouse:org_two' },
    { aud: 'urn:gatehouse:org_two' },
    { scope: 'inference management' },
    { scope: undefined },
    { key_hash: undefined },
    { key_hash: 'short' },
    { exp: undefined },
    { nbf: 9_999_999_999 },
  ];
  for (const claims of wrong) assert.equal(await status(tokens, await signed(claims)), 401, JSON.stringify(claims));
  assert.equal(await status(tokens, await signed({}, { typ: 'JWT' })), undefined);
  const { privateKey } = await generateKeyPair('ES256');
  const stranger = new SignJWT({}).setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'x' }).sign(privateKey);
  assert.equal(await status(tokens, await stranger), undefined);
});

test('tokens of our format with an unknown key cause one query per second', async (t) => {
  const { clock, state, tokens, issue, signed } = await scene(t);
  await issue();
  const before = state.statements;
  const strange = () => signed({ jti: String(Math.random()) }, { kid: 'unknown' });
  for (let count = 0; count < 20; count++) assert.equal(await status(tokens, await strange()), undefined);
  assert.equal(state.statements, before);
  clock.advance(1_000);
  for (let count = 0; count < 20; count++) await status(tokens, await strange());
  const once = state.statements - before;
  assert.ok(once > 0 && once < 6, String(once));
});

test('while the database is down cached keys work for the grace period, and unknown ones get 503', async (t) => {
  const { clock, state, tokens, issue, signed, tell } = await scene(t);
  await issue();
  const unknown = await signed({}, { kid: 'unknown' });
  clock.advance(90 * 86_400_000 - 1_000);
  const last = await issue();
  state.up = false;
  await tell(null);
  assert.equal(await status(tokens, last), KEY_HASH);
  assert.equal(await status(tokens, await issue()), KEY_HASH);
  clock.advance(1_000);
  assert.equal(await status(tokens, unknown), 503);
  assert.equal(await status(tokens, await issue()), KEY_HASH, 'an old key signs on where none can be made');
  clock.advance(OUTAGE_GRACE_MS);
  assert.equal(await status(tokens, last), 503, 'the grace is over');
  await assert.rejects(issue(), (error) => error instanceof GatewayError && error.status === 503);
  state.up = true;
  assert.equal(await status(tokens, await issue()), KEY_HASH);
  assert.equal((await tokens.keys.all()).length, 2);
});

test('after a missed change earlier verification results are not used', async (t) => {
  const { parts, real, tokens, issue, tell } = await scene(t);
  const token = await issue();
  assert.equal(await status(tokens, token), KEY_HASH);
  await real.query('delete from federation_keys');
  assert.equal(tokens.keyHashOf(token), KEY_HASH);
  await tell(null);
  assert.equal(await status(tokens, token), undefined);
  await rotateSigningKey(parts, { author: operatorAuthor });
  assert.equal(await status(tokens, await issue()), KEY_HASH);
});

test('a token presented while a process reads the end of all tokens ends with them', async (t) => {
  const { parts, state, tokens, issue, tell } = await scene(t);
  const token = await issue();
  assert.equal(await status(tokens, token), KEY_HASH);
  const settled = async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    state.held = promise;
    const told = tell('one');
    const presented = status(tokens, token);
    resolve();
    await told;
    assert.equal(await presented, undefined);
  };
  const changes = { announce: async () => ({ settled }) };
  await rotateSigningKey({ ...parts, changes }, { author: operatorAuthor, endsTokens: true });
  assert.equal(await status(tokens, token), undefined);
});

test('a key that cannot be decrypted signs nothing, and can be replaced', async (t) => {
  const { parts, real, tokens, issue, tell } = await scene(t);
  const token = await issue();
  await real.query(`update federation_keys set sealed = set_byte(sealed, 30, get_byte(sealed, 30) # 1)`);
  await tell(null);
  const closed = (error: unknown) =>
    error instanceof GatewayError && error.status === 503 && /decrypted/.test(error.message);
  await assert.rejects(issue(), closed);
  await assert.rejects(tokens.keys.all(), closed, 'no incomplete list of public keys');
  assert.equal(await status(tokens, token), 503, 'it may be genuine');
  assert.match(tokens.keys.problem ?? '', /altered/);
  await rotateSigningKey(parts, { author: operatorAuthor });
  assert.equal(await status(tokens, await issue()), KEY_HASH);
});
