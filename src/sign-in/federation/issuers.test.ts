import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exportJWK, generateKeyPair } from 'jose';
import type { FederationPolicy } from '../../base/config.ts';
import { GatewayError } from '../../base/errors.ts';
import { silentLog } from '../../base/log.ts';
import type { EgressRequest } from '../../egress/index.ts';
import { TestClock } from '../../testing/clock/clock.ts';
import { AGAIN_MS, FRESH_MS, Issuers, RETRY_MS, STALE_MS } from './issuers.ts';

const URL = 'https://idp.test/tenant/';
const { publicKey } = await generateKeyPair('ES256');
const point = await exportJWK(publicKey);

/** Issuers with scripted answers. */
class Scene {
  readonly clock = new TestClock();
  readonly asked: string[] = [];
  kids = ['one'];
  down = false;
  /** Answers wait for this promise. */
  held: Promise<void> | undefined;
  document: unknown = { issuer: URL, jwks_uri: 'https://keys.test/set' };
  keySet: unknown;
  status = 200;
  readonly issuers = new Issuers({
    clock: this.clock,
    log: silentLog,
    egress: { request: (asked) => this.#answer(asked) },
  });

  async #answer({ url }: EgressRequest) {
    this.asked.push(url);
    await this.held;
    if (this.down) throw new Error('down');
    const set = this.keySet ?? { keys: this.kids.map((kid) => ({ ...point, kid })) };
    const value = url.endsWith('openid-configuration') ? this.document : set;
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return { url, status: this.status, headers: {}, body: Buffer.from(text) };
  }

  /** Returns `found`, or the status of the refusal. */
  async find(kid: string, policy: Partial<FederationPolicy> = {}): Promise<string | number> {
    const whole = { issuer: URL, keys: null, ...policy } as FederationPolicy;
    try {
      await this.issuers.keyFor(whole, { alg: 'ES256', kid });
      return 'found';
    } catch (error) {
      assert.ok(error instanceof GatewayError, String(error));
      return error.status;
    }
  }
}

const DISCOVERY = ['https://idp.test/tenant/.well-known/openid-configuration', 'https://keys.test/set'];

test("keys are found through the issuer's document, fetched once for all, and fetched again when old", async () => {
  const scene = new Scene();
  assert.deepEqual(await Promise.all([1, 2, 3].map(() => scene.find('one'))), ['found', 'found', 'found']);
  assert.deepEqual(scene.asked, DISCOVERY);
  scene.clock.advance(FRESH_MS - 1);
  assert.equal(await scene.find('one'), 'found');
  assert.equal(scene.asked.length, 2);
  scene.kids = ['two'];
  scene.clock.advance(1);
  assert.equal(await scene.find('one'), 400, 'the issuer has withdrawn it');
  assert.deepEqual(scene.asked, [...DISCOVERY, ...DISCOVERY]);
});

test('a configured key URL is fetched directly', async () => {
  const scene = new Scene();
  assert.equal(await scene.find('one', { keys: 'https://elsewhere.test/keys' }), 'found');
  assert.deepEqual(scene.asked, ['https://elsewhere.test/keys']);
});

test('an unknown key causes a fetch, but many unknown keys cause few', async () => {
  const scene = new Scene();
  assert.equal(await scene.find('one'), 'found');
  scene.clock.advance(AGAIN_MS);
  scene.kids = ['one', 'two'];
  assert.equal(await scene.find('two'), 'found');
  assert.equal(scene.asked.length, 4);
  for (let count = 0; count < 50; count++) assert.equal(await scene.find(`invented-${count}`), 400);
  assert.equal(scene.asked.length, 4);
  scene.clock.advance(AGAIN_MS - 1);
  assert.equal(await scene.find('three'), 400);
  assert.equal(scene.asked.length, 4);
  scene.clock.advance(1);
  const all = Array.from({ length: 50 }, (_, count) => scene.find(`invented-${count}`));
  assert.deepEqual(new Set(await Promise.all(all)), new Set([400]));
  assert.equal(scene.asked.length, 6);
});

test('while the issuer is unreachable its keys are valid for an hour, and unknown keys get 503', async () => {
  const scene = new Scene();
  scene.down = true;
  assert.equal(await scene.find('one'), 503);
  assert.equal(await scene.find('one'), 503);
  assert.equal(scene.asked.length, 1);
  scene.clock.advance(RETRY_MS);
  assert.equal(await scene.find('one'), 503);
  assert.equal(scene.asked.length, 2);
  scene.down = false;
  scene.clock.advance(RETRY_MS);
  assert.equal(await scene.find('one'), 'found');

  scene.down = true;
  scene.clock.advance(STALE_MS - 1);
  assert.equal(await scene.find('one'), 'found');
  assert.equal(await scene.find('unknown'), 503);
  const { length } = scene.asked;
  for (let count = 0; count < 20; count++) await scene.find('one');
  assert.equal(scene.asked.length, length);
  scene.clock.advance(1);
  assert.equal(await scene.find('one'), 503);
  scene.down = false;
  scene.clock.advance(RETRY_MS);
  assert.equal(await scene.find('one'), 'found');
});

test('no request waits for an issuer that failed before, while its keys are valid', async () => {
  const scene = new Scene();
  assert.equal(await scene.find('one'), 'found');
  scene.down = true;
  scene.clock.advance(FRESH_MS);
  assert.equal(await scene.find('one'), 'found');
  scene.clock.advance(RETRY_MS);
  const { promise, resolve } = Promise.withResolvers<void>();
  scene.held = promise;
  const { length } = scene.asked;
  assert.equal(await scene.find('one'), 'found');
  assert.equal(scene.asked.length, length + 1, 'it is asked all the same');
  scene.down = false;
  scene.kids = ['two'];
  const unknown = scene.find('two');
  resolve();
  assert.equal(await unknown, 'found');
  assert.equal(await scene.find('one'), 400);
});

test('an invalid issuer document leaves the issuer without keys', async () => {
  const cases: Partial<Pick<Scene, 'document' | 'keySet' | 'status'>>[] = [
    { status: 500 },
    { status: 301 },
    { document: 'no json' },
    { document: 'null' },
    { document: { issuer: 'https://idp.test/tenant', jwks_uri: 'https://keys.test/set' } },
    { document: { issuer: URL } },
    { document: { issuer: URL, jwks_uri: 'http://keys.test/set' } },
    { document: { issuer: URL, jwks_uri: 'http://127.0.0.1/set' } },
    { document: { issuer: URL, jwks_uri: 'file:///etc/passwd' } },
    { keySet: [] },
    { keySet: { keys: {} } },
    { keySet: { keys: [] } },
    { keySet: { keys: [{ kty: 'oct', kid: 'one', k: 'c2VjcmV0' }, { ...point, kid: 'one', d: 'AAAA' }, null, 7] } },
  ];
  for (const said of cases) assert.equal(await Object.assign(new Scene(), said).find('one'), 503, JSON.stringify(said));
});

test("only an issuer's signature keys are used", async () => {
  const scene = new Scene();
  scene.keySet = {
    keys: [
      { kty: 'oct', kid: 'one', k: 'x' },
      { ...point, kid: 'one', use: 'enc' },
      { ...point, kid: 'two' },
    ],
  };
  assert.equal(await scene.find('one'), 400);
  assert.equal(await scene.find('two'), 'found');
});

test('unusable keys do not count towards the maximum', async () => {
  const scene = new Scene();
  const others = Array.from({ length: 200 }, (_, count) => ({ ...point, kid: `other-${count}`, use: 'enc' }));
  scene.keySet = { keys: [...others, { ...point, kid: 'one' }] };
  assert.equal(await scene.find('one'), 'found');
});

test('a kid that several keys have is refused with that reason', async () => {
  const scene = new Scene();
  scene.kids = ['one', 'one'];
  const policy = { issuer: URL, keys: null } as FederationPolicy;
  await assert.rejects(
    scene.issuers.keyFor(policy, { alg: 'ES256', kid: 'one' }),
    /names a kid that several keys have/,
  );
  await assert.rejects(scene.issuers.keyFor(policy, { alg: 'ES256' }), /names no kid/);
});
