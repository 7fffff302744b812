import assert from 'node:assert/strict';
import test from 'node:test';
import { ConfigError, loadConfig } from '../config.ts';

const kinds = [{ id: 'chat', name: 'Chat', speaks: 'chat' }];

function load(headers: unknown) {
  const providers = [{ id: 'a', kind: 'chat', base_url: 'http://a.test', models: [{ id: 'x/y' }], headers }];
  return loadConfig({ env: {}, cwd: '/', kinds, readFile: () => JSON.stringify({ providers }) }).providers[0]!.headers;
}

function problem(headers: unknown): string {
  try {
    load(headers);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}

test('headers are read in lower case, and their values print nowhere', () => {
  const headers = load({ 'OpenAI-Organization': 'org-1', 'x-tag': 'a b' })!;
  assert.deepEqual(
    Object.entries(headers).map(([name, value]) => [name, value.reveal()]),
    [
      ['openai-organization', 'org-1'],
      ['x-tag', 'a b'],
    ],
  );
  assert.doesNotMatch(JSON.stringify(headers), /org-1/);
  assert.equal(load(undefined), undefined);
});

test('a header of the call itself, a name that none can have and a value that breaks out are refused by their path', () => {
  for (const name of ['Authorization', 'host', 'Content-Length', 'x-api-key', 'proxy-authorization']) {
    assert.match(problem({ [name]: 'v' }), new RegExp(`headers\\.${name} cannot be set`), name);
  }
  assert.match(problem({ 'a b': 'v' }), /must be a valid header name/);
  assert.match(problem({ 'x-a': 'v\r\nhost: evil' }), /headers\.x-a must be a text that a header can carry/);
  assert.match(problem(['x']), /headers must be a mapping/);
  assert.match(
    problem(Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`x-${i}`, 'v']))),
    /32 members at most/,
  );
});
