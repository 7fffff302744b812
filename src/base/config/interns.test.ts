import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, loadConfig } from '../config.ts';

function read(yaml: string) {
  const inputs = { env: { GATEHOUSE_CONFIG: 'a.yaml' }, cwd: '/', cores: 1, readFile: () => yaml };
  return loadConfig({ kinds: [], ...inputs }).interns;
}

test('interns run the agent that ships, or an installed one', () => {
  assert.deepEqual(read('limits: {}'), { agent: 'gatehouse', installed: [] });
  const mine = { name: 'mine', program: null, folder: '/srv/mine', command: ['bin/agent', '--acp'] };
  assert.deepEqual(
    read(`
interns:
  agent: coder
  agents:
    - { name: coder, program: opencode, folder: /srv/coder }
    - { name: mine, folder: /srv/mine, command: [bin/agent, --acp] }`),
    { agent: 'coder', installed: [{ name: 'coder', program: 'opencode', folder: '/srv/coder', command: [] }, mine] },
  );
});

test('a wrong value is named by its path', () => {
  const coder = '{ name: coder, program: opencode, folder: /srv/coder }';
  for (const [section, message] of [
    ['{ agent: other }', /interns has no agent other: gatehouse can be chosen/],
    [`{ agents: [${coder}, ${coder}] }`, /interns has two agents with the name coder/],
    [
      '{ agents: [{ name: gatehouse, program: qwen, folder: /srv }] }',
      /interns has two agents with the name gatehouse/,
    ],
    ['{ agents: [{ name: coder, program: opencode, folder: srv }] }', /interns\.agents\[0\]\.folder/],
    ['{ agents: [{ name: coder, folder: /srv }] }', /interns\.agents\[0\] must have a program/],
    ['{ agents: [{ name: coder, program: emacs, folder: /srv }] }', /interns\.agents\[0\]\.program/],
  ] as const) {
    assert.throws(
      () => read(`interns: ${section}`),
      (error) => error instanceof ConfigError && message.test(error.message),
      section,
    );
  }
});
