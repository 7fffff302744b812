import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { settle, until } from '../../../src/testing/clock/clock.ts';
import { samples } from '../../../src/testing/laws/samples.ts';
import { cutBytes } from '../../../src/testing/recordings/cuts.ts';
import type { Answer } from '../../../src/testing/upstream/upstream.ts';
import { TransportBench } from './transport.ts';

describe('the transport', () => {
  const bench = new TransportBench();
  const { send, scripted } = bench;

  test('under any responses and actions every call completes or stays silent, and nothing is left behind', async () => {
    const packed = gzipSync('data: x\n\n'.repeat(20_000));
    const answers: Answer[] = [
      { chunks: ['short'] },
      { status: 503, chunks: ['error'] },
      { chunks: ['a', 'b'.repeat(200_000), 'c'] },
      { headers: { 'content-encoding': 'gzip' }, chunks: cutBytes(packed, 100) },
      { raw: ['HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n', 'x'.repeat(100_000)], end: 'cut' },
      { raw: ['HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc'], end: 'cut' },
      { chunks: ['a'], end: 'reset' },
      { raw: [], end: 'cut' },
      { raw: ['nonsense'], end: 'cut' },
      { end: 'refuse' },
    ];
    const urls = answers.map((answer) => scripted(answer));
    const plan = fc.sample(fc.record({ answer: fc.nat(answers.length - 1), action: fc.nat(3), turns: fc.nat(12) }), {
      numRuns: samples(300),
      seed: 7,
    });
    const running: Promise<void>[] = [];
    for (const { answer, action, turns } of plan) {
      const { receiver, call } = send(urls[answer]!);
      running.push(
        (async () => {
          await settle(turns);
          const over = receiver.over;
          if (action === 1) call.abort();
          if (action >= 2) call.pause();
          await settle(turns);
          if (action === 1) {
            assert.equal(receiver.over, over);
            return;
          }
          if (action === 2) call.resume();
          if (action === 3) call.abort();
          else await until(() => receiver.over, 'the exchange is over');
        })(),
      );
      if (running.length % 20 === 0) await settle(10);
    }
    await Promise.all(running);
    await settle();
    // The timer that closes idle connections.
    assert.ok(bench.clock.timers <= 1, `${bench.clock.timers} timers`);
    await bench.transport.close();
    assert.equal(bench.clock.timers, 0);
    await until(() => bench.upstream.connections === 0, 'every connection is closed');
  });
});
