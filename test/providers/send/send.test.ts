import assert from 'node:assert/strict';
import { once } from 'node:events';
import net, { type AddressInfo, type Socket } from 'node:net';
import { after, afterEach, before, beforeEach, describe, test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { brotliCompressSync, createGzip, deflateRawSync, deflateSync, gzipSync, constants as zlib } from 'node:zlib';
import fc from 'fast-check';
import { createLog, silentLog } from '../../../src/base/log.ts';
import type { UpstreamFailure } from '../../../src/formats/conversation/failure.ts';
import {
  createTransport,
  type Transport,
  type UpstreamCall,
  type UpstreamReceiver,
} from '../../../src/providers/send/index.ts';
import { settle, TestClock, until } from '../../../src/testing/clock/clock.ts';
import { cutBytes } from '../../../src/testing/recordings/cuts.ts';
import { makeCertificate } from '../../../src/testing/upstream/certificate.ts';
import { type Answer, startUpstream, type Upstream } from '../../../src/testing/upstream/upstream.ts';

const TIMEOUTS = { connect: 1000, firstByte: 5000, idle: 2000, stall: 60_000, total: 60_000 };
const CANARY = 'sk-canary-5f1d';

/** Records its calls, and fails the test if called after the end. */
class Recorder implements UpstreamReceiver {
  status: number | undefined;
  headers: Record<string, string> = {};
  chunks: Buffer[] = [];
  bytes = 0;
  ended = false;
  failure: UpstreamFailure | undefined;
  sent: boolean | undefined;
  keep = true;
  onData: ((chunk: Buffer) => void) | undefined;

  get over(): boolean {
    return this.ended || this.failure !== undefined;
  }

  get text(): string {
    return Buffer.concat(this.chunks).toString();
  }

  head(status: number, headers: Record<string, string>): void {
    assert.equal(this.status, undefined, 'head came twice');
    assert.ok(!this.over);
    this.status = status;
    this.headers = headers;
  }

  data(chunk: Buffer): void {
    assert.ok(!this.over && this.status !== undefined, 'data out of order');
    this.bytes += chunk.length;
    if (this.keep) this.chunks.push(chunk);
    this.onData?.(chunk);
  }

  end(): void {
    assert.ok(!this.over && this.status !== undefined, 'end out of order');
    this.ended = true;
  }

  failed(failure: UpstreamFailure, sent: boolean): void {
    assert.ok(!this.over, 'failed after the end');
    this.failure = failure;
    this.sent = sent;
  }
}

let upstream: Upstream;
let clock: TestClock;
let transport: Transport;
const servers: net.Server[] = [];
const workers: Worker[] = [];
const sockets = new Set<Socket>();

describe('the transport', () => {
  before(async () => {
    upstream = await startUpstream();
  });
  after(() => upstream.close());
  beforeEach(() => {
    clock = new TestClock();
    transport = createTransport({ clock, log: silentLog });
  });
  afterEach(async () => {
    await transport.close();
    for (const socket of sockets) socket.destroy();
    for (const server of servers.splice(0)) server.close();
    for (const worker of workers.splice(0)) await worker.terminate();
  });

  interface Sent {
    receiver: Recorder;
    call: UpstreamCall;
  }

  function send(url: string, body: Buffer | string = '{"model":"m"}', headers: Record<string, string> = {}): Sent {
    const receiver = new Recorder();
    const call = transport.send({ url, headers, body, timeouts: TIMEOUTS }, receiver);
    assert.ok(!receiver.over, 'the receiver was called before send returned');
    return { receiver, call };
  }

  async function exchange(url: string, body?: Buffer | string, headers?: Record<string, string>): Promise<Recorder> {
    const { receiver } = send(url, body, headers);
    await until(() => receiver.over, 'the exchange is over');
    return receiver;
  }

  /** A server without HTTP: `serve` gets each connection. */
  async function rawServer(serve: (socket: Socket) => void): Promise<string> {
    const server = net.createServer((socket) => {
      sockets.add(socket);
      socket.on('error', () => {});
      socket.on('close', () => sockets.delete(socket));
      serve(socket);
    });
    servers.push(server);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  }

  function scripted(answer: Answer | Answer[]): string {
    return upstream.script(`t${keys++}`, answer);
  }
  let keys = 0;

  function keyOf(baseUrl: string): string {
    return baseUrl.slice(baseUrl.lastIndexOf('/') + 1);
  }

  describe('an exchange', () => {
    test('adds only host, length, type, connection and accept-encoding to the given request', async () => {
      const baseUrl = scripted({ chunks: ['ok'] });
      const receiver = await exchange(`${baseUrl}/chat?x=1`, '{"a":"é"}', { authorization: 'Bearer k', 'X-Own': '1' });
      assert.deepEqual([receiver.status, receiver.text, receiver.ended], [200, 'ok', true]);
      const [request] = upstream.requests(keyOf(baseUrl));
      assert.equal(request!.path, '/chat?x=1');
      assert.equal(request!.body.toString(), '{"a":"é"}');
      assert.deepEqual(request!.headers, {
        host: new URL(upstream.url).host,
        connection: 'keep-alive',
        'accept-encoding': 'identity',
        authorization: 'Bearer k',
        'x-own': '1',
        'content-type': 'application/json',
        'content-length': '10',
      });
    });

    test('a content type of the caller replaces the default', async () => {
      const baseUrl = scripted({});
      await exchange(baseUrl, Buffer.from('x'), { 'Content-Type': 'text/plain' });
      const types = upstream
        .requests(keyOf(baseUrl))[0]!
        .rawHeaders.filter((name) => name.toLowerCase() === 'content-type');
      assert.equal(types.length, 1);
      assert.equal(upstream.requests(keyOf(baseUrl))[0]!.headers['content-type'], 'text/plain');
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
      });
    });

    test('a GET has no body, and headers of the caller cannot set framing or destination', async () => {
      const baseUrl = scripted({ chunks: ['ok'] });
      const receiver = new Recorder();
      transport.send(
        { url: baseUrl, method: 'GET', headers: {}, body: 'GET / HTTP/1.1', timeouts: TIMEOUTS },
        receiver,
      );
      await until(() => receiver.over, 'the exchange is over');
      const [request] = upstream.requests(keyOf(baseUrl));
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
      assert.deepEqual(receiver.headers, {});
      assert.equal(upstream.requests(keyOf(other)).length, 0);
    });

    test('data is delivered as it arrives, before the response is complete', async () => {
      const { receiver } = send(scripted({ chunks: ['one', { gate: 'two' }, 'two'] }));
      await until(() => receiver.text === 'one', 'the first piece');
      assert.equal(receiver.ended, false);
      upstream.open('two');
      await until(() => receiver.ended, 'the end');
      assert.equal(receiver.text, 'onetwo');
    });

    test('sequential exchanges share a connection, concurrent ones have their own', async () => {
      const baseUrl = scripted({ chunks: ['ok'] });
      await exchange(baseUrl);
      await exchange(baseUrl);
      await Promise.all([exchange(baseUrl), exchange(baseUrl)]);
      const numbers = upstream.requests(keyOf(baseUrl)).map(({ connection }) => connection);
      assert.equal(numbers[0], numbers[1]);
      assert.notEqual(numbers[2], numbers[3]);
    });

    test('informational responses are skipped', async () => {
      const head = 'HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok';
      const receiver = await exchange(scripted({ raw: [head] }));
      assert.deepEqual([receiver.status, receiver.text], [200, 'ok']);
    });

    test('calls beyond the connection limit are refused without being sent', async () => {
      transport = createTransport({ clock, log: silentLog, connectionsPerOrigin: 1 });
      const baseUrl = scripted({ chunks: [{ gate: 'limit' }, 'ok'] });
      const first = send(baseUrl);
      const second = await exchange(baseUrl);
      assert.deepEqual([second.failure?.kind, second.sent], ['refused', false]);
      upstream.open('limit');
      await until(() => first.receiver.ended, 'the first call');
      assert.equal((await exchange(baseUrl)).text, 'ok');
    });

    test('an error of the receiver ends the exchange, is logged and does not crash the process', async () => {
      const lines: string[] = [];
      transport = createTransport({ clock, log: createLog({ stream: { write: (line) => lines.push(line) }, clock }) });
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
  });

  describe('ways to fail', () => {
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
      clock.advance(TIMEOUTS.connect - 1);
      assert.equal(receiver.over, false);
      clock.advance(1);
      expectFailure(receiver, 'timeout', false);
      assert.match(receiver.failure!.message, /1000 ms/);
    });

    test('no head, or a head and no body: timeout after firstByte, sent', async () => {
      for (const answer of [{ end: 'stall-before-headers' }, { end: 'stall' }] as const) {
        const baseUrl = scripted(answer);
        const { receiver } = send(baseUrl);
        const received = await upstream.request(keyOf(baseUrl));
        if (answer.end === 'stall') await until(() => receiver.status, 'the head');
        clock.advance(TIMEOUTS.firstByte - 1);
        assert.equal(receiver.over, false);
        clock.advance(1);
        expectFailure(receiver, 'timeout', true, answer.end === 'stall' ? 200 : null);
        await until(() => received.closedEarlyAt, 'the upstream sees the connection close');
      }
    });

    test('silence in the middle: timeout after idle, restarted by every byte', async () => {
      const { receiver } = send(scripted({ chunks: ['a', { gate: 'idle b' }, 'b'], end: 'stall' }));
      await until(() => receiver.text === 'a', 'a');
      clock.advance(TIMEOUTS.idle - 1);
      upstream.open('idle b');
      await until(() => receiver.text === 'ab', 'b');
      clock.advance(TIMEOUTS.idle - 1);
      assert.equal(receiver.over, false);
      clock.advance(1);
      expectFailure(receiver, 'timeout', true, 200);
    });

    test('a slow trickle of bytes ends at the total timeout', async () => {
      const drips = 40;
      const chunks = Array.from({ length: drips }, (_, at) => [{ gate: `drip ${at}` }, '.']).flat();
      const { receiver } = send(scripted({ chunks }));
      for (let at = 0; at < drips && !receiver.over; at++) {
        upstream.open(`drip ${at}`);
        await until(() => receiver.bytes === at + 1, `drip ${at}`);
        clock.advance(1900);
      }
      expectFailure(receiver, 'timeout', true, 200);
      assert.equal(receiver.bytes, Math.ceil(TIMEOUTS.total / 1900));
    });

    test('closed or reset before the head: cut, sent, and never sent again', async () => {
      for (const end of ['cut', 'reset'] as const) {
        const baseUrl = scripted([{ raw: [], end }, { chunks: ['second'] }]);
        expectFailure(await exchange(baseUrl), 'cut', true);
        assert.equal(upstream.requests(keyOf(baseUrl)).length, 1);
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
      for (const raw of answers)
        expectFailure(await exchange(scripted({ raw: [raw], end: 'stall' })), 'malformed', true);
      const chunked = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n';
      expectFailure(await exchange(scripted({ raw: [chunked], end: 'stall' })), 'malformed', true, 200);
    });

    test('a kept connection that the upstream closed is replaced, and the request is sent once', async () => {
      const baseUrl = scripted([
        { raw: ['HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\na'], end: 'cut' },
        { chunks: ['b'] },
      ]);
      assert.equal((await exchange(baseUrl)).text, 'a');
      await until(() => upstream.connections === 0, 'the upstream has closed it');
      assert.equal((await exchange(baseUrl)).text, 'b');
      assert.equal(upstream.requests(keyOf(baseUrl)).length, 2);
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

  /** A listener that accepts nothing and whose queue is full: a further connection is neither accepted nor refused. */
  async function unansweredAddress(): Promise<string> {
    const script = `
    const { parentPort } = require('node:worker_threads');
    const server = require('node:net').createServer().listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      parentPort.postMessage(server.address().port);
      // From here on this thread accepts no connections.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
    const worker = new Worker(script, { eval: true });
    workers.push(worker);
    const [port] = (await once(worker, 'message')) as [number];
    for (let full = false; !full; ) {
      const socket = net.connect(port, '127.0.0.1');
      sockets.add(socket);
      socket.on('error', () => {});
      let connected = false;
      socket.on('connect', () => (connected = true));
      await settle(10);
      full = !connected;
    }
    return `http://127.0.0.1:${port}/v1`;
  }

  describe('abort', () => {
    test('ends the connection at once, before the head and within the body, without further receiver calls', async () => {
      for (const answer of [{ end: 'stall-before-headers' }, { chunks: ['a'], end: 'stall' }] as const) {
        for (let round = 0; round < 5; round++) {
          const baseUrl = scripted(answer);
          const { receiver, call } = send(baseUrl);
          const received = await upstream.request(keyOf(baseUrl));
          if (answer.end === 'stall') await until(() => receiver.bytes, 'the first byte');
          call.abort();
          call.abort();
          // The clock does not move, so no timeout closes it.
          await until(() => received.closedEarlyAt, 'the upstream sees the connection close');
          assert.equal(receiver.over, false);
        }
      }
      assert.equal(clock.timers, 0);
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
      assert.equal(upstream.requests(keyOf(baseUrl)).length, 1);
      assert.equal(receiver.over || second.receiver.over, false);
      assert.equal(clock.timers, 0);
      assert.equal((await exchange(baseUrl)).text, 'ok');
    });

    test('from within head and data is possible', async () => {
      const inData = send(scripted({ chunks: ['abc', { gate: 'aborted' }, 'def'] }));
      inData.receiver.onData = () => {
        inData.call.abort();
        upstream.open('aborted');
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
      const [first, second] = upstream.requests(keyOf(baseUrl));
      assert.equal(first!.connection, second!.connection);
    });

    test('closing the transport ends every exchange as cut and every connection', async () => {
      const baseUrl = scripted({ chunks: ['a'], end: 'stall' });
      const { receiver } = send(baseUrl);
      await until(() => receiver.bytes, 'the first byte');
      const received = upstream.requests(keyOf(baseUrl))[0]!;
      await transport.close();
      assert.equal(receiver.failure?.kind, 'cut');
      await until(() => received.closedEarlyAt, 'the upstream sees the connection close');
      assert.equal((await exchange(baseUrl)).failure?.kind, 'refused');
    });
  });

  describe('back-pressure', () => {
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
      clock.advance(TIMEOUTS.idle * 3);
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
      clock.advance(TIMEOUTS.idle * 2);
      call.resume();
      clock.advance(TIMEOUTS.idle - 1);
      assert.equal(receiver.over, false);
      clock.advance(1);
      assert.equal(receiver.failure?.kind, 'timeout');
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
            setTimeout(() => call.resume(), 5);
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
      const numbers = new Set(upstream.requests(keyOf(baseUrl)).map(({ connection }) => connection));
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

  describe('a kept connection', () => {
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
          transport.send(requestTo(url), second);
        };
        transport.send(requestTo(url), first);
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
            waiting = transport.send(requestTo(url), second);
            if (paused) waiting.pause();
          };
          transport.send(requestTo(url), first);
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
        transport.send(requestTo(baseUrl), second);
        closing = transport.close();
      };
      transport.send(requestTo(baseUrl), first);
      await until(() => closing !== undefined, 'the end of the first exchange');
      await closing;
      assert.deepEqual([second.failure?.kind, second.sent], ['cut', false]);
      assert.equal(upstream.requests(keyOf(baseUrl)).length, 1);
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
        clock.advance(keptMs - 1);
        await exchange(url);
        await settle();
        clock.advance(keptMs - 1);
        await settle();
        assert.deepEqual([used, [...open]], [[1, 1], [1]], headers);
        clock.advance(1);
        await until(() => open.size === 0, 'it is closed');
        assert.equal(clock.timers, 0);
        assert.equal((await exchange(url)).text, 'ok');
        await transport.close();
        transport = createTransport({ clock, log: silentLog });
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
      clock.advance(4_000);
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

  describe('compressed answers', () => {
    const events = Array.from(
      { length: 200 },
      (_, at) => `data: {"at":${at},"text":"北京 ${'x'.repeat(at)}"}\n\n`,
    ).join('');

    test('gzip, both variants of deflate and br are decompressed, however they are cut', async () => {
      const packed: [string, Buffer][] = [
        ['gzip', gzipSync(events)],
        ['X-GZip', gzipSync(events)],
        ['deflate', deflateSync(events)],
        ['deflate', deflateRawSync(events)],
        ['br', brotliCompressSync(events)],
        ['identity', Buffer.from(events)],
      ];
      for (const [encoding, bytes] of packed) {
        for (const step of [bytes.length, 997, 50]) {
          const headers = { 'content-encoding': encoding, 'content-type': 'text/event-stream' };
          const receiver = await exchange(scripted({ headers, chunks: cutBytes(bytes, step) }));
          assert.ok(receiver.text === events, `${encoding} in pieces of ${step}`);
          assert.deepEqual(receiver.headers, { 'content-type': 'text/event-stream' });
        }
      }
    });

    test('an event is delivered when its bytes arrive, not at the end of the stream', async () => {
      const gzip = createGzip({ flush: zlib.Z_SYNC_FLUSH });
      const flushed = async (text: string): Promise<Buffer> => {
        const parts: Buffer[] = [];
        const collect = (part: Buffer) => void parts.push(part);
        gzip.on('data', collect);
        await new Promise<void>((resolve) => void gzip.write(text, () => gzip.flush(() => resolve())));
        await settle(3);
        gzip.off('data', collect);
        return Buffer.concat(parts);
      };
      const first = await flushed('data: 1\n\n');
      const second = await flushed('data: 2\n\n');
      const { receiver } = send(
        scripted({ headers: { 'content-encoding': 'gzip' }, chunks: [first, { gate: 'gzip' }, second], end: 'reset' }),
      );
      await until(() => receiver.text === 'data: 1\n\n', 'the first event');
      upstream.open('gzip');
      await until(() => receiver.over, 'the exchange is over');
      assert.deepEqual([receiver.text, receiver.failure?.kind], ['data: 1\n\ndata: 2\n\n', 'cut']);
      gzip.destroy();
    });

    test('data received before a cut is delivered before the failure, paused or not', async () => {
      // Few bytes that take long to decompress, so that the connection closes first.
      const text = 'data: again and again\n\n'.repeat(100_000);
      const bytes = gzipSync(text);
      const head = `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bytes.length + 1}\r\n\r\n`;
      for (const pause of [false, true]) {
        const { receiver, call } = send(scripted({ raw: [Buffer.concat([Buffer.from(head), bytes])], end: 'cut' }));
        receiver.onData = () => {
          if (!pause) return;
          call.pause();
          setImmediate(() => call.resume());
        };
        await until(() => receiver.over, 'the exchange is over');
        assert.equal(receiver.failure?.kind, 'cut');
        assert.ok(receiver.text === text, `${receiver.bytes} of ${text.length}`);
      }
    });

    test('damaged or truncated data and unknown encodings are malformed, and an empty body is empty', async () => {
      const whole = gzipSync(events);
      const answers: [string, Buffer][] = [
        ['gzip', Buffer.from('not packed at all')],
        ['gzip', whole.subarray(0, whole.length - 20)],
        ['zip', whole],
      ];
      for (const [encoding, bytes] of answers) {
        const receiver = await exchange(scripted({ headers: { 'content-encoding': encoding }, chunks: [bytes] }));
        assert.deepEqual([receiver.failure?.kind, receiver.sent, receiver.failure?.status], ['malformed', true, 200]);
      }
      assert.equal((await exchange(scripted({ headers: { 'content-encoding': 'gzip' } }))).ended, true);
    });

    test('a small response that expands to 100 MB is stopped by a pause and ended by an abort', async () => {
      const bomb = gzipSync(Buffer.alloc(100 * 1024 * 1024));
      const { receiver, call } = send(scripted({ headers: { 'content-encoding': 'gzip' }, chunks: [bomb] }));
      receiver.keep = false;
      receiver.onData = () => {
        if (receiver.bytes > 1_000_000) call.pause();
      };
      await until(() => receiver.bytes > 1_000_000, 'a megabyte');
      await settle(50);
      assert.ok(receiver.bytes < 2_000_000, `${receiver.bytes} bytes`);
      call.abort();
      await settle(10);
      assert.equal(receiver.over, false);
      await transport.close();
      assert.equal(clock.timers, 0);
    });
  });

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
      numRuns: 300,
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
    assert.ok(clock.timers <= 1, `${clock.timers} timers`);
    await transport.close();
    assert.equal(clock.timers, 0);
    await until(() => upstream.connections === 0, 'every connection is closed');
  });

  describe('over TLS', () => {
    const certificate = makeCertificate();
    const skip = certificate === null && 'the openssl program is missing';
    let secure: Upstream | undefined;
    before(async () => {
      if (certificate !== null) secure = await startUpstream({ tls: certificate });
    });
    after(() => secure?.close());

    test('an upstream with a trusted certificate is accepted, by address and by name', { skip }, async () => {
      transport = createTransport({ clock, log: silentLog, ca: certificate!.cert });
      const baseUrl = secure!.script('ok', { chunks: ['secret'] });
      assert.equal((await exchange(baseUrl)).text, 'secret');
      assert.equal((await exchange(baseUrl.replace('127.0.0.1', 'localhost'))).text, 'secret');
      const { receiver, call } = send(secure!.script('cut', { chunks: ['a'], end: 'reset' }));
      receiver.onData = () => call.pause();
      await until(() => receiver.over, 'the exchange is over');
      assert.equal(receiver.failure?.kind, 'cut');
    });

    test('a call paused before it is connected is sent, and its response is delivered on resume', {
      skip,
    }, async () => {
      transport = createTransport({ clock, log: silentLog, ca: certificate!.cert });
      const { receiver, call } = send(secure!.script('paused', { chunks: ['abc', 'def'] }));
      call.pause();
      await secure!.request('paused');
      await settle(50);
      assert.equal(receiver.over, false);
      call.resume();
      await until(() => receiver.ended, 'the end');
      assert.equal(receiver.text, 'abcdef');
    });

    test('an untrusted upstream receives nothing: refused', { skip }, async () => {
      const baseUrl = secure!.script('untrusted', { chunks: ['secret'] });
      const receiver = await exchange(baseUrl);
      assert.deepEqual([receiver.failure?.kind, receiver.sent], ['refused', false]);
      assert.match(receiver.failure!.message, /secure connection/);
      assert.equal(secure!.requests('untrusted').length, 0);
    });

    test('a server without TLS, and one that never answers the handshake: refused and timeout, nothing sent', {
      skip,
    }, async () => {
      const plain = await exchange(scripted({}).replace('http:', 'https:'));
      assert.deepEqual([plain.failure?.kind, plain.sent], ['refused', false]);
      const closing = (await rawServer((socket) => void socket.once('data', () => socket.end()))).replace(
        'http:',
        'https:',
      );
      const paused = send(closing);
      paused.call.pause();
      await until(() => paused.receiver.over, 'the failure of a paused call');
      assert.deepEqual([paused.receiver.failure?.kind, paused.receiver.sent], ['refused', false]);
      let connected = false;
      const silent = (await rawServer(() => (connected = true))).replace('http:', 'https:');
      const { receiver } = send(silent);
      await until(() => connected, 'the connection');
      clock.advance(TIMEOUTS.connect);
      assert.deepEqual([receiver.failure?.kind, receiver.sent], ['timeout', false]);
    });
  });
});
