import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TrustedProxies } from './forwarded.ts';

const proxies = new TrustedProxies(['10.0.0.0/8', '192.0.2.7', '2001:db8::/32']);

const clients: [what: string, peer: string, forwarded: string | undefined, client: string][] = [
  ['headers of an untrusted peer have no effect', '198.51.100.1', '203.0.113.9', '198.51.100.1'],
  ['a trusted proxy names the client', '10.1.2.3', '203.0.113.9', '203.0.113.9'],
  ['a network ends at its prefix length', '11.0.0.1', '203.0.113.9', '11.0.0.1'],
  ['values before the first untrusted address are ignored', '10.1.2.3', '1.1.1.1, 203.0.113.9', '203.0.113.9'],
  ['a chain of trusted proxies is followed', '10.1.2.3', '203.0.113.9, 192.0.2.7, 10.9.9.9', '203.0.113.9'],
  ['a chain of trusted proxies only: the farthest', '10.1.2.3', '10.0.0.1, 10.0.0.2', '10.0.0.1'],
  ['a mapped IPv6 address counts as its IPv4 address', '::ffff:10.1.2.3', '203.0.113.9', '203.0.113.9'],
  ['IPv6 with a port', '2001:db8::1', '[2001:4860::8]:443', '2001:4860::8'],
  ['IPv4 with a port', '10.1.2.3', '203.0.113.9:5000', '203.0.113.9'],
  ['a value that is not an address ends the chain', '10.1.2.3', '203.0.113.9, unknown', '10.1.2.3'],
  ['no header', '10.1.2.3', undefined, '10.1.2.3'],
];
for (const [what, peer, forwarded, client] of clients) {
  test(`client address: ${what}`, () => {
    const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
    assert.equal(proxies.clientAddress(peer, headers), client);
  });
}

test('host and protocol come from the trusted proxy, the last value if there are several', () => {
  const headers = { host: 'inner', 'x-forwarded-host': 'forged.test, outer.test', 'x-forwarded-proto': 'HTTPS' };
  assert.equal(proxies.host('10.0.0.1', headers), 'outer.test');
  assert.equal(proxies.protocol('10.0.0.1', headers, false), 'https');
  assert.equal(proxies.host('198.51.100.1', headers), 'inner');
  assert.equal(proxies.protocol('198.51.100.1', headers, false), 'http');
  assert.equal(proxies.host(undefined, headers), 'inner');
});

test('the prefix comes from the trusted proxy, and only a plain path counts', () => {
  const of = (prefix: string, peer = '10.0.0.1') => proxies.prefix(peer, { 'x-forwarded-prefix': prefix });
  assert.equal(of('/forged, /llm/v2/'), '/llm/v2');
  assert.equal(of('/llm', '198.51.100.1'), '');
  assert.equal(proxies.prefix('10.0.0.1', {}), '');
  for (const wrong of ['/', 'llm', '//other.test', '/a?b', '/a"b', '/a/%2e', `/${'a'.repeat(255)}`]) {
    assert.equal(of(wrong), '', wrong);
  }
});

test('an unknown protocol and empty headers have no effect', () => {
  const headers = { host: 'inner', 'x-forwarded-host': ' , ', 'x-forwarded-proto': 'javascript' };
  assert.equal(proxies.host('10.0.0.1', headers), 'inner');
  assert.equal(proxies.protocol('10.0.0.1', headers, true), 'https');
});

test('without a list no proxy is trusted', () => {
  const none = new TrustedProxies([]);
  assert.equal(none.clientAddress('127.0.0.1', { 'x-forwarded-for': '203.0.113.9' }), '127.0.0.1');
  assert.equal(none.trusts('127.0.0.1'), false);
});

test('an endless chain of proxies is followed up to a limit', () => {
  const headers = { 'x-forwarded-for': Array.from({ length: 10_000 }, () => '10.0.0.9').join(',') };
  assert.equal(proxies.clientAddress('10.0.0.1', headers), '10.0.0.9');
});
