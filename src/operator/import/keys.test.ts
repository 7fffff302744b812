import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readKeys } from './keys.ts';

const TOKEN = 'sk-abcdefghijklmnopqrstuvwx';
const read = (record: object) =>
  readKeys(JSON.stringify([{ token: TOKEN, ...record }]), { now: 0, idOf: () => undefined });

test('a key whose restriction cannot be read is not imported without it', () => {
  const refused: [object, string][] = [
    [{ models: 'gpt-4o' }, 'models'],
    [{ models: [5] }, 'models'],
    [{ max_budget: 'ten' }, 'max_budget'],
    [{ max_budget: -1 }, 'max_budget'],
    [{ litellm_budget_table: { max_budget: [] } }, 'max_budget'],
    [{ rpm_limit: 0 }, 'rpm_limit'],
    [{ tpm_limit: 1.5 }, 'tpm_limit'],
    [{ expires: {} }, 'expires'],
    [{ blocked: 'true' }, 'blocked'],
  ];
  for (const [record, member] of refused) {
    const { keys, findings } = read(record);
    assert.deepEqual(keys, [], JSON.stringify(record));
    assert.deepEqual(
      findings.sorted().missing.map(({ path }) => path),
      [`[0].${member}`],
    );
  }
});

test('a key without restrictions is imported without any', () => {
  const { keys, findings } = read({ models: null, max_budget: null, rpm_limit: null, expires: null, blocked: false });
  assert.deepEqual(findings.sorted().missing, []);
  const [{ models, budget, rateLimits, expiresAt } = assert.fail('no key')] = keys;
  assert.deepEqual([models, budget, rateLimits, expiresAt], [undefined, undefined, {}, undefined]);
});
