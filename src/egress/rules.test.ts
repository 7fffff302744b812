import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DEFAULT_EGRESS } from '../base/config.ts';
import { EgressError } from './fault.ts';
import { EgressRules } from './rules.ts';

const rules = new EgressRules(DEFAULT_EGRESS);

const PRIVATE = [
  ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '10.255.255.255', '100.64.0.1', '100.127.255.255', '127.0.0.1', '127.255.0.1'],
  ...['169.254.169.254', '172.16.0.1', '172.31.255.255', '192.0.0.1', '192.0.2.1', '192.88.99.1', '192.168.0.1'],
  ...['198.18.0.1', '198.19.255.255', '198.51.100.1', '203.0.113.1', '224.0.0.1', '239.1.1.1', '240.0.0.1'],
  ...['255.255.255.255', '::', '::1', '::7f00:1', '::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:a00:1'],
  ...['::ffff:0:127.0.0.1', '64:ff9b::7f00:1', '64:ff9b::a9fe:a9fe', '64:ff9b:1::7f00:1', '2002:7f00:1::'],
  ...['2002:a9fe:a9fe::1', '2001::1', '2001:db8::1', '2001:2::1', '2001:10::1', '2001:20::1', '3fff::1', 'fc00::1'],
  ...['fd12:3456::1', 'fe80::1', 'fec0::1', 'ff02::1', '100::1', '5f00::1', '4000::1', 'localhost', '', '1.2.3'],
];
const PUBLIC = [
  '1.1.1.1',
  '93.184.216.34',
  '100.63.255.255',
  '100.128.0.1',
  '172.32.0.1',
  '2606:4700::1111',
  '2a00::1',
];

for (const address of PRIVATE) {
  test(`the address ${address || '(empty)'} is not fetched`, () => {
    assert.equal(rules.allows(address), false);
  });
}

test('public addresses are fetched', () => {
  assert.deepEqual(
    PUBLIC.filter((address) => !rules.allows(address)),
    [],
  );
});

test('a network that the operator allows is fetched, and no other private address', () => {
  const wider = new EgressRules({ ...DEFAULT_EGRESS, networks: ['10.1.0.0/16', '192.168.7.7', 'fd00:1::/32'] });
  for (const address of ['10.1.2.3', '::ffff:10.1.2.3', '192.168.7.7', 'fd00:1::9']) assert.ok(wider.allows(address));
  for (const address of ['10.2.0.1', '192.168.7.8', 'fd00:2::1', '::1', '127.0.0.1']) {
    assert.ok(!wider.allows(address), address);
  }
});

const BAD_URLS: [string, RegExp][] = [
  ['', /not a URL/],
  ['//no.scheme/x', /not a URL/],
  ['file:///etc/passwd', /http or https/],
  ['gopher://public.test:70/x', /http or https/],
  ['ftp://public.test/x', /http or https/],
  ['data:image/png;base64,AAAA', /http or https/],
  ['http://user:secret@public.test/', /user name/],
  ['http://public.test:22/', /port 22/],
  ['http://public.test:8080/', /port 8080/],
  ['https://public.test:6379/', /port 6379/],
];

for (const [url, problem] of BAD_URLS) {
  test(`the URL ${JSON.stringify(url)} is refused before any name is resolved`, () => {
    assert.throws(
      () => rules.url(url),
      (error) => error instanceof EgressError && error.fault === 'url' && problem.test(error.message),
    );
  });
}

test('both schemes may use ports 80 and 443, and the operator can allow other ports', () => {
  assert.equal(rules.url('http://public.test:443/x').port, '443');
  const wider = new EgressRules({ ...DEFAULT_EGRESS, ports: [{ from: 8000, to: 8100 }] });
  assert.equal(wider.url('http://public.test:8080/').port, '8080');
  assert.throws(() => wider.url('http://public.test/'), /port 80/);
});
