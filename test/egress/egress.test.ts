/** Connections are recorded and redirected to loopback, so no test reaches a real address. */
import assert from 'node:assert/strict';
import net from 'node:net';
import { after, test } from 'node:test';
import { DEFAULT_EGRESS, type EgressSettings } from '../../src/base/config.ts';
import { createEgress, type EgressRequest } from '../../src/egress/egress.ts';
import { EgressError, type EgressFault } from '../../src/egress/fault.ts';
import { TestClock, until } from '../../src/testing/clock/clock.ts';
import { type Answer, startUpstream } from '../../src/testing/upstream/upstream.ts';

const upstream = await startUpstream();
after(() => upstream.close());
const port = Number(new URL(upstream.url).port);

const PUBLIC = '93.184.216.34';
/** Names and their DNS answers, used one after the other; the last one repeats. */
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
        // One test address never accepts connections.
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

test('a response has the status, headers and bytes of the address that was checked', async () => {
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

test('a name is resolved only once, so a DNS answer that changes later has no effect', async () => {
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
  test(`a redirect to ${location} is refused like the address itself`, async () => {
    const { fetch } = start();
    upstream.script('away', redirectTo(location));
    await refused(fetch('http://public.test/away'), 'url');
  });
}

test('redirects are followed, and headers that identify the caller are sent to the first host only', async () => {
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

test('a redirect loop ends after five redirects', async () => {
  const { fetch, dialled } = start();
  upstream.script('circle', redirectTo('/circle'));
  await refused(fetch('http://public.test/circle'), 'redirect');
  assert.equal(dialled.length, 6);
});

test('the redirect of a POST is returned, not followed', async () => {
  const { fetch, dialled } = start();
  upstream.script('post', redirectTo('http://other.test/x', 307));
  const reply = await fetch('http://public.test/post', { method: 'POST', body: 'secret' });
  assert.equal(reply.status, 307);
  assert.equal(dialled.length, 1);
  assert.equal(upstream.requests('post')[0]?.body.toString(), 'secret');
});

test('a body over the limit is refused, announced or not, and the connection is closed', async () => {
  const { fetch } = start();
  upstream.script('told', { headers: { 'content-length': '1001' }, chunks: ['x'], end: 'stall' });
  upstream.script('endless', { chunks: ['x'.repeat(600), 'x'.repeat(600)], end: 'stall' });
  upstream.script('full', { chunks: ['x'.repeat(1000)] });
  await refused(fetch('http://public.test/told'), 'size');
  await refused(fetch('http://public.test/endless'), 'size');
  assert.equal((await fetch('http://public.test/full')).body.length, 1000);
  await until(() => upstream.connections === 0 || undefined, 'the connections to be closed');
});

test('with tlsOnly plain http leads to networks of the operator only, and this is known before a connection', async () => {
  const { egress, fetch, dialled } = start();
  const tlsOnly = true;
  assert.throws(() => egress.check({ url: 'http://public.test/', tlsOnly }), /is not an https URL/);
  assert.throws(() => egress.check({ url: 'https://10.0.0.7/', tlsOnly }), /not public/);
  egress.check({ url: 'https://public.test/', tlsOnly });
  await refused(fetch('http://public.test/x', { tlsOnly }), 'url');
  const wider = start({ ...DEFAULT_EGRESS, networks: ['10.0.0.0/8'] });
  // The addresses of names are not known yet.
  for (const url of ['http://public.test/', 'http://private.test/', 'http://10.0.0.7/']) {
    wider.egress.check({ url, tlsOnly });
  }
  assert.throws(() => wider.egress.check({ url: `http://${PUBLIC}/`, tlsOnly }), /is not an https URL/);
  await refused(wider.fetch('http://public.test/x', { tlsOnly }), 'url');
  assert.deepEqual([...dialled, ...wider.dialled], []);
  upstream.script('inside', { chunks: ['ok'] });
  assert.equal((await wider.fetch('http://private.test/inside', { tlsOnly })).status, 200);
});

test('with headOnly the status counts as soon as it is there, whatever follows', async () => {
  const { fetch } = start();
  upstream.script('head', [{ chunks: ['x'.repeat(100_000), { gate: 'never' }] }, { status: 500, chunks: ['y'] }]);
  for (const expected of [200, 500]) {
    const { status, body } = await fetch('http://public.test/head', { headOnly: true, maxBytes: 0, method: 'POST' });
    assert.deepEqual([status, body.length], [expected, 0]);
  }
});

test('a compressed response is refused instead of decompressed', async () => {
  const { fetch } = start();
  upstream.script('packed', { headers: { 'content-encoding': 'gzip' }, chunks: ['x'] });
  await refused(fetch('http://public.test/packed'), 'network');
});

test('the timeout applies while a name is resolved, before a response, and in the middle of a body', async () => {
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

test('a cancelled fetch ends at once and closes its connection', async () => {
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

test('closing aborts running fetches and refuses new ones', async () => {
  const { fetch, egress } = start();
  upstream.script('last', { end: 'stall-before-headers' });
  const pending = fetch('http://public.test/last');
  await upstream.request('last');
  await egress.close();
  await refused(pending, 'cancelled');
  await refused(fetch('http://public.test/last'), 'cancelled');
});

test('the next address of a name is tried when the first refuses the connection', async () => {
  const { fetch, dialled } = start();
  upstream.script('second', { chunks: ['ok'] });
  assert.equal((await fetch('http://two.test/second')).body.toString(), 'ok');
  assert.deepEqual(dialled, ['93.184.216.1 80', `${PUBLIC} 80`]);
});

test('a broken connection, an unknown name and a response that is not HTTP are reported without details', async () => {
  const { fetch } = start();
  upstream.script('broken', { chunks: ['x'], headers: { 'content-length': '100' }, end: 'reset' });
  upstream.script('raw', { raw: ['SSH-2.0-secret\r\n\r\n'] });
  await refused(fetch('http://public.test/broken'), 'network');
  const error = await refused(fetch('http://public.test/raw'), 'network');
  assert.doesNotMatch(error.message, /SSH|secret/);
  await refused(fetch('http://unknown.test/'), 'network');
});

test('a secure connection sends the host name and does not trust an unknown certificate', async () => {
  const { fetch, dialled } = start();
  // The scripted upstream does not speak TLS.
  await refused(fetch('https://public.test/x'), 'network');
  assert.deepEqual(dialled, [`${PUBLIC} 443`]);
});

test('fetches over the concurrency limit wait in line, and those beyond the line are refused', async () => {
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

test('a response can be read as it arrives, within the limits of bytes and time', async () => {
  const { egress, clock } = start();
  const open = (key: string, more: Partial<EgressRequest> = {}) =>
    egress.open({
      url: `http://public.test/${key}`,
      method: 'POST',
      body: '{}',
      maxBytes: 1000,
      timeoutMs: 5_000,
      ...more,
    });
  upstream.script('live', { chunks: ['one', { gate: 'live' }, 'two'] });
  const { status, body } = await open('live');
  const reader = body.getReader();
  assert.equal(status, 200);
  assert.equal(Buffer.from((await reader.read()).value!).toString(), 'one');
  upstream.open('live');
  assert.equal(Buffer.from((await reader.read()).value!).toString(), 'two');
  assert.equal((await reader.read()).done, true);

  const large = 'y'.repeat(1_000_000);
  upstream.script('large', { headers: { 'content-length': String(large.length) }, chunks: [large] });
  assert.equal(await new Response((await open('large', { maxBytes: large.length })).body).text(), large);

  upstream.script('long', { chunks: ['x'.repeat(999), 'xx'] });
  await refused(new Response((await open('long')).body).text(), 'size');
  upstream.script('slow', { chunks: ['x', { gate: 'never' }] });
  const slow = await open('slow');
  clock.advance(5_000);
  await refused(new Response(slow.body).text(), 'time');
  upstream.script('moved', { status: 302, headers: { location: 'http://private.test/' }, chunks: [] });
  assert.equal((await open('moved')).status, 302);
  await refused(egress.open({ url: 'http://private.test/x', maxBytes: 10, timeoutMs: 5_000 }), 'address');
  upstream.script('left', { chunks: ['x', { gate: 'never' }] });
  await (await open('left')).body.cancel();
  await until(() => upstream.requests('left')[0]!.closedEarlyAt !== undefined, 'the end of a cancelled body');
  upstream.script('closed', { chunks: ['x', { gate: 'never' }] });
  const last = await open('closed');
  await egress.close();
  await refused(new Response(last.body).text(), 'cancelled');
});
