/** What a host does to a connection of HTTP/1.1 reaches only the exchange that it belongs to. The host writes raw bytes. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { until } from '../../src/testing/clock/clock.ts';
import {
  BOUND,
  isWhole,
  OTHER,
  raw,
  rawIn,
  read,
  secure,
  startProxy,
  VALUE,
} from '../../src/testing/egress-proxy/setup.ts';

const setup = await startProxy({}, { http1Only: true });
after(() => setup.close());
const { placeholder: P, otherPlaceholder: O } = setup;

/** What the host received on each connection. */
const received: string[] = [];
const sockets = new Set<TLSSocket>();
/** What it does with what it received on a connection so far. */
let react: (socket: TLSSocket, text: string, connection: number) => void = () => {};

setup.bound.server.removeAllListeners('secureConnection');
setup.bound.server.on('secureConnection', (socket: TLSSocket) => {
  const connection = received.push('') - 1;
  sockets.add(socket);
  socket.on('error', () => {}).once('close', () => sockets.delete(socket));
  socket.on('data', (chunk: Buffer) => {
    received[connection] += chunk.toString('latin1');
    react(socket, received[connection]!, connection);
  });
});

/** A host that answers each request without a body in this way. */
function answering(...answers: (string | Buffer)[]): void {
  reset((socket, text) => {
    if (text.endsWith('\r\n\r\n')) for (const answer of answers) socket.write(answer);
  });
}

function reset(next: typeof react): void {
  for (const socket of sockets) socket.destroy();
  received.length = 0;
  react = next;
}

const OK = 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
const get = (head = '') => rawIn(setup, BOUND, `GET / HTTP/1.1\r\nHost: ${BOUND}\r\n${head}\r\n`);
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

test('a transfer coding besides chunked is refused, since a value could hide in it', async () => {
  const body = gzipSync(VALUE).toString('latin1');
  for (const coding of ['gzip, chunked', 'gzip']) {
    const framed = coding === 'gzip' ? body : `${chunk(body)}0\r\n\r\n`;
    answering(Buffer.from(`HTTP/1.1 200 OK\r\ntransfer-encoding: ${coding}\r\n\r\n${framed}`, 'latin1'));
    assert.match(await get(), /^HTTP\/1\.1 502 [\s\S]*cannot be checked/, coding);
  }
});

test('a response is decoded even if its Connection header names the coding', async () => {
  const body = gzipSync(VALUE).toString('latin1');
  const head = `connection: content-encoding\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n`;
  answering(Buffer.from(`HTTP/1.1 200 OK\r\n${head}\r\n${body}`, 'latin1'));
  assert.match(await get(), new RegExp(`\r\n${P}\r\n`));
});

test('control characters in the reason of a response are left out', async () => {
  answering('HTTP/1.1 200 A\x01\x7fB\r\ncontent-length: 2\r\n\r\nok');
  assert.match(await get(), /^HTTP\/1\.1 200 AB\r\n[\s\S]*ok$/);
});

test('a client of HTTP/1.0 gets a compressed response that breaks, and that names trailers', async () => {
  const head = 'HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ntrailer: x-sum\r\ncontent-length: 900\r\n\r\n';
  reset((host) => {
    host.end(Buffer.from(`${head}${gzipSync(VALUE).toString('latin1')}`, 'latin1'));
  });
  const answer = await rawIn(setup, BOUND, `GET / HTTP/1.0\r\nHost: ${BOUND}\r\n\r\n`);
  assert.match(answer, /^HTTP\/1\.1 (?:200|502) /);
  assert.ok(!answer.includes(VALUE));
});

test('an informational response with a body is no part of the response after it', async () => {
  answering(`HTTP/1.1 150 X\r\ncontent-length: 6\r\n\r\nforged${OK}`);
  assert.match(await get(), /^HTTP\/1\.1 502 /);
});

test('a connection whose response came before the end of a request carries the next one', async () => {
  reset((socket, text) => {
    if (text.endsWith('begun') || text.endsWith('\r\n\r\n')) socket.write(OK);
  });
  const socket = await secure(setup, BOUND);
  const early = read(socket, isWhole);
  socket.write(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\ntransfer-encoding: chunked\r\n\r\n${chunk('begun')}`);
  assert.match(await early, /ok$/);
  react = (host, text) => {
    if (text.endsWith('GET /next HTTP/1.1\r\nhost: api.bound.test\r\n\r\n')) host.write(OK);
  };
  socket.write(`${chunk('rest')}0\r\n\r\n`);
  await until(() => received.some((text) => text.endsWith('0\r\n\r\n')), 'the rest arrives');
  const next = read(socket, isWhole);
  socket.write(`GET /next HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
  assert.match(await next, /ok$/);
  socket.destroy();
});

test('a client that leaves after an early response takes the connection to the host with it', async () => {
  reset((socket, text) => {
    if (text.endsWith('begun')) socket.write(OK);
  });
  const socket = await secure(setup, BOUND);
  const early = read(socket, isWhole);
  socket.write(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\ntransfer-encoding: chunked\r\n\r\n${chunk('begun')}`);
  await early;
  socket.destroy();
  await until(() => sockets.size === 0, 'the connection to the host ends');
});

test('a placeholder after an early response is refused and reported', async () => {
  reset((socket, text) => {
    if (text.endsWith('begun')) socket.write(OK);
  });
  const before = setup.refusals().length;
  const socket = await secure(setup, BOUND);
  const early = read(socket, isWhole);
  socket.write(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\ntransfer-encoding: chunked\r\n\r\n${chunk('begun')}`);
  await early;
  socket.write(chunk(O));
  await until(() => sockets.size === 0, 'the connection to the host ends');
  assert.deepEqual(
    setup
      .refusals()
      .slice(before)
      .map(({ secret }) => secret),
    ['other'],
  );
  socket.destroy();
});

test('a placeholder in a body that is still being sent is refused with its reason, and reported', async () => {
  const before = setup.refusals().length;
  reset(() => {});
  const socket = await secure(setup, BOUND);
  const answer = read(socket, isWhole);
  socket.write(`POST /x HTTP/1.1\r\nHost: ${BOUND}\r\ntransfer-encoding: chunked\r\n\r\n${chunk('begun')}`);
  await until(() => received.length > 0, 'the host has its beginning');
  socket.write(chunk(`${O}.`));
  assert.match(await answer, /^HTTP\/1\.1 403 [\s\S]*secret other is not released/);
  assert.deepEqual(setup.refusals().length - before <= 1, true);
  socket.destroy();
});

test('a host that answers early and closes is heard, also by a client that is still sending', async () => {
  reset((socket, text) => {
    if (text.endsWith('begun')) socket.end('HTTP/1.1 413 No\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno');
  });
  const socket = await secure(setup, BOUND);
  const answer = read(socket, isWhole);
  socket.write(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\ntransfer-encoding: chunked\r\n\r\n${chunk('begun')}`);
  await until(() => sockets.size === 0, 'the host has closed');
  socket.write(chunk('more'));
  assert.match(await answer, /^HTTP\/1\.1 413 [\s\S]*no$/);
  socket.destroy();
});

test('requests that follow each other without a response cannot open connections without limit', async () => {
  const own = await startProxy();
  const hosts = new Set<net.Socket>();
  const silent = net.createServer((socket) => {
    hosts.add(socket);
    socket
      .resume()
      .on('error', () => {})
      .once('close', () => hosts.delete(socket));
  });
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
  own.network.network.open = () => net.connect((silent.address() as net.AddressInfo).port, '127.0.0.1');
  try {
    const client = net.connect(own.socketPath).on('error', () => {});
    for (let sent = 0; sent < 540; sent += 30) {
      client.write(`GET http://${OTHER}/ HTTP/1.1\r\nHost: ${OTHER}\r\n\r\n`.repeat(30));
      await until(() => hosts.size === Math.min(sent + 30, 512), 'the host has them');
    }
    await until(() => own.refusals().some(({ reason }) => reason === 'busy'), 'the rest is refused');
    client.destroy();
    await until(() => hosts.size === 0, 'all are closed');
    assert.match(await raw(own.socketPath, 'GET http://x HTTP/1.1\r\nHost: x\r\n\r\n'), /could not be resolved/);
  } finally {
    silent.close();
    await own.close();
  }
});

test('a request that may have had an effect is not repeated when a kept connection breaks', async () => {
  for (const [method, times] of [
    ['POST', 1],
    ['PATCH', 1],
    ['GET', 2],
    ['DELETE', 2],
  ] as const) {
    reset((socket, text, connection) => {
      if (text.includes('/again') && connection === 0) socket.destroy();
      else socket.write(OK);
    });
    const socket = await secure(setup, BOUND);
    for (const path of ['/first', '/again']) {
      const answer = read(socket, isWhole);
      socket.write(`${path === '/first' ? 'GET' : method} ${path} HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
      const status = path === '/again' && times === 1 ? 502 : 200;
      assert.match(await answer, new RegExp(`^HTTP/1\\.1 ${status} `), `${method} ${path}`);
    }
    assert.equal(received.join('').split('/again').length - 1, times, method);
    socket.destroy();
  }
});

test('a response that came before any byte of its request is not its answer', async () => {
  reset((socket) => void socket.write(OK));
  const socket = await secure(setup, BOUND);
  const first = read(socket, isWhole);
  socket.write(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
  await first;
  const [host] = sockets;
  const second = read(socket, isWhole);
  socket.write(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\ntransfer-encoding: chunked\r\n\r\n`);
  await get();
  host!.write('HTTP/1.1 408 Late\r\ncontent-length: 0\r\n\r\n');
  await get();
  socket.write(`${chunk('body')}0\r\n\r\n`);
  const text = await second;
  assert.doesNotMatch(text, /408/);
  socket.destroy();
});

test('bodies of requests that cannot be sent take no memory', async () => {
  const body = 'x'.repeat(200_000);
  const post = (path: string) =>
    rawIn(setup, BOUND, `POST ${path} HTTP/1.1\r\nHost: ${BOUND}\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  const { network } = setup.network;
  const { open } = network;
  reset((socket) => void socket.destroy());
  network.open = () => net.connect(1, '127.0.0.1');
  for (let count = 0; count < 45; count += 1) assert.match(await post('/'), /^HTTP\/1\.1 502 /);
  network.open = open;
  reset((socket, text) => {
    if (text.endsWith('x') || text.endsWith('0\r\n\r\n')) socket.write(OK);
  });
  await post('/last');
  assert.match(received.at(-1)!, /content-length: 200000\r\n/);
});

test('responses to HEAD may name trailers', async () => {
  answering('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntrailer: x-sum\r\n\r\n');
  const socket = await secure(setup, BOUND);
  const answer = read(socket, (text) => text.includes('\r\n\r\n'));
  socket.write(`HEAD / HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
  assert.match(await answer, /^HTTP\/1\.1 200 /);
  answering('HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntrailer: x-sum\r\n\r\nok');
  assert.match(await get(), /^HTTP\/1\.1 200 [\s\S]*ok$/);
  socket.destroy();
});

test('a value that a service read as Latin-1 is scrubbed', async () => {
  const value = 'schl\u00fcssel-geheim';
  const own = await startProxy({ secrets: [{ name: 'u', value, hosts: [OTHER], placeholder: P }] });
  try {
    const answer = await rawIn(own, OTHER, `GET / HTTP/1.1\r\nHost: ${OTHER}\r\nx-key: ${P}\r\n\r\n`);
    assert.doesNotMatch(answer, /ssel-geheim/);
  } finally {
    await own.close();
  }
});

test('no part of a response can be asked for under another name, or without TLS', async () => {
  answering(OK);
  await get('x-ms-range: bytes=0-5\r\nrequest-range: bytes=0-5\r\n');
  assert.doesNotMatch(received.join(''), /range/);
  let head = '';
  const plain = net.createServer((socket) =>
    socket.on('data', (chunk) => {
      head += chunk;
      socket.end(OK);
    }),
  );
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve));
  const { network } = setup.network;
  const { open } = network;
  network.open = () => net.connect((plain.address() as net.AddressInfo).port, '127.0.0.1');
  await raw(setup.socketPath, `GET http://${BOUND}/ HTTP/1.1\r\nHost: ${BOUND}\r\nRange: bytes=0-5\r\n\r\n`);
  network.open = open;
  plain.close();
  assert.match(head, /^GET \/ /);
  assert.doesNotMatch(head, /range/i);
});
