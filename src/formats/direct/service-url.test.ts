import assert from 'node:assert/strict';
import { test } from 'node:test';
import { serviceUrl } from './service-url.ts';

const BASE = 'https://api.bfl.ai/v1';

test('URLs of the service’s own origin and domain are accepted', () => {
  for (const url of ['https://api.bfl.ai/v1/get_result?id=1', 'https://api.eu2.bfl.ai/v1/get_result?id=1']) {
    assert.equal(serviceUrl(url, BASE, 'bfl.ai'), url);
  }
  assert.equal(serviceUrl('http://127.0.0.1:9/x?y=1#z', 'http://127.0.0.1:9/v1', 'bfl.ai'), 'http://127.0.0.1:9/x?y=1');
});

for (const url of [
  '',
  '/get_result',
  'http://api.bfl.ai/x',
  'https://api.bfl.ai:8443/x',
  'https://bfl.ai.evil.example/x',
  'https://evilbfl.ai/x',
  'https://user@api.bfl.ai/x',
  'https://api.bfl.ai@evil.example/x',
  'http://127.0.0.1/x',
  'file:///etc/passwd',
  'data:text/plain,x',
]) {
  test(`${JSON.stringify(url)} never gets the credential`, () => {
    assert.equal(serviceUrl(url, BASE, 'bfl.ai'), undefined);
  });
}

test('a custom base URL trusts no other host', () => {
  assert.equal(serviceUrl('https://api.bfl.ai/x', 'https://proxy.internal/v1', 'bfl.ai'), undefined);
});
