import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { settle, until } from '../../../src/testing/clock/clock.ts';
import { makeCertificate } from '../../../src/testing/upstream/certificate.ts';
import { startUpstream, type Upstream } from '../../../src/testing/upstream/upstream.ts';
import { TIMEOUTS, TransportBench } from './transport.ts';

describe('the transport over TLS', () => {
  const bench = new TransportBench();
  const { send, exchange, scripted, rawServer } = bench;

  const certificate = makeCertificate();
  const skip = certificate === null && 'the openssl program is missing';
  let secure: Upstream | undefined;
  before(async () => {
    if (certificate !== null) secure = await startUpstream({ tls: certificate });
  });
  after(() => secure?.close());

  test('an upstream with a trusted certificate is accepted, by address and by name', { skip }, async () => {
    bench.use({ ca: certificate!.cert });
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
    bench.use({ ca: certificate!.cert });
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
    bench.clock.advance(TIMEOUTS.connect);
    assert.deepEqual([receiver.failure?.kind, receiver.sent], ['timeout', false]);
  });
});
