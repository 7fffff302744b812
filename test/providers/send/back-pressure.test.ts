import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { settle, until } from '../../../src/testing/clock/clock.ts';
import { TIMEOUTS, TransportBench } from './transport.ts';

describe('back-pressure', () => {
  const bench = new TransportBench();
  const { send, scripted, requests, rawServer } = bench;

  test('a paused exchange of 100 MB slows the upstream and buffers almost nothing', async () => {
    const total = 100 * 1024 * 1024;
    let written = 0;
    const url = await rawServer((socket) => {
      const piece = Buffer.alloc(256 * 1024, 'x');
      const write = () => {
        while (written < total) {
          written += piece.length;
          if (!socket.write(piece)) return;
        }
      };
      socket.once('data', () => {
        socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${total}\r\n\r\n`);
        socket.on('drain', write);
        write();
      });
    });
    const { receiver, call } = send(url);
    receiver.keep = false;
    let pausedAtBytes = 0;
    receiver.onData = () => {
      if (pausedAtBytes > 0 || receiver.bytes < 1_000_000) return;
      pausedAtBytes = receiver.bytes;
      call.pause();
      call.pause();
    };
    await until(() => pausedAtBytes > 0, 'the pause');
    let before = -1;
    await until(() => {
      const same = before === written;
      before = written;
      return same;
    }, 'the upstream waits');
    await settle(50);
    assert.ok(receiver.bytes - pausedAtBytes <= 64 * 1024, `${receiver.bytes - pausedAtBytes} bytes after the pause`);
    assert.ok(written < total / 2, `${written} bytes were taken from the upstream`);
    bench.clock.advance(TIMEOUTS.idle * 3);
    assert.equal(receiver.over, false, 'the idle timeout is stopped');
    call.resume();
    call.resume();
    await until(() => receiver.ended, 'the end');
    assert.equal(receiver.bytes, total);
  });

  test('the idle timeout restarts on resume', async () => {
    const { receiver, call } = send(scripted({ chunks: ['a'], end: 'stall' }));
    await until(() => receiver.bytes, 'a');
    call.pause();
    bench.clock.advance(TIMEOUTS.idle * 2);
    call.resume();
    bench.clock.advance(TIMEOUTS.idle - 1);
    assert.equal(receiver.over, false);
    bench.clock.advance(1);
    assert.equal(receiver.failure?.kind, 'timeout');
  });

  test('a failure says whether the answer was held back for at least half of the time', async () => {
    const { idle, total } = TIMEOUTS;
    for (const [pausedMs, heldBack] of [
      [idle, true],
      [idle - 1, undefined],
    ] as const) {
      const { receiver, call } = send(scripted({ chunks: ['a'], end: 'stall' }));
      await until(() => receiver.bytes, 'a');
      call.pause();
      bench.clock.advance(pausedMs);
      call.resume();
      bench.clock.advance(idle);
      assert.deepEqual([receiver.failure?.kind, receiver.failure?.heldBack], ['timeout', heldBack]);
    }
    const { receiver, call } = send(scripted({ chunks: ['a'], end: 'stall' }));
    await until(() => receiver.bytes, 'a');
    call.pause();
    bench.clock.advance(total);
    assert.equal(receiver.failure?.message, `the client did not read its answer within ${total} ms`);
  });

  test('pausing at any piece of a response that closes its connection neither loses nor adds anything', async () => {
    const heads = ['', 'content-length: 6\r\n', 'transfer-encoding: chunked\r\n'];
    for (const head of heads) {
      const pieces = head.startsWith('transfer') ? ['3\r\nabc\r\n', '3\r\ndef\r\n', '0\r\n\r\n'] : ['abc', 'def'];
      for (const joined of [true, false]) {
        const raw = [`HTTP/1.1 200 OK\r\nconnection: close\r\n${head}\r\n`, ...pieces];
        const { receiver, call } = send(scripted({ raw: joined ? [raw.join('')] : raw, end: 'cut' }));
        receiver.onData = () => {
          call.pause();
          settle(3).then(() => call.resume());
        };
        await until(() => receiver.over, 'the exchange is over');
        assert.deepEqual([receiver.text, receiver.ended], ['abcdef', true], `${head} ${joined}`);
      }
    }
  });

  test('pausing, or pausing and resuming, within data leaves the connection reusable', async () => {
    const baseUrl = scripted({ headers: { 'content-length': '300000' }, chunks: ['x'.repeat(300_000)] });
    for (const resume of [true, false, true]) {
      const { receiver, call } = send(baseUrl);
      receiver.onData = () => {
        call.pause();
        if (resume || receiver.bytes < 300_000) call.resume();
      };
      await until(() => receiver.ended, 'the end');
      assert.equal(receiver.bytes, 300_000);
    }
    const numbers = new Set(requests(baseUrl).map(({ connection }) => connection));
    assert.equal(numbers.size, 1);
  });

  test('a reset while paused is a cut', async () => {
    for (const connection of ['keep-alive', 'close']) {
      const head = `HTTP/1.1 200 OK\r\nconnection: ${connection}\r\ncontent-length: 9\r\n\r\nabc`;
      const { receiver, call } = send(scripted({ raw: [head], end: 'reset' }));
      receiver.onData = () => call.pause();
      await until(() => receiver.over, 'the exchange is over');
      assert.deepEqual([receiver.failure?.kind, receiver.sent], ['cut', true]);
    }
  });

  test('a call paused before its head gets the head and then waits', async () => {
    const { receiver, call } = send(scripted({ chunks: ['abc', 'def'] }));
    call.pause();
    await settle(50);
    assert.equal(receiver.over, false);
    call.resume();
    await until(() => receiver.ended, 'the end');
    assert.equal(receiver.text, 'abcdef');
  });
});
