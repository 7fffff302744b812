/** Slow, excessive, oversized and missing requests, and clients that disconnect. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RawClient } from '../../src/testing/clients/raw-client.ts';
import { settle, TestClock, until } from '../../src/testing/clock/clock.ts';
import { serving, startTestServer } from './operation-server.ts';

const KEY = 'Authorization: Bearer inference';
const JSON_TYPE = 'Content-Type: application/json';
const MEGA = 2 ** 20;

const postHead = (path: string, lines: string[]) => `POST ${path} HTTP/1.1\r\nHost: x\r\n${lines.join('\r\n')}\r\n\r\n`;

describe('before the body', () => {
  test('an unknown key is 401 even if the body never arrives, and a key of the wrong kind is 403', async () => {
    await serving({}, async ({ port }) => {
      for (const [key, status] of [
        ['wrong', 401],
        ['slow-wrong', 401],
        ['management', 403],
      ] as const) {
        const client = await RawClient.open(port);
        const lines = ['POST /v1/chat HTTP/1.1', `Authorization: Bearer ${key}`, JSON_TYPE, 'Content-Length: 1000000'];
        assert.equal((await client.ask(lines)).status, status);
        client.leave();
      }
    });
  });

  test('a client whose body is slightly too large reads the error even if it sends the whole body first', async () => {
    await serving({}, async ({ port }) => {
      const client = await RawClient.open(port);
      await client.send(postHead('/v1/chat', [KEY, JSON_TYPE, `Content-Length: ${40 * MEGA}`]));
      const chunk = Buffer.alloc(MEGA);
      for (let sent = 0; sent < 40; sent += 1) await client.send(chunk);
      assert.equal((await client.response()).status, 413);
      client.leave();
    });
  });

  test('a refused client that stops sending is cut after the timeout', async () => {
    await serving({ lingerMs: 1000 }, async ({ port }, clock) => {
      const client = await RawClient.open(port);
      await client.send(postHead('/v1/chat', ['Authorization: Bearer wrong', JSON_TYPE, 'Content-Length: 100000']));
      assert.equal((await client.response()).status, 401);
      clock.advance(3000);
      await client.closed;
    });
  });

  test('no memory is kept for a refused client that disconnects with its body half sent', async () => {
    await serving({ lingerMs: 1000 }, async ({ port, server }, clock) => {
      const client = await RawClient.open(port);
      await client.send(
        postHead('/v1/chat', ['Authorization: Bearer wrong', JSON_TYPE, 'Content-Length: 100000']) + '{',
      );
      assert.equal((await client.response()).status, 401);
      client.leave();
      await settle();
      clock.advance(3000);
      clock.advance(3000);
      assert.equal(server.exchanges, 0);
      assert.equal(clock.timers, 0, 'nobody is being looked after any more');
    });
  });

  test('a small unwanted body leaves the connection usable', async () => {
    await serving({}, async ({ port }) => {
      const client = await RawClient.open(port);
      const body = '{"model":"x"}';
      const refused = await client.ask(['POST /v1/chat HTTP/1.1', JSON_TYPE, `Content-Length: ${body.length}`], body);
      assert.equal(refused.status, 401);
      assert.equal((await client.ask(['GET /v1/things HTTP/1.1', KEY])).status, 200);
      // A body for an operation without one is read and dropped.
      const ignored = await client.ask(['GET /v1/things HTTP/1.1', KEY, `Content-Length: ${body.length}`], body);
      assert.equal(ignored.status, 200);
      assert.equal((await client.ask(['GET /v1/things HTTP/1.1', KEY])).status, 200);
      client.leave();
    });
  });

  test('Expect: 100-continue gets its interim response only when the body is wanted', async () => {
    await serving({}, async ({ port }) => {
      const client = await RawClient.open(port);
      const lines = [JSON_TYPE, 'Expect: 100-continue', 'Content-Length: 7'];
      const interim = await client.ask(['POST /v1/poke HTTP/1.1', KEY, ...lines]);
      assert.equal(interim.status, 100);
      await client.send('{"a":1}');
      assert.equal((await client.response()).status, 200);
      assert.equal((await client.ask(['POST /v1/poke HTTP/1.1', ...lines])).status, 401);
      client.leave();
    });
  });
});

describe('slow requests', () => {
  test('headers that do not end are 408, and so is a silent connection', async () => {
    await serving({ headerMs: 100 }, async ({ port }) => {
      for (const text of ['GET /v1/things HTTP/1.1\r\nX-Slow: ', '']) {
        const client = await RawClient.open(port);
        if (text !== '') await client.send(text);
        const response = await client.response();
        assert.equal(response.status, 408);
        assert.match(response.body, /headers took too long/);
        await client.closed;
      }
    });
  });

  test('a body that stops is 408, and its connection is closed', async () => {
    await serving({ bodyMs: 10_000 }, async ({ port, server, handled }, clock) => {
      const client = await RawClient.open(port);
      await client.send(postHead('/v1/chat', [KEY, JSON_TYPE, 'Content-Length: 100']) + '{"messages"');
      await until(() => server.exchanges === 1 && clock.timers > 0, 'the body is being waited for');
      clock.advance(9_000);
      await settle();
      assert.equal(client.socket.destroyed, false);
      clock.advance(3_000);
      const response = await client.response();
      assert.equal(response.status, 408);
      assert.equal(response.headers['connection'], 'close');
      await client.closed;
      assert.deepEqual(handled, []);
    });
  });

  test('a body that trickles is 408 too, while a long one at a decent rate is not', async () => {
    await serving({ bodyMs: 10_000, bodyBytesPerSecond: 1000 }, async ({ port, server }, clock) => {
      const open = async (length: number) => {
        const client = await RawClient.open(port);
        await client.send(postHead('/v1/chat', [KEY, JSON_TYPE, `Content-Length: ${length}`]));
        return client;
      };
      const body = JSON.stringify({ messages: [{ role: 'user', content: 'a'.repeat(60_000) }] });
      const trickling = await open(1000);
      const steady = await open(body.length);
      await until(() => server.exchanges === 2 && clock.timers > 0, 'both bodies are being waited for');
      for (let second = 0; second < 20; second += 1) {
        const from = (second * body.length) / 20;
        await trickling.send('{').catch(() => {});
        await steady.send(body.slice(Math.round(from), Math.round(from + body.length / 20)));
        await settle(5);
        clock.advance(1_000);
      }
      assert.equal((await trickling.response()).status, 408);
      assert.equal((await steady.response()).status, 200);
      trickling.leave();
      steady.leave();
    });
  });

  test('a thousand slow connections do not block a normal request', { timeout: 30_000 }, async () => {
    await serving({ headerMs: 60_000 }, async ({ port, server }) => {
      const slow: RawClient[] = [];
      for (let count = 0; count < 1000; count += 1) {
        const client = await RawClient.open(port);
        const half =
          count % 2 === 0
            ? 'GET /v1/things HTTP/1.1\r\nX-Slow: '
            : postHead('/v1/chat', [KEY, JSON_TYPE, 'Content-Length: 100']) + '{';
        await client.send(half);
        slow.push(client);
      }
      await until(() => server.exchanges === 500, 'the slow bodies are being waited for');
      const client = await RawClient.open(port);
      assert.equal((await client.ask(['GET /v1/things HTTP/1.1', KEY])).status, 200);
      assert.equal(server.exchanges, 500, 'the slow bodies are still being waited for');
      client.leave();
      for (const one of slow) one.leave();
      await until(() => server.exchanges === 0, 'all are gone');
    });
  });

  test('a response has no time limit', async () => {
    await serving({ headerMs: 50, bodyMs: 1000 }, async ({ port, waiting }, clock) => {
      const client = await RawClient.open(port);
      await client.send(postHead('/v1/wait', [KEY, JSON_TYPE, 'Content-Length: 2']) + '{}');
      const { response } = await until(() => waiting[0], 'the handler has it');
      response.writeHead(200, { 'Content-Type': 'text/event-stream' });
      response.write('data: 1\n\n');
      await client.read('data: 1');
      clock.advance(3_600_000);
      const before = performance.now();
      // Real time too, beyond Node's own limit on headers: three of its checks.
      await until(() => performance.now() - before > 150, 'the limit on headers is over');
      response.end('data: 2\n\n');
      await client.read('data: 2');
      client.leave();
    });
  });
});

describe('too many at once', () => {
  test('exchanges over the limit are 503 with Retry-After', async () => {
    await serving({ exchanges: 1 }, async ({ port, waiting }) => {
      const first = await RawClient.open(port);
      await first.send(postHead('/v1/wait', [KEY]));
      const exchange = await until(() => waiting[0], 'the first one waits');
      const second = await RawClient.open(port);
      const refused = await second.ask(['GET /v1/things HTTP/1.1', KEY]);
      assert.equal(refused.status, 503);
      assert.equal(refused.headers['retry-after'], '1');
      exchange.reply(200, { ok: true });
      assert.equal((await first.response()).status, 200);
      assert.equal((await second.ask(['GET /v1/things HTTP/1.1', KEY])).status, 200);
      first.leave();
      second.leave();
    });
  });

  test('bodies over the shared limit are 503, and their memory is released', async () => {
    await serving({ bodyBytesInFlight: 1000 }, async ({ port, server }) => {
      const body = JSON.stringify({ messages: [{ role: 'user', content: 'a'.repeat(700) }] });
      const lines = ['POST /v1/chat HTTP/1.1', KEY, JSON_TYPE, `Content-Length: ${body.length}`];
      const first = await RawClient.open(port);
      await first.send(postHead('/v1/chat', lines.slice(1)) + body.slice(0, 600));
      await until(() => server.exchanges === 1, 'the first body is half there');
      await settle();
      const second = await RawClient.open(port);
      assert.equal((await second.ask(lines, body)).status, 503);
      first.leave();
      await until(() => server.exchanges === 0, 'the first client is gone');
      assert.equal((await second.ask(lines, body)).status, 200);
      second.leave();
    });
  });
});

describe('a client that disconnects', () => {
  test('is noticed at once while its response is awaited, exactly once, also by a late listener', async () => {
    await serving({}, async ({ port, waiting, server }, clock) => {
      const start = clock.now();
      const client = await RawClient.open(port);
      await client.send(postHead('/v1/wait', [KEY, JSON_TYPE, 'Content-Length: 2']) + '{}');
      const exchange = await until(() => waiting[0], 'the handler has it');
      let calls = 0;
      exchange.onClose(() => {
        calls += 1;
      });
      client.leave();
      await until(() => calls > 0, 'it is noticed');
      assert.equal(clock.now(), start, 'no timer was due');
      assert.equal(exchange.closed, true);
      exchange.onClose(() => {
        calls += 10;
      });
      await settle();
      assert.equal(calls, 11);
      exchange.reply(200, { ok: true });
      assert.equal(server.exchanges, 0);
    });
  });

  test('is noticed in the middle of a stream, and when it closes only its own side', async () => {
    await serving({}, async ({ port, waiting }) => {
      for (const leave of [(client: RawClient) => client.leave(), (client: RawClient) => void client.socket.end()]) {
        waiting.length = 0;
        const client = await RawClient.open(port);
        await client.send(postHead('/v1/wait', [KEY]));
        const exchange = await until(() => waiting[0], 'the handler has it');
        exchange.response.writeHead(200, { 'Content-Type': 'text/event-stream' });
        exchange.response.write('data: 1\n\n');
        await client.read('data: 1');
        let closed = false;
        exchange.onClose(() => {
          closed = true;
        });
        leave(client);
        await until(() => closed, 'it is noticed');
      }
    });
  });

  test('aborts all of its pipelined requests', async () => {
    await serving({}, async ({ port, waiting, server }) => {
      const client = await RawClient.open(port);
      await client.send(postHead('/v1/wait', [KEY]).repeat(3));
      await until(() => waiting.length === 3, 'all three wait');
      let closed = 0;
      for (const exchange of waiting) {
        exchange.onClose(() => {
          closed += 1;
        });
      }
      client.leave();
      await until(() => closed === 3, 'all three are told');
      assert.equal(server.exchanges, 0);
    });
  });

  test('is not reported after the response is complete', async () => {
    await serving({}, async ({ port, waiting, server }) => {
      const client = await RawClient.open(port);
      await client.send(postHead('/v1/wait', [KEY]));
      const exchange = await until(() => waiting[0], 'the handler has it');
      exchange.onClose(() => assert.fail('it was complete'));
      exchange.reply(200, {});
      await client.response();
      await until(() => server.exchanges === 0, 'the exchange is over');
      client.leave();
      await settle();
      assert.equal(exchange.closed, false);
    });
  });

  test('in the middle of its body ends the exchange without running its handler', async () => {
    await serving({}, async ({ port, server, handled }) => {
      const client = await RawClient.open(port);
      await client.send(postHead('/v1/chat', [KEY, JSON_TYPE, 'Content-Length: 100']) + '{"messages"');
      await until(() => server.exchanges === 1, 'its head is there');
      client.leave();
      await until(() => server.exchanges === 0, 'the exchange is over');
      assert.deepEqual(handled, []);
    });
  });

  test('before the turn of its last byte ends leaves nothing to handle', async () => {
    const ends: (() => void)[] = [];
    const { server, port, handled } = await startTestServer({ endOfTurn: (run) => void ends.push(run) });
    const body = '{"messages":[{"role":"user","content":"hi"}]}';
    const head = postHead('/v1/chat', [KEY, JSON_TYPE, `Content-Length: ${body.length}`]);
    const [stays, leaves] = [await RawClient.open(port), await RawClient.open(port)];
    for (const client of [stays, leaves]) await client.send(head + body);
    await until(() => ends.length === 2, 'both bodies are there');
    leaves.socket.resetAndDestroy();
    await until(() => server.exchanges === 1, 'one exchange is over');
    assert.deepEqual(handled, []);
    for (const end of ends) end();
    assert.deepEqual(handled, ['chat']);
    assert.equal((await stays.response()).status, 200);
    stays.leave();
    await server.drain(0);
  });
});

describe('drain', () => {
  test('closes idle connections, lets open responses end, and accepts no new connections', async () => {
    const running = await startTestServer({ clock: new TestClock() });
    const { port, server, waiting } = running;
    assert.equal(server.ready, true);
    const idle = await RawClient.open(port);
    await idle.ask(['GET /v1/things HTTP/1.1', KEY]);
    const plain = await RawClient.open(port);
    await plain.send(postHead('/v1/wait', [KEY]));
    const streaming = await RawClient.open(port);
    await streaming.send(postHead('/v1/wait', [KEY]));
    await until(() => waiting.length === 2, 'both wait');
    const [first, second] = waiting;
    second?.response.writeHead(200, { 'Content-Type': 'text/event-stream' });
    second?.response.write('data: 1\n\n');
    const drained = server.drain(10_000);
    assert.equal(server.ready, false);
    await idle.closed;
    await assert.rejects(RawClient.open(port));
    first?.reply(200, { done: true });
    const answer = await plain.response();
    assert.deepEqual(answer.json(), { done: true });
    await plain.closed;
    second?.response.end('data: 2\n\n');
    await streaming.read('data: 2');
    await streaming.closed;
    await drained;
  });

  test('delivers a long last response to a slow reader before it closes', async () => {
    const running = await startTestServer({ clock: new TestClock() });
    const client = await RawClient.open(running.port);
    client.socket.pause();
    await client.send(postHead('/v1/wait', [KEY]));
    const exchange = await until(() => running.waiting[0], 'the handler has it');
    const text = 'a'.repeat(8 * MEGA);
    exchange.reply(200, { text });
    const drained = running.server.drain(10_000);
    client.socket.resume();
    assert.equal((await client.response()).body.length, text.length + 11);
    await drained;
  });

  test('cuts what is still open after the timeout', async () => {
    const clock = new TestClock();
    const { port, server, waiting } = await startTestServer({ clock });
    const client = await RawClient.open(port);
    await client.send(postHead('/v1/wait', [KEY]));
    const exchange = await until(() => waiting[0], 'the handler has it');
    let closed = false;
    exchange.onClose(() => {
      closed = true;
    });
    const drained = server.drain(10_000);
    clock.advance(9_999);
    await settle();
    assert.equal(closed, false);
    clock.advance(1);
    await client.closed;
    await drained;
    assert.equal(closed, true);
    assert.equal(server.exchanges, 0);
  });
});
