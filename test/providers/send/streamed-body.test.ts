/** Request bodies that are too large for memory. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../src/base/clock.ts';
import { silentLog } from '../../../src/base/log.ts';
import type { UpstreamFailure } from '../../../src/formats/conversation/failure.ts';
import { createTransport, type StreamedBody, type UpstreamRequest } from '../../../src/providers/send/index.ts';
import { until } from '../../../src/testing/clock/clock.ts';

const TIMEOUTS = { connect: 10_000, firstByte: 30_000, idle: 30_000, stall: 60_000, total: 60_000 };

interface Outcome {
  status: number;
  text: string;
  failure: UpstreamFailure | undefined;
}

async function setup(t: TestContext, handle: (request: IncomingMessage, response: ServerResponse) => unknown) {
  let connections = 0;
  const server = createServer(handle);
  server.on('connection', () => {
    connections += 1;
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const transport = createTransport({ clock: systemClock, log: silentLog });
  t.after(async () => {
    await transport.close();
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/files`;
  const send = (more: Partial<UpstreamRequest>) =>
    new Promise<Outcome>((resolve) => {
      let status = 0;
      const chunks: Buffer[] = [];
      const over = (failure?: UpstreamFailure) => resolve({ status, text: Buffer.concat(chunks).toString(), failure });
      transport.send(
        { url, headers: {}, body: '', timeouts: TIMEOUTS, ...more },
        {
          head(answered) {
            status = answered;
          },
          data: (chunk) => void chunks.push(chunk),
          end: () => over(),
          failed: over,
        },
      );
    });
  return { send, connections: () => connections };
}

async function* pieces(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

const streamed = (bytes: Buffer, size: number): StreamedBody => ({ bytes: bytes.length, chunks: pieces(bytes, size) });

/** Echoes length and content. */
async function answered(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await buffer(request).catch(() => undefined);
  if (body !== undefined)
    response.end(`${request.method} ${request.headers['content-length']} ${body.toString('base64')}`);
}

test('a streamed body arrives whole under its length, and the connection is used again', async (t) => {
  const { send, connections } = await setup(t, answered);
  for (const [size, piece] of [
    [0, 1],
    [1, 1],
    [100_000, 999],
    [3_000_000, 65_536],
    [2_000_000, 2_000_000],
  ] as const) {
    const bytes = randomBytes(size);
    const { status, text } = await send({ streamed: streamed(bytes, piece) });
    assert.equal(status, 200);
    assert.ok(text === `POST ${size} ${bytes.toString('base64')}`, `${size} bytes in pieces of ${piece}`);
  }
  assert.equal(connections(), 1);
});

test('a body is read no faster than the upstream takes it', async (t) => {
  const slow = Promise.withResolvers<void>();
  const { send } = await setup(t, async (request, response) => {
    await slow.promise;
    await answered(request, response);
  });
  const piece = Buffer.alloc(64 * 1024, 'x');
  let given = 0;
  async function* counted() {
    for (let count = 0; count < 1000; count += 1) {
      given += piece.length;
      yield piece;
    }
  }
  const sending = send({ streamed: { bytes: 1000 * piece.length, chunks: counted() } });
  let before = -1;
  await until(() => {
    const still = given === before;
    before = given;
    return still && given > 0;
  }, 'nothing more is read');
  assert.ok(given < 500 * piece.length, `${given} bytes were read`);
  slow.resolve();
  assert.equal((await sending).status, 200);
});

test('a body that fails or has another length than announced is never taken for whole', async (t) => {
  let whole = 0;
  const { send } = await setup(t, async (request, response) => {
    if ((await buffer(request).catch(() => undefined)) === undefined) return;
    whole += 1;
    response.end();
  });
  async function* broken() {
    yield Buffer.from('some');
    throw new Error('the disk failed');
  }
  const ten = Buffer.alloc(10);
  for (const body of [
    { bytes: 10, chunks: broken() },
    { bytes: 11, chunks: pieces(ten, 3) },
    { bytes: 9, chunks: pieces(ten, 3) },
  ]) {
    assert.notEqual((await send({ streamed: body })).failure, undefined);
  }
  assert.equal(whole, 0);
});

test('an answer before the end of the body is passed on, the rest is not read, and its connection is not used again', async (t) => {
  const { send, connections } = await setup(t, (request, response) => {
    if (request.url?.includes('files')) response.writeHead(413).end('too large');
  });
  let ended = false;
  const piece = Buffer.alloc(64 * 1024);
  async function* endless() {
    try {
      for (;;) yield piece;
    } finally {
      ended = true;
    }
  }
  const { status, text } = await send({ streamed: { bytes: 2 ** 40, chunks: endless() } });
  assert.deepEqual([status, text], [413, 'too large']);
  await until(() => ended, 'the body is let go');
  await send({ body: '{}' });
  assert.equal(connections(), 2);
});

test('a streamed body is not sent again when a kept connection closes', async (t) => {
  let closing = false;
  const { send } = await setup(t, async (request, response) => {
    if (closing) request.socket.destroy();
    else await answered(request, response);
  });
  assert.equal((await send({ body: '{}' })).status, 200);
  closing = true;
  const { failure } = await send({ streamed: streamed(Buffer.from('once'), 1) });
  assert.notEqual(failure, undefined);
});

test('a DELETE has no body', async (t) => {
  const { send } = await setup(t, answered);
  const { text } = await send({ method: 'DELETE', body: 'never sent' });
  assert.equal(text, 'DELETE undefined ');
});
