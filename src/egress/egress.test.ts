/** What is dialled is recorded and led to loopback, so no test touches a real address. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, test } from 'node:test';
import { DEFAULT_EGRESS, type EgressSettings } from '../base/config.ts';
import { TestClock, until } from '../testing/clock.ts';
import { type Answer, startUpstream } from '../testing/upstream.ts';
import { createEgress, type EgressRequest } from './egress.ts';
import { EgressError, type EgressFault } from './fault.ts';

const upstream = await startUpstream();
after(() => upstream.close());
const port = Number(new URL(upstream.url).port);

const PUBLIC = '93.184.216.34';
/** Names and what a resolver answers, one answer after the other, the last one for ever. */
const NAMES: Record<string, readonly (readonly string[])[]> = {
  'public.test': [[PUBLIC]],
  'other.test': [['1.1.1.1']],
  'private.test': [['10.0.0.7']],
  'mixed.test': [[PUBLIC, '127.0.0.1']],
  'metadata.test': [['169.254.169.254']],
  'mapped.test': [['::ffff:127.0.0.1']],
  'localhost.': [['127.0.0.1']],
  'rebind.test': [[PUBLIC], ['127.0.0.1']],
  'two.test': [['93.184.216.1', PUBLIC]],
};

function start(settings: EgressSettings = DEFAULT_EGRESS, names = NAMES) {
  const dialled: string[] = [];
  const asked: string[] = [];
  const clock = new TestClock();
  const egress = createEgress({
    clock,
    settings: () => settings,
    dialling: {
      async resolve(host) {
        const answers = names[host];
        if (answers === undefined) throw new Error('ENOTFOUND');
        const turn = asked.filter((name) => name === host).length;
        asked.push(host);
        return answers[Math.min(turn, answers.length - 1)]!;
      },
      open(address, to) {
        dialled.push(`${address} ${to}`);
        // One address of the tests answers nobody.
        return net.connect(address === '93.184.216.1' ? 1 : port, '127.0.0.1');
      },
    },
  });
  const fetch = (url: string, more: Partial<EgressRequest> = {}) =>
    egress.request({ url, maxBytes: 1000, timeoutMs: 5_000, ...more });
  return { egress, fetch, dialled, asked, clock };
}

async function refused(promise: Promise<unknown>, fault: EgressFault): Promise<EgressError> {
  const error = await promise.then(
    () => assert.fail('was fetched'),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof EgressError, String(error));
  assert.equal(error.fault, fault, error.message);
  return error;
}

const redirectTo = (location: string, status = 302): Answer => ({ status, headers: { location } });

test('an answer comes with its status, its headers and its bytes, from the address that was checked', async () => {
  const { fetch, dialled } = start();
  upstream.script('plain', [
    { status: 203, headers: { 'content-type': 'image/png' }, chunks: ['abc', { hex: 'ff00' }] },
  ]);
  const reply = await fetch('http://public.test/plain/a?b=1');
  assert.equal(reply.status, 203);
  assert.equal(reply.headers['content-type'], 'image/png');
  assert.deepEqual(reply.body, Buffer.from('abc\xff\0', 'latin1'));
  assert.deepEqual(dialled, [`${PUBLIC} 80`]);
  const [request] = upstream.requests('plain');
  assert.equal(request?.path, '/a?b=1');
  assert.equal(request?.headers.host, 'public.test');
  assert.equal(request?.headers['accept-encoding'], 'identity');
});

const LITERALS = [
  ...['http://127.0.0.1/', 'http://127.1/', 'http://2130706433/', 'http://0x7f000001/', 'http://0x7f.1/', 'http://0/'],
  ...['http://0177.0.0.1/', 'http://017700000001/', 'http://①②⑦.⓪.⓪.①/', 'http://１２７.0.0.1/', 'http://127.0.0.1./'],
  ...['http://[::1]/', 'http://[::]/', 'http://[::ffff:127.0.0.1]/', 'http://[64:ff9b::7f00:1]/', 'http://[fd00::1]/'],
  ...['http://169.254.169.254/latest/meta-data/', 'http://10.0.0.1/', 'http://100.64.0.1/', 'http://[2002:7f00:1::]/'],
  ...[
    'http://localhost./',
    'http://private.test/',
    'http://metadata.test/',
    'http://mapped.test/',
    'https://mixed.test/',
  ],
];

for (const url of LITERALS) {
  test(`${url} is refused without a connection`, async () => {
    const { fetch, dialled } = start();
    const error = await refused(fetch(url), 'address');
    assert.deepEqual(dialled, []);
    assert.doesNotMatch(error.message, /10\.0|127|169/);
  });
}

test('a name is resolved once, so that an answer which changes afterwards leads nowhere', async () => {
  const { fetch, dialled, asked } = start();
  upstream.script('rebind', { chunks: ['ok'] });
  await fetch('http://rebind.test/rebind');
  assert.deepEqual([asked, dialled], [['rebind.test'], [`${PUBLIC} 80`]]);
  await refused(fetch('http://rebind.test/rebind'), 'address');
  assert.deepEqual(dialled, [`${PUBLIC} 80`]);
});

for (const location of [
  'http://127.0.0.1/x',
  'http://private.test/x',
  'http://[::ffff:10.0.0.1]/x',
  '//169.254.169.254/latest/meta-data/',
  'http://2130706433/x',
  'http://0177.0.0.1/x',
  'http://100.64.0.1/x',
  'http://[64:ff9b::a9fe:a9fe]/x',
  'http://[2002:7f00:1::]/x',
]) {
  test(`a redirect to ${location} is refused without a connection`, async () => {
    const { fetch, dialled } = start();
    upstream.script('away', redirectTo(location));
    await refused(fetch('http://public.test/away'), 'address');
    assert.deepEqual(dialled, [`${PUBLIC} 80`]);
  });
}

for (const location of ['file:///etc/passwd', 'http://public.test:25/', 'http://a:b@public.test/', 'http://[']) {
  test(`a redirect to ${location} is refused as the address would be`, async () => {
    const { fetch } = start();
    upstream.script('away', redirectTo(location));
    await refused(fetch('http://public.test/away'), 'url');
  });
}

test('redirects are followed, and what names the caller stays with the first host', async () => {
  const { fetch, dialled } = start();
  upstream.script('one', redirectTo('/two?x=1', 307));
  upstream.script('two', redirectTo('http://other.test/three', 301));
  upstream.script('three', { chunks: ['found'] });
  const headers = { authorization: 'Bearer secret', cookie: 'a=b', accept: 'image/*' };
  const reply = await fetch('http://public.test/one', { headers });
  assert.equal(reply.body.toString(), 'found');
  assert.equal(reply.url, 'http://other.test/three');
  assert.deepEqual(dialled, [`${PUBLIC} 80`, `${PUBLIC} 80`, '1.1.1.1 80']);
  assert.equal(upstream.requests('two')[0]?.headers.authorization, 'Bearer secret');
  const third = upstream.requests('three')[0]!.headers;
  assert.deepEqual([third.authorization, third.cookie, third.accept], [undefined, undefined, 'image/*']);
});

test('a circle of redirects ends after five', async () => {
  const { fetch, dialled } = start();
  upstream.script('circle', redirectTo('/circle'));
  await refused(fetch('http://public.test/circle'), 'redirect');
  assert.equal(dialled.length, 6);
});

test('the redirect of a POST is an answer', async () => {
  const { fetch, dialled } = start();
  upstream.script('post', redirectTo('http://other.test/x', 307));
  const reply = await fetch('http://public.test/post', { method: 'POST', body: 'secret' });
  assert.equal(reply.status, 307);
  assert.equal(dialled.length, 1);
  assert.equal(upstream.requests('post')[0]?.body.toString(), 'secret');
});

test('a body past the limit is refused, told or not, and the connection is closed', async () => {
  const { fetch } = start();
  upstream.script('told', { headers: { 'content-length': '1001' }, chunks: ['x'], end: 'stall' });
  upstream.script('endless', { chunks: ['x'.repeat(600), 'x'.repeat(600)], end: 'stall' });
  upstream.script('full', { chunks: ['x'.repeat(1000)] });
  await refused(fetch('http://public.test/told'), 'size');
  await refused(fetch('http://public.test/endless'), 'size');
  assert.equal((await fetch('http://public.test/full')).body.length, 1000);
  await until(() => upstream.connections === 0 || undefined, 'the connections to be closed');
});

test('compression that nobody asked for is refused rather than unpacked', async () => {
  const { fetch } = start();
  upstream.script('packed', { headers: { 'content-encoding': 'gzip' }, chunks: ['x'] });
  await refused(fetch('http://public.test/packed'), 'network');
});

test('the time limit holds while a name is resolved, while nothing is answered, and in the middle of a body', async () => {
  for (const step of ['resolve', 'stall-before-headers', 'stall'] as const) {
    const { fetch, clock, dialled, egress } = start();
    upstream.script('slow', { chunks: ['x'], end: step === 'resolve' ? 'close' : step });
    const hanging = createEgress({
      clock,
      settings: () => DEFAULT_EGRESS,
      dialling: { resolve: () => new Promise(() => {}), open: () => assert.fail('was dialled') },
    });
    const before = upstream.requests('slow').length;
    const request = { url: 'http://public.test/slow', maxBytes: 10, timeoutMs: 5_000 };
    const pending = step === 'resolve' ? hanging.request(request) : fetch(request.url);
    if (step !== 'resolve') await upstream.request('slow', before + 1);
    clock.advance(5_000);
    await refused(pending, 'time');
    assert.equal(clock.timers, 0);
    assert.equal(dialled.length, step === 'resolve' ? 0 : 1);
    await egress.close();
  }
});

test('a cancelled fetch ends at once, with its connection', async () => {
  const { fetch, clock } = start();
  upstream.script('hang', { end: 'stall-before-headers' });
  const controller = new AbortController();
  const pending = fetch('http://public.test/hang', { signal: controller.signal });
  const received = await upstream.request('hang');
  controller.abort();
  await refused(pending, 'cancelled');
  await until(() => received.closedEarlyAt, 'the connection to be closed');
  assert.equal(clock.timers, 0);
  await refused(fetch('http://public.test/hang', { signal: controller.signal }), 'cancelled');
  assert.equal(upstream.requests('hang').length, 1);
});

test('closing ends what is under way and refuses what comes', async () => {
  const { fetch, egress } = start();
  upstream.script('last', { end: 'stall-before-headers' });
  const pending = fetch('http://public.test/last');
  await upstream.request('last');
  await egress.close();
  await refused(pending, 'cancelled');
  await refused(fetch('http://public.test/last'), 'cancelled');
});

test('the next address of a name is tried when the first refuses', async () => {
  const { fetch, dialled } = start();
  upstream.script('second', { chunks: ['ok'] });
  assert.equal((await fetch('http://two.test/second')).body.toString(), 'ok');
  assert.deepEqual(dialled, ['93.184.216.1 80', `${PUBLIC} 80`]);
});

test('a connection that breaks, an unknown name and an answer that is no HTTP are told without details', async () => {
  const { fetch } = start();
  upstream.script('broken', { chunks: ['x'], headers: { 'content-length': '100' }, end: 'reset' });
  upstream.script('raw', { raw: ['SSH-2.0-secret\r\n\r\n'] });
  await refused(fetch('http://public.test/broken'), 'network');
  const error = await refused(fetch('http://public.test/raw'), 'network');
  assert.doesNotMatch(error.message, /SSH|secret/);
  await refused(fetch('http://unknown.test/'), 'network');
});

test('a secure connection asks for the name and does not trust a stranger', async () => {
  const { fetch, dialled } = start();
  // The scripted upstream speaks no TLS at all.
  await refused(fetch('https://public.test/x'), 'network');
  assert.deepEqual(dialled, [`${PUBLIC} 443`]);
});

test('more fetches than places wait for their turn, and past the line they are refused', async () => {
  const { fetch } = start();
  upstream.script('many', { chunks: [{ gate: 'many' }, 'ok'] });
  const before = upstream.requests('many').length;
  const pending = Array.from({ length: 64 + 512 }, () => fetch('http://public.test/many'));
  await refused(fetch('http://public.test/many'), 'busy');
  await upstream.request('many', before + 64);
  assert.equal(upstream.requests('many').length, before + 64);
  upstream.open('many');
  const replies = await Promise.all(pending);
  assert.equal(replies.filter(({ body }) => body.toString() === 'ok').length, 576);
});
