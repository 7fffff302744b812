import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { settle, until } from '../../../src/testing/clock/clock.ts';
import type { Answer } from '../../../src/testing/upstream/upstream.ts';
import { CANARY, keyOf, type Recorder, TIMEOUTS, TransportBench } from './transport.ts';

describe('ways of an exchange to fail', () => {
  const bench = new TransportBench();
  const { send, exchange, scripted, requests, unansweredAddress } = bench;

  const expectFailure = (receiver: Recorder, kind: string, sent: boolean, status: number | null = null) => {
    assert.deepEqual(
      [receiver.failure?.kind, receiver.sent, receiver.failure?.status],
      [kind, sent, status],
      receiver.failure?.message ?? 'no failure',
    );
  };

  test('no listener: refused, nothing sent', async () => {
    expectFailure(await exchange(scripted({ end: 'refuse' })), 'refused', false);
  });

  test('an unknown host name: refused, nothing sent', async () => {
    const receiver = await exchange('http://name.invalid/v1');
    expectFailure(receiver, 'refused', false);
    assert.match(receiver.failure!.message, /host name/);
  });

  test('an invalid URL or header: refused, and the message shows neither', async () => {
    for (const url of ['ftp://x/y', 'nonsense', `http://user:${CANARY}@127.0.0.1/v1`])
      expectFailure(await exchange(url), 'refused', false);
    const receiver = await exchange(scripted({}), '{}', { authorization: `${CANARY}\n` });
    expectFailure(receiver, 'refused', false);
    assert.ok(!JSON.stringify(receiver.failure).includes(CANARY));
  });

  test('no connection within the connect timeout: timeout, nothing sent', async () => {
    const { receiver } = send(await unansweredAddress());
    await settle();
    bench.clock.advance(TIMEOUTS.connect - 1);
    assert.equal(receiver.over, false);
    bench.clock.advance(1);
    expectFailure(receiver, 'timeout', false);
    assert.match(receiver.failure!.message, /1000 ms/);
  });

  test('no head, or a head and no body: timeout after firstByte, sent', async () => {
    for (const answer of [{ end: 'stall-before-headers' }, { end: 'stall' }] as const) {
      const baseUrl = scripted(answer);
      const { receiver } = send(baseUrl);
      const received = await bench.upstream.request(keyOf(baseUrl));
      if (answer.end === 'stall') await until(() => receiver.status, 'the head');
      bench.clock.advance(TIMEOUTS.firstByte - 1);
      assert.equal(receiver.over, false);
      bench.clock.advance(1);
      expectFailure(receiver, 'timeout', true, answer.end === 'stall' ? 200 : null);
      await until(() => received.closedEarlyAt, 'the upstream sees the connection close');
    }
  });

  test('silence in the middle: timeout after idle, restarted by every byte', async () => {
    const { receiver } = send(scripted({ chunks: ['a', { gate: 'idle b' }, 'b'], end: 'stall' }));
    await until(() => receiver.text === 'a', 'a');
    bench.clock.advance(TIMEOUTS.idle - 1);
    bench.upstream.open('idle b');
    await until(() => receiver.text === 'ab', 'b');
    bench.clock.advance(TIMEOUTS.idle - 1);
    assert.equal(receiver.over, false);
    bench.clock.advance(1);
    expectFailure(receiver, 'timeout', true, 200);
  });

  test('a slow trickle of bytes ends at the total timeout', async () => {
    const drips = 40;
    const chunks = Array.from({ length: drips }, (_, at) => [{ gate: `drip ${at}` }, '.']).flat();
    const { receiver } = send(scripted({ chunks }));
    for (let at = 0; at < drips && !receiver.over; at++) {
      bench.upstream.open(`drip ${at}`);
      await until(() => receiver.bytes === at + 1, `drip ${at}`);
      bench.clock.advance(1900);
    }
    expectFailure(receiver, 'timeout', true, 200);
    assert.equal(receiver.bytes, Math.ceil(TIMEOUTS.total / 1900));
  });

  test('closed or reset before the head: cut, sent, and never sent again', async () => {
    for (const end of ['cut', 'reset'] as const) {
      const baseUrl = scripted([{ raw: [], end }, { chunks: ['second'] }]);
      expectFailure(await exchange(baseUrl), 'cut', true);
      assert.equal(requests(baseUrl).length, 1);
    }
  });

  test('closed or reset within the body, with any framing: cut, after the data received', async () => {
    const heads = ['content-length: 10\r\n\r\nabc', 'transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n'];
    for (const connection of ['', 'connection: close\r\n']) {
      for (const head of heads) {
        for (const end of ['cut', 'reset'] as const) {
          const receiver = await exchange(scripted({ raw: [`HTTP/1.1 200 OK\r\n${connection}${head}`], end }));
          expectFailure(receiver, 'cut', true, 200);
          assert.equal(receiver.text, 'abc');
        }
      }
    }
  });

  test('a body without a length ends with its connection, but not with a reset', async () => {
    const raw = ['HTTP/1.1 200 OK\r\n\r\nabc'];
    assert.equal((await exchange(scripted({ raw, end: 'cut' }))).ended, true);
    expectFailure(await exchange(scripted({ raw, end: 'reset' })), 'cut', true, 200);
  });

  test('bytes that are not HTTP: malformed', async () => {
    const answers = [
      'SSH-2.0-OpenSSH_9.2\r\n',
      'HTTP/1.1 200 OK\r\nno colon here\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
      `HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(100_000)}\r\n\r\n`,
    ];
    for (const raw of answers) expectFailure(await exchange(scripted({ raw: [raw], end: 'stall' })), 'malformed', true);
    const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n';
    expectFailure(await exchange(scripted({ raw: [chunked], end: 'stall' })), 'malformed', true, 200);
  });

  test('a kept connection that the upstream closed is replaced, and the request is sent once', async () => {
    const baseUrl = scripted([
      { raw: ['HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na'], end: 'cut' },
      { chunks: ['b'] },
    ]);
    assert.equal((await exchange(baseUrl)).text, 'a');
    await until(() => bench.upstream.connections === 0, 'the upstream has closed it');
    assert.equal((await exchange(baseUrl)).text, 'b');
    assert.equal(requests(baseUrl).length, 2);
  });

  test('no failure shows the query, a header or the body', async () => {
    const answers: Answer[] = [
      { end: 'refuse' },
      { raw: [], end: 'cut' },
      { raw: ['nonsense'], end: 'stall' },
      { chunks: ['a'], end: 'reset' },
      { headers: { 'content-encoding': 'gzip' }, chunks: [`no gzip ${CANARY}`] },
    ];
    for (const answer of answers) {
      const receiver = await exchange(`${scripted(answer)}?key=${CANARY}`, `{"key":"${CANARY}"}`, {
        'x-api-key': CANARY,
      });
      assert.ok(receiver.failure);
      assert.ok(!JSON.stringify(receiver.failure).includes(CANARY), receiver.failure.message);
    }
  });
});
