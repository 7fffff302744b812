import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cacheOptionsOf } from './options.ts';

test('only `true` enables the cache, under either name, the current one taking precedence', () => {
  assert.equal(cacheOptionsOf({}), undefined);
  assert.equal(cacheOptionsOf({ 'x-svc-cache': 'yes' }), undefined);
  assert.equal(cacheOptionsOf({ 'x-svc-cache': 'false', 'x-openrouter-cache': 'true' }), undefined);
  assert.deepEqual(cacheOptionsOf({ 'x-openrouter-cache': 'True' }), { ttlSeconds: 300, refresh: false });
  assert.deepEqual(cacheOptionsOf({ 'x-svc-cache': 'true', 'x-svc-cache-clear': 'true', 'x-svc-cache-ttl': ' 7.9' }), {
    ttlSeconds: 7,
    refresh: true,
  });
});

test('a time to live beyond any number is the longest allowed', () => {
  const ttlOf = (ttl: string) => cacheOptionsOf({ 'x-svc-cache': 'true', 'x-svc-cache-ttl': ttl })?.ttlSeconds;
  assert.equal(ttlOf('9'.repeat(400)), 86_400);
  assert.equal(ttlOf('0'), 1);
  assert.equal(ttlOf(''), 300);
});
