/** A configuration that is read again is in the audit log: what differs, without secrets, once for all processes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { type Config, loadConfig } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { KINDS } from '../../src/providers/index.ts';
import { recordReload } from '../../src/server/audit-reload.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const FIRST_SECRET = 'first-secret-of-the-provider-0123456789';
const SECOND_SECRET = 'second-secret-of-the-provider-0123456789';

function configOf(secret: string, yaml: object): Config {
  const provider = { id: 'acme', kind: 'openai', api_key: secret, base_url: 'https://acme.test/v1' };
  return loadConfig({
    kinds: KINDS,
    env: { GATEHOUSE_CONFIG: 'test.yaml' },
    cwd: '/',
    cores: 1,
    readFile: () => JSON.stringify({ providers: [provider], ...yaml }),
  });
}

test('what differs is entered once, however many processes read it, and a secret that was replaced by its hash', async (t) => {
  const gateway = await startGateway(t);
  const database = await openDatabase({ target: gateway.target, clock: systemClock, log: silentLog });
  t.after(() => database.close());
  const before = configOf(FIRST_SECRET, { account: { balance_usd: 1 } });
  const after = configOf(SECOND_SECRET, { account: { balance_usd: 2.5 } });
  const now = gateway.clock.now();
  await recordReload(database, before, before, now);
  await Promise.all([1, 2, 3, 4].map((process) => recordReload(database, before, after, now + process)));
  const { body } = await controlOf(gateway).call('GET', '/audit?action=configuration.reloaded');
  const [entry, ...more] = body.data as Json[];
  assert.deepEqual(more, []);
  assert.equal(entry.actor.type, 'gateway');
  assert.equal(entry.before.account.balance_usd, 1);
  assert.equal(entry.after.account.balance_usd, 2.5);
  assert.deepEqual(Object.keys(entry.after), ['account', 'providers']);
  assert.notEqual(entry.before.providers[0].credential_hashes[0], entry.after.providers[0].credential_hashes[0]);
  const text = JSON.stringify(entry);
  for (const secret of [FIRST_SECRET, SECOND_SECRET]) assert.ok(!text.includes(secret), secret);
  await recordReload(database, before, after, now + 60_000);
  assert.equal((await controlOf(gateway).call('GET', '/audit?action=configuration.reloaded')).body.data.length, 2);
});

test('a change of the sync source is logged, and a new token by its hash', async (t) => {
  const gateway = await startGateway(t);
  const database = await openDatabase({ target: gateway.target, clock: systemClock, log: silentLog });
  t.after(() => database.close());
  const asking = (token: string) => {
    return configOf(FIRST_SECRET, { scim: { source: { base_url: 'https://idp.test/scim/v2', token } } });
  };
  const now = gateway.clock.now();
  await recordReload(database, configOf(FIRST_SECRET, {}), asking(FIRST_SECRET), now);
  await recordReload(database, asking(FIRST_SECRET), asking(SECOND_SECRET), now + 1);
  const { body } = await controlOf(gateway).call('GET', '/audit?action=configuration.reloaded');
  const [changed, added, ...more] = body.data as Json[];
  assert.deepEqual(more, []);
  assert.equal(added.before.scim_source, null);
  assert.equal(added.after.scim_source.base_url, 'https://idp.test/scim/v2');
  assert.deepEqual(changed.before, { scim_source: added.after.scim_source });
  assert.notEqual(changed.after.scim_source.token_hash, changed.before.scim_source.token_hash);
  const text = JSON.stringify(body.data);
  for (const secret of [FIRST_SECRET, SECOND_SECRET]) assert.ok(!text.includes(secret), secret);
});

test('a running gateway that reloads enters it', async (t) => {
  const gateway = await startGateway(t, { providers: { one: {} } });
  gateway.app.reload(Object.freeze({ ...gateway.config, trustedProxies: ['10.0.0.0/8'] }));
  const control = controlOf(gateway);
  let entries: Json[] = [];
  while (entries.length === 0) {
    entries = (await control.call('GET', '/audit?action=configuration.reloaded')).body.data;
  }
  assert.deepEqual(entries[0].after, { trusted_proxies: ['10.0.0.0/8'] });
});

test('whose JWTs are exchanged, and for which key, is entered', async (t) => {
  const gateway = await startGateway(t);
  const database = await openDatabase({ target: gateway.target, clock: systemClock, log: silentLog });
  t.after(() => database.close());
  const trusting = (sub: string) => {
    const policy = {
      id: 'ci',
      issuer: 'https://idp.test',
      audience: 'gatehouse',
      claims: { sub },
      key: 'ab'.repeat(32),
    };
    return configOf(FIRST_SECRET, { federation: [policy] });
  };
  await recordReload(database, trusting('repo:acme/app:*'), trusting('repo:acme/*'), gateway.clock.now());
  const { body } = await controlOf(gateway).call('GET', '/audit?action=configuration.reloaded');
  assert.deepEqual(Object.keys(body.data[0].after), ['federation']);
  assert.deepEqual(body.data[0].after.federation, [
    {
      id: 'ci',
      issuer: 'https://idp.test',
      audience: ['gatehouse'],
      jwks_uri: null,
      claims: [{ name: 'sub', patterns: ['repo:acme/*'] }],
      key_hash: 'ab'.repeat(32),
      lifetime_ms: 900_000,
    },
  ]);
});
