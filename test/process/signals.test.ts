/** What signals do to a gateway, however it was started. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import {
  type GatewayHome,
  type GatewayProcess,
  gatewayHome,
  launchGateway,
  plannedYaml,
  serversOf,
  startGatewayProcess,
} from '../../src/testing/process/gateway-process.ts';

const MAIN = path.join(import.meta.dirname, '..', '..', 'build', 'start.js');
const PATIENCE_MS = 60_000;

for (const workers of ['1', '2']) {
  test(`SIGTERM ends the readiness first, and the service after limits.drain_delay or SIGINT (${workers} workers)`, async (t) => {
    const yaml = plannedYaml('http://127.0.0.1:1', { limits: { drain_delay: '1h' } });
    const gateway = await startGatewayProcess(t, { yaml, env: { GATEHOUSE_WORKERS: workers } });
    gateway.signal('SIGTERM');
    await gateway.logged('stopping');
    // A service manager may send it to every process of the gateway, and a launcher once more.
    gateway.signal('SIGTERM');
    const closing = { headers: { connection: 'close' } };
    await until(async () => (await fetch(`${gateway.url}/ready`, closing)).status === 503, '/ready is 503');
    assert.equal((await fetch(`${gateway.url}/health`, closing)).status, 200);
    assert.equal((await gateway.get('/key')).status, 200);
    assert.deepEqual(await gateway.end('SIGINT'), { code: 0, signal: null });
  });
}

test('the delay of SIGTERM ends on its own', async (t) => {
  const yaml = plannedYaml('http://127.0.0.1:1', { limits: { drain_delay: '50ms' } });
  const gateway = await startGatewayProcess(t, { yaml });
  assert.deepEqual(await gateway.end('SIGTERM'), { code: 0, signal: null });
});

const noScript = spawnSync('script', ['--version']).status !== 0 && 'needs script(1) of util-linux';

/** A gateway on a terminal of its own, which closes when the process that is returned is killed. */
async function onTerminal(t: TestContext, home: GatewayHome): Promise<GatewayProcess> {
  const command = `exec ${process.execPath} ${MAIN} serve`;
  const terminal = await launchGateway(t, { home, command: ['script', '-qfec', command, '/dev/null'] });
  await until(() => terminal.output.includes('listening'), 'the gateway listens', PATIENCE_MS);
  return terminal;
}

function gatewayPid({ dataDir }: GatewayHome): number {
  return (JSON.parse(readFileSync(path.join(dataDir, 'gateway.lock'), 'utf8')) as { pid: number }).pid;
}

test('kill -HUP reloads a gateway whose terminal is open, and closing the terminal stops it', {
  skip: noScript,
}, async (t) => {
  const home = await gatewayHome(t);
  const terminal = await onTerminal(t, home);
  const pid = gatewayPid(home);
  process.kill(pid, 'SIGHUP');
  await until(() => terminal.output.includes('configuration reloaded'), 'the reload', PATIENCE_MS);
  assert.ok(lives(pid));
  await terminal.end('SIGKILL');
  await until(() => !lives(pid) && serversOf(home).length === 0, 'the gateway ends', PATIENCE_MS);
});

for (const signal of ['SIGHUP', 'SIGKILL'] as const) {
  test(`${signal} to npm start leaves no gateway running`, { skip: process.platform === 'win32' }, async (t) => {
    const home = await gatewayHome(t);
    const scripts = { start: `node ${MAIN} serve` };
    writeFileSync(path.join(home.folder, 'package.json'), JSON.stringify({ name: 'a', version: '1.0.0', scripts }));
    const node = path.dirname(process.execPath);
    const env = { PATH: `${node}:${process.env['PATH']}`, HOME: home.folder };
    const npm = await launchGateway(t, { home, command: ['npm', 'start'], env });
    await npm.logged('listening');
    const pid = gatewayPid(home);
    npm.signal(signal);
    await until(() => !lives(pid) && serversOf(home).length === 0, 'the gateway ends', PATIENCE_MS);
  });
}

/** A process that only waits to be reaped does not. */
function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return process.platform !== 'linux' || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}
