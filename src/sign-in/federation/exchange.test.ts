import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import type { Caller } from '../../access/index.ts';
import type { FederationPolicy } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import { TestClock } from '../../testing/clock/clock.ts';
import type { OwnAccessTokens } from './access-tokens.ts';
import { Exchanges, PER_CLIENT, PER_POLICY } from './exchange.ts';
import { Issuers } from './issuers.ts';
import { ACCESS_TOKEN_TYPE, GRANT_TYPE, JWT_TYPE } from './schema.ts';

const { privateKey, publicKey } = await generateKeyPair('ES256');
const POLICY: FederationPolicy = {
  ...{ id: 'ci', issuer: 'https://idp.test', audience: ['gatehouse'], keyHash: 'ab'.repeat(32), lifetimeMs: 900_000 },
  keys: [(await exportJWK(publicKey)) as Record<string, string>],
  claims: [{ name: 'sub', patterns: ['build'] }],
};

/** Exchanges of one process; the access tokens themselves do not matter. */
function scene() {
  const clock = new TestClock();
  const egress = { request: () => Promise.reject(new Error('no request expected')) };
  const issued = { token: 'token', id: 'id', expiresIn: 900 };
  const exchanges = new Exchanges({
    ...{ clock, log: silentLog, issuers: new Issuers({ clock, log: silentLog, egress }) },
    tokens: { issue: async () => issued } as unknown as OwnAccessTokens,
    policies: () => [POLICY],
    callerOfKey: () => ({ kind: 'inference', keyHash: POLICY.keyHash, expiresAt: null }) as Caller,
  });
  /** Returns 200, or the status of the refusal. */
  const come = async (subjectToken: string, from: string) => {
    const form = new URLSearchParams({
      ...{ grant_type: GRANT_TYPE, subject_token_type: JWT_TYPE, requested_token_type: ACCESS_TOKEN_TYPE },
      ...{ federation_policy_id: POLICY.id, subject_token: subjectToken },
    });
    try {
      await exchanges.exchange(form, from, 'request');
      return 200;
    } catch (error) {
      assert.ok(error instanceof GatewayError, String(error));
      return error.status;
    }
  };
  const right = new SignJWT({ iss: POLICY.issuer, aud: 'gatehouse', sub: 'build', exp: clock.now() / 1000 + 600 })
    .setProtectedHeader({ alg: 'ES256' })
    .sign(privateKey);
  return { come, right, clock };
}

/** Number of responses by status, for consecutive requests that switch to a new address when one is used up. */
async function counts(
  times: number,
  network: number,
  come: (from: string) => Promise<number>,
): Promise<Record<number, number>> {
  const statuses: Record<number, number> = {};
  for (let count = 0; count < times; count++) {
    const status = await come(`203.0.${network}.${Math.floor(count / PER_CLIENT.atOnce)}`);
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
  return statuses;
}

test('invalid tokens do not use up the rate limit of their policy, from any address', async () => {
  const { come, right } = scene();
  const token = await right;
  const wrong = `${token.slice(0, -8)}AAAAAAAA`;
  assert.deepEqual(await counts(PER_POLICY.atOnce + 10, 1, (from) => come(wrong, from)), {
    400: PER_POLICY.atOnce + 10,
  });
  assert.equal(await come(token, '203.0.113.1'), 200);
});

test('valid tokens use up the rate limit of their policy until some time has passed', async () => {
  const { come, right, clock } = scene();
  const token = await right;
  const all = await counts(PER_POLICY.atOnce + 10, 1, (from) => come(token, from));
  assert.deepEqual(all, { 200: PER_POLICY.atOnce, 429: 10 });
  clock.advance(1_000);
  const next = await counts(PER_POLICY.perSecond + 10, 2, (from) => come(token, from));
  assert.deepEqual(next, { 200: PER_POLICY.perSecond, 429: 10 });
});
