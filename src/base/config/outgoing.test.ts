import assert from 'node:assert/strict';
import test from 'node:test';
import { ConfigError, loadConfig } from '../config.ts';

const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n';

function load(env: Record<string, string>) {
  const readFile = (path: string) => {
    if (path.endsWith('ca.pem')) return PEM;
    if (path.endsWith('text')) return 'hello';
    throw Object.assign(new Error(), { code: 'ENOENT' });
  };
  return loadConfig({ env, cwd: '/srv', kinds: [], readFile }).outgoing;
}

function problem(env: Record<string, string>): string {
  try {
    load(env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}

test('proxies are read in either case, and their passwords print nowhere', () => {
  const { proxy } = load({
    https_proxy: 'http://u:geheim@proxy:3128',
    HTTP_PROXY: 'proxy:80',
    NO_PROXY: 'a.b, .c 10.0.0.0/8,',
  });
  assert.equal(proxy.https!.reveal(), 'http://u:geheim@proxy:3128');
  assert.equal(proxy.http!.reveal(), 'http://proxy:80');
  assert.deepEqual(proxy.exceptions, ['a.b', '.c', '10.0.0.0/8']);
  assert.doesNotMatch(JSON.stringify(proxy), /geheim/);
  assert.deepEqual(load({}).proxy, { https: null, http: null, exceptions: [] });
});

test('an invalid proxy is reported without its value', () => {
  for (const value of ['socks5://geheim@p:1', 'http://', 'http://%zz@p']) {
    const told = problem({ HTTPS_PROXY: value });
    assert.match(told, /HTTPS_PROXY must be an http or https URL/);
    assert.doesNotMatch(told, /geheim/);
  }
});

test('further authorities are read from a file that holds some', () => {
  assert.equal(load({ GATEHOUSE_CA_FILE: 'ca.pem' }).extraCa, PEM);
  assert.equal(load({}).extraCa, null);
  assert.match(problem({ GATEHOUSE_CA_FILE: 'text' }), /GATEHOUSE_CA_FILE names a file without a PEM certificate/);
  assert.match(problem({ GATEHOUSE_CA_FILE: 'none' }), /GATEHOUSE_CA_FILE names a file that cannot be read/);
});

test('local servers are discovered unless disabled or the database is external', () => {
  assert.equal(load({}).discovery, true);
  assert.equal(load({ GATEHOUSE_DISCOVERY: 'on' }).discovery, true);
  assert.equal(load({ GATEHOUSE_DISCOVERY: 'off' }).discovery, false);
  assert.equal(load({ GATEHOUSE_DISCOVERY: 'on', DATABASE_URL: 'postgres://db/x' }).discovery, false);
  assert.match(problem({ GATEHOUSE_DISCOVERY: 'maybe' }), /GATEHOUSE_DISCOVERY must be on or off/);
});
