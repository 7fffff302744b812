/** Responses that are sent while the client is still sending, on connections that end with the response. */
import assert from 'node:assert/strict';
import net, { type Socket } from 'node:net';
import { describe, test } from 'node:test';
import tls from 'node:tls';
import { until } from '../../src/testing/clock/clock.ts';
import { makeCertificate } from '../../src/testing/upstream/certificate.ts';
import { serving, startTestServer } from './operation-server.ts';

const MEGA = 2 ** 20;
const TYPE = 'Content-Type: application/json';

interface Heard {
  text: string;
  /** The code of a socket error, `EPIPE` or `ECONNRESET`. */
  error?: string;
}

/**
 * A client that reads nothing until it has sent all of its request, as simple clients and proxies do, and then reads to
 * the end.
 */
function sendThenRead(socket: Socket, head: string, body: Buffer): Promise<Heard> {
  const heard: Heard = { text: '' };
  const { promise, resolve } = Promise.withResolvers<Heard>();
  socket.pause();
  socket.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== undefined) heard.error = error.code;
  });
  socket.on('close', () => resolve(heard));
  socket.write(head);
  let at = 0;
  const next = () => {
    if (at === body.length) {
      socket.on('data', (piece) => {
        heard.text += piece.toString('latin1');
      });
      socket.on('end', () => socket.end());
      socket.resume();
      return;
    }
    const piece = body.subarray(at, at + 64 * 1024);
    at += piece.length;
    socket.write(piece, next);
  };
  next();
  return promise;
}

function headOf(version: string, path: string, lines: readonly string[]): string {
  return `POST ${path} HTTP/${version}\r\nHost: x\r\n${lines.join('\r\n')}\r\n\r\n`;
}

const BODY = Buffer.alloc(20 * MEGA, 'x');
const LENGTH = `Content-Length: ${BODY.length}`;
const KEY = 'Authorization: Bearer inference';

const REFUSED: [string, string, string, string[]][] = [
  ['401', '1.1', '/v1/chat', ['Authorization: Bearer wrong', 'Connection: close', LENGTH]],
  ['401', '1.0', '/v1/chat', ['Authorization: Bearer wrong', LENGTH]],
  ['401', '1.1', '/v1/chat', ['Authorization: Bearer slow-wrong', 'Connection: close', LENGTH]],
  ['403', '1.1', '/v1/chat', ['Authorization: Bearer management', 'Connection: close', LENGTH]],
  ['413', '1.1', '/v1/poke', [KEY, 'Connection: close', LENGTH]],
  ['413', '1.0', '/v1/poke', [KEY, LENGTH]],
  ['404', '1.1', '/v1/nowhere', [KEY, 'Connection: close', LENGTH]],
  ['403', '1.0', '/v1/things', [KEY, LENGTH]],
  ['415', '1.1', '/v1/upload', [KEY, 'Connection: close', LENGTH]],
  ['415', '1.0', '/v1/upload', [KEY, LENGTH]],
  ['415', '1.1', '/v1/upload', [KEY, 'Connection: close', LENGTH, 'Content-Encoding: gzip']],
];

describe('a client that sends 20 MB before it reads gets its response', () => {
  for (const [status, version, path, lines] of REFUSED) {
    test(`${status} over HTTP/${version}: ${lines[0]}`, async () => {
      await serving({}, async ({ port }) => {
        const heard = await sendThenRead(net.connect(port, '127.0.0.1'), headOf(version, path, [...lines, TYPE]), BODY);
        assert.match(heard.text, new RegExp(`^HTTP/1.1 ${status} `));
        assert.match(heard.text, /\r\nConnection: close\r\n/);
        assert.equal(heard.error, undefined);
      });
    });
  }

  test('413 for an upload that announces too much', async () => {
    await serving({}, async ({ port }) => {
      const lines = [KEY, 'Content-Type: application/octet-stream', 'Connection: close', `Content-Length: ${2 ** 40}`];
      const heard = await sendThenRead(net.connect(port, '127.0.0.1'), headOf('1.1', '/v1/upload', lines), BODY);
      assert.match(heard.text, /^HTTP\/1.1 413 /);
      assert.equal(heard.error, undefined);
    });
  });

  test('413 for a chunked body that grows too large', async () => {
    await serving({}, async ({ port }) => {
      const chunk = `100000\r\n${'x'.repeat(MEGA)}\r\n`;
      const body = Buffer.from(`${chunk.repeat(20)}0\r\n\r\n`, 'latin1');
      const lines = [KEY, TYPE, 'Connection: close', 'Transfer-Encoding: chunked'];
      const heard = await sendThenRead(net.connect(port, '127.0.0.1'), headOf('1.1', '/v1/poke', lines), body);
      assert.match(heard.text, /^HTTP\/1.1 413 /);
      assert.equal(heard.error, undefined);
    });
  });

  const unreadable: [string, string, string[]][] = [
    ['headers that are too large', '431', [KEY, `X-Long: ${'x'.repeat(40_000)}`, LENGTH]],
    ['a line that is not a header', '400', [KEY, 'no colon', LENGTH]],
    ['invalid chunks', '400', [KEY, TYPE, 'Transfer-Encoding: chunked']],
  ];
  for (const [what, status, lines] of unreadable) {
    test(`${status} for ${what}`, async () => {
      await serving({}, async ({ port }) => {
        const heard = await sendThenRead(net.connect(port, '127.0.0.1'), headOf('1.1', '/v1/poke', lines), BODY);
        assert.match(heard.text, new RegExp(`^HTTP/1.1 ${status} `));
        assert.equal(heard.text.match(/HTTP\/1\.1/g)?.length, 1);
        assert.equal(heard.error, undefined);
      });
    });
  }

  const certificate = makeCertificate();
  test('over TLS', { skip: certificate === null && 'the openssl program is missing' }, async (t) => {
    const secure = await startTestServer({ tls: certificate! });
    t.after(() => secure.server.drain(0));
    for (const [status, version, path, lines] of REFUSED.slice(0, 2)) {
      const socket = tls.connect({ port: secure.port, host: '127.0.0.1', ca: certificate!.cert });
      const heard = await sendThenRead(socket, headOf(version, path, [...lines, TYPE]), BODY);
      assert.match(heard.text, new RegExp(`^HTTP/1.1 ${status} `));
      assert.equal(heard.error, undefined);
    }
  });

  test('a draining server still reads the rest of a refused request', async () => {
    await serving({}, async ({ port, server }) => {
      const socket = net.connect(port, '127.0.0.1');
      let text = '';
      let failed: Error | undefined;
      socket.on('error', (error) => (failed = error));
      socket.on('data', (piece) => (text += piece.toString('latin1')));
      // The connection would be kept alive: the client did not ask to close it.
      socket.write(headOf('1.1', '/v1/chat', ['Authorization: Bearer wrong', TYPE, LENGTH]));
      await until(() => text.startsWith('HTTP/1.1 401 ') && server.exchanges === 0, 'the refusal');
      const drained = server.drain(60_000);
      await new Promise((resolve) => socket.write(BODY, resolve));
      await drained;
      assert.equal(failed, undefined);
    });
  });
});

/** Sends a byte and gives the server time to read it. */
async function dropped(socket: Socket): Promise<void> {
  if (!socket.destroyed) await new Promise<void>((resolve) => socket.write('x', () => resolve()));
  for (let turn = 0; turn < 5; turn++) await new Promise(setImmediate);
}

describe('a client whose response is sent', () => {
  const refusal = headOf('1.1', '/v1/chat', ['Authorization: Bearer wrong', 'Connection: close', TYPE, LENGTH]);

  /** Sends the head and the start of the body, and waits for the end of the response. */
  async function refused(port: number): Promise<Socket> {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => {});
    let ended = false;
    socket.on('end', () => (ended = true));
    socket.resume();
    socket.write(refusal);
    socket.write(BODY.subarray(0, MEGA));
    await until(() => ended, 'the end of the answer');
    return socket;
  }

  test('sees the end of the response at once, although it could continue to send', async () => {
    await serving({}, async ({ port }) => {
      const socket = await refused(port);
      assert.equal(socket.destroyed, false);
      socket.destroy();
    });
  });

  test('is cut when it sends nothing for a while, and when it takes too long in total', async () => {
    for (const drips of [false, true]) {
      await serving({ lingerMs: 1000, lingerTotalMs: 5000 }, async ({ port }, clock) => {
        const socket = await refused(port);
        for (let passed = 0; passed < (drips ? 5500 : 1500) && !socket.destroyed; passed += 250) {
          if (drips) await dropped(socket);
          clock.advance(250);
        }
        // The next byte sent reveals the cut.
        await until(() => dropped(socket).then(() => socket.destroyed), 'the cut');
      });
      await serving({ lingerMs: 1000, lingerTotalMs: 5000 }, async ({ port }, clock) => {
        const socket = await refused(port);
        for (let passed = 0; passed < (drips ? 4500 : 750); passed += 250) {
          if (drips) await dropped(socket);
          clock.advance(250);
        }
        for (let count = 0; count < 10; count++) await dropped(socket);
        assert.equal(socket.destroyed, false);
        socket.destroy();
      });
    }
  });

  test('is cut after more bytes than the limit, also after bytes that are not HTTP', async () => {
    for (const head of [refusal, 'POST /v1/chat HTTP/1.1\r\nno colon\r\n\r\n']) {
      await serving({ lingerBytes: MEGA }, async ({ port }) => {
        const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: true });
        socket.on('error', () => {});
        socket.resume();
        const closed = new Promise((resolve) => socket.on('close', resolve));
        socket.write(head);
        let sent = 0;
        while (!socket.destroyed && sent < 256) {
          sent += 1;
          await Promise.race([new Promise((resolve) => socket.write(BODY.subarray(0, MEGA), resolve)), closed]);
        }
        assert.ok(sent < 64, `${sent} MB`);
      });
    }
  });

  test('leaves no state when it disconnects in the middle of its body', async () => {
    await serving({}, async ({ port, server }, clock) => {
      const socket = await refused(port);
      socket.resetAndDestroy();
      await until(() => server.exchanges === 0, 'the exchange is over');
      for (let turn = 0; turn < 10; turn++) await new Promise(setImmediate);
      clock.advance(6000);
      clock.advance(6000);
      assert.equal(clock.timers, 0);
    });
  });
});
