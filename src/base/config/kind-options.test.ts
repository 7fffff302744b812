import assert from 'node:assert/strict';
import test from 'node:test';
import { type Config, ConfigError, type KindFacts, loadConfig, variableTable } from '../config.ts';

const kind: KindFacts = {
  id: 'cloud',
  name: 'Cloud',
  speaks: 'chat',
  author: 'acme',
  alsoEnvironment: ['CLOUD_TOKEN', 'CLOUD_OLD_TOKEN'],
  baseUrl: ({ region }) => `https://${region}.cloud.test`,
  options: {
    project: {
      environment: ['CLOUD_PROJECT', 'OTHER_PROJECT'],
      required: true,
      pattern: /^[a-z-]+$/,
      expectation: 'letters and dashes',
      meaning: 'project',
    },
    region: {
      environment: ['CLOUD_REGION'],
      fallback: 'global',
      pattern: /^[a-z]+$/,
      expectation: 'letters',
      meaning: 'region',
    },
    key_file: {
      environment: ['CLOUD_KEY_FILE'],
      credential: true,
      pattern: /./,
      expectation: 'a path',
      meaning: 'key file',
    },
  },
};
const document: KindFacts = { id: 'paper', name: 'Paper', speaks: 'chat', author: 'acme', baseUrl: 'https://p.test' };
const kinds = [kind, { ...document, credentialDocument: true }];

function load(yaml: unknown, env: Record<string, string> = {}): Config {
  return loadConfig({ env, cwd: '/srv', kinds, readFile: () => JSON.stringify(yaml) });
}

function problems(yaml: unknown, env: Record<string, string> = {}): string {
  try {
    load(yaml, env);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  return '';
}

test('a kind has members of its own in the yaml; the environment gives what is left out, then the fallback', () => {
  const provider = { id: 'c', kind: 'cloud', api_key: 'k' };
  const given = load({ providers: [{ ...provider, project: 'mine', region: 'north' }] }, { CLOUD_PROJECT: 'not-this' });
  assert.deepEqual(given.providers[0]?.options, { project: 'mine', region: 'north' });
  const found = load({ providers: [provider] }, { OTHER_PROJECT: 'theirs' });
  assert.deepEqual(found.providers[0]?.options, { project: 'theirs', region: 'global' });
});

test('a missing, wrong or foreign member is reported by its name', () => {
  const provider = { id: 'c', kind: 'cloud', api_key: 'k' };
  assert.match(problems({ providers: [provider] }), /CLOUD_PROJECT.*is not set, and the provider c needs project/);
  assert.match(problems({ providers: [{ ...provider, project: 'UP' }] }), /project.*must be letters and dashes/);
  assert.match(problems({ providers: [provider] }, { CLOUD_PROJECT: '../x' }), /CLOUD_PROJECT.*must be letters/);
  assert.match(problems({ providers: [{ id: 'p', kind: 'paper', project: 'x' }] }), /has no member project/);
});

test('what leads to a credential switches its kind on, and follows neither a base_url nor an api_key', () => {
  const env = { CLOUD_KEY_FILE: '/run/key.json', CLOUD_PROJECT: 'p' };
  const [on] = load({}, env).providers;
  assert.deepEqual(on?.options, { key_file: '/run/key.json', project: 'p', region: 'global' });
  assert.equal(load({}, { CLOUD_KEY_FILE: '/run/key.json' }).providers.length, 0, 'without a project it stays off');
  for (const own of [{ base_url: 'https://elsewhere.test' }, { api_key: 'k' }]) {
    const [listed] = load({ providers: [{ id: 'c', kind: 'cloud', ...own }] }, env).providers;
    assert.equal(listed?.options['key_file'], undefined);
  }
  const [listed, ...more] = load({ providers: [{ id: 'c', kind: 'cloud', region: 'north' }] }, env).providers;
  assert.deepEqual([listed?.options['key_file'], more.length], ['/run/key.json', 0]);
});

test('the first variable of a credential that is set counts', () => {
  const env = { CLOUD_OLD_TOKEN: 'old', CLOUD_PROJECT: 'p' };
  assert.equal(load({}, env).providers[0]?.credentials[0]?.reveal(), 'old');
  assert.equal(load({}, { ...env, CLOUD_TOKEN: 'new' }).providers[0]?.credentials[0]?.reveal(), 'new');
});

test('a document may be a credential where the kind takes one, and nothing else may', () => {
  const key = JSON.stringify({ private_key: 'line\nline', sp: 'a b' }, null, 2);
  const [paper] = load({ providers: [{ id: 'p', kind: 'paper', api_key: [key] }] }).providers;
  assert.equal(paper?.credentials[0]?.reveal(), key);
  const wrong = problems({ providers: [{ id: 'p', kind: 'paper', api_key: 'sk-canary' }] });
  assert.match(wrong, /must be the content of a JSON key file/);
  assert.ok(!wrong.includes('canary'));
  assert.match(problems({ providers: [{ id: 'c', kind: 'cloud', project: 'p', api_key: key }] }), /api_key.*must be/);
});

test('the table of variables has those of the options and every variable of a credential', () => {
  const rows = variableTable(kinds).providers.join('\n');
  for (const name of ['CLOUD_TOKEN', 'CLOUD_OLD_TOKEN', 'CLOUD_PROJECT', 'OTHER_PROJECT', 'CLOUD_REGION']) {
    assert.ok(rows.includes(`\`${name}\``), name);
  }
  assert.ok(rows.includes('| `CLOUD_REGION` | `global` |'));
});
