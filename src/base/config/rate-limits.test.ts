import assert from 'node:assert/strict';
import test from 'node:test';
import { ConfigError, loadConfig } from '../config.ts';

function load(rate_limits: unknown) {
  const readFile = () => JSON.stringify({ rate_limits });
  return loadConfig({ env: {}, cwd: '/', kinds: [], readFile }).rateLimits;
}

test('what a section of rate limits does not say is not limited', () => {
  assert.deepEqual(load(undefined), { key: {}, workspace: {} });
  const { key, workspace } = load({ key: { requests_per_minute: 60, tokens_per_day: 1_000_000_000_000 } });
  assert.equal(key.requests_per_minute, 60);
  assert.equal(key.tokens_per_day, 1_000_000_000_000);
  assert.equal(key.requests_per_day, undefined);
  assert.deepEqual(workspace, {});
});

test('a wrong rate limit is reported with its position', () => {
  const wrong: [unknown, RegExp][] = [
    [{ key: { requests_per_minute: 0 } }, /rate_limits\.key\.requests_per_minute/],
    [{ key: { requests_per_minute: 1.5 } }, /rate_limits\.key\.requests_per_minute/],
    [{ workspace: { tokens_per_hour: 'many' } }, /rate_limits\.workspace\.tokens_per_hour/],
    [{ key: { requests_per_minutes: 5 } }, /did you mean requests_per_minute\?/],
    [{ member: {} }, /rate_limits/],
  ];
  for (const [section, message] of wrong) {
    assert.throws(
      () => load(section),
      (error) => error instanceof ConfigError && message.test(error.message),
    );
  }
});
