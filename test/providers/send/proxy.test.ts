import assert from 'node:assert/strict';
import type { Socket } from 'node:net';
import { after, afterEach, before, describe, type TestContext, test } from 'node:test';
import { createLog, silentLog } from '../../../src/base/log.ts';
import type { UpstreamFailure } from '../../../src/formats/conversation/failure.ts';
import { createTransport, type Transport } from '../../../src/providers/send/index.ts';
import { type ProxySettings, proxyFor } from '../../../src/providers/send/proxy.ts';
import { TestClock, until } from '../../../src/testing/clock/clock.ts';
import { makeCertificate } from '../../../src/testing/upstream/certificate.ts';
import { startUpstream, type Upstream } from '../../../src/testing/upstream/upstream.ts';
import { startProxy as start } from '../proxy.ts';

const TIMEOUTS = { connect: 1000, firstByte: 5000, idle: 2000, stall: 60_000, total: 60_000 };
const PASSWORD = 'pr@xy-canary-77';
/** No IP address: only the proxy knows where it is. */
const NAME = 'upstream.example';

const certificate = makeCertificate(`DNS:${NAME},IP:127.0.0.1`);
const options = { skip: certificate === null && 'the openssl program is missing' };
let secure: Upstream;
let plain: Upstream;
let transport: Transport;
let clock: TestClock;

describe('a proxy', () => {
  before(async () => {
    plain = await startUpstream();
    if (certificate) secure = await startUpstream({ tls: certificate });
  });
  after(async () => {
    await plain.close();
    await secure?.close();
  });
  afterEach(async () => {
    await transport.close();
  });

  /** Replaces the response to CONNECT. */
  function startProxy(t: TestContext, answer?: (socket: Socket) => void, tls = false) {
    return start(t, { password: PASSWORD, answer, tls: tls ? certificate! : undefined });
  }

  interface Answered {
    status?: number;
    text: string;
    failure?: UpstreamFailure;
    sent?: boolean;
  }

  function call(url: string, proxy: Partial<ProxySettings>, more: object = {}): Promise<Answered> {
    clock = new TestClock();
    transport = createTransport({
      clock,
      log: silentLog,
      ...(certificate && { extraCa: certificate.cert }),
      proxy: { https: null, http: null, exceptions: [], ...proxy },
      ...more,
    });
    return send(url);
  }

  function send(url: string): Promise<Answered> {
    return new Promise((resolve) => {
      const answered: Answered = { text: '' };
      transport.send(
        { url, headers: {}, body: '{}', timeouts: TIMEOUTS },
        {
          head: (status) => {
            answered.status = status;
          },
          data: (chunk) => {
            answered.text += chunk;
          },
          end: () => resolve(answered),
          failed: (failure, sent) => resolve({ ...answered, failure, sent }),
        },
      );
    });
  }

  function portOf(upstream: Upstream): string {
    return new URL(upstream.url).port;
  }

  test('https goes through the proxy, which sees only the destination', options, async (t) => {
    for (const tls of [false, true]) {
      const proxy = await startProxy(t, undefined, tls);
      secure.script('a', { chunks: ['hello ', 'there'] });
      const url = `https://${NAME}:${portOf(secure)}/a/x`;
      const first = await call(url, { https: proxy.url });
      assert.deepEqual([first.status, first.text, first.failure], [200, 'hello there', undefined]);
      const credentials = Buffer.from(`ann:${PASSWORD}`).toString('base64');
      assert.deepEqual(proxy.asked, [{ place: `${NAME}:${portOf(secure)}`, authorization: `Basic ${credentials}` }]);
      const seen = secure.requests('a').at(-1)!;
      assert.equal(seen.headers.host, `${NAME}:${portOf(secure)}`);
      assert.equal(JSON.stringify(seen.rawHeaders).includes(credentials), false);
      assert.equal((await send(url)).text, 'hello there');
      assert.equal(proxy.asked.length, 1, 'the tunnel was not kept');
      await transport.close();
    }
  });

  test('http goes through its own proxy as well', async (t) => {
    const proxy = await startProxy(t);
    plain.script('b', { chunks: ['plain'] });
    const answered = await call(`http://${NAME}:${portOf(plain)}/b`, { http: proxy.url });
    assert.deepEqual([answered.text, proxy.asked.length], ['plain', 1]);
  });

  test('loopback and NO_PROXY entries are reached directly', async (t) => {
    const proxy = await startProxy(t);
    plain.script('c', { chunks: ['direct'] });
    assert.equal((await call(`${plain.url}/c`, { http: proxy.url, https: proxy.url })).text, 'direct');
    assert.equal(proxy.asked.length, 0);
    const chosen = (url: string, ...exceptions: string[]) =>
      proxyFor(new URL(url), { https: 'http://p:1', http: null, exceptions }) !== undefined;
    assert.ok(chosen('https://api.example.com'));
    assert.ok(!chosen('http://api.example.com'));
    for (const entry of [
      '*',
      'example.com',
      '.example.com',
      '*.example.com',
      'API.example.com',
      'api.example.com:443',
    ]) {
      assert.equal(chosen('https://api.example.com', 'x.org', entry), false, entry);
    }
    for (const entry of ['ample.com', 'api.example.com:8443', 'com.example', '10.0.0.0/8', '']) {
      assert.equal(chosen('https://api.example.com', entry), true, entry);
    }
    assert.equal(chosen('https://10.1.2.3', '10.0.0.0/8'), false);
    assert.equal(chosen('https://11.1.2.3', '10.0.0.0/8', '10.0.0.0/99', 'x/8'), true);
    assert.equal(chosen('https://[fd00::5]', 'fd00::/8'), false);
    assert.equal(chosen('https://[fd00::5]:8443', '[fd00::5]:8443'), false);
    for (const url of ['https://localhost', 'https://127.9.9.9', 'https://[::1]:1'])
      assert.equal(chosen(url), false, url);
  });

  test('a proxy that refuses, closes or sends garbage yields a refused call without secrets', options, async (t) => {
    const answers: [string, (socket: Socket) => void][] = [
      ['PROXY_ANSWERED_407', (socket) => socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')],
      ['PROXY_ANSWERED_502', (socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\ncontent-length: 2\r\n\r\nno')],
      ['PROXY_CLOSED', (socket) => socket.end()],
      ['PROXY_ANSWER_MALFORMED', (socket) => socket.end('SSH-2.0-x\r\n\r\n')],
      ['PROXY_ANSWER_MALFORMED', (socket) => socket.write('HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n')],
      ['PROXY_ANSWER_TOO_LARGE', (socket) => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`)],
    ];
    for (const [code, answer] of answers) {
      const proxy = await startProxy(t, answer);
      const lines: string[] = [];
      const stream = { write: (line: string) => lines.push(line) > 0 };
      const log = createLog({ level: 'debug', stream, clock: new TestClock() });
      const { failure, sent } = await call(`https://${NAME}:1/x`, { https: proxy.url }, { log });
      assert.deepEqual([failure?.kind, sent], ['refused', false], code);
      assert.match(failure!.message, new RegExp(code));
      for (const text of [JSON.stringify(failure), lines.join('')]) assert.doesNotMatch(text, /canary|ann/, code);
      await transport.close();
    }
    const dead = await call(`https://${NAME}:1/x`, { https: 'http://127.0.0.1:1' });
    assert.deepEqual([dead.failure?.kind, dead.sent], ['refused', false]);
  });

  test('a proxy that never answers costs no more than the time to connect', options, async (t) => {
    let seen: Socket | undefined;
    const proxy = await startProxy(t, (socket) => {
      seen = socket;
    });
    const answered = call(`https://${NAME}:1/x`, { https: proxy.url });
    await until(() => seen, 'the proxy to be asked');
    clock.advance(1001);
    assert.equal((await answered).failure?.kind, 'timeout');
    await until(() => seen!.destroyed || seen!.readableEnded, 'the connection to the proxy to be closed');
  });

  test('an authority of the operator is trusted in addition to the system ones', options, async () => {
    secure.script('d', { chunks: ['trusted'] });
    assert.equal((await call(`${secure.url}/d`, {})).text, 'trusted');
    await transport.close();
    transport = createTransport({ clock, log: silentLog });
    assert.match((await send(`${secure.url}/d`)).failure!.message, /no secure connection/);
  });
});
