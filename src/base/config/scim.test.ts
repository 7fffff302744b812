import assert from 'node:assert/strict';
import { test } from 'node:test';
import { inspect } from 'node:util';
import { ConfigError, loadConfig } from '../config.ts';

function read(yaml: string, env: Record<string, string> = {}) {
  const inputs = { env: { ...env, GATEHOUSE_CONFIG: 'a.yaml' }, cwd: '/', cores: 1, readFile: () => yaml };
  return loadConfig({ kinds: [], ...inputs }).scim;
}

test('no users and groups are pulled without a configured source', () => {
  assert.deepEqual(read('limits: {}'), { source: null });
  assert.deepEqual(read('scim: {}'), { source: null });
});

test('a source has an address and a token, which is never shown', () => {
  const yaml = `scim: { source: { base_url: "https://idp.test/scim/v2/", token: "\${TOKEN}" } }`;
  const { source } = read(yaml, { TOKEN: 'a-token-of-theirs' });
  assert.equal(source?.baseUrl, 'https://idp.test/scim/v2');
  assert.equal(source.token.reveal(), 'a-token-of-theirs');
  assert.doesNotMatch(inspect(source) + JSON.stringify(source), /theirs/);
});

test('a wrong value is named by its path', () => {
  for (const [source, message] of [
    ['{ base_url: "https://idp.test" }', /scim.source needs the member token/],
    ['{ token: t }', /scim.source needs the member base_url/],
    ['{ base_url: "ftp://idp.test", token: t }', /scim.source.base_url must be an http or https URL/],
    ['{ base_url: "https://u:p@idp.test", token: t }', /scim.source.base_url must not contain a credential/],
    ['{ base_url: "https://idp.test?x=1", token: t }', /scim.source.base_url must not have a query/],
    ['{ base_url: "https://idp.test", token: "two words" }', /scim.source.token must be a text without spaces/],
    ['{ base_url: "https://idp.test", token: t, secret: s }', /scim.source has no member secret/],
  ] as const) {
    assert.throws(
      () => read(`scim: { source: ${source} }`),
      (error) => error instanceof ConfigError && message.test(error.message),
      source,
    );
  }
});
