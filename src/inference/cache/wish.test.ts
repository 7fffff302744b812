import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cacheWishOf } from './wish.ts';

test('only `true` enables the cache, under either name, the current one taking precedence', () => {
  assert.equal(cacheWishOf({}), undefined);
  assert.equal(cacheWishOf({ 'x-svc-cache': 'yes' }), undefined);
  assert.equal(cacheWishOf({ 'x-svc-cache': 'false', 'x-openrouter-cache': 'true' }), undefined);
  assert.deepEqual(cacheWishOf({ 'x-openrouter-cache': 'True' }), { ttlSeconds: 300, refresh: false });
  assert.deepEqual(cacheWishOf({ 'x-svc-cache': 'true', 'x-svc-cache-clear': 'true', 'x-svc-cache-ttl': ' 7.9' }), {
    ttlSeconds: 7,
    refresh: true,
  });
});

test('a time to live beyond any number is the longest allowed', () => {
  const ttlOf = (ttl: string) => cacheWishOf({ 'x-svc-cache': 'true', 'x-svc-cache-ttl': ttl })?.ttlSeconds;
  assert.equal(ttlOf('9'.repeat(400)), 86_400);
  assert.equal(ttlOf('0'), 1);
  assert.equal(ttlOf(''), 300);
});
