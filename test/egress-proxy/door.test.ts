/** The door of the egress proxy, through which sandboxes on other machines come in. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { after, test } from 'node:test';
import tls from 'node:tls';
import { stayAlive, systemClock } from '../../src/base/clock.ts';
import { createAuthority, DOOR_NAME } from '../../src/egress-proxy/index.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { startSupervised } from '../../src/testing/egress-proxy/supervised.ts';

const place = { after: (run: () => unknown) => after(async () => void (await run())) };
// Nothing else waits for the proxy.
place.after(stayAlive());
const host = '127.0.0.8';
const { proxy, logged } = startSupervised(place, {}, { host, ports: { from: 3129, to: 3160 } });
const authority = await createAuthority(systemClock);
const settings = { secrets: [], domains: ['*'], ports: [443], authority };
const sandbox = { load: async () => settings, onRefused: () => {} };
const key = await proxy.openRemote('box', sandbox);
const door = await proxy.door();

/** What comes back after the key; empty if the connection ends. */
async function answerFor(first: string, options: tls.ConnectionOptions = {}): Promise<string> {
  const socket = tls.connect({ host, port: door.port, servername: DOOR_NAME, ca: door.certificate, ...options });
  socket.on('error', () => socket.destroy());
  socket.write(`${first}GET /api/v1/models HTTP/1.1\r\nHost: 127.0.0.1:3128\r\nConnection: close\r\n\r\n`);
  return text(socket).catch(() => '');
}

test('a key leads to its sandbox, and nothing else leads anywhere', async () => {
  assert.match(await answerFor(`${key}\n`), /^HTTP\/1\.1 4\d\d /);
  for (const first of ['', '\n', `${key}x`, `${'0'.repeat(64)}\n`, `${key.toUpperCase().replace(/[A-F]/, '0')}\n`]) {
    assert.equal(await answerFor(first), '', first);
  }
  assert.equal(
    await answerFor(`${key}\n`, { ca: authority.certificate }),
    '',
    'its certificate is not that of a vault',
  );
});

test('without TLS, and at the port that no sandbox may reach, connections end', async () => {
  for (const [port, sent] of [
    [door.port, `${key}\n`],
    [door.forbiddenPort, ''],
  ] as const) {
    const socket = net.connect({ host, port });
    socket.on('error', () => socket.destroy());
    socket.write(sent);
    assert.doesNotMatch(await text(socket).catch(() => ''), /HTTP/);
  }
});

test('port and key stay when the process is restarted, and the key ends with its sandbox', async () => {
  const other = await proxy.openRemote('other', sandbox);
  assert.notEqual(other, key);
  process.kill(proxy.pid!, 'SIGKILL');
  await until(async () => /^HTTP/.test(await answerFor(`${key}\n`)), 'the sandbox is let in again');
  await until(async () => /^HTTP/.test(await answerFor(`${other}\n`)), 'so is the other one');
  assert.deepEqual(await proxy.door(), door);
  await proxy.close('other');
  await until(async () => (await answerFor(`${other}\n`)) === '', 'its key is worth nothing');
  assert.match(await answerFor(`${key}\n`), /^HTTP/);
  assert.equal(logged.filter((line) => !line.includes('is being restarted')).length, 0);
});
