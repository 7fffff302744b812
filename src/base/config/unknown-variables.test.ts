import assert from 'node:assert/strict';
import { test } from 'node:test';
import { unknownVariables, variableFor } from './unknown-variables.ts';

const KINDS = [{ id: 'acme', name: 'Acme', environment: 'ACMEWORKS_API_KEY' }];

function meantBy(...names: string[]): Record<string, string | null> {
  return Object.fromEntries(unknownVariables(names, KINDS).map(({ name, suggested }) => [name, suggested]));
}

test('a misspelled variable of ours is reported with the nearest setting, or without one', () => {
  assert.deepEqual(meantBy('GATEHOUSE_DATADIR', 'GATEHOUS_PORT', 'GATEHOUSE_LOGLEVEL', 'GATEHOUSE_FROBNICATE'), {
    GATEHOUSE_DATADIR: 'GATEHOUSE_DATA_DIR',
    GATEHOUS_PORT: 'GATEHOUSE_PORT',
    GATEHOUSE_LOGLEVEL: 'GATEHOUSE_LOG_LEVEL',
    GATEHOUSE_FROBNICATE: null,
  });
});

test('known variables, those of Kubernetes and those of other programs are not reported', () => {
  const others = ['PATH', 'GITHUB_TOKEN', 'GATEHOUSE_SERVICE_HOST', 'GATEHOUSE_PORT_8484_TCP_ADDR', 'GATE_KEY'];
  assert.deepEqual(meantBy(...others, 'GATEHOUSE_PORT', 'ACMEWORKS_API_KEY_FILE'), {});
});

test('a misspelled credential is reported unless the right one is set as well', () => {
  assert.deepEqual(meantBy('ACMEWORKS_APIKEY'), { ACMEWORKS_APIKEY: 'ACMEWORKS_API_KEY' });
  assert.deepEqual(meantBy('ACMEWORKS_APIKEY', 'ACMEWORKS_API_KEY'), {});
});

test('a member of the yaml file that is a variable is called by its name', () => {
  assert.equal(variableFor('log_level'), 'the environment variable GATEHOUSE_LOG_LEVEL');
  assert.equal(variableFor('models'), undefined);
});
