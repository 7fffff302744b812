/** One test for each fault that the doctor names, on the thing itself where it can be had. */
import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { createAccess, createOperatorKey, listOperatorKeys, revokeOperatorKey } from '../../src/access/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { type Config, loadConfig } from '../../src/base/config.ts';
import { silentLog } from '../../src/base/log.ts';
import { Secret } from '../../src/base/secret.ts';
import { migrations } from '../../src/migrations.ts';
import type { CommandParts } from '../../src/operator/command.ts';
import { examineDatabase } from '../../src/operator/doctor/database.ts';
import { examineEgressProxy } from '../../src/operator/doctor/egress-proxy.ts';
import type { Finding } from '../../src/operator/doctor/finding.ts';
import {
  examineAddress,
  examineCertificate,
  examineDataFolder,
  examineRuntime,
} from '../../src/operator/doctor/machine.ts';
import { examineModules } from '../../src/operator/doctor/modules.ts';
import { examineProviders } from '../../src/operator/doctor/providers.ts';
import { doctorCommand } from '../../src/operator/doctor.ts';
import { KINDS } from '../../src/providers/index.ts';
import { sealedRows } from '../../src/sealed-rows.ts';
import { openChanges } from '../../src/storage/changes.ts';
import { connectOnce, emptyDatabase, freshDatabase } from '../../src/testing/database/database.ts';
import { makeCertificate } from '../../src/testing/upstream/certificate.ts';
import { startRecordingServer } from '../../src/testing/upstream/recording-server.ts';

function folder(t: TestContext): string {
  const made = mkdtempSync(path.join(tmpdir(), 'doctor-'));
  t.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

function settings(yaml: unknown, env: Record<string, string> = {}): Config {
  const readFile = () => JSON.stringify(yaml);
  return loadConfig({ kinds: KINDS, env: { GATEHOUSE_CONFIG: 'x.yaml', ...env }, cwd: '/', cores: 1, readFile });
}

function parts(config = settings({}), change: Partial<CommandParts> = {}): CommandParts & { lines: string[] } {
  const lines: string[] = [];
  const out = { isTTY: false, print: (line: string) => void lines.push(line) };
  return { config, clock: systemClock, log: silentLog, migrations, sealedRows, version: '0', out, lines, ...change };
}

function names(findings: readonly Finding[] | Finding, level: Finding['level'], message: RegExp): void {
  const all = [findings].flat();
  assert.ok(
    all.some((finding) => finding.level === level && message.test(finding.message)),
    JSON.stringify(all, null, 1),
  );
}

test('a runtime that is too old is a fault', () => {
  names(examineRuntime('20.20.2'), 'fault', /too old: 26/);
  names(examineRuntime(), 'ok', /Node.js/);
});

test('an invalid configuration is reported completely, and nothing else is checked', async () => {
  const mine = parts();
  const wrong = () => settings({ providers: [{ id: 'A', kind: 'nothing' }], limit: {} });
  assert.equal(await doctorCommand(['--offline'], mine, wrong), 1);
  const told = mine.lines.join('\n');
  assert.match(told, /FAULT configuration: x\.yaml:1:\d+ providers\[0\]\.kind/);
  assert.match(told, /FAULT configuration: x\.yaml:1:\d+ has no member limit/);
  assert.doesNotMatch(told, /database|provider:/);
});

test('a data folder that cannot be made is a fault, one that others can enter a note', (t) => {
  const home = folder(t);
  const file = path.join(home, 'file');
  writeFileSync(file, '');
  names(examineDataFolder(path.join(file, 'data')), 'fault', /cannot be written \(E(?:NOTDIR|EXIST)\)/);
  chmodSync(home, 0o755);
  names(examineDataFolder(home), 'note', /other accounts can read/);
});

test('a full disk is a fault and a nearly full one a note', (t) => {
  const home = folder(t);
  names(
    examineDataFolder(home, () => 10 * 1024 * 1024),
    'fault',
    /10 MiB free/,
  );
  names(
    examineDataFolder(home, () => 500 * 1024 * 1024),
    'note',
    /500 MiB free/,
  );
  names(
    examineDataFolder(home, () => 2 ** 40),
    'ok',
    /MiB free/,
  );
});

test('an address in use is a fault, and so is one of another machine', async (t) => {
  const other = createServer();
  await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
  t.after(() => other.close());
  const { port } = other.address() as AddressInfo;
  names(await examineAddress({ host: '127.0.0.1', port }), 'fault', /EADDRINUSE/);
  names(await examineAddress({ host: '192.0.2.1', port: 0 }), 'fault', /EADDRNOTAVAIL/);
  names(await examineAddress({ host: '127.0.0.1', port: 0 }), 'ok', /is free/);
});

test('a certificate that has expired, is not valid yet, has another key or cannot be read is a fault', (t) => {
  const [mine, other] = [makeCertificate(), makeCertificate()];
  if (mine === null || other === null) return t.skip('the program openssl is missing');
  const tls = (key: string, cert = mine.cert) => ({ tls: { certificate: cert, key: new Secret(key) } });
  names(examineCertificate(tls(mine.key), systemClock), 'note', /valid until/);
  const at = (now: number) => ({ ...systemClock, now: () => now });
  names(examineCertificate(tls(mine.key), at(Date.UTC(2500, 0, 1))), 'fault', /has expired/);
  names(examineCertificate(tls(mine.key), at(0)), 'fault', /not valid before/);
  names(examineCertificate(tls(other.key), systemClock), 'fault', /not the key of the certificate/);
  names(examineCertificate(tls(mine.key, 'no PEM'), systemClock), 'fault', /cannot be read/);
  assert.deepEqual(examineCertificate({ tls: null }, systemClock), []);
});

test('a database that cannot be reached is a fault that never shows its password', async () => {
  const target = { connectionString: 'postgres://user:canary@127.0.0.1:1/none' };
  const findings = await examineDatabase(parts(), { target, running: false });
  names(findings, 'fault', /127\.0\.0\.1:1\/none cannot be used/);
  assert.ok(!JSON.stringify(findings).includes('canary'));
});

test('missing privileges, a newer schema and pending migrations are reported', async (t) => {
  const target = await emptyDatabase(t);
  const at = { target, running: false };
  names(await examineDatabase(parts(), at), 'note', /the next start will run \d+ migrations/);
  const client = await connectOnce(t, target);
  await client.query(`create table migrations (name text, checksum text)`);
  await client.query(`insert into migrations values ('9999-future', '')`);
  names(await examineDatabase(parts(), at), 'fault', /newer than this version/);
  const role = `doctor_${process.pid}`;
  await client.query('revoke create on schema public from public');
  const host = 'socketFolder' in target ? encodeURIComponent(target.socketFolder) : undefined;
  if (host === undefined) return t.diagnostic('the rest needs the embedded server');
  await client.query(`create role ${role} login`);
  const url = `postgres://${role}@localhost/${(target as { database?: string }).database}?host=${host}`;
  const limited = await examineDatabase(parts(), { target: { connectionString: url }, running: false });
  await client.query(`drop role ${role}`);
  names(limited, 'fault', /may not create schemas/);
});

test('an installation whose last management key does not work is a fault, with the way out of it', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations });
  const at = { target, running: false };
  names(await examineDatabase(parts(), at), 'note', /none exist yet/);
  const changes = await openChanges({ target, database, clock: systemClock, log: silentLog });
  t.after(() => changes.close());
  const operator = { database, changes, clock: systemClock };
  await createAccess(operator).bootstrap();
  await database.query(`update api_keys set disabled = true`);
  names(await examineDatabase(parts(), at), 'fault', /no management key works/);
  names(await examineDatabase(parts(), at), 'note', /no inference key works/);
  await createOperatorKey(operator, 'management', { name: 'one' });
  names(await examineDatabase(parts(), at), 'ok', /working keys: 1 management/);
  const [key] = await listOperatorKeys(operator);
  await revokeOperatorKey(operator, key!.hash);
  names(await examineDatabase(parts(), at), 'fault', /no management key works/);
});

test('a clock that differs from the database is noted', async (t) => {
  const { target } = await freshDatabase(t, { migrations });
  const clock = { ...systemClock, now: () => systemClock.now() + 60_000 };
  names(await examineDatabase(parts(undefined, { clock }), { target, running: false }), 'note', /differs .* by 60 s/);
});

test('rejected and missing credentials, failing and unreachable providers are distinguished', async (t) => {
  const asked: (string | undefined)[] = [];
  const server = createHttpServer((request, response) => {
    asked.push(request.headers.authorization);
    const status = /^\/(\d{3})\//.exec(request.url ?? '')?.[1];
    response.writeHead(Number(status)).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => server.close());
  const { port } = server.address() as AddressInfo;
  const provider = (id: string, status: number, api_key?: unknown) => ({
    id,
    name: id,
    kind: 'chat',
    base_url: `http://127.0.0.1:${port}/${status}`,
    ...(api_key !== undefined && { api_key }),
    models: [{ id: `a/${id}`, upstream_id: 'm' }],
  });
  const closed = createServer();
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
  const gone = (closed.address() as AddressInfo).port;
  await new Promise((resolve) => closed.close(resolve));
  const config = settings({
    providers: [
      provider('good', 200, 'canary-1'),
      provider('other', 404, 'canary-2'),
      provider('wrong', 401, ['canary-3', 'canary-4']),
      provider('bare', 403),
      provider('ill', 503, 'canary-5'),
      { ...provider('gone', 200), base_url: `http://127.0.0.1:${gone}` },
    ],
  });
  const findings = await examineProviders(config, systemClock, silentLog);
  names(findings, 'ok', /^good is reachable and accepts the credential/);
  names(findings, 'ok', /^other is reachable/);
  names(findings, 'fault', /^wrong \(credential 1 of 2\) rejects the credential \(status 401\)/);
  names(findings, 'fault', /^wrong \(credential 2 of 2\) rejects/);
  names(findings, 'fault', /^bare requires a credential/);
  names(findings, 'note', /^ill is reachable but responds with status 503/);
  names(findings, 'fault', /^gone cannot be reached/);
  assert.ok(asked.includes('Bearer canary-4'));
  assert.ok(!JSON.stringify(findings).includes('canary'));
});

test('each provider is asked for its models where its kind has the list', async (t) => {
  const server = await startRecordingServer(() => ({}));
  t.after(() => server.close());
  const provider = (id: string, kind: string, more = {}) => ({
    id,
    kind,
    base_url: `${server.url}/${id}`,
    api_key: 'k',
    models: [{ id: `a/${id}`, upstream_id: 'm' }],
    ...more,
  });
  const config = settings({
    providers: [
      provider('newest', 'azure'),
      provider('dated', 'azure', { api_version: '2024-10-21' }),
      provider('claude', 'anthropic'),
      provider('plain', 'chat'),
    ],
  });
  await examineProviders(config, systemClock, silentLog);
  assert.deepEqual(server.asked.map((request) => request.path).toSorted(), [
    '/claude/models?limit=1000',
    '/dated/openai/models?api-version=2024-10-21',
    '/newest/openai/v1/models',
    '/plain/models',
  ]);
});

test('parts that are not installed are noted with what they are for', () => {
  names(
    examineModules({ databaseUrl: null }, () => false),
    'note',
    /local model .* is not installed/,
  );
  names(examineModules({ databaseUrl: null }), 'ok', /embedded PostgreSQL, package version 18/);
  names(
    examineModules({ databaseUrl: null }, () => true, 're2'),
    'ok',
    /use the native engine, re2$/,
  );
  names(
    examineModules({ databaseUrl: null }, () => true, 're2js'),
    'ok',
    /use re2js; the native engine/,
  );
});

test('an installation without faults exits with 0, also before its first start, and creates no database', async (t) => {
  const dataDir = path.join(folder(t), 'data');
  const mine = parts(settings({}, { GATEHOUSE_DATA_DIR: dataDir, GATEHOUSE_PORT: '0' }));
  assert.equal(await doctorCommand(['--json'], mine, () => mine.config), 0);
  const { findings } = JSON.parse(mine.lines.join('\n')) as { findings: Finding[] };
  names(findings, 'note', /the first start creates it/);
  names(findings, 'note', /only the simulated provider/);
});

test('the egress proxy starts as the user of the settings, or says that it has no user of its own', async (t) => {
  const yaml = { egress_proxy: { user: 26_991, domains: ['*.a.test'], ports: [443] } };
  const finding = await examineEgressProxy(settings(yaml, { GATEHOUSE_DATA_DIR: folder(t) }), parts());
  const isRoot = process.getuid?.() === 0;
  names(finding, isRoot ? 'ok' : 'note', isRoot ? /starts as the user 26991/ : /starts as the user of the gateway/);
  assert.match(finding.message, /may reach \*\.a\.test on the ports 443$/);
});

test('what a lost process holds of a limit is noted, once it was silent for long enough', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations });
  const id = '019d0000-0000-7000-8000-000000000001';
  const silent = (minutes: number) =>
    database.query(`update spend_processes set seen_at = now() - make_interval(mins => $1)`, [minutes]);
  await database.query(
    `insert into spend_processes (id, place, host, seen_at) values ($1, '/lost', 'old-host', now())`,
    [id],
  );
  await database.query(`insert into spend_windows values ('key/k/lifetime/0', 0, 0, 450000000)`);
  await database.query(`insert into spend_leases values ($1, 'key/k/lifetime/0', 450000000)`, [id]);
  const budgets = async () => {
    const findings = await examineDatabase(parts(), { target, running: false });
    return findings.filter(({ area }) => area === 'budgets');
  };
  await silent(14);
  assert.deepEqual(await budgets(), []);
  await silent(16);
  const [finding] = await budgets();
  names(finding!, 'note', /of old-host .* holds 0\.45 USD of the lifetime budget of key k/);
  assert.equal(finding!.advice, `gatehouse spend release ${id}, if its journal is lost`);
});
