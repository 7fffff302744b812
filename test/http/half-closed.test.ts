/** Clients that close their side of the connection after their request: some have left, others read the response. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { startTestServer } from './operation-server.ts';

const running = await startTestServer();
after(() => running.server.drain(0));
const { waiting, server } = running;

const request = (target: string, key = 'inference') =>
  `${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`;

/** A client that has sent `bytes` and closed its side. */
function halfClosed(bytes: string) {
  waiting.length = 0;
  const client = { text: '', isClosed: false };
  const socket = net.connect({ port: running.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('data', (piece) => {
    client.text += piece.toString('latin1');
  });
  socket.on('close', () => {
    client.isClosed = true;
  });
  socket.end(bytes);
  return client;
}

/** The client's end has arrived: the server reads it at the latest in the turn after the one in which it has read the request. */
async function ended(count: number): Promise<void> {
  await until(() => waiting.length === count, 'the handler has it');
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
}

test('a request that is being served is answered, and the connection ends', async () => {
  const client = halfClosed(request('POST /v1/wait'));
  await ended(1);
  waiting[0]?.reply(200, { late: true });
  await until(() => client.isClosed, 'the end');
  assert.match(client.text, /^HTTP\/1\.1 200 [\s\S]*\{"late":true\}$/);
});

test('so are several, in order, and one whose key has to be looked up', async () => {
  const client = halfClosed(request('POST /v1/wait').repeat(2) + request('GET /v1/things', 'slow-inference'));
  await ended(2);
  const [first, second] = waiting;
  second?.reply(200, { number: 2 });
  first?.reply(200, { number: 1 });
  await until(() => client.isClosed, 'the end');
  assert.match(client.text, /\{"number":1\}[\s\S]*\{"number":2\}[\s\S]*"id":"listThings"/);
});

test('a client that left is noticed at once if there is something to abort, also if that begins later', async () => {
  for (const isLater of [false, true]) {
    const client = halfClosed(request('POST /v1/wait').repeat(2));
    await until(() => waiting.length === 2, 'the handler has it');
    if (isLater) await ended(2);
    let closed = 0;
    waiting[1]?.onClose(() => {
      closed += 1;
    });
    await until(() => client.isClosed && closed === 1, 'it is noticed');
    assert.equal(client.text, '');
    assert.equal(server.exchanges, 0);
  }
});

test('a request that is not complete ends with its connection', async () => {
  const client = halfClosed(
    request('POST /v1/wait').replace('\r\n\r\n', '\r\nContent-Type: application/json\r\nContent-Length: 5\r\n\r\n{}'),
  );
  await until(() => client.isClosed && server.exchanges === 0, 'the end');
  assert.equal(client.text, '');
});
