import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { describe, test } from 'node:test';
import type { UpstreamCall } from '../../../src/providers/send/index.ts';
import { settle, until } from '../../../src/testing/clock/clock.ts';
import { Recorder, TIMEOUTS, TransportBench } from './transport.ts';

describe('a kept connection', () => {
  const bench = new TransportBench();
  const { exchange, scripted, requests, rawServer } = bench;

  const answer = (text: string) => `HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`;
  const requestTo = (url: string) => ({ url, headers: {}, body: '{}', timeouts: TIMEOUTS });

  /** A server that answers every request with these headers, and records its open and used connections. */
  const keeper = async (headers: string) => {
    let connections = 0;
    const open = new Set<number>();
    const used: number[] = [];
    const url = await rawServer((socket) => {
      connections += 1;
      const number = connections;
      open.add(number);
      socket.on('data', () => {
        used.push(number);
        socket.write(`HTTP/1.1 200 OK\r\n${headers}\r\ncontent-length: 2\r\n\r\nok`);
      });
      socket.on('close', () => open.delete(number));
    });
    return { url, open, used };
  };

  test('with more data than requested is closed, and the surplus is never delivered', async () => {
    for (const turns of [0, 1]) {
      let connections = 0;
      let requests = 0;
      const url = await rawServer((socket) => {
        const first = ++connections === 1;
        socket.on('data', () => {
          requests += 1;
          if (!first) {
            socket.write(answer('honest'));
            return;
          }
          const more = () => socket.write(answer('stolen'));
          if (turns === 0) socket.write(answer('first') + answer('stolen'));
          else {
            socket.write(answer('first'));
            setImmediate(() => setImmediate(more));
          }
        });
      });
      const first = new Recorder();
      const second = new Recorder();
      first.end = () => {
        first.ended = true;
        // In the same turn that delivered the response, before surplus bytes can be detected.
        bench.transport.send(requestTo(url), second);
      };
      bench.transport.send(requestTo(url), first);
      await until(() => second.over, 'the second exchange');
      assert.deepEqual([first.text, second.text, requests, connections], ['first', 'honest', 2, 2], `${turns} turns`);
    }
  });

  test('that closes or sends data while a call waits for it does not harm the call, paused or not', async () => {
    const ways: ((socket: Socket) => void)[] = [
      (socket) => void socket.end(),
      (socket) => void socket.resetAndDestroy(),
      (socket) => void socket.write(answer('stolen')),
    ];
    for (const way of ways) {
      for (const paused of [false, true]) {
        let connections = 0;
        let requests = 0;
        const url = await rawServer((socket) => {
          const first = ++connections === 1;
          socket.on('data', () => {
            requests += 1;
            socket.write(answer(first ? 'first' : 'honest'));
            if (first) setImmediate(() => way(socket));
          });
        });
        const first = new Recorder();
        const second = new Recorder();
        let waiting: UpstreamCall | undefined;
        first.end = () => {
          first.ended = true;
          waiting = bench.transport.send(requestTo(url), second);
          if (paused) waiting.pause();
        };
        bench.transport.send(requestTo(url), first);
        await until(() => requests === 2, 'the second request');
        if (paused) {
          await settle();
          assert.equal(second.over, false);
          waiting!.resume();
        }
        await until(() => second.over, 'the second exchange');
        assert.deepEqual([first.text, second.text, requests, connections], ['first', 'honest', 2, 2], `${way}`);
      }
    }
  });

  test('is closed with the transport, and a call waiting for it fails', async () => {
    const baseUrl = scripted({ chunks: ['ok'] });
    const first = new Recorder();
    const second = new Recorder();
    let closing: Promise<void> | undefined;
    first.end = () => {
      first.ended = true;
      bench.transport.send(requestTo(baseUrl), second);
      closing = bench.transport.close();
    };
    bench.transport.send(requestTo(baseUrl), first);
    await until(() => closing !== undefined, 'the end of the first exchange');
    await closing;
    assert.deepEqual([second.failure?.kind, second.sent], ['cut', false]);
    assert.equal(requests(baseUrl).length, 1);
  });

  test('is closed when unused for its keep-alive time or that of the upstream', async () => {
    for (const [headers, keptMs] of [
      ['x: y', 4000],
      ['keep-alive: timeout=5', 3000],
      ['Keep-Alive: max=9, timeout=7', 5000],
    ] as const) {
      const { url, open, used } = await keeper(headers);
      await exchange(url);
      await settle();
      bench.clock.advance(keptMs - 1);
      await exchange(url);
      await settle();
      bench.clock.advance(keptMs - 1);
      await settle();
      assert.deepEqual([used, [...open]], [[1, 1], [1]], headers);
      bench.clock.advance(1);
      await until(() => open.size === 0, 'it is closed');
      assert.equal(bench.clock.timers, 0);
      assert.equal((await exchange(url)).text, 'ok');
      await bench.transport.close();
      bench.use({});
    }
  });

  test('with a long hint does not extend the time of others', async () => {
    const long = await keeper('keep-alive: timeout=500');
    let hint = 'keep-alive: timeout=500\r\n';
    const open = new Set<Socket>();
    const url = await rawServer((socket) => {
      open.add(socket);
      socket.on('close', () => open.delete(socket));
      socket.on('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\n${hint}content-length: 2\r\n\r\nok`);
        hint = '';
      });
    });
    await Promise.all([exchange(url), exchange(url), exchange(long.url)]);
    await settle();
    assert.equal(open.size, 2);
    bench.clock.advance(4_000);
    await until(() => open.size === 1, 'the one without a hint is closed');
    assert.equal(long.open.size, 1);
  });

  test('is not reused if the upstream is about to close it or has not read the whole request', async () => {
    for (const headers of ['keep-alive: timeout=2', 'connection: close']) {
      const { url, used } = await keeper(headers);
      await exchange(url);
      await exchange(url);
      assert.deepEqual(used, [1, 2], headers);
    }
    let connections = 0;
    const url = await rawServer((socket) => {
      connections += 1;
      socket.once('data', () => {
        socket.pause();
        socket.write(answer('too large'));
      });
    });
    assert.equal((await exchange(url, Buffer.alloc(20_000_000))).text, 'too large');
    assert.equal((await exchange(url)).text, 'too large');
    assert.equal(connections, 2);
  });
});
