import assert from 'node:assert/strict';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import net from 'node:net';
import { after, before, describe, test } from 'node:test';
import { settle, until } from '../../src/testing/clock/clock.ts';
import { cutBytes } from '../../src/testing/recordings/cuts.ts';
import { startUpstream, type Upstream } from '../../src/testing/upstream/upstream.ts';

/** A client of its own, so that the server is not judged by the code that it is there to test. */
async function ask(
  url: string,
  body = '{"a":1}',
): Promise<{ response: IncomingMessage; chunks: Buffer[]; ended: Promise<string> }> {
  const request = http.request(url, { method: 'POST', agent: false });
  request.end(body);
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  request.on('error', () => {});
  const chunks: Buffer[] = [];
  response.on('data', (chunk: Buffer) => void chunks.push(chunk));
  const ended = new Promise<string>((resolve) => {
    response.on('end', () => resolve('end'));
    response.on('error', () => resolve('broken'));
    response.on('close', () => resolve('broken'));
  });
  return { response, chunks, ended };
}

describe('scripted upstream', () => {
  let upstream: Upstream;
  before(async () => {
    upstream = await startUpstream();
  });
  after(() => upstream.close());

  test('answers in the order of the list, then none; records what was asked', async () => {
    const baseUrl = upstream.script('order', [{ status: 503 }, { headers: { 'x-a': 'b' }, chunks: ['hello'] }]);
    assert.equal((await ask(`${baseUrl}/chat?x=1`)).response.statusCode, 503);
    const second = await ask(`${baseUrl}/chat`, '{"n":12345678901234567890}');
    assert.equal(await second.ended, 'end');
    assert.equal(second.response.headers['x-a'], 'b');
    assert.equal(Buffer.concat(second.chunks).toString(), 'hello');
    assert.equal((await ask(`${baseUrl}/chat`)).response.statusCode, 599);
    const [one, two] = upstream.requests('order');
    assert.deepEqual([one!.method, one!.path, one!.json], ['POST', '/chat?x=1', { a: 1 }]);
    assert.equal(two!.body.toString(), '{"n":12345678901234567890}');
    assert.ok(two!.arrivedAt >= one!.arrivedAt);
  });

  test('a gate holds the rest back until the test opens it', async () => {
    const baseUrl = upstream.script('gate', { chunks: ['a', { gate: 'go' }, 'b'] });
    const { chunks, ended } = await ask(baseUrl);
    await until(() => chunks.length === 1, 'the first piece');
    await settle();
    assert.equal(chunks.length, 1);
    upstream.open('go');
    assert.equal(await ended, 'end');
    assert.equal(Buffer.concat(chunks).toString(), 'ab');
  });

  test('pieces arrive one by one, cut as scripted', async () => {
    const baseUrl = upstream.script('cut', { chunks: ['abc', Buffer.from('def'), { hex: '67' }], pieces: [1, 4] });
    const { chunks, ended } = await ask(baseUrl);
    await ended;
    assert.deepEqual(chunks.map(String), ['a', 'bcd', 'efg']);
  });

  test('cut, reset and truncation end the answer without completing it', async () => {
    for (const end of ['cut', 'reset'] as const) {
      const baseUrl = upstream.script(end, { chunks: ['abcdef'], truncateAt: 2, end });
      const { chunks, ended } = await ask(baseUrl);
      assert.equal(await ended, 'broken', end);
      assert.equal(Buffer.concat(chunks).toString(), 'ab');
    }
  });

  test('a reset whose client has left already meets no other connection', async () => {
    const connect = (baseUrl: string): net.Socket => {
      const { port, pathname } = new URL(baseUrl);
      const client = net.connect(Number(port), '127.0.0.1');
      client.write(`POST ${pathname} HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx`);
      return client;
    };
    const own = await startUpstream();
    const ending = connect(own.script('ending', { raw: ['a', { gate: 'ending' }], end: 'cut' }));
    await once(ending, 'data');
    const left = connect(own.script('left', { raw: ['a'], end: 'reset' }));
    await once(left, 'data');
    await settle(3);
    left.destroy();
    await until(() => own.connections === 1, 'the client left');
    // One turn lasts until the reset is due, so the other connection is in the middle of its end when it comes.
    for (const dueAt = performance.now() + 50; performance.now() < dueAt; );
    ending.resetAndDestroy();
    own.open('ending');
    await until(() => own.connections === 0, 'the other connection is closed');
    await own.close();
  });

  test('notices when the client of a silent answer leaves', async () => {
    const baseUrl = upstream.script('silent', { end: 'stall-before-headers' });
    const request = http.request(baseUrl, { method: 'POST', agent: false });
    request.on('error', () => {});
    request.end('x');
    const received = await upstream.request('silent');
    assert.equal(received.closedEarlyAt, undefined);
    request.destroy();
    await until(() => received.closedEarlyAt !== undefined, 'the client left');
  });

  test('raw bytes go out as they are', async () => {
    const baseUrl = upstream.script('raw', { raw: ['HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc'], end: 'cut' });
    assert.equal(await (await ask(baseUrl)).ended, 'broken');
  });

  test('refuse is a port without a listener', async () => {
    await assert.rejects(ask(upstream.script('none', { end: 'refuse' })), { code: 'ECONNREFUSED' });
  });
});

test('cutBytes loses nothing and makes no empty piece', () => {
  const bytes = Buffer.from('abcdef');
  assert.deepEqual(cutBytes(bytes, 4).map(String), ['abcd', 'ef']);
  assert.deepEqual(cutBytes(bytes, [0, 3, 3, 6, 9]).map(String), ['abc', 'def']);
  assert.deepEqual(cutBytes(Buffer.alloc(0), 4), []);
});
