/** The operator's commands, run as processes against installations that serve and that do not. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, test } from 'node:test';
import { gunzipSync, gzipSync } from 'node:zlib';
import { ask } from '../../src/testing/clients/planned-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { connect, embeddedTarget, readRows, rowsOnce } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { runCommand } from '../../src/testing/process/command.ts';
import {
  type GatewayProcess,
  gatewayHome,
  type Outcome,
  plannedYaml,
  runProgram,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';
import { PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';

const atEnd = { after: (close: unknown) => after(close as () => Promise<void>) };
const upstream = await new PlannedUpstream().listen();
after(() => upstream.close());
const yaml = plannedYaml(upstream.url);

/** The installation of this file: its gateway is started and stopped as the tests need it. */
const home = await gatewayHome(atEnd);
let gateway: GatewayProcess | undefined;

async function running(): Promise<GatewayProcess> {
  if (gateway === undefined || gateway.ended) gateway = await startGatewayProcess(atEnd, { home, yaml });
  return gateway;
}

async function stopped(): Promise<void> {
  await (gateway ?? (await running())).end('SIGTERM');
}

async function done(outcome: Promise<Outcome>): Promise<string> {
  const { code, out, err } = await outcome;
  assert.equal(code, 0, err);
  return out;
}

async function refused(outcome: Promise<Outcome>, code: number, message: RegExp): Promise<void> {
  const { code: seen, err } = await outcome;
  assert.match(err, message);
  assert.equal(seen, code);
}

test('an operator makes, lists and revokes keys of both kinds while the gateway runs, and they work at once', async () => {
  const gateway = await running();
  const management = (await done(runCommand(home, ['keys', 'create', '--management', '--print']))).trim();
  assert.equal((await gateway.get('/keys', management)).status, 200);
  const inference = (
    await done(runCommand(home, ['keys', 'create', '--name', 'ci', '--limit', '5', '--print']))
  ).trim();
  const shown = (await (await gateway.get('/key', inference)).json()) as { data: Record<string, unknown> };
  assert.equal(shown.data['limit'], 5);
  const { data } = (await (await gateway.get('/keys', MANAGEMENT_KEY)).json()) as {
    data: { name: string; hash: string }[];
  };
  const { hash } = data.find(({ name }) => name === 'ci')!;

  const list = await done(runCommand(home, ['keys', 'list']));
  assert.equal(list.trim().split('\n').length, 4);
  assert.match(list, new RegExp(`^${hash.slice(0, 12)}  inference .* active .* ci$`, 'm'));
  for (const token of [management, inference, MANAGEMENT_KEY, INFERENCE_KEY]) assert.ok(!list.includes(token));

  await done(runCommand(home, ['keys', 'revoke', hash.slice(0, 8)]));
  assert.equal((await gateway.get('/key', inference)).status, 401);
  await refused(runCommand(home, ['keys', 'revoke', hash.slice(0, 8)]), 1, /no key has a hash that begins/);
});

test('wrong arguments have their own exit code and show the help; failures do not', async () => {
  for (const args of [
    ['keys'],
    ['keys', 'make'],
    ['keys', 'create', '--limit', 'much'],
    ['keys', 'create', '--management', '--limit', '1'],
    ['keys', 'create', '--limit-reset', 'yearly'],
    ['keys', 'list', 'all'],
    ['keys', 'revoke'],
    ['backup'],
    ['restore', 'a', 'b'],
  ]) {
    await refused(runCommand(home, args), 2, /gatehouse (?:keys|backup)/);
  }
  await refused(runProgram(home, ['serv']), 2, /unknown command "serv"/);
});

test('a backup of a running gateway, restored elsewhere, has every row, key and sum', async (t) => {
  const original = await running();
  const name = 'line\r\nfeed \\ tab\t \u2028 \\. ü 🚪';
  const created = await original.post('/keys', { name, limit: 3 }, MANAGEMENT_KEY);
  const { key } = (await created.json()) as { key: string };
  const answers = Array.from({ length: 20 }, (_, at) => ask(original.url, { tag: `t${at}`, events: 3 }, { key }));
  await until(() => answers.every(({ over }) => over), 'all are answered');
  const rows = await rowsOnce(embeddedTarget(home), 20);
  const spent = await (await original.get('/key', key)).json();

  const file = path.join(home.folder, 'backup');
  await done(runCommand(home, ['backup', file]));
  assert.equal(statSync(file).mode & 0o777, 0o600);
  await refused(runCommand(home, ['backup', file]), 2, /is there already/);
  await refused(runCommand(home, ['restore', file]), 1, /another gateway/);
  await stopped();
  await refused(runCommand(home, ['restore', file]), 1, /in use/);

  const copy = await gatewayHome(t);
  assert.match(await done(runCommand(copy, ['restore', file])), /rows restored into the embedded PostgreSQL/);
  const restored = await startGatewayProcess(t, { home: copy, yaml });
  assert.deepEqual(await (await restored.get('/key', key)).json(), spent);
  const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1);
  assert.deepEqual((await readRows(embeddedTarget(copy))).sort(byId), rows.sort(byId));
  const listed = (await (await restored.get('/keys', MANAGEMENT_KEY)).json()) as { data: { name: string }[] };
  assert.ok(listed.data.some((each) => each.name === name.trim()));
  const next = ask(restored.url, { tag: 'after', events: 3 }, { key });
  await until(() => next.over, 'it is answered');
  assert.equal(next.status, 200);
});

test('a lost management key is replaced on an installation that does not run, through a file of its owner', async (t) => {
  await refused(runCommand(await gatewayHome(t), ['keys', 'create']), 1, /start the gateway once/);
  await stopped();
  const out = await done(runCommand(home, ['keys', 'create', '--management']));
  const file = /written to (\S+)/.exec(out)?.[1] ?? '';
  assert.equal(statSync(file).mode & 0o777, 0o600);
  const token = readFileSync(file, 'utf8').trim();
  assert.ok(!out.includes(token));
  assert.equal((await (await running()).get('/keys', token)).status, 200);
});

test('a stopped installation moves from the embedded database to DATABASE_URL, and nothing stays leased', async (t) => {
  const target = await emptyDatabase(t);
  const created = await (await running()).post('/keys', { name: 'moved', limit: 1 }, MANAGEMENT_KEY);
  const { key } = (await created.json()) as { key: string };
  await stopped();
  const file = path.join(home.folder, 'moving');
  await done(runCommand(home, ['backup', file]));

  const url =
    'connectionString' in target
      ? target.connectionString
      : `postgres://postgres@localhost/${target.database}?host=${encodeURIComponent(target.socketFolder)}`;
  const env = { DATABASE_URL: url };
  assert.match(await done(runCommand(home, ['restore', file], env)), /rows restored into PostgreSQL at/);
  const moved = await startGatewayProcess(t, { home, env });
  assert.equal((await moved.get('/key', key)).status, 200);
  const client = await connect(target);
  const leased = await client.query('select 1 from spend_windows where leased_nano <> 0');
  await client.end();
  assert.deepEqual(leased.rows, []);
  await moved.end('SIGTERM');
});

test('a damaged backup changes nothing, wherever it is cut, and can be replaced by a whole one', async (t) => {
  await stopped();
  const whole = path.join(home.folder, 'whole');
  await done(runCommand(home, ['backup', whole]));
  const text = gunzipSync(readFileSync(whole)).toString('utf8');
  const lines = text.split('\n');
  const damaged = path.join(home.folder, 'damaged');
  const copy = await gatewayHome(t);
  const attempt = (bytes: string | Buffer, message: RegExp) => {
    writeFileSync(damaged, bytes);
    return refused(runCommand(copy, ['restore', damaged]), 1, message);
  };
  await attempt('no gzip', /cannot be read/);
  await attempt(gzipSync(lines.slice(0, -2).join('\n')), /cut off/);
  await attempt(gzipSync(text.replace(/"rows":\d+/, '"rows":1')), /should hold 1 rows/);
  await attempt(gzipSync(text.replace('gatehouse-backup-1', 'gatehouse-backup-9')), /not a backup/);
  await attempt(gzipSync(text.replace('"0010-', '"9910-')), /newer version/);
  writeFileSync(damaged, readFileSync(whole));
  truncateSync(damaged, statSync(whole).size - 20);
  await refused(runCommand(copy, ['restore', damaged]), 1, /cannot be read/);
  await refused(runCommand(copy, ['restore', path.join(home.folder, 'absent')]), 1, /cannot be read.*ENOENT/);
  assert.ok(existsSync(damaged));
  await done(runCommand(copy, ['restore', whole]));
  const restored = await startGatewayProcess(t, { home: copy });
  assert.equal((await restored.get('/key')).status, 200);
});

// The last one: a database with secrets cannot be restored without their key.
test('the keys of vaults are rotated while the gateway runs, and an altered secret is reported by name', async () => {
  const gateway = await running();
  const send = async (method: string, route: string, body?: object) => {
    const headers = { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' };
    const init = { method, headers, ...(body && { body: JSON.stringify(body) }) };
    const response = await fetch(`${gateway.url}/api/v1/vault/secrets${route}`, init);
    assert.equal(response.status, 200);
    return (await response.json()) as { data: unknown };
  };
  await send('PUT', '/token', { value: 'canary-of-a-vault', hosts: ['api.test'] });
  const before = await send('GET', '');
  assert.equal(await done(runCommand(home, ['vault', 'check'])), '1 secrets checked\n');
  const rotated = await done(runCommand(home, ['vault', 'rotate-keys']));
  assert.equal(rotated, '1 vaults have a new key; 1 secrets re-encrypted\n');
  assert.notDeepEqual(await send('GET', ''), before);
  const renewed = await done(runCommand(home, ['vault', 'rotate-ca']));
  assert.match(renewed, /^0 vaults have a new certificate authority/);
  const client = await connect(embeddedTarget(home));
  await client.query(`update vault_secrets set hosts = '{evil.test}'`);
  await client.end();
  const { code, out } = await runCommand(home, ['vault', 'check']);
  assert.match(out, /^1 secrets checked\nworkspace \S+, secret token: .* was altered/);
  assert.equal(code, 1);
  await refused(runCommand(home, ['vault', 'rotate-keys']), 1, /^the secret token of the vault/);
  await refused(runCommand(home, ['vault', 'rotate-keys', '--workspace', 'x']), 2, /must be the id of a workspace/);
  assert.ok(!out.includes('canary'));
});
