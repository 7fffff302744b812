import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { settle, until } from '../../../src/testing/clock/clock.ts';
import { keyOf, TransportBench } from './transport.ts';

describe('an abort', () => {
  const bench = new TransportBench();
  const { send, exchange, scripted, requests, unansweredAddress } = bench;

  test('ends the connection at once, before the head and within the body, without further receiver calls', async () => {
    for (const answer of [{ end: 'stall-before-headers' }, { chunks: ['a'], end: 'stall' }] as const) {
      for (let round = 0; round < 5; round++) {
        const baseUrl = scripted(answer);
        const { receiver, call } = send(baseUrl);
        const received = await bench.upstream.request(keyOf(baseUrl));
        if (answer.end === 'stall') await until(() => receiver.bytes, 'the first byte');
        call.abort();
        call.abort();
        // The clock does not move, so no timeout closes it.
        await until(() => received.closedEarlyAt, 'the upstream sees the connection close');
        assert.equal(receiver.over, false);
      }
    }
    assert.equal(bench.clock.timers, 0);
  });

  test('while connecting closes the attempt, and while a kept connection is checked sends nothing', async () => {
    const { receiver, call } = send(await unansweredAddress());
    await settle(2);
    call.abort();
    const baseUrl = scripted({ chunks: ['ok'] });
    await exchange(baseUrl);
    const second = send(baseUrl);
    second.call.abort();
    await settle();
    assert.equal(requests(baseUrl).length, 1);
    assert.equal(receiver.over || second.receiver.over, false);
    assert.equal(bench.clock.timers, 0);
    assert.equal((await exchange(baseUrl)).text, 'ok');
  });

  test('from within head and data is possible', async () => {
    const inData = send(scripted({ chunks: ['abc', { gate: 'aborted' }, 'def'] }));
    inData.receiver.onData = () => {
      inData.call.abort();
      bench.upstream.open('aborted');
    };
    const inHead = send(scripted({ chunks: ['abc'] }));
    const head = inHead.receiver.head.bind(inHead.receiver);
    inHead.receiver.head = (status, headers) => {
      head(status, headers);
      inHead.call.abort();
    };
    await until(() => inData.receiver.bytes > 0 && inHead.receiver.status, 'both began');
    await settle();
    assert.equal(inData.receiver.text, 'abc');
    assert.equal(inHead.receiver.bytes, 0);
    assert.equal(inData.receiver.over || inHead.receiver.over, false);
  });

  test('a refused call aborted before its report gets no report', async () => {
    const { receiver, call } = send('nonsense');
    call.abort();
    await settle();
    assert.equal(receiver.over, false);
  });

  test('after the end leaves the connection alone', async () => {
    const baseUrl = scripted({ chunks: ['ok'] });
    const { receiver, call } = send(baseUrl);
    await until(() => receiver.ended, 'the end');
    call.abort();
    await exchange(baseUrl);
    const [first, second] = requests(baseUrl);
    assert.equal(first!.connection, second!.connection);
  });

  test('closing the transport ends every exchange as cut and every connection', async () => {
    const baseUrl = scripted({ chunks: ['a'], end: 'stall' });
    const { receiver } = send(baseUrl);
    await until(() => receiver.bytes, 'the first byte');
    const received = requests(baseUrl)[0]!;
    await bench.transport.close();
    assert.equal(receiver.failure?.kind, 'cut');
    await until(() => received.closedEarlyAt, 'the upstream sees the connection close');
    assert.equal((await exchange(baseUrl)).failure?.kind, 'refused');
  });
});
