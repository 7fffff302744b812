/** Refused bodies take no memory. The process runs nothing else, since the memory of other tests would count. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { RawClient } from '../../src/testing/clients/raw-client.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { serving } from '../http/operation-server.ts';

const MEGA = 2 ** 20;

test('a refused client may send on for a while, sees its response, and is then cut; memory stays flat', async () => {
  await serving({ lingerBytes: MEGA }, async ({ port, server }) => {
    const client = await RawClient.open(port);
    const before = process.memoryUsage().rss;
    await client.send(
      [
        'POST /v1/chat HTTP/1.1',
        'Host: x',
        'Authorization: Bearer wrong',
        'Content-Type: application/json',
        `Content-Length: ${1024 * MEGA}\r\n\r\n`,
      ].join('\r\n'),
    );
    await client.send(Buffer.alloc(MEGA / 2));
    assert.equal((await client.response()).status, 401);
    const chunk = Buffer.alloc(MEGA / 2);
    let sent = 0;
    while (!client.socket.destroyed && sent < 256) {
      await Promise.race([client.send(chunk), client.closed]);
      sent += 1;
    }
    await client.closed;
    assert.ok(sent < 256, 'the connection was cut long before the body ended');
    assert.ok(process.memoryUsage().rss - before < 20 * MEGA);
    await until(() => server.exchanges === 0, 'the exchange is over');
  });
});

test('a gateway does not unpack a compressed body to refuse it', async (t) => {
  const gateway = await startGateway(t, { providers: { chat: {} } });
  const client = await RawClient.open(Number(new URL(gateway.url).port));
  const bytes = gzipSync(Buffer.alloc(200 * MEGA, ' '));
  const before = process.memoryUsage().rss;
  const lines = [
    'POST /api/v1/chat/completions HTTP/1.1',
    `Authorization: Bearer ${INFERENCE_KEY}`,
    'Content-Type: application/json',
    'Content-Encoding: gzip',
    `Content-Length: ${bytes.length}`,
  ];
  assert.equal((await client.ask(lines, bytes)).status, 415);
  client.leave();
  assert.ok(process.memoryUsage().rss - before < 100 * MEGA);
});
