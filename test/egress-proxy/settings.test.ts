/** The section `egress_proxy`: what it accepts, the proxy understands. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { ConfigError, loadConfig } from '../../src/base/config.ts';
import { AllowList } from '../../src/egress-proxy/destination.ts';

function read(section: unknown) {
  const inputs = { env: { GATEHOUSE_CONFIG: 'a.yaml' }, cwd: '/', cores: 1 };
  const readFile = () => JSON.stringify({ egress_proxy: section });
  return loadConfig({ kinds: [], ...inputs, readFile }).egressProxy;
}

test('without a section sandboxes may reach every name on the ports 443 and 80', () => {
  assert.deepEqual(read({}), { domains: ['*'], ports: [443, 80], user: null });
  const section = { domains: ['API.Example.com', '*.b.test', '::1'], ports: [8443], user: 30_000 };
  assert.deepEqual(read(section), { ...section, domains: ['api.example.com', '*.b.test', '::1'] });
});

test('a wrong value is named by its path', () => {
  for (const [section, message] of [
    [{ domains: ['ok.test', 'https://a.test'] }, /egress_proxy.domains\[1\] must be a domain/],
    [{ domains: ['a.test:443'] }, /egress_proxy.domains\[0\] must be a domain/],
    [{ domains: ['a.test', 'A.test'] }, /egress_proxy.domains\[1\] occurs twice/],
    [{ domains: ['a.test/x'] }, /egress_proxy.domains\[0\] must be a domain/],
    [{ domains: ['2130706433'] }, /egress_proxy.domains\[0\] must be a domain/],
    [{ domains: ['*'.repeat(3)] }, /egress_proxy.domains\[0\] must be a domain/],
    [{ ports: [] }, /egress_proxy.ports must not be empty/],
    [{ ports: [0] }, /egress_proxy.ports\[0\] must be an integer from 1 to 65535/],
    [{ user: 0 }, /egress_proxy.user must be/],
    [{ hosts: [] }, /egress_proxy has no member hosts/],
  ] as const) {
    assert.throws(
      () => read(section),
      (error) => error instanceof ConfigError && message.test(error.message),
      JSON.stringify(section),
    );
  }
});

test('every accepted domain is one that the proxy can compare', () => {
  const label = fc.oneof(
    fc.constantFrom('a', 'xn--a', '0x7f', '1', '*', 'a*', '-', '_', 'ü', ''),
    fc.string({ maxLength: 4 }),
  );
  const domain = fc.oneof(
    fc.array(label, { minLength: 1, maxLength: 4 }).map((labels) => labels.join('.')),
    fc.ipV4(),
    fc.ipV6(),
  );
  fc.assert(
    fc.property(domain, (text) => {
      let domains: readonly string[];
      try {
        ({ domains } = read({ domains: [text] }));
      } catch (error) {
        assert.ok(error instanceof ConfigError);
        return;
      }
      assert.ok(new AllowList(domains, [443]));
    }),
  );
});
