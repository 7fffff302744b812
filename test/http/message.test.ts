/** Bodies on the way from the parser to their exchange, pieces of streams on the wire, and idle connections. */
import assert from 'node:assert/strict';
import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { GatewayRequest } from '../../src/http/message.ts';
import { head, RawClient } from '../../src/testing/clients/raw-client.ts';
import { settle, until } from '../../src/testing/clock/clock.ts';
import { samples } from '../../src/testing/laws/samples.ts';
import { serving, type TestCaller } from './operation-server.ts';

const JSON_TYPE = 'Content-Type: application/json';
const TEXT = JSON.stringify({ messages: [{ role: 'user', content: 'ä'.repeat(400_000) }] });
const BODY = Buffer.from(TEXT);

const MEGABYTE = Buffer.alloc(1_000_000, 0x20);
const CALLER: TestCaller = { id: 'user_1', kind: 'inference' };

const post = (path: string, ...lines: string[]) => head([`POST ${path} HTTP/1.1`, JSON_TYPE, ...lines]);

describe('a body', () => {
  for (const key of ['inference', 'slow-inference']) {
    for (const framing of ['length', 'chunks'] as const) {
      test(`arrives whole with its head or piece by piece, by ${framing}, for a key that is ${key}`, async () => {
        await serving({}, async ({ port }) => {
          const chunked = Buffer.concat([
            Buffer.from(`${BODY.length.toString(16)}\r\n`),
            BODY,
            Buffer.from('\r\n0\r\n\r\n'),
          ]);
          const sent = framing === 'length' ? BODY : chunked;
          const line = framing === 'length' ? `Content-Length: ${BODY.length}` : 'Transfer-Encoding: chunked';
          const asked = Buffer.from(post('/v1/chat', `Authorization: Bearer ${key}`, line));
          for (const pieces of [[Buffer.concat([asked, sent])], [asked, sent.subarray(0, 3), sent.subarray(3)]]) {
            const client = await RawClient.open(port);
            for (const piece of pieces) await client.send(piece);
            const response = await client.response();
            assert.equal(response.status, 200);
            assert.equal(JSON.stringify((response.json() as { body: unknown }).body), TEXT);
            client.leave();
          }
        });
      });
    }
  }

  test('is paused until the caller is known, also for a pipelined request', async () => {
    const gates: (() => void)[] = [];
    const authenticate = () => new Promise<TestCaller>((resolve) => gates.push(() => resolve(CALLER)));
    await serving(
      {},
      async ({ port }) => {
        const client = await RawClient.open(port);
        const large = post('/v1/chat', `Content-Length: ${30 * MEGABYTE.length}`);
        await client.send(`${post('/v1/poke', 'Content-Length: 2')}{}${large} `);
        let sent = 0;
        const sending = (async () => {
          for (; sent < 29; sent += 1) await client.send(MEGABYTE);
          await client.send(MEGABYTE.subarray(1));
        })();
        await until(() => gates.length === 2, 'both requests are there');
        // As much as the system buffers, and no more.
        for (let before = -1; before < sent; ) {
          before = sent;
          for (let round = 0; round < 50; round += 1) await settle();
        }
        assert.ok(sent < 29, `${sent} of 30 MB were taken from somebody unknown`);
        for (const open of gates) open();
        assert.equal((await client.response()).status, 200);
        assert.equal((await client.response()).status, 413);
        await sending;
        client.leave();
      },
      authenticate,
    );
  });

  test('is not waited for if its client disconnects before the caller is known', async () => {
    await serving(
      {},
      async ({ port, server }) => {
        const client = await RawClient.open(port);
        await client.send(`${post('/v1/chat', 'Content-Length: 100')}{"me`);
        await until(() => server.exchanges === 1, 'the request is there');
        client.leave();
        await until(() => server.exchanges === 0, 'its leaving is noticed');
      },
      () => new Promise<never>(() => {}),
    );
  });

  test('a connection is cut when its requests without a response are too many, whatever they are', async () => {
    const [waits, unknown] = [
      head(['POST /v1/wait HTTP/1.1', 'Authorization: Bearer inference']),
      head(['POST /v1/nowhere HTTP/1.1']),
    ];
    await serving({ exchangesPerConnection: 4 }, async ({ port, server, waiting }) => {
      const client = await RawClient.open(port);
      await client.send(waits + unknown.repeat(3));
      await until(() => server.exchanges === 4, 'as many as may be');
      waiting[0]?.reply(200, {});
      assert.equal((await client.response()).status, 200);
      await until(() => server.exchanges === 0, 'all are answered');
      await client.send(waits + unknown.repeat(40));
      await client.closed;
      await until(() => server.exchanges === 0, 'all are over');
    });
  });

  test('pipelined requests in one packet are answered in order, each with its own body', async () => {
    await serving({}, async ({ port }) => {
      const client = await RawClient.open(port);
      const one = (text: string) => {
        const body = JSON.stringify({ messages: [{ role: 'user', content: text }] });
        return `${post('/v1/chat', 'Authorization: Bearer inference', `Content-Length: ${body.length}`)}${body}`;
      };
      await client.send(['a', 'b', 'c'].map(one).join(''));
      for (const text of ['a', 'b', 'c']) {
        const { body } = (await client.response()).json() as { body: { messages: { content: string }[] } };
        assert.equal(body.messages[0]?.content, text);
      }
      client.leave();
    });
  });
});

describe('a stream', () => {
  for (const version of ['1.1', '1.0']) {
    test(`arrives in pieces that its client can put together, HTTP/${version}`, async () => {
      await serving({}, async ({ port, waiting }) => {
        const client = await RawClient.open(port);
        await client.send(head([`POST /v1/wait HTTP/${version}`, 'Authorization: Bearer inference']));
        await until(() => waiting.length === 1, 'the request is there');
        const { response } = waiting[0]!;
        response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        for (const piece of ['data: ä\n\n', '', 'data: 😀\n\n', `data: ${'x'.repeat(70_000)}\n\n`]) {
          response.writePiece(piece);
        }
        response.writePiece(Buffer.from('data: 東é\n\n').toString('latin1'), 'latin1');
        response.end();
        const answer = await client.response();
        const whole = `data: ä\n\ndata: 😀\n\ndata: ${'x'.repeat(70_000)}\n\ndata: 東é\n\n`;
        if (version === '1.1') {
          assert.equal(answer.headers['transfer-encoding'], 'chunked');
          assert.equal(answer.body, whole);
        } else {
          assert.equal(answer.headers['transfer-encoding'], undefined);
          assert.equal(await client.read(whole), whole);
          await client.closed;
        }
        client.leave();
      });
    });
  }

  test('each write to a slow reader reports it, until it has read', async () => {
    await serving({}, async ({ port, waiting }) => {
      const client = await RawClient.open(port);
      await client.send(head(['POST /v1/wait HTTP/1.1', 'Authorization: Bearer inference']));
      await until(() => waiting.length === 1, 'the request is there');
      const { response } = waiting[0]!;
      client.socket.pause();
      response.writeHead(200);
      const drained = new Promise<void>((resolve) => response.on('drain', resolve));
      let written = 0;
      for (let goesOn = true; goesOn; written += 1) goesOn = response.writePiece('x'.repeat(1_000_000));
      client.socket.resume();
      await drained;
      response.end();
      assert.equal((await client.response()).body.length, written * 1_000_000);
      client.leave();
    });
  });
});

describe('a connection', () => {
  const health = ['GET /health HTTP/1.1'];

  test('announces its keep-alive time, and is closed a second after it', async () => {
    await serving({ keepAliveMs: 5_000 }, async ({ port, server }, clock) => {
      const client = await RawClient.open(port);
      for (let round = 0; round < 3; round += 1) {
        const { headers } = await client.ask(health);
        assert.deepEqual([headers['connection'], headers['keep-alive']], ['keep-alive', 'timeout=5']);
        await until(() => server.exchanges === 0, 'the answer is over on this side as well');
        clock.advance(5_900);
        await settle();
      }
      clock.advance(2_000);
      await client.closed;
    });
  });

  test('that is in use is not idle, however long that takes', async () => {
    await serving({ keepAliveMs: 5_000 }, async ({ port, waiting }, clock) => {
      const client = await RawClient.open(port);
      await client.ask(health);
      await client.send(head(['POST /v1/wait HTTP/1.1', 'Authorization: Bearer inference']));
      await until(() => waiting.length === 1, 'the request is there');
      clock.advance(60_000);
      await settle();
      waiting[0]!.reply(200, { late: true });
      assert.deepEqual((await client.response()).json(), { late: true });
      client.leave();
    });
  });

  for (const [when, ...lines] of [
    ['its client asks for it', 'GET /health HTTP/1.1', 'Connection: close'],
    ['its client uses HTTP/1.0', 'GET /health HTTP/1.0'],
    ['the length of the response cannot be announced', 'OPTIONS * HTTP/1.0', 'Connection: keep-alive'],
    ['an announced body may still arrive', 'POST /v1/chat HTTP/1.1', 'Expect: 100-continue', 'Content-Length: 2'],
  ] as const) {
    test(`that ends with its response, since ${when}, says so and announces no keep-alive time`, async () => {
      await serving({}, async ({ port }) => {
        const client = await RawClient.open(port);
        const { headers } = await client.ask(lines);
        assert.deepEqual([headers['connection'], headers['keep-alive']], ['close', undefined]);
        await client.closed;
      });
    });
  }

  test('is cut when it is the turn of a pipelined response that broke while an earlier one was written', async () => {
    await serving({}, async ({ port, server, waiting }) => {
      const client = await RawClient.open(port);
      const key = 'Authorization: Bearer inference';
      await client.send(head(['POST /v1/wait HTTP/1.1', key]) + head(['GET /v1/break HTTP/1.1', key]));
      await until(() => waiting.length === 1 && server.exchanges === 1, 'the second is over');
      waiting[0]!.reply(200, { first: true });
      assert.deepEqual((await client.response()).json(), { first: true });
      await client.closed;
    });
  });
});

test("headers equal Node's own, whatever their names and however often they occur", () => {
  const names = fc.oneof(
    fc.constantFrom('Host', 'host', 'Content-Type', 'Cookie', 'Set-Cookie', 'X-A', 'x-a', 'Authorization', 'Expect'),
    fc.constantFrom('__proto__', 'constructor', 'toString', 'Transfer-Encoding', 'content-length', 'X-Forwarded-For'),
    fc.stringMatching(/^[a-zA-Z-]{1,6}$/),
  );
  const lists = fc.array(fc.tuple(names, fc.string({ maxLength: 5 })), { maxLength: 8 });
  const headersIn = (message: IncomingMessage, raw: string[]) => {
    (message as unknown as { _addHeaderLines(lines: string[], count: number): void })._addHeaderLines(raw, raw.length);
    return { ...message.headers };
  };
  fc.assert(
    fc.property(lists, (list) => {
      const raw = list.flat();
      const ours = headersIn(new GatewayRequest(new Socket()), raw);
      assert.deepEqual(ours, headersIn(new IncomingMessage(new Socket()), raw));
    }),
    { numRuns: samples(2000) },
  );
});
