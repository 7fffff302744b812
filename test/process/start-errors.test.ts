/** A gateway that cannot start: one line with the reason, and nothing is created. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { connectOnce, emptyDatabase } from '../../src/testing/database/database.ts';
import { gatewayHome, launchGateway, runProgram, serversOf } from '../../src/testing/process/gateway-process.ts';

/** A start that must fail: its output, which holds no stack. */
async function failingStart(t: TestContext, options: Parameters<typeof launchGateway>[1]): Promise<string> {
  const gateway = await launchGateway(t, options);
  assert.deepEqual(await gateway.exit, { code: 1, signal: null }, gateway.output);
  assert.doesNotMatch(gateway.output, /^\s+at /m);
  return gateway.output;
}

async function takenPort(t: TestContext): Promise<string> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return String((server.address() as AddressInfo).port);
}

test('a port in use is reported before a database is created or an existing one touched', async (t) => {
  const port = await takenPort(t);
  const missing = await gatewayHome(t, false);
  const words = new RegExp(`^port ${port} on 127.0.0.1 is in use by another program .*GATEHOUSE_PORT`, 'm');
  assert.match(await failingStart(t, { home: missing, env: { GATEHOUSE_PORT: port } }), words);
  assert.ok(!existsSync(path.join(missing.dataDir, 'postgres')));
  const home = await gatewayHome(t);
  for (const workers of ['1', '2']) {
    const env = { GATEHOUSE_PORT: port, GATEHOUSE_WORKERS: workers };
    assert.match(await failingStart(t, { home, env }), words);
    assert.deepEqual(serversOf(home), []);
  }
});

test('a host that is not an address of this machine is reported', async (t) => {
  const env = { GATEHOUSE_HOST: '192.0.2.1', GATEHOUSE_PORT: '8484' };
  assert.match(await failingStart(t, { env }), /^192\.0\.2\.1 is not an address of this machine .*GATEHOUSE_HOST/m);
});

test('an unusable certificate is reported before a database is created', async (t) => {
  const home = await gatewayHome(t, false);
  const file = path.join(home.folder, 'cert.pem');
  writeFileSync(file, 'not a certificate');
  const env = { GATEHOUSE_TLS_CERT_FILE: file, GATEHOUSE_TLS_KEY_FILE: file };
  assert.match(await failingStart(t, { home, env }), /^the certificate and its key cannot be used .*GATEHOUSE_TLS/m);
  assert.ok(!existsSync(path.join(home.dataDir, 'postgres')));
});

test('a data folder that cannot be created is reported', async (t) => {
  const home = await gatewayHome(t);
  const file = path.join(home.folder, 'a-file');
  writeFileSync(file, '');
  const output = await failingStart(t, { home, env: { GATEHOUSE_DATA_DIR: path.join(file, 'data') } });
  assert.match(output, /^the data folder .*a-file\/data cannot be made \(ENOTDIR\): set GATEHOUSE_DATA_DIR/m);
});

test('a database with sessions in another time zone is reported and not migrated', async (t) => {
  const target = await emptyDatabase(t);
  const base =
    'connectionString' in target
      ? `${target.connectionString}?`
      : `postgres://postgres@localhost/${target.database}?host=${encodeURIComponent(target.socketFolder)}&`;
  const url = `${base}options=${encodeURIComponent('-c TimeZone=Europe/Berlin')}`;
  for (const workers of ['1', '2']) {
    const output = await failingStart(t, { env: { DATABASE_URL: url, GATEHOUSE_WORKERS: workers } });
    assert.match(
      output,
      /^PostgreSQL at .* cannot be used: sessions are in the time zone Europe\/Berlin: add "-c TimeZone=UTC"/m,
    );
  }
  const client = await connectOnce(t, target);
  const { rowCount } = await client.query(`select 1 from pg_tables where schemaname = 'public'`);
  assert.equal(rowCount, 0);
});

test('serve --help and --version print and start nothing; other arguments are refused', async (t) => {
  const home = await gatewayHome(t, false);
  for (const args of [['serve', '--help'], ['-h'], ['help'], ['version', '--help']]) {
    const { code, out, err } = await runProgram(home, args);
    assert.deepEqual([code, err], [0, ''], args.join(' '));
    assert.match(out, /gatehouse \[serve\]/);
    assert.match(out, /keys create/);
  }
  for (const args of [['version'], ['-v']]) {
    const { code, out } = await runProgram(home, args);
    assert.equal(code, 0);
    assert.match(out, /^\d+\.\d+\.\d+\S*\n$/);
  }
  const { code, out, err } = await runProgram(home, ['serve', '--port', '80']);
  assert.deepEqual([code, out], [2, '']);
  assert.match(err, /^serve takes no arguments, but got "--port"/);
  assert.deepEqual(readdirSync(home.folder), []);
});
