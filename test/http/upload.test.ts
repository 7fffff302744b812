/** Bodies that a handler reads as a stream. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { RawClient } from '../../src/testing/clients/raw-client.ts';
import { settle, until } from '../../src/testing/clock/clock.ts';
import { serving } from './operation-server.ts';

const MEGA = 2 ** 20;
const head = (length: number | 'chunked', type = 'application/octet-stream', path = '/v1/upload') =>
  [
    `POST ${path} HTTP/1.1`,
    'Host: x',
    'Authorization: Bearer inference',
    `Content-Type: ${type}`,
    length === 'chunked' ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`,
    '',
    '',
  ].join('\r\n');

test('a body arrives whole, with a length or chunked, and the connection stays usable', async () => {
  await serving({}, async ({ url }) => {
    for (const size of [1, 70_000, 3 * MEGA]) {
      const bytes = randomBytes(size);
      for (const body of [bytes, new Blob([bytes]).stream()]) {
        const response = await fetch(`${url}/v1/upload`, {
          method: 'POST',
          headers: { authorization: 'Bearer inference', 'content-type': 'application/octet-stream' },
          body,
          duplex: 'half',
        } as RequestInit);
        const sha256 = createHash('sha256').update(bytes).digest('hex');
        assert.deepEqual(await response.json(), { bytes: size, sha256 });
      }
    }
  });
});

test('a client is paused while the handler is slow, so little of its body is in memory', async () => {
  await serving({}, async (server) => {
    const gate = Promise.withResolvers<void>();
    server.gate = gate.promise;
    const client = await RawClient.open(server.port);
    const total = 64 * MEGA;
    await client.send(head(total));
    let sent = 0;
    const sending = (async () => {
      const chunk = Buffer.alloc(MEGA);
      while (sent < total) {
        await client.send(chunk);
        sent += chunk.length;
      }
    })();
    // Socket buffers take some megabytes; after that the client cannot send.
    let before = -1;
    while (before !== sent) {
      before = sent;
      await settle();
    }
    assert.ok(sent < total / 2, `${sent} bytes have left the client`);
    gate.resolve();
    await sending;
    assert.equal((await client.response()).status, 200);
    client.leave();
  });
});

test('a client that disconnects ends the reading of its body with an error', async () => {
  await serving({}, async (server) => {
    const client = await RawClient.open(server.port);
    await client.send(head(MEGA) + 'some');
    await until(() => server.waiting.length === 1, 'the handler reads');
    client.leave();
    await until(() => server.lines.some((line) => line.includes('the client disconnected')), 'the handler is told');
    await until(() => server.server.exchanges === 0, 'the exchange is over');
  });
});

test('wrong media types, compressed bodies, announced and actual sizes over the limit are refused', async () => {
  await serving({}, async ({ port }) => {
    const cases: [string, number][] = [
      [head(4, 'application/json'), 415],
      [head(4).replace('\r\n\r\n', '\r\nContent-Encoding: gzip\r\n\r\n'), 415],
      [head(400 * MEGA), 413],
      [head(0), 400],
    ];
    for (const [text, status] of cases) {
      const client = await RawClient.open(port);
      await client.send(text);
      assert.equal((await client.response()).status, status, text);
      client.leave();
    }
  });
});

test('an error from a handler half-way through a body reaches the client, even if it continues to send', async () => {
  await serving({}, async ({ port }) => {
    const client = await RawClient.open(port);
    await client.send(head(8 * MEGA, undefined, '/v1/upload-refused'));
    for (let sent = 0; sent < 8; sent += 1) await client.send(Buffer.alloc(MEGA));
    const response = await client.response();
    assert.equal(response.status, 409);
    client.leave();
  });
});

test("a client that sends nothing for too long is 408, and the handler's time does not count", async () => {
  await serving({ bodyMs: 10_000 }, async (server, clock) => {
    const gate = Promise.withResolvers<void>();
    server.gate = gate.promise;
    const client = await RawClient.open(server.port);
    await client.send(head(4 * MEGA));
    await client.send(Buffer.alloc(MEGA));
    await until(() => server.waiting.length === 1, 'the handler reads');
    for (let passed = 0; passed < 6; passed += 1) {
      clock.advance(5_000);
      await settle();
    }
    gate.resolve();
    await settle();
    for (let passed = 0; passed < 4; passed += 1) {
      clock.advance(5_000);
      await settle();
    }
    assert.equal((await client.response()).status, 408);
    client.leave();
  });
});
