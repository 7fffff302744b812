import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLog } from '../../../src/base/log.ts';
import { until } from '../../../src/testing/clock/clock.ts';
import { CANARY, Recorder, TIMEOUTS, TransportBench } from './transport.ts';

describe('an exchange with an upstream', () => {
  const bench = new TransportBench();
  const { send, exchange, scripted, requests } = bench;

  test('adds only host, length, type, connection and accept-encoding to the given request', async () => {
    const baseUrl = scripted({ chunks: ['ok'] });
    const receiver = await exchange(`${baseUrl}/chat?x=1`, '{"a":"é"}', { authorization: 'Bearer k', 'X-Own': '1' });
    assert.deepEqual([receiver.status, receiver.text, receiver.ended], [200, 'ok', true]);
    const [request] = requests(baseUrl);
    assert.equal(request!.path, '/chat?x=1');
    assert.equal(request!.body.toString(), '{"a":"é"}');
    assert.deepEqual(request!.headers, {
      host: new URL(bench.upstream.url).host,
      connection: 'keep-alive',
      'accept-encoding': 'identity',
      authorization: 'Bearer k',
      'x-own': '1',
      'content-type': 'application/json',
      'content-length': '10',
    });
  });

  test('a body in pieces arrives as one, whether it is copied after its head or not', async () => {
    for (const bytes of [10, 300_000]) {
      const baseUrl = scripted({ chunks: ['ok'] });
      const pieces = [Buffer.from('{"a":"'), Buffer.alloc(bytes, 'é'), Buffer.from('"}')];
      const receiver = await exchange(baseUrl, pieces);
      assert.deepEqual([receiver.status, receiver.text], [200, 'ok']);
      assert.deepEqual(requests(baseUrl)[0]!.body, Buffer.concat(pieces));
    }
  });

  test('a content type of the caller replaces the default', async () => {
    const baseUrl = scripted({});
    await exchange(baseUrl, Buffer.from('x'), { 'Content-Type': 'text/plain' });
    const types = requests(baseUrl)[0]!.rawHeaders.filter((name) => name.toLowerCase() === 'content-type');
    assert.equal(types.length, 1);
    assert.equal(requests(baseUrl)[0]!.headers['content-type'], 'text/plain');
  });

  test('only headers that the gateway uses pass, in lower case', async () => {
    const receiver = await exchange(
      scripted({
        status: 429,
        headers: {
          'Content-Type': 'application/json',
          'Retry-After': '3',
          'retry-after-ms': '2500',
          'x-should-retry': 'false',
          'X-Request-Id': 'r1',
          'x-ratelimit-remaining-requests': '0',
          'anthropic-ratelimit-tokens-reset': 'soon',
          'x-goog-api-key': CANARY,
          authorization: CANARY,
          'set-cookie': 'a=b',
          'transfer-encoding': 'chunked',
        },
        chunks: ['{}'],
      }),
    );
    assert.equal(receiver.status, 429);
    assert.deepEqual(receiver.headers, {
      'content-type': 'application/json',
      'retry-after': '3',
      'retry-after-ms': '2500',
      'x-should-retry': 'false',
      'x-request-id': 'r1',
      'x-ratelimit-remaining-requests': '0',
      'anthropic-ratelimit-tokens-reset': 'soon',
      'transfer-encoding': 'chunked',
    });
  });

  test('waits are whole numbers of at most a week, whatever the upstream writes', async () => {
    const week = 7 * 24 * 3600;
    const waits: [name: string, written: string, seen: string][] = [
      ['retry-after', '1.5', '2'],
      ['retry-after', '9'.repeat(400), String(week)],
      ['retry-after', 'Wed, 21 Oct 2099 07:28:00 GMT', String(week)],
      ['retry-after', '-5', '0'],
      ['retry-after', 'soon', '0'],
      ['retry-after-ms', '1500', '1500'],
      ['retry-after-ms', 'Infinity', String(week * 1_000)],
      ['retry-after-ms', '1e300', String(week * 1_000)],
      ['retry-after-ms', 'soon', '0'],
    ];
    for (const [name, written, seen] of waits) {
      const { headers } = await exchange(scripted({ status: 429, headers: { [name]: written } }));
      assert.equal(headers[name], seen, written.slice(0, 30));
    }
  });

  test('a GET has no body, and headers of the caller cannot set framing or destination', async () => {
    const baseUrl = scripted({ chunks: ['ok'] });
    const receiver = new Recorder();
    bench.transport.send(
      { url: baseUrl, method: 'GET', headers: {}, body: 'GET / HTTP/1.1', timeouts: TIMEOUTS },
      receiver,
    );
    await until(() => receiver.over, 'the exchange is over');
    const [request] = requests(baseUrl);
    assert.deepEqual([receiver.text, request!.body.length, request!.headers['content-length']], ['ok', 0, undefined]);
    for (const name of ['Content-Length', 'transfer-encoding', 'Host', 'connection', 'Expect', 'a b', 'a:', '']) {
      const refused = await exchange(baseUrl, '{}', { [name]: '1' });
      assert.deepEqual([refused.failure?.kind, refused.sent], ['refused', false], name);
    }
  });

  test('a redirect is returned, not followed', async () => {
    const other = scripted({ chunks: ['stolen'] });
    const receiver = await exchange(scripted({ status: 302, headers: { location: other } }), '{}', {
      authorization: CANARY,
    });
    assert.equal(receiver.status, 302);
    assert.deepEqual(receiver.headers, { 'transfer-encoding': 'chunked' });
    assert.equal(requests(other).length, 0);
  });

  test('data is delivered as it arrives, before the response is complete', async () => {
    const { receiver } = send(scripted({ chunks: ['one', { gate: 'two' }, 'two'] }));
    await until(() => receiver.text === 'one', 'the first piece');
    assert.equal(receiver.ended, false);
    bench.upstream.open('two');
    await until(() => receiver.ended, 'the end');
    assert.equal(receiver.text, 'onetwo');
  });

  test('sequential exchanges share a connection, concurrent ones have their own', async () => {
    const baseUrl = scripted({ chunks: ['ok'] });
    await exchange(baseUrl);
    await exchange(baseUrl);
    await Promise.all([exchange(baseUrl), exchange(baseUrl)]);
    const numbers = requests(baseUrl).map(({ connection }) => connection);
    assert.equal(numbers[0], numbers[1]);
    assert.notEqual(numbers[2], numbers[3]);
  });

  test('informational responses are skipped', async () => {
    const head = 'HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
    const receiver = await exchange(scripted({ raw: [head] }));
    assert.deepEqual([receiver.status, receiver.text], [200, 'ok']);
  });

  test('calls beyond the connection limit are refused without being sent', async () => {
    bench.use({ connectionsPerOrigin: 1 });
    const baseUrl = scripted({ chunks: [{ gate: 'limit' }, 'ok'] });
    const first = send(baseUrl);
    const second = await exchange(baseUrl);
    assert.deepEqual([second.failure?.kind, second.sent], ['refused', false]);
    bench.upstream.open('limit');
    await until(() => first.receiver.ended, 'the first call');
    assert.equal((await exchange(baseUrl)).text, 'ok');
  });

  test('an error of the receiver ends the exchange, is logged and does not crash the process', async () => {
    const lines: string[] = [];
    bench.use({ log: createLog({ stream: { write: (line) => lines.push(line) }, clock: bench.clock }) });
    for (const chunks of [['a'], ['a', { gate: 'never' }]]) {
      const { receiver } = send(scripted({ chunks }));
      receiver.onData = () => {
        throw new Error('a bug');
      };
      await until(() => receiver.over, 'the exchange is over');
      assert.equal(receiver.failure?.kind, 'cut');
      assert.match(lines.pop() ?? '', /a bug/);
    }
  });

  test('a receiver that throws at the end learns that the response could not be processed', async () => {
    const { receiver } = send(scripted({ chunks: ['abc'] }));
    receiver.end = () => {
      throw new Error('a bug');
    };
    await until(() => receiver.failure, 'the failure');
    assert.equal(receiver.failure!.kind, 'cut');
    assert.match(receiver.failure!.message, /could not be processed/);
  });
});
