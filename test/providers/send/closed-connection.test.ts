/** Requests that meet a kept connection just as the upstream closes it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import tls from 'node:tls';
import { silentLog } from '../../../src/base/log.ts';
import type { UpstreamFailure } from '../../../src/formats/conversation/failure.ts';
import { createTransport } from '../../../src/providers/send/index.ts';
import { TestClock, until } from '../../../src/testing/clock/clock.ts';
import { makeCertificate } from '../../../src/testing/upstream/certificate.ts';

const TIMEOUTS = { connect: 1000, firstByte: 60_000, idle: 2000, stall: 600_000, total: 600_000 };
const ANSWER = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';

interface Outcome {
  text: string;
  failure?: UpstreamFailure;
  sent?: boolean;
}

interface World {
  clock: TestClock;
  /** Connection number and request number on it, for each request that the upstream read. */
  read: string[];
  send(body?: string): Promise<Outcome>;
  stopListening(): void;
}

type Serve = (socket: Socket, request: number, connection: number) => void;

/** An upstream that reads a request and then does what `serve` says. */
async function world(t: TestContext, serve: Serve, secure?: { key: string; cert: string }): Promise<World> {
  const clock = new TestClock();
  const read: string[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const accept = (socket: Socket) => {
    const connection = ++connections;
    let requests = 0;
    let seen = '';
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (piece) => {
      seen += piece.toString('latin1');
      if (!seen.endsWith('}')) return;
      seen = '';
      requests += 1;
      read.push(`${connection}.${requests}`);
      serve(socket, requests, connection);
    });
  };
  const server = secure ? tls.createServer(secure, accept) : net.createServer(accept);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const transport = createTransport({ clock, log: silentLog, ...(secure && { ca: secure.cert }) });
  t.after(async () => {
    await transport.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const url = `${secure ? 'https' : 'http'}://127.0.0.1:${port}/v1`;
  const send = async (body = '{"model":"m"}') => {
    const outcome: Outcome = { text: '' };
    const { promise, resolve } = Promise.withResolvers<void>();
    transport.send(
      { url, headers: {}, body, timeouts: TIMEOUTS },
      {
        head: () => {},
        data: (chunk) => {
          outcome.text += chunk;
        },
        end: resolve,
        failed: (failure, sent) => {
          Object.assign(outcome, { failure, sent });
          resolve();
        },
      },
    );
    await promise;
    // The connection is reusable two turns of the event loop later.
    for (let turn = 0; turn < 3; turn++) await new Promise(setImmediate);
    return outcome;
  };
  return { clock, read, send, stopListening: () => void server.close() };
}

const CLOSES: [string, (socket: Socket) => void][] = [
  ['closes in order', (socket) => void socket.end()],
  ['resets', (socket) => void socket.resetAndDestroy()],
];

for (const [name, close] of CLOSES) {
  test(`an upstream that ${name} as the next request arrives gets it on a new connection, every time`, async (t) => {
    const { send, read } = await world(t, (socket, request) => {
      if (request === 1) socket.write(ANSWER);
      else close(socket);
    });
    for (let count = 0; count < 300; count++) assert.deepEqual(await send(), { text: 'ok' });
    // Each connection after the first brings one response, and one close that the next connection makes up for.
    assert.equal(read.length, 300 + 299);
  });

  test(`a body of several megabytes is sent again in full when the upstream ${name}`, async (t) => {
    const body = `{"model":"m","text":"${'x'.repeat(5_000_000)}"}`;
    const { send } = await world(t, (socket, request) => {
      if (request === 1) socket.write(ANSWER);
      else close(socket);
    });
    await send();
    assert.deepEqual(await send(body), { text: 'ok' });
  });

  test(`a new connection on which the upstream ${name} fails the request without a repetition`, async (t) => {
    const { send, read } = await world(t, close);
    const { failure, sent } = await send();
    assert.deepEqual([failure?.kind, sent, read], ['cut', true, ['1.1']]);
  });

  test(`the request is sent again only once when the upstream ${name} on the new connection too`, async (t) => {
    const { send, read } = await world(t, (socket, request, connection) => {
      if (request === 1 && connection === 1) socket.write(ANSWER);
      else close(socket);
    });
    await send();
    const { failure, sent } = await send();
    assert.deepEqual([failure?.kind, sent, read], ['cut', true, ['1.1', '1.2', '2.1']]);
  });

  test(`a single response byte rules out a repetition when the upstream ${name}`, async (t) => {
    const { send, read } = await world(t, (socket, request) => {
      if (request === 1) socket.write(ANSWER);
      else socket.write('H', () => setImmediate(() => close(socket)));
    });
    await send();
    const { failure } = await send();
    assert.ok(failure !== undefined);
    assert.deepEqual(read, ['1.1', '1.2']);
  });

  test(`an upstream that ${name} after seconds was working on the request, so it is not repeated`, async (t) => {
    let closing: (() => void) | undefined;
    const { send, read, clock } = await world(t, (socket, request) => {
      if (request === 1) socket.write(ANSWER);
      else closing = () => close(socket);
    });
    await send();
    const second = send();
    await until(() => closing, 'the second request');
    clock.advance(5_001);
    closing!();
    const { failure, sent } = await second;
    assert.deepEqual([failure?.kind, sent, read], ['cut', true, ['1.1', '1.2']]);
  });
}

test('bytes that are not HTTP on a kept connection are not a close, so the request is not repeated', async (t) => {
  const { send, read } = await world(t, (socket, request) => void socket.write(request === 1 ? ANSWER : '\0\0'));
  await send();
  assert.equal((await send()).failure?.kind, 'malformed');
  assert.deepEqual(read, ['1.1', '1.2']);
});

test('a new connection that is refused after the close leaves the request unsent', async (t) => {
  const { send, stopListening } = await world(t, (socket, request) => {
    if (request === 1) {
      socket.write(ANSWER);
      return;
    }
    stopListening();
    socket.resetAndDestroy();
  });
  await send();
  const { failure, sent } = await send();
  assert.deepEqual([failure?.kind, sent], ['refused', false]);
});

const certificate = makeCertificate();

test('the same holds over TLS', { skip: certificate === null && 'the openssl program is missing' }, async (t) => {
  const secure = certificate!;
  const { send, read } = await world(
    t,
    (socket, request) => void (request === 1 ? socket.write(ANSWER) : socket.destroy()),
    secure,
  );
  for (let count = 0; count < 20; count++) assert.deepEqual(await send(), { text: 'ok' });
  assert.equal(read.length, 20 + 19);
});
