/** Federation on a gateway of several processes: reloads, its keys, and the operator's commands while it runs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeProtectedHeader } from 'jose';
import { embeddedTarget, wholeDatabase } from '../../../src/testing/database/rows.ts';
import { runCommand } from '../../../src/testing/process/command.ts';
import { type GatewayProcess, startGatewayProcess } from '../../../src/testing/process/gateway-process.ts';
import { accessToken, claimsAt, exchange, type Issuer, sign, startIssuer } from './issuer.ts';

const env = { GATEHOUSE_WORKERS: '2' };
const ASKS = 6;
const CHAT = { model: 'simulated/echo', messages: [{ role: 'user', content: 'hi' }], max_tokens: 16 };

const subjectToken = (issuer: Issuer) => sign(issuer.keys[0]!, claimsAt(Date.now(), issuer.url));

/** Over connections of their own, which the workers get in turn. */
async function statuses({ api }: GatewayProcess, token: string): Promise<number[]> {
  const seen = new Set<number>();
  for (let count = 0; count < ASKS; count++) {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', connection: 'close' };
    const answer = await fetch(`${api}/chat/completions`, { method: 'POST', headers, body: JSON.stringify(CHAT) });
    await answer.arrayBuffer();
    seen.add(answer.status);
  }
  return [...seen];
}

test('a policy that is taken away ends exchanges, and its tokens live to their end or until the operator ends them', async (t) => {
  const issuer = await startIssuer(t);
  await issuer.add('first');
  const yaml = { egress: issuer.egress, federation: [issuer.policy()] };
  const gateway = await startGatewayProcess(t, { yaml, env });
  const { home } = gateway;
  const command = async (...args: string[]) => {
    const outcome = await runCommand(home, args);
    assert.equal(outcome.code, 0, outcome.err);
    return outcome.out;
  };
  const token = await accessToken(gateway, await subjectToken(issuer));
  const { kid } = decodeProtectedHeader(token);
  assert.deepEqual(await statuses(gateway, token), [200]);

  assert.match(await command('federation', 'rotate-key'), /^access tokens are signed with the key [\w-]{43}\n$/);
  const second = await accessToken(gateway, await subjectToken(issuer));
  assert.notEqual(decodeProtectedHeader(second).kid, kid);
  for (const each of [token, second]) assert.deepEqual(await statuses(gateway, each), [200]);

  assert.match(await command('sealing', 'rotate-data-keys'), /federation: key 2\n/);
  const rows = await wholeDatabase(embeddedTarget(home));
  assert.ok(rows.includes(String(kid)));
  for (const text of ['"kty":"EC"', Buffer.from('"kty":"EC"').toString('hex')]) {
    assert.ok(!rows.includes(text), 'no private key stands in the database');
  }

  gateway.writeYaml({ ...yaml, federation: [] });
  gateway.signal('SIGHUP');
  await gateway.logged('configuration reloaded', 2);
  for (let count = 0; count < ASKS; count++) {
    const { status, body } = await exchange(gateway, await subjectToken(issuer));
    assert.deepEqual([status, body.error], [400, 'invalid_grant']);
  }
  for (const each of [token, second]) assert.deepEqual(await statuses(gateway, each), [200]);

  assert.match(await command('federation', 'rotate-key', '--end-tokens'), /older tokens are invalid now/);
  for (const each of [token, second]) assert.deepEqual(await statuses(gateway, each), [401]);

  gateway.writeYaml(yaml);
  gateway.signal('SIGHUP');
  await gateway.logged('configuration reloaded', 4);
  const third = await accessToken(gateway, await subjectToken(issuer));
  assert.deepEqual(await statuses(gateway, third), [200]);
  const doctor = await command('doctor', '--json', '--offline');
  assert.ok(!doctor.includes('federation policy'), doctor);
  for (const each of [token, second, third]) assert.ok(!gateway.output.includes(each));
  await gateway.end('SIGTERM');

  const again = await startGatewayProcess(t, { home, env });
  assert.deepEqual(await statuses(again, third), [200]);
  issuer.down = true;
  const { status, headers, body } = await exchange(again, await subjectToken(issuer));
  assert.deepEqual([status, body.error], [503, 'temporarily_unavailable']);
  assert.equal(headers.get('retry-after'), '5');
});

test('a wrong policy is named by line and path, and the doctor names the key that is not there', async (t) => {
  const issuer = await startIssuer(t);
  const gateway = await startGatewayProcess(t, { yaml: { federation: [issuer.policy({ key: 'f'.repeat(64) })] } });
  const doctor = await runCommand(gateway.home, ['doctor', '--offline']);
  assert.match(doctor.out, /no working inference key has the hash in the federation policy ci/);
  gateway.writeYaml('federation:\n  - id: ci\n    issuer: http://elsewhere.test\n');
  gateway.signal('SIGHUP');
  const { problems } = await gateway.logged('configuration not reloaded: the previous one stays in use');
  assert.match(String(problems), /gatehouse\.yaml:3.*federation\[0\]\.issuer must be an https URL/);
});
