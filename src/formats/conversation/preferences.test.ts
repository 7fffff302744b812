import assert from 'node:assert/strict';
import { test } from 'node:test';
import Value from 'typebox/value';
import { GatewayError } from '../../base/errors.ts';
import { chat, messages, responses } from '../index.ts';
import { checkPreferences, PreferencesSchema, readPreferences } from './preferences.ts';

/** The path of the error, '' when the preferences are accepted. */
function refused(provider: unknown): string {
  if (!Value.Check(PreferencesSchema, provider)) return 'schema';
  try {
    checkPreferences(provider);
    return '';
  } catch (error) {
    assert.ok(error instanceof GatewayError && error.status === 400);
    return error.details.path ?? '?';
  }
}

const CASES: [unknown, string][] = [
  [{ sort: 'price' }, ''],
  [{ sort: 'exacto' }, ''],
  [{ sort: 'cheapest' }, 'provider.sort'],
  [{ sort: { by: 'latency', partition: 'none' } }, ''],
  [{ sort: { by: null, partition: null } }, ''],
  [{ sort: { by: 'speed' } }, 'provider.sort.by'],
  [{ sort: { partition: 'all' } }, 'provider.sort.partition'],
  [{ sort: 3 }, 'schema'],
  [{ max_price: { prompt: '0.5', completion: 2, request: '0', image: 0.01, audio: '1e-6' } }, ''],
  [{ max_price: { prompt: '-1' } }, 'provider.max_price.prompt'],
  [{ max_price: { completion: 'cheap' } }, 'provider.max_price.completion'],
  [{ max_price: { image: true } }, 'provider.max_price.image'],
  [{ max_price: { tokens: 1 } }, 'provider.max_price'],
  [{ max_price: null }, ''],
  [{ quantizations: ['fp8', 'unknown'] }, ''],
  [{ quantizations: ['fp7'] }, 'schema'],
  [{ data_collection: 'deny' }, ''],
  [{ data_collection: 'never' }, 'schema'],
  [{ preferred_max_latency: 1.5 }, ''],
  [{ preferred_max_latency: { p50: 1, p99: null } }, ''],
  [{ preferred_max_latency: { p95: 1 } }, 'provider.preferred_max_latency'],
  [{ preferred_min_throughput: -1 }, 'provider.preferred_min_throughput'],
  [{ preferred_min_throughput: { p90: 'fast' } }, 'provider.preferred_min_throughput.p90'],
  [{ zdr: true, require_parameters: true, allow_fallbacks: null }, ''],
  [{ zdr: 'yes' }, 'schema'],
  [{ enforce_distillable_text: true }, 'provider.enforce_distillable_text'],
  [{ enforce_distillable_text: false }, ''],
  [{ a_later_member: 1 }, ''],
];

test('each preference is validated, and a wrong one is rejected with its path', () => {
  for (const [provider, path] of CASES) assert.equal(refused(provider), path, JSON.stringify(provider));
});

test('every served format accepts the same preferences', () => {
  for (const { schema } of [chat, messages, responses]) {
    const body = { model: 'a/b', input: 'x', messages: [{ role: 'user', content: 'x' }], max_tokens: 5 };
    for (const [provider, path] of CASES) {
      assert.equal(Value.Check(schema, { ...body, provider }), path !== 'schema', JSON.stringify(provider));
    }
  }
});

test('the deprecated `route` sets the partition unless `sort` does', () => {
  assert.deepEqual(readPreferences({ zdr: true }, undefined), { zdr: true });
  assert.deepEqual(readPreferences(undefined, 'sort'), { sort: { partition: 'none' } });
  assert.deepEqual(readPreferences({ sort: 'price' }, 'sort'), { sort: { partition: 'none', by: 'price' } });
  assert.deepEqual(readPreferences({ sort: { by: 'price', partition: 'model' } }, 'sort'), {
    sort: { partition: 'model', by: 'price' },
  });
  assert.deepEqual(readPreferences(null, 'fallback'), { sort: { partition: 'model' } });
});
