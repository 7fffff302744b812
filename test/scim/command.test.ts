/** `gatehouse scim`, run as a process next to a gateway that serves. */
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { test } from 'node:test';
import { runCommand } from '../../src/testing/process/command.ts';
import { type GatewayHome, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';

async function gatehouse(home: GatewayHome, ...args: string[]) {
  const { code, out, err } = await runCommand(home, ['scim', ...args]);
  return { code, out: out.trim(), err };
}

test('an operator makes, lists and revokes SCIM tokens while the gateway runs, and they are shown once', async (t) => {
  const { home, url } = await startGatewayProcess(t);
  const status = async (token: string) =>
    (await fetch(`${url}/scim/v2/Users`, { headers: { authorization: `Bearer ${token}` } })).status;
  const printed = await gatehouse(home, 'token', 'create', '--name', 'Entra', '--print');
  assert.deepEqual([printed.code, printed.err], [0, '']);
  assert.match(printed.out, /^sk-svc-scim-v1-[0-9a-f]{64}$/);
  assert.equal(await status(printed.out), 200);
  const written = await gatehouse(home, 'token', 'create');
  const file = /^scim token written to (.+)$/.exec(written.out)?.[1];
  assert.ok(file, written.out);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  assert.equal(await status(readFileSync(file, 'utf8').trim()), 200);
  const { out: list } = await gatehouse(home, 'token', 'list');
  assert.equal(list.split('\n').length, 2, 'keys of other kinds are not in it');
  assert.doesNotMatch(list, new RegExp(printed.out.slice(20)));
  const hash = /^(\S+) .*Entra$/m.exec(list)?.[1] ?? '';
  assert.match((await gatehouse(home, 'token', 'revoke', hash)).out, /^revoked the scim token .*Entra/);
  assert.equal(await status(printed.out), 401);
});
