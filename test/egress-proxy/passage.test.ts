/** What a host with a bound secret and its sandbox see of each other, in every version and shape of HTTP. */
import assert from 'node:assert/strict';
import http2 from 'node:http2';
import net from 'node:net';
import { after, test as run, type TestContext } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { until } from '../../src/testing/clock/clock.ts';
import {
  BOUND,
  connect,
  isWhole,
  OTHER,
  raw,
  rawIn,
  read,
  secure,
  startProxy,
  VALUE,
} from '../../src/testing/egress-proxy/setup.ts';

const setup = await startProxy();
after(() => setup.close());
const { bound, placeholder: P } = setup;

/** A test whose host echoes, unless the test says otherwise. */
function test(name: string, body: (context: TestContext) => Promise<void>): void {
  run(name, (context) => {
    bound.answer(undefined);
    bound.seen.length = 0;
    return body(context);
  });
}

const last = () => bound.seen.at(-1)!;
const post = (type: string, body: string, head = '') =>
  rawIn(
    setup,
    BOUND,
    `POST /p HTTP/1.1\r\nHost: ${BOUND}\r\ncontent-type: ${type}\r\n${head}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
const get = (head = '', path = '/') => rawIn(setup, BOUND, `GET ${path} HTTP/1.1\r\nHost: ${BOUND}\r\n${head}\r\n`);
const bodyOf = (answer: string) => answer.slice(answer.indexOf('\r\n\r\n') + 4);
/** A chunked body without its chunk sizes. */
const unchunked = (answer: string) => bodyOf(answer).replace(/(?:^|\r\n)[0-9a-f]+\r\n/g, '');

async function session() {
  const socket = await secure(setup, BOUND, { ALPNProtocols: ['h2'] });
  return http2.connect(`https://${BOUND}`, { createConnection: () => socket });
}

test('a header, Basic credentials, the path and the query carry the value, and the echo shows the placeholder', async () => {
  const basic = Buffer.from(`user:${P}`).toString('base64');
  const answer = await get(`authorization: Basic ${basic}\r\nx-key: k ${P}\r\n`, `/a/${P}?q=${P}`);
  assert.equal(last().headers['authorization'], `Basic ${Buffer.from(`user:${VALUE}`).toString('base64')}`);
  assert.equal(last().headers['x-key'], `k ${VALUE}`);
  const encoded = encodeURIComponent(VALUE);
  assert.equal(last().path, `/a/${encoded}?q=${encoded}`);
  assert.match(answer, new RegExp(`x-echo-x-key: k ${P}`));
  const echoed = JSON.parse(bodyOf(answer)) as { path: string; headers: Record<string, string> };
  assert.deepEqual([echoed.path, echoed.headers['x-key']], [`/a/${P}?q=${P}`, `k ${P}`]);
  assert.ok(!answer.includes(VALUE) && !answer.includes(encoded));
});

const BODIES: [type: string, body: string, arrives: string][] = [
  ['application/json', `{"key":"${P}"}`, JSON.stringify({ key: VALUE })],
  ['application/x-www-form-urlencoded', `a=1&key=${P}`, `a=1&key=${encodeURIComponent(VALUE)}`],
  ['text/plain', `${P}${P}`, `${VALUE}${VALUE}`],
  ['application/xml', `<a>${P}</a>`, '<a>REAL-secret/value+1&amp;&quot;x&quot;</a>'],
  ['multipart/form-data; boundary=b', `--b\r\n\r\n${P}\r\n--b--`, `--b\r\n\r\n${VALUE}\r\n--b--`],
  ['application/octet-stream', `\0${P}`, `\0${P}`],
  ['text/plain', 'nothing in it', 'nothing in it'],
];
for (const [type, body, arrives] of BODIES) {
  test(`a body of ${type} arrives with its length: ${JSON.stringify(arrives)}`, async () => {
    await post(type, body);
    assert.equal(last().body.toString(), arrives);
    assert.equal(last().headers['content-length'], String(Buffer.byteLength(arrives)));
    assert.equal(last().headers['transfer-encoding'], undefined);
  });
}

test('an encoded body passes as it is', async () => {
  const body = gzipSync(P).toString('latin1');
  const socket = await secure(setup, BOUND);
  const answer = read(socket, isWhole);
  socket.write(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\ncontent-encoding: gzip\r\ncontent-length: ${body.length}\r\n\r\n`);
  socket.write(Buffer.from(body, 'latin1'));
  await answer;
  assert.equal(last().body.toString('latin1'), body);
  socket.destroy();
});

test('ten thousand placeholders in one streamed body all arrive as values', async () => {
  const socket = await secure(setup, BOUND);
  const answer = read(socket, isWhole);
  bound.answer(
    (seen, response) => void response.setHeader('content-length', 2).end(String(seen.body.length % 100).padStart(2)),
  );
  const body = Buffer.from(`${P},`.repeat(10_000));
  socket.write(
    `POST / HTTP/1.1\r\nHost: ${BOUND}\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\n\r\n`,
  );
  for (let at = 0; at < body.length; at += 7_777) socket.write(body.subarray(at, at + 7_777));
  await answer;
  assert.equal(last().body.toString(), `${VALUE},`.repeat(10_000));
  assert.equal(last().headers['transfer-encoding'], 'chunked');
  socket.destroy();
});

test('the authority of CONNECT may be in upper case and end with a dot', async () => {
  for (const authority of [`${BOUND.toUpperCase()}:443`, `${BOUND}.:443`]) {
    const tunnel = await connect(setup.socketPath, authority);
    assert.ok(typeof tunnel !== 'string', String(tunnel));
    tunnel.destroy();
  }
});

test('a chunked body with trailers arrives as one', async () => {
  bound.answer((seen, response, request) => {
    response.setHeader('x-trailer', String(request.trailers['x-sum'] === VALUE));
    response.end(String(seen.body.length));
  });
  const half = P.length / 2;
  const answer = await rawIn(
    setup,
    BOUND,
    `POST / HTTP/1.1\r\nHost: ${BOUND}\r\nTransfer-Encoding: chunked\r\n\r\n${half.toString(16)}\r\n${P.slice(0, half)}\r\n${half.toString(16)}\r\n${P.slice(half)}\r\n0\r\nx-sum: ${P}\r\n\r\n`,
  );
  assert.equal(last().body.toString(), VALUE);
  assert.match(answer, /x-trailer: true/);
});

const CODINGS: [string, (text: string) => Buffer][] = [
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['br', brotliCompressSync],
  ['zstd', zstdCompressSync],
  ['gzip, br', (text) => brotliCompressSync(gzipSync(text))],
];
for (const [coding, encode] of CODINGS) {
  test(`a response encoded as ${coding} although nobody asked is decoded and scrubbed`, async () => {
    bound.answer((_seen, response) => {
      response.setHeader('content-encoding', coding);
      response.end(encode(`before ${VALUE} after`));
    });
    const answer = await get('accept-encoding: gzip, br\r\n');
    assert.equal(last().headers['accept-encoding'], 'identity');
    assert.doesNotMatch(answer, /content-encoding/i);
    assert.equal(unchunked(answer).trim(), `before ${P} after`);
  });
}

test('a coding in a second header of the response is decoded, too', async () => {
  bound.answer((_seen, response) => {
    response.setHeader('content-encoding', ['identity', 'gzip']);
    response.end(gzipSync(VALUE));
  });
  assert.equal(unchunked(await get()).trim(), P);
});

test('no part of a response can be asked for', async () => {
  await get('Range: bytes=0-5\r\nIf-Range: "x"\r\n');
  assert.deepEqual([last().headers['range'], last().headers['if-range']], [undefined, undefined]);
});

test('a value outside of ASCII arrives as UTF-8 in both versions', async () => {
  const value = 'schlüssel-日本-✓';
  const own = await startProxy({ secrets: [{ name: 'u', value, hosts: [BOUND], placeholder: P }] });
  try {
    for (const protocol of ['http/1.1', 'h2']) {
      const socket = await secure(own, BOUND, { ALPNProtocols: [protocol] });
      if (protocol === 'h2') {
        const client = http2.connect(`https://${BOUND}`, { createConnection: () => socket });
        const stream = client.request({ 'x-key': P });
        const head = new Promise<http2.IncomingHttpHeaders>((resolve) => stream.once('response', resolve));
        assert.equal((await head)['x-echo-x-key'], P);
        client.destroy();
      } else {
        const answer = read(socket, isWhole);
        socket.write(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\nx-key: ${P}\r\n\r\n`);
        assert.match(await answer, new RegExp(`x-echo-x-key: ${P}`));
        socket.destroy();
      }
      const seen = own.bound.seen.at(-1)?.headers['x-key'] as string;
      assert.equal(Buffer.from(seen, 'latin1').toString(), value);
    }
  } finally {
    await own.close();
  }
});

test('a response in an unknown coding is not passed on', async () => {
  for (const coding of ['compress', 'gzip, gzip, gzip', 'x']) {
    bound.answer((_seen, response) => void response.setHeader('content-encoding', coding).end(VALUE));
    const answer = await get();
    assert.match(answer, /^HTTP\/1\.1 502 /);
    assert.match(answer, /cannot be checked/);
    assert.ok(!answer.includes(VALUE));
  }
});

test('a value that arrives in pieces is scrubbed, and events are not held back', async () => {
  const gate = Promise.withResolvers<void>();
  bound.answer(async (_seen, response) => {
    response.setHeader('content-type', 'text/event-stream');
    response.write('data: one\n\n');
    await gate.promise;
    response.write(`data: ${VALUE.slice(0, 7)}`);
    await new Promise((resolve) => void setImmediate(resolve));
    response.write(VALUE.slice(7));
    response.end('\n\n');
  });
  const socket = await secure(setup, BOUND);
  const first = read(socket, (text) => text.includes('data: one\n\n'));
  socket.write(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
  await first;
  const rest = read(socket, (text) => text.endsWith('\r\n0\r\n\r\n'));
  gate.resolve();
  assert.equal((await rest).replace(/[0-9a-f]+\r\n|\r\n/g, ''), `data: ${P}\n\n`);
  socket.destroy();
});

test('a binary response keeps its length, a text gets a new one', async () => {
  for (const [type, shown] of [
    ['application/octet-stream', P.slice(0, VALUE.length)],
    ['text/plain', P],
  ] as const) {
    bound.answer((_seen, response) => {
      response.setHeader('content-type', type);
      response.setHeader('content-length', VALUE.length + 2);
      response.end(`<${VALUE}>`);
    });
    const answer = await get();
    assert.equal(bodyOf(answer), `<${shown}>`);
    assert.match(answer, new RegExp(`content-length: ${shown.length + 2}\r\n`));
  }
});

test('responses without a body keep their headers', async () => {
  bound.answer((_seen, response) => void response.writeHead(304, { etag: '"x"', 'x-value': VALUE }).end());
  assert.match(await rawHead('GET'), new RegExp(`^HTTP/1\\.1 304 [\\s\\S]*x-value: ${P}\r\n`));
  bound.answer((_seen, response) => void response.writeHead(200, { 'content-length': 12345 }).end());
  assert.match(await rawHead('HEAD'), /content-length: 12345\r\n/);
  bound.answer((_seen, response) => void response.writeHead(302, { location: `https://${OTHER}/?k=${VALUE}` }).end());
  assert.match(await rawHead('GET'), new RegExp(`^HTTP/1\\.1 302 [\\s\\S]*location: https://${OTHER}/\\?k=${P}\r\n`));
});

async function rawHead(method: string): Promise<string> {
  const socket = await secure(setup, BOUND);
  const head = read(socket, (text) => text.includes('\r\n\r\n'));
  socket.write(`${method} / HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
  const text = await head;
  socket.destroy();
  return text;
}

/** Answers at once, sends back what it gets, and ends with trailers. */
function serveGrpc(server: http2.Http2SecureServer): void {
  server.on('stream', (stream: http2.ServerHttp2Stream, headers: http2.IncomingHttpHeaders) => {
    stream.on('error', () => {});
    stream.respond(
      { ':status': 200, 'content-type': 'application/grpc', 'x-seen': String(headers['authorization']) },
      { waitForTrailers: true },
    );
    stream.on('data', (chunk: Buffer) => stream.write(chunk));
    stream.on('end', () => stream.end());
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0', 'grpc-message': VALUE }));
  });
}

test('HTTP/2 carries values, streams both ways, and passes trailers, as gRPC needs', async () => {
  const own = await startProxy({}, { serve: serveGrpc });
  const socket = await secure(own, BOUND, { ALPNProtocols: ['h2'] });
  const client = http2.connect(`https://${BOUND}`, { createConnection: () => socket });
  const stream = client.request({
    ':method': 'POST',
    ':path': '/grpc',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${own.placeholder}`,
  });
  stream.on('error', () => {});
  const trailers = new Promise<http2.IncomingHttpHeaders>((resolve) => stream.once('trailers', resolve));
  const response = new Promise<http2.IncomingHttpHeaders>((resolve) => stream.once('response', resolve));
  const first = read(stream, (text) => text.length >= 5);
  stream.write(Buffer.from([0, 0, 0, 0, 0]));
  assert.equal((await response)['x-seen'], `Bearer ${own.placeholder}`);
  assert.equal((await first).length, 5);
  const second = read(stream);
  stream.end(Buffer.from([0, 0, 0, 0, 1, 7]));
  assert.equal((await second).length, 6);
  assert.deepEqual([(await trailers)['grpc-status'], (await trailers)['grpc-message']], ['0', own.placeholder]);
  client.destroy();
  await own.close();
});

test('headers and trailers that may occur once only pass in HTTP/2 if they are repeated', async () => {
  const own = await startProxy(
    {},
    {
      serve: (server) =>
        server.on('stream', (stream: http2.ServerHttp2Stream) => {
          let sent = '';
          stream.on('trailers', (_trailers, _flags, raw: string[]) => {
            sent = raw.join();
          });
          stream.resume().once('end', () => {
            const repeated = { 'x-content-type-options': ['nosniff', 'nosniff'] as unknown as string };
            stream.respond({ ':status': 200, ...repeated }, { waitForTrailers: true });
            stream.once('wantTrailers', () => stream.sendTrailers({ etag: ['a', 'b'] as unknown as string }));
            stream.end(sent);
          });
        }),
    },
  );
  try {
    const socket = await secure(own, BOUND, { ALPNProtocols: ['h2'] });
    const client = http2.connect(`https://${BOUND}`, {
      createConnection: () => socket,
      ...{ strictSingleValueFields: false },
    });
    const request = { ':method': 'POST', trailer: 'etag' };
    const stream = client.request(request, { waitForTrailers: true });
    stream.once('wantTrailers', () => stream.sendTrailers({ etag: ['c', 'd'] as unknown as string }));
    const raw = (event: 'response' | 'trailers') =>
      new Promise<string>((resolve) =>
        stream.once(event, (_headers, _flags, pairs: string[]) => resolve(pairs.join())),
      );
    const [head, trailers] = [raw('response'), raw('trailers')];
    stream.end('body');
    assert.match(await head, /nosniff,x-content-type-options,nosniff/);
    assert.equal(await read(stream), 'etag,c,etag,d');
    assert.equal(await trailers, 'etag,a,etag,b');
    client.destroy();
  } finally {
    await own.close();
  }
});

test('requests of a sandbox share the connections to a host', async () => {
  const client = await session();
  const before = bound.connections();
  for (let count = 0; count < 5; count += 1) {
    const stream = client.request({ ':path': `/${count}`, authorization: P });
    await read(stream);
  }
  assert.ok(bound.connections() - before <= 1);
  assert.ok(bound.seen.every(({ version, headers }) => version === '2.0' && headers['authorization'] === VALUE));
  client.destroy();
});

test('HTTP/1.1 requests follow each other on one connection to a host, after responses of every kind', async () => {
  const large = 'y'.repeat(700_000);
  bound.answer(({ path }, response) => {
    if (path === '/chunked') response.write('c');
    if (path === '/large') response.end(large);
    else if (path === '/empty') response.writeHead(204).end();
    else response.end('ok');
  });
  const socket = await secure(setup, BOUND);
  const before = bound.connections();
  for (const request of ['GET /small', 'HEAD /head', 'GET /empty', 'GET /chunked', 'GET /large', 'GET /small']) {
    const isBodiless = request === 'HEAD /head' || request === 'GET /empty';
    const answer = read(socket, (text) => (isBodiless ? text.endsWith('\r\n\r\n') : isWhole(text)));
    socket.write(`${request} HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
    const text = await answer;
    const expected = { 'GET /large': large, 'GET /chunked': 'cok' }[request] ?? (isBodiless ? '' : 'ok');
    assert.equal(unchunked(text).trim(), expected, request);
  }
  assert.equal(bound.connections() - before, 1);
  socket.destroy();
});

test('a kept connection that the host closes is replaced for a request without a body', async () => {
  const socket = await secure(setup, BOUND);
  for (const closes of [true, false]) {
    bound.answer((_seen, response, request) => {
      response.setHeader('content-length', 2).end('ok');
      // It does not say so, and the next request may be on its way.
      if (closes) response.once('finish', () => request.socket.destroy());
    });
    const answer = read(socket, isWhole);
    socket.write(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
    assert.match(await answer, /^HTTP\/1\.1 200 [\s\S]*ok$/);
  }
  socket.destroy();
});

test('a response that the host cuts is cut for the sandbox, and a body that no host reads is refused', async () => {
  bound.answer((_seen, response) => {
    response.setHeader('content-type', 'application/octet-stream');
    response.setHeader('content-length', 10);
    response.write('half');
    setImmediate(() => response.destroy());
  });
  const answer = await get();
  assert.match(answer, /content-length: 10\r\n/);
  assert.ok(bodyOf(answer).length < 10);
  bound.answer((_seen, response) => void response.destroy());
  assert.match(await post('text/plain', 'body'), /^HTTP\/1\.1 502 [\s\S]*broke the connection before it answered/);
});

test('bytes after a response never answer the next request', async () => {
  bound.answer((_seen, _response, { socket }) => {
    const forged = 'HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged';
    socket.write(`HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok${forged}`);
  });
  const socket = await secure(setup, BOUND);
  for (const path of ['/1', '/2']) {
    const answer = read(socket, isWhole);
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
    assert.equal(bodyOf(await answer), 'ok');
  }
  assert.deepEqual(
    bound.seen.map(({ path }) => path),
    ['/1', '/2'],
  );
  socket.destroy();
});

test('a host without HTTP/2 is offered without it', async () => {
  const old = await startProxy({}, { http1Only: true });
  try {
    const socket = await secure(old, BOUND, { ALPNProtocols: ['h2', 'http/1.1'] });
    assert.equal(socket.alpnProtocol, 'http/1.1');
    const answer = read(socket, isWhole);
    socket.write(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\nauthorization: ${old.placeholder}\r\n\r\n`);
    assert.match(await answer, /^HTTP\/1\.1 200 /);
    assert.equal(old.bound.seen[0]?.headers['authorization'], VALUE);
    socket.destroy();
  } finally {
    await old.close();
  }
});

/** A WebSocket host: echoes the bytes of frames as they are. */
async function withWebSocket(run: (seen: () => string) => Promise<void>): Promise<void> {
  let seen = '';
  const serve = (request: { headers: Record<string, unknown> }, socket: net.Socket) => {
    seen = JSON.stringify(request.headers);
    socket.on('error', () => {});
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nx-value: ${VALUE}\r\n\r\n`,
    );
    socket.pipe(socket);
  };
  bound.server.on('upgrade', serve);
  try {
    await run(() => seen);
  } finally {
    bound.server.removeListener('upgrade', serve);
  }
}

const UPGRADE = `GET /ws HTTP/1.1\r\nHost: ${BOUND}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Extensions: permessage-deflate\r\n`;

test('a WebSocket opens with its secret, and its messages pass both ways', async () => {
  await withWebSocket(async (seen) => {
    const socket = await secure(setup, BOUND);
    const head = read(socket, (text) => text.includes('\r\n\r\n'));
    socket.write(`${UPGRADE}authorization: ${P}\r\n\r\n`);
    assert.match(await head, new RegExp(`^HTTP/1\\.1 101 [\\s\\S]*x-value: ${P}\r\n`));
    assert.match(seen(), new RegExp(RegExp.escape(JSON.stringify(VALUE))));
    assert.doesNotMatch(seen(), /permessage-deflate/);
    const echo = read(socket, (text) => text.length >= 5);
    socket.write('hello');
    assert.equal(await echo, 'hello');
    socket.destroy();
  });
});

test('a WebSocket message that shows a value ends the connection', async () => {
  await withWebSocket(async () => {
    const socket = await secure(setup, BOUND);
    const head = read(socket, (text) => text.includes('\r\n\r\n'));
    socket.write(`${UPGRADE}\r\n`);
    await head;
    const rest = read(socket);
    socket.write(`x${VALUE}`);
    assert.equal(await rest, '');
    assert.ok(setup.refusals().some(({ reason }) => reason === 'secret_returned'));
  });
});

test('a value in two messages of a WebSocket shows nothing of itself', async () => {
  await withWebSocket(async () => {
    const socket = await secure(setup, BOUND);
    const head = read(socket, (text) => text.includes('\r\n\r\n'));
    socket.write(`${UPGRADE}\r\n`);
    await head;
    const begun = read(socket, (text) => text.length > 0);
    socket.write(`x${VALUE.slice(0, -1)}`);
    assert.equal(await begun, 'x');
    const rest = read(socket);
    socket.write(VALUE.slice(-1));
    assert.equal(await rest, '');
  });
});

test('what only looked like a value in a WebSocket arrives', async () => {
  await withWebSocket(async () => {
    const socket = await secure(setup, BOUND);
    const head = read(socket, (text) => text.includes('\r\n\r\n'));
    socket.write(`${UPGRADE}\r\n`);
    await head;
    const begun = read(socket, (text) => text.endsWith('.'));
    socket.write(VALUE.slice(0, -1));
    socket.write('.');
    assert.equal(await begun, `${VALUE.slice(0, -1)}.`);
    socket.destroy();
  });
});

test('a WebSocket that the host declines is declined', async () => {
  bound.answer((_seen, response) => void response.writeHead(403, { 'content-length': 2 }).end('no'));
  assert.match(await rawIn(setup, BOUND, `${UPGRADE}\r\n`), /^HTTP\/1\.1 403 Forbidden[\s\S]*no$/);
});

test('a host that breaks off in the middle of a response is an error for the client', async () => {
  bound.answer((_seen, response) => {
    response.setHeader('content-length', 1_000_000);
    response.write('begun');
    setImmediate(() => response.destroy());
  });
  const socket = await secure(setup, BOUND);
  const all = read(socket);
  socket.write(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
  assert.ok((await all).length < 1_000);
  bound.answer((_seen, response) => void response.destroy());
  assert.match(await get(), /^HTTP\/1\.1 502 [\s\S]*broke the connection before it answered/);
});

test('when a client leaves, its request to the host is aborted', async () => {
  let aborted = 0;
  bound.answer((_seen, response) => {
    response.write('begun');
    response.once('close', () => {
      aborted += 1;
    });
  });
  for (const ALPNProtocols of [['http/1.1'], ['h2']]) {
    if (ALPNProtocols[0] === 'h2') {
      const client = await session();
      const stream = client.request({});
      stream.on('error', () => {});
      await new Promise((resolve) => stream.once('response', resolve));
      stream.close(http2.constants.NGHTTP2_CANCEL);
      await until(() => aborted === 2, 'the host notices');
      client.destroy();
    } else {
      const socket = await secure(setup, BOUND);
      const begun = read(socket, (text) => text.includes('begun'));
      socket.write(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`);
      await begun;
      socket.destroy();
      await until(() => aborted === 1, 'the host notices');
    }
  }
});

test('bytes of TLS that arrive with CONNECT are part of the tunnel', async () => {
  const socket = net.connect(setup.socketPath);
  socket.write(`CONNECT ${BOUND}:443 HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n\x16\x03\x01`);
  const head = await read(socket, (text) => text.includes('\r\n\r\n'));
  assert.match(head, /^HTTP\/1\.1 200 /);
  socket.destroy();
});

test('a tunnel to a host without secrets ends when either side does', async () => {
  const tunnel = await connect(setup.socketPath, 'free.test:443');
  assert.ok(typeof tunnel !== 'string');
  const ended = read(tunnel);
  tunnel.end();
  await ended;
});

test('connections whose client has left do not stay', async () => {
  const open = () => process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length;
  const before = open();
  for (let count = 0; count < 4; count += 1) {
    const client = await session();
    const stream = client.request({ ':method': 'POST' });
    stream.on('error', () => {});
    stream.write('begun');
    await new Promise((resolve) => setImmediate(resolve));
    client.destroy();
    (await secure(setup, BOUND)).destroy();
    (await secure(setup, BOUND)).end();
    const tunnel = await connect(setup.socketPath, 'free.test:443');
    assert.ok(typeof tunnel !== 'string');
    if (count % 2 === 0) tunnel.end();
    else tunnel.destroy();
  }
  await until(() => open() <= before, 'all are closed');
});

test('connections whose client leaves in the middle of an upload do not stay', async () => {
  const own = await startProxy();
  try {
    const open = () => process.getActiveResourcesInfo().filter((kind) => kind === 'PipeWrap').length;
    const before = open();
    const head = `POST / HTTP/1.1\r\nHost: ${BOUND}\r\ncontent-type: text/plain\r\ncontent-length: 100000\r\n\r\n`;
    const upload = async (bytes: number, turns: number) => {
      const client = await secure(own, BOUND);
      client.write(head + 'x'.repeat(bytes));
      for (let turn = 0; turn < turns; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      client.destroy();
    };
    await Promise.all([1_000, 5_000, 10_000, 20_000, 30_000, 40_000, 50_000, 60_000].map(upload));
    await until(() => open() <= before, 'all are closed');
  } finally {
    await own.close();
  }
});

test('changed secrets and rules apply to connections that are open', async () => {
  const own = await startProxy();
  try {
    const socket = await secure(own, BOUND);
    const ask = async () => {
      const answer = read(socket, isWhole);
      socket.write(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\nx-key: ${own.placeholder}\r\n\r\n`);
      return answer;
    };
    await ask();
    assert.equal(own.bound.seen.at(-1)?.headers['x-key'], VALUE);
    const [token] = own.sandbox.secrets;
    await own.update({ secrets: [{ ...token!, value: 'NEW-secret-value' }] });
    await ask();
    assert.equal(own.bound.seen.at(-1)?.headers['x-key'], 'NEW-secret-value');
    await own.update({ secrets: [{ ...token!, hosts: [OTHER] }] });
    assert.match(await ask(), /^HTTP\/1\.1 403 [\s\S]*token is not released to api\.bound\.test/);
  } finally {
    await own.close();
  }
});

test('plain requests without secrets pass, their Host is that of the URL', async () => {
  const own = await startProxy();
  const server = (await import('node:http')).createServer((request, response) =>
    response.end(
      JSON.stringify({ url: request.url, host: request.headers.host, connection: request.headers['proxy-connection'] }),
    ),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  own.network.network.open = () => net.connect((server.address() as net.AddressInfo).port, '127.0.0.1');
  try {
    const answer = await raw(
      own.socketPath,
      'GET http://free.test/a?b HTTP/1.1\r\nHost: free.test\r\nProxy-Connection: close\r\n\r\n',
    );
    assert.deepEqual(JSON.parse(bodyOf(answer)), { url: '/a?b', host: 'free.test' });
  } finally {
    server.close();
    await own.close();
  }
});
