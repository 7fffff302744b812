/** BYOK credentials on a gateway of several processes while an operator rotates the encryption keys. */
import assert from 'node:assert/strict';
import { chmodSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { gunzipSync } from 'node:zlib';
import { embeddedTarget, wholeDatabase } from '../../src/testing/database/rows.ts';
import { MANAGEMENT_KEY, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import { runCommand } from '../../src/testing/process/command.ts';
import { type GatewayProcess, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';
import { startUpstream } from '../../src/testing/upstream/upstream.ts';

const ASKS = 8;
const ANSWER = wholeOf({
  id: 'up-1',
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
});
const env = { GATEHOUSE_WORKERS: '2' };

/** As `gatehouse doctor --json` prints it. */
interface Finding {
  area: string;
  level: string;
  message: string;
}

/** Over connections of their own, which the workers get in turn. */
async function change(gateway: GatewayProcess, method: string, route: string, body?: unknown) {
  const response = await fetch(gateway.api + route, {
    method,
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json', connection: 'close' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  assert.ok(response.ok, text);
  return JSON.parse(text);
}

test('every process uses BYOK credentials and hears of changes, also while the keys that seal them are changed', async (t) => {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  const yaml = plannedYaml(upstream.script('planned', [{ ...ANSWER, repeat: true }]));
  const gateway = await startGatewayProcess(t, { yaml, env });
  const { home } = gateway;
  const command = async (args: string[], code = 0) => {
    const outcome = await runCommand(home, args, env);
    assert.equal(outcome.code, code, `${args}: ${outcome.out}${outcome.err}`);
    return outcome.out;
  };
  /** What the doctor says of them. */
  const credentials = async (code?: number): Promise<Finding[]> => {
    const { findings } = JSON.parse(await command(['doctor', '--json', '--offline'], code));
    return findings.filter(({ area }: Finding) => area === 'credentials');
  };
  const request = { model: 'test/planned', messages: [{ role: 'user', content: 'hi' }], max_tokens: 10 };
  /** The credentials of requests that both workers serve. */
  const used = async (at: GatewayProcess) => {
    const before = upstream.requests('planned').length;
    for (let n = 0; n < ASKS; n++) assert.equal((await at.post('/chat/completions', request)).status, 200);
    const heard = upstream.requests('planned').slice(before);
    return [...new Set(heard.map(({ headers }) => headers.authorization))];
  };

  assert.match(await command(['sealing', 'show']), /nothing is encrypted yet/);
  assert.match(await command(['sealing', 'rotate-key']), /nothing is encrypted yet/);
  const { data } = await change(gateway, 'POST', '/byok', { provider: 'planned', key: 'own-canary-one-123' });
  assert.deepEqual(await used(gateway), ['Bearer own-canary-one-123']);

  const kek = path.join(home.dataDir, 'keys', 'kek');
  const first = readFileSync(kek, 'utf8');
  assert.match(await command(['sealing', 'rotate-key']), /with the new key, .*kek\n.*kek\.previous/);
  assert.notEqual(readFileSync(kek, 'utf8'), first);
  await change(gateway, 'PATCH', `/byok/${data.id}`, { key: 'own-canary-two-123' });
  assert.deepEqual(await used(gateway), ['Bearer own-canary-two-123']);

  assert.match(await command(['sealing', 'rotate-data-keys']), /byok: key 2\n\d values re-encrypted/);
  assert.match(await command(['sealing', 'sweep']), /^0 values re-encrypted/);
  assert.deepEqual(await used(gateway), ['Bearer own-canary-two-123']);
  await change(gateway, 'PATCH', `/byok/${data.id}`, { key: 'own-canary-three-123' });
  assert.deepEqual(await used(gateway), ['Bearer own-canary-three-123']);
  assert.match(await wholeDatabase(embeddedTarget(home)), /\\x0100000002/, 'encrypted with the second data key');

  const found = await credentials();
  assert.deepEqual(
    found.map(({ level }) => level),
    ['ok'],
  );
  assert.ok(found[0]!.message.includes(kek));
  const file = path.join(home.folder, 'backup');
  assert.ok((await command(['backup', file])).includes(`keep ${kek} in another place`));
  const backup = gunzipSync(readFileSync(file)).toString('latin1');
  for (const secret of [readFileSync(kek, 'utf8').trim(), 'own-canary', first.trim()])
    assert.ok(!backup.includes(secret));

  await gateway.end('SIGTERM');
  const again = await startGatewayProcess(t, { home, env });
  assert.deepEqual(await used(again), ['Bearer own-canary-three-123']);
  await change(again, 'DELETE', `/byok/${data.id}`);
  assert.deepEqual(await used(again), [`Bearer ${UPSTREAM_KEY}`]);
  chmodSync(kek, 0o640);
  assert.match((await credentials(1))[0]!.message, /is readable by other users/);
  assert.ok(!gateway.output.includes('own-canary') && !again.output.includes('own-canary'));
});
