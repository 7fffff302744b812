import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ConfigError, loadConfig } from '../config.ts';

function read(yaml: string, env: Record<string, string> = {}) {
  const inputs = { env: { ...env, GATEHOUSE_CONFIG: 'a.yaml' }, cwd: '/', cores: 1, readFile: () => yaml };
  return loadConfig({ kinds: [], ...inputs }).ioLogging;
}

test('nothing is logged unless it is switched on', () => {
  const defaults = { enabled: false, sampleRate: 1, retentionDays: 30, maxBytes: 1024 * 1024 };
  assert.deepEqual(read('limits: {}'), defaults);
  assert.deepEqual(read('io_logging: { sample_rate: 0.25 }'), { ...defaults, sampleRate: 0.25 });
  assert.deepEqual(
    read(`io_logging: { enabled: true, sample_rate: "\${RATE}", retention_days: 7, max_bytes: 2048 }`, { RATE: '0.5' }),
    {
      enabled: true,
      sampleRate: 0.5,
      retentionDays: 7,
      maxBytes: 2048,
    },
  );
});

test('a wrong value is named by its path', () => {
  for (const [member, message] of [
    ['sample_rate: 0', /io_logging.sample_rate must be a number from 0.0001 to 1/],
    ['sample_rate: 1.5', /io_logging.sample_rate/],
    ['sample_rate: "all"', /io_logging.sample_rate/],
    ['enabled: "yes"', /io_logging.enabled must be true or false/],
    ['retention_days: 0', /io_logging.retention_days/],
    ['max_bytes: 1', /io_logging.max_bytes/],
    ['retention: 3', /io_logging has no member retention/],
  ] as const) {
    assert.throws(
      () => read(`io_logging: { ${member} }`),
      (error) => error instanceof ConfigError && message.test(error.message),
      member,
    );
  }
});
