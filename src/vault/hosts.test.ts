/** Hosts of secrets: one form for each name, and nothing but exact names. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { samples } from '../testing/laws/samples.ts';
import { boundHosts } from './hosts.ts';

const LETTERS = [...'abcdefghijklmnopqrstuvwxyz0123456789'];
const label = fc
  .array(fc.constantFrom(...LETTERS), { minLength: 1, maxLength: 20 })
  .map((letters) => `a${letters.join('')}`);
const name = fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.'));

/** @param shown the index that the error names */
function refused(hosts: string[], shown = 0): void {
  assert.throws(() => boundHosts(hosts), { status: 400, details: { path: `hosts[${shown}]` } }, JSON.stringify(hosts));
}

test('a name is the same host in any case, with a trailing dot and in any number, and stays as it is when written again', () => {
  fc.assert(
    fc.property(name, fc.array(fc.boolean(), { minLength: 80, maxLength: 80 }), fc.boolean(), (host, upper, dot) => {
      const typed = [...host].map((letter, index) => (upper[index] ? letter.toUpperCase() : letter)).join('');
      const [entry, again] = [typed + (dot ? '.' : ''), host];
      assert.deepEqual(boundHosts([entry, again]), [host]);
      assert.deepEqual(boundHosts(boundHosts([entry])), [host]);
    }),
  );
});

test('an accepted host is always plain: what the proxy compares names with', () => {
  fc.assert(
    fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.webUrl(), fc.domain(), fc.ipV4(), fc.ipV6()), (entry) => {
      let hosts: string[];
      try {
        hosts = boundHosts([entry]);
      } catch {
        return;
      }
      assert.match(hosts[0]!, /^[a-z0-9-]+(?:\.[a-z0-9-]+)*$/);
      assert.equal(new URL(`https://${hosts[0]}/`).href, `https://${hosts[0]}/`);
    }),
    { numRuns: samples(2_000) },
  );
});

test('names in other scripts become A-labels, and their look-alikes other hosts', () => {
  assert.deepEqual(boundHosts(['bücher.test', 'XN--BCHER-KVA.test', 'BÜCHER.test.']), ['xn--bcher-kva.test']);
  assert.deepEqual(boundHosts(['ａpi.test', 'api。test']), ['api.test']);
  const [cyrillic] = boundHosts(['аpi.test']);
  assert.notEqual(cyrillic, 'api.test');
  assert.match(cyrillic!, /^xn--/);
});

test('whatever is not an exact DNS name is refused with the index of the entry', () => {
  const wrong = [
    ...['', '.', '..', 'a..b', '.a', 'a.test..', ' a.test', 'a.test ', 'a b', 'a\tb', 'a\0b', 'a\nb'],
    ...['https://a.test', '//a.test', 'a.test:443', 'a.test/', 'a.test/x', 'a.test?x', 'a.test#x', 'a\\b'],
    ...['*', '*.a.test', 'a.*', 'user@a.test', 'a%2etest', 'a_b.test', '-a.test', 'a-.test', 'a／b.test'],
    ...['127.0.0.1', '127.1', '0x7f.1', '2130706433', '017700000001', '[::1]', '::1', '１２７.1', 'a.test.1', '1'],
    ...[`${'a'.repeat(64)}.test`, `${'a.'.repeat(126)}ab`, 'a‍b.test', '\u{d800}.test'],
  ];
  for (const entry of wrong) {
    refused([entry]);
    refused(['good.test', entry], 1);
  }
  assert.deepEqual(boundHosts([`${'a.'.repeat(126)}a.`]), [`${'a.'.repeat(126)}a`]);
  assert.deepEqual(boundHosts([`${'a'.repeat(63)}.test`, 'localhost', 'a--b.test']).length, 3);
});
