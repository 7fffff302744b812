/**
 * What code in a sandbox may try to get a secret out or to reach what it may not. Each row is answered with a reason, and
 * nothing arrives at the wrong place.
 */
import assert from 'node:assert/strict';
import http2 from 'node:http2';
import net from 'node:net';
import { after, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import {
  BOUND,
  connect,
  FREE,
  OTHER,
  OTHER_VALUE,
  raw,
  rawIn,
  read,
  type Setup,
  secure,
  startProxy,
  VALUE,
} from '../../src/testing/egress-proxy/setup.ts';

const setup = await startProxy();
after(() => setup.close());
const { socketPath, placeholder: P, otherPlaceholder: O } = setup;

const basic = (credentials: string) => Buffer.from(credentials).toString('base64');
const plain = (host: string, head = '', body = '', path = '/') =>
  raw(
    socketPath,
    `POST http://${host}${path} HTTP/1.1\r\nHost: ${host}\r\ncontent-length: ${body.length}\r\n${head}\r\n${body}`,
  );
/** A request in a tunnel to the host of the other secret, which carries the first secret's placeholder. */
const elsewhere = (head: string, body = '', path = '/') =>
  rawIn(
    setup,
    OTHER,
    `POST ${path} HTTP/1.1\r\nHost: ${OTHER}\r\ncontent-length: ${body.length}\r\n${head}\r\n${body}`,
  );
const inTunnel = (bytes: string) => rawIn(setup, BOUND, bytes);
const get = (head: string, path = '/') => inTunnel(`GET ${path} HTTP/1.1\r\n${head}\r\n\r\n`);
const refusedConnect = async (authority: string, head = '') => {
  const answer = await connect(socketPath, authority, head);
  if (typeof answer === 'string') return answer;
  answer.destroy();
  return assert.fail(`a tunnel to ${authority} was opened`);
};

/** A request of HTTP/2 in a tunnel: its response as text. */
async function overHttp2(host: string, headers: http2.OutgoingHttpHeaders, body?: string): Promise<string> {
  const socket = await secure(setup, host, { ALPNProtocols: ['h2'] });
  const session = http2.connect(`https://${host}`, { createConnection: () => socket });
  const stream = session.request(headers, { endStream: body === undefined });
  if (body !== undefined) stream.end(body);
  const status = await new Promise<unknown>((resolve, reject) => {
    stream.once('response', (response) => resolve(response[':status']));
    stream.once('error', reject);
  });
  const text = await read(stream);
  session.destroy();
  return `HTTP/1.1 ${status} \r\n\r\n${text}`;
}

type Row = [name: string, run: () => Promise<string>, status: number, says: RegExp];

const ELSEWHERE: Row[] = [
  [
    'a header without TLS',
    () => plain(FREE, `authorization: Bearer ${P}\r\n`),
    403,
    /secret token is not released to free\.test/,
  ],
  ['a path without TLS', () => plain(FREE, '', '', `/${P}`), 403, /secret token is not released/],
  ['a query without TLS', () => plain(FREE, '', '', `/?a=${P}`), 403, /secret token is not released/],
  ['a body without TLS', () => plain(FREE, '', `a=${P}`), 403, /secret token is not released/],
  [
    'Basic credentials without TLS',
    () => plain(FREE, `authorization: Basic ${basic(`u:${P}`)}\r\n`),
    403,
    /not released/,
  ],
  ['its own host without TLS', () => plain(BOUND, `x: ${P}\r\n`), 403, /not released to api\.bound\.test without TLS/],
  ['the authority of CONNECT', () => refusedConnect(`${P}.evil.test:443`), 403, /secret token is not released to/],
  ['a header of CONNECT', () => refusedConnect(`${FREE}:443`, `x: ${P}\r\n`), 403, /secret token is not released/],
  [
    'a header to another host',
    () => elsewhere(`authorization: Bearer ${P}\r\n`),
    403,
    /not released to other\.bound\.test/,
  ],
  ['a cookie to another host', () => elsewhere(`cookie: a=b; c=${P}\r\n`), 403, /secret token is not released/],
  [
    'Basic credentials to another host',
    () => elsewhere(`Authorization: basic ${basic(`${P}:x`)}\r\n`),
    403,
    /not released/,
  ],
  ['a path to another host', () => elsewhere('', '', `/a/${P}/b`), 403, /secret token is not released/],
  ['a query to another host', () => elsewhere('', '', `/?${P}`), 403, /secret token is not released/],
  [
    'a JSON body to another host',
    () => elsewhere('content-type: application/json\r\n', `{"a":"${P}"}`),
    403,
    /not released/,
  ],
  ['a binary body to another host', () => elsewhere('content-type: image/png\r\n', `\0${P}`), 403, /not released/],
  [
    'a body after its own secret',
    () => elsewhere('content-type: text/plain\r\n', `${O} ${P}`),
    403,
    /secret token is not/,
  ],
  ['the name of a header', () => elsewhere(`x-${P}: 1\r\n`), 403, /secret token is not released/],
  [
    'a chunked body, cut in the middle',
    () =>
      rawIn(
        setup,
        OTHER,
        `POST / HTTP/1.1\r\nHost: ${OTHER}\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n${P.slice(0, 20)}\r\n${(P.length - 20).toString(16)}\r\n${P.slice(20)}\r\n0\r\n\r\n`,
      ),
    403,
    /secret token is not released/,
  ],
  ['a header of HTTP/2', () => overHttp2(OTHER, { authorization: P }), 403, /secret token is not released/],
  ['a body of HTTP/2', () => overHttp2(OTHER, { ':method': 'POST' }, `x${P}`), 403, /secret token is not released/],
  ['a path of HTTP/2', () => overHttp2(OTHER, { ':path': `/${P}` }), 403, /secret token is not released/],
  ['the name of a header on its own host', () => get(`Host: ${BOUND}\r\nx-${P}: 1`), 403, /cannot be sent in the name/],
];

const MISDIRECTED: Row[] = [
  [
    'a Host header of another bound host',
    () => get(`Host: ${OTHER}\r\nauthorization: ${P}`),
    421,
    /names another host/,
  ],
  ['a Host header of a free host', () => get(`Host: ${FREE}`), 421, /leads to api\.bound\.test/],
  ['a Host header with another port', () => get(`Host: ${BOUND}:8443`), 421, /names another host/],
  ['a Host header with a user', () => get(`Host: x@${BOUND}`), 400, /not of the form host:port/],
  ['two Host headers', () => get(`Host: ${BOUND}\r\nHost: ${BOUND}`), 400, /more than one Host/],
  ['no Host header', () => get('x: 1'), 400, /./],
  ['a Host header of the parent domain', () => get('Host: bound.test'), 421, /names another host/],
  ['a Host header of a subdomain', () => get(`Host: x.${BOUND}`), 421, /names another host/],
  ['a whole URL', () => get(`Host: ${BOUND}`, `https://${BOUND}/`), 400, /has a path, not a URL/],
  ['a whole URL of another host', () => get(`Host: ${BOUND}`, `http://${FREE}/`), 400, /has a path, not a URL/],
  [
    'a second CONNECT',
    () => inTunnel(`CONNECT ${FREE}:443 HTTP/1.1\r\nHost: ${FREE}:443\r\n\r\n`),
    400,
    /no CONNECT inside/,
  ],
  ['another :authority', () => overHttp2(BOUND, { ':authority': FREE, authorization: P }), 421, /names another host/],
  ['another Host in HTTP/2', () => overHttp2(BOUND, { ':authority': BOUND, host: FREE }), 421, /names another host/],
  [
    'CONNECT in HTTP/2',
    () => overHttp2(BOUND, { ':method': 'CONNECT', ':authority': `${FREE}:443` }),
    400,
    /no CONNECT inside/,
  ],
  [
    'another Host than that of a plain URL',
    () => raw(socketPath, `GET http://${FREE}/ HTTP/1.1\r\nHost: ${OTHER}\r\n\r\n`),
    421,
    /names another host/,
  ],
  ['TLS for another host', () => wrongName(OTHER), 421, /TLS was asked for another host/],
  ['TLS for a subdomain', () => wrongName(`x.${BOUND}`), 421, /TLS was asked for another host/],
];

async function wrongName(servername: string): Promise<string> {
  const socket = await secure(setup, BOUND, { servername, rejectUnauthorized: false });
  const answer = read(socket, (text) => text.includes('another host'));
  socket.write(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\nauthorization: ${P}\r\n\r\n`);
  const text = await answer;
  socket.destroy();
  return text;
}

const PLACES: Row[] = [
  ['an IP address', () => refusedConnect('93.184.216.34:443'), 403, /not on the list of domains/],
  ['a decimal IP address', () => refusedConnect('1572395042:443'), 403, /93\.184\.216\.34 is not on the list/],
  ['a loopback address', () => refusedConnect('127.0.0.1:443'), 403, /not on the list/],
  ['a short loopback address', () => refusedConnect('127.1:443'), 403, /127\.0\.0\.1 is not on the list/],
  ['a mapped IPv6 address', () => refusedConnect('[::ffff:127.0.0.1]:443'), 403, /not on the list/],
  ['another port', () => refusedConnect(`${BOUND}:8443`), 403, /Port 8443 is not allowed/],
  ['the port of SSH', () => refusedConnect(`${FREE}:22`), 403, /Port 22 is not allowed/],
  ['another port without TLS', () => plain(`${FREE}:8080`), 403, /Port 8080 is not allowed/],
  [
    'a name of a private address',
    () => refusedConnect('private.test:443'),
    403,
    /points to an address that is not public/,
  ],
  ['the metadata service', () => refusedConnect('metadata.test:80'), 403, /not public/],
  ['a name of a public and a private address', () => refusedConnect('mixed.test:443'), 403, /not public/],
  ['a bound name that now leads to loopback', () => refusedConnect('rebind-bound.test:443'), 403, /not public/],
  ['a private address without TLS', () => plain('private.test'), 403, /not public/],
  ['a name that does not exist', () => refusedConnect('nowhere.test:443'), 502, /could not be resolved/],
  ['a subdomain of a bound host', () => refusedConnect(`x.${BOUND}:443`), 502, /could not be resolved/],
  [
    'a bound host with the certificate of another',
    () => refusedConnect('wrong-bound.test:443'),
    502,
    /could not be verified \(ERR_TLS_CERT_ALTNAME_INVALID\)/,
  ],
  ['a user in the authority', () => refusedConnect(`x@${BOUND}:443`), 400, /not of the form host:port/],
  ['a user and password in the authority', () => refusedConnect(`x:y@${BOUND}:443`), 400, /not of the form/],
  ['a path in the authority', () => refusedConnect(`${FREE}/.${BOUND}:443`), 400, /./],
  ['an escape in the authority', () => refusedConnect(`${FREE}%00.${BOUND}:443`), 400, /./],
  ['a fragment in the authority', () => refusedConnect(`${FREE}#.${BOUND}:443`), 400, /./],
  ['two trailing dots', () => refusedConnect(`${BOUND}..:443`), 400, /not of the form/],
  ['full-width letters', () => refusedConnect('\xef\xbd\x81pi.bound.test:443'), 400, /./],
  ['an ideographic dot', () => refusedConnect('api\xe3\x80\x82bound.test:443'), 400, /./],
  ['no port', () => refusedConnect(BOUND), 400, /not of the form/],
  ['a punycode twin', () => refusedConnect('xn--pi-7ba.bound.test:443'), 502, /could not be resolved/],
  ['a user in a plain URL', () => raw(socketPath, `GET http://x@${FREE}/ HTTP/1.1\r\nHost: ${FREE}\r\n\r\n`), 400, /./],
];

const MALFORMED: Row[] = [
  [
    'two lengths',
    () =>
      inTunnel(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`),
    400,
    /not valid HTTP/,
  ],
  [
    'two lengths, the other way round',
    () =>
      inTunnel(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n`),
    400,
    /not valid HTTP|two lengths/,
  ],
  [
    'two Content-Lengths',
    () => inTunnel(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd`),
    400,
    /not valid/,
  ],
  [
    'an unknown transfer coding',
    () => inTunnel(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`),
    400,
    /not valid/,
  ],
  [
    'a chunk size with junk',
    () => inTunnel(`POST / HTTP/1.1\r\nHost: ${BOUND}\r\nTransfer-Encoding: chunked\r\n\r\n5x\r\nabcde\r\n0\r\n\r\n`),
    400,
    /not valid/,
  ],
  ['a bare line feed', () => inTunnel(`GET / HTTP/1.1\nHost: ${BOUND}\n\n`), 400, /not valid/],
  [
    'a bare line feed in a header',
    () => inTunnel(`GET / HTTP/1.1\r\nHost: ${BOUND}\r\nx: a\nContent-Length: 3\r\n\r\n`),
    400,
    /not valid/,
  ],
  ['a space before the colon', () => inTunnel(`GET / HTTP/1.1\r\nHost : ${BOUND}\r\n\r\n`), 400, /not valid/],
  ['a zero byte in a header', () => get(`Host: ${BOUND}\r\nx: a\0b`), 400, /not valid/],
  ['HTTP/2 without TLS', () => raw(socketPath, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 400, /not valid/],
  ['HTTP/2 where HTTP/1.1 was agreed', () => inTunnel('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'), 400, /not valid/],
  ['TLS to the proxy itself', () => raw(socketPath, Buffer.from('16030100a5010000a10303', 'hex')), 400, /not valid/],
  ['no HTTP at all', () => raw(socketPath, 'SSH-2.0-OpenSSH_9.2\r\n'), 400, /not valid/],
  [
    'large headers to the proxy',
    () => raw(socketPath, `GET http://${FREE}/ HTTP/1.1\r\nHost: ${FREE}\r\nx: ${'a'.repeat(70_000)}\r\n\r\n`),
    431,
    /larger than 65536 bytes/,
  ],
  [
    'large headers in a tunnel',
    () => get(`Host: ${BOUND}\r\nx: ${'a'.repeat(70_000)}`),
    431,
    /larger than 65536 bytes/,
  ],
  ['a folded header', () => get(`Host: ${BOUND}\r\nx: a\r\n Content-Length: 3`), 400, /not valid/],
  [
    'a path without a host',
    () => raw(socketPath, 'GET / HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n\r\n'),
    400,
    /This is a proxy/,
  ],
  [
    'an https URL',
    () => raw(socketPath, `GET https://${BOUND}/ HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`),
    400,
    /needs CONNECT/,
  ],
  [
    'an ftp URL',
    () => raw(socketPath, `GET ftp://${BOUND}/ HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`),
    400,
    /This is a proxy/,
  ],
  [
    'an upgrade to something else',
    () =>
      get(`Host: ${BOUND}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__`),
    400,
    /Only WebSockets/,
  ],
];

for (const [group, rows] of Object.entries({ ELSEWHERE, MISDIRECTED, PLACES, MALFORMED })) {
  for (const [name, run, status, says] of rows) {
    test(`${group.toLowerCase()}: ${name}`, async () => {
      const answer = await run();
      assert.match(answer, new RegExp(`^HTTP/1\\.1 ${status} `));
      assert.match(answer, says);
      assertKept(setup, answer);
    });
  }
}

function assertKept({ other, free, bound }: Setup, answer: string): void {
  const arrived = (host: Setup['bound']) =>
    host.seen.map((each) => [...each.rawHeaders, each.path, each.body].join('\n')).join('\n');
  assert.ok(!arrived(other).includes(VALUE) && !arrived(other).includes(P), 'the other host got something');
  assert.ok(!arrived(free).includes(VALUE) && !arrived(free).includes(P), 'a free host got something');
  assert.ok(
    !arrived(bound).includes(OTHER_VALUE) && !arrived(bound).includes(O),
    'the bound host got the other secret',
  );
  assert.ok(!answer.includes(VALUE) && !answer.includes(OTHER_VALUE), 'the sandbox got a value');
}

test('a placeholder for another host is reported with the secret and the host', async () => {
  await elsewhere(`authorization: Bearer ${P}\r\n`);
  const report = setup.refusals().find(({ host, reason }) => host === OTHER && reason === 'secret_elsewhere');
  assert.deepEqual([report?.secret, report?.port, report?.count], ['token', 443, 1]);
});

test('a name is resolved once for a connection, and the address that was checked is dialled', async () => {
  const tunnel = await connect(socketPath, 'rebind.test:443');
  assert.ok(typeof tunnel !== 'string', String(tunnel));
  tunnel.destroy();
  assert.match(await refusedConnect('rebind.test:443'), /not public/);
  assert.ok(
    setup.network.dialled.every((address) => /^93\.184\./.test(address)),
    setup.network.dialled.join(),
  );
});

test('a placeholder in a tunnel without TLS ends the tunnel before it arrives', async () => {
  const received: Buffer[] = [];
  const server = net.createServer((socket) => {
    socket.on('error', () => {}).on('data', (chunk: Buffer) => received.push(chunk));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const other = await startProxy({});
  other.network.network.open = () => net.connect(port, '127.0.0.1');
  try {
    const tunnel = await connect(other.socketPath, `${FREE}:80`);
    assert.ok(typeof tunnel !== 'string');
    const ended = read(tunnel);
    tunnel.write(`GET / HTTP/1.1\r\nx: ${other.placeholder.slice(0, 30)}`);
    await until(() => received.length > 0, 'the tunnel is open');
    tunnel.write(`${other.placeholder.slice(30)}\r\n\r\n`);
    await ended;
    assert.ok(!Buffer.concat(received).toString().includes(other.placeholder));
    assert.equal(other.refusals()[0]?.reason, 'secret_elsewhere');
  } finally {
    server.close();
    await other.close();
  }
});

test('what follows a refused CONNECT on its connection is not read', async () => {
  const answer = await raw(
    socketPath,
    `CONNECT ${FREE}:22 HTTP/1.1\r\nHost: x\r\n\r\nCONNECT ${FREE}:443 HTTP/1.1\r\nHost: x\r\n\r\n`,
  );
  assert.equal(answer.match(/HTTP\/1\.1 /g)?.length, 1);
  assert.match(answer, /^HTTP\/1\.1 403 /);
});

test('a domain that is not on the list is neither tunnelled nor intercepted', async () => {
  const narrow = await startProxy({ domains: ['*.other.test', FREE] });
  try {
    for (const authority of [`${BOUND}:443`, 'other.test:443', `x${FREE}:443`]) {
      assert.match(
        String(await connect(narrow.socketPath, authority)),
        /^HTTP\/1\.1 403 [\s\S]*not on the list of domains/,
      );
    }
    assert.notEqual(typeof (await connect(narrow.socketPath, `${FREE}:443`)), 'string');
    assert.deepEqual(narrow.network.dialled, ['93.184.216.36:443']);
  } finally {
    await narrow.close();
  }
});

test('headers that grow too large by their secrets are refused', async () => {
  const value = 'v'.repeat(5_000);
  const large = await startProxy({
    secrets: [{ name: 'large', value, hosts: [BOUND], placeholder: P }],
  });
  try {
    const answer = await rawIn(large, BOUND, `GET / HTTP/1.1\r\nHost: ${BOUND}\r\nx: ${P.repeat(60)}\r\n\r\n`);
    assert.match(answer, /^HTTP\/1\.1 431 [\s\S]*larger than 262144 bytes with their secrets/);
    assert.equal(large.bound.seen.length, 0);
  } finally {
    await large.close();
  }
});

test('the body of a model call never becomes a request of its own', async () => {
  let arrived = '';
  const gateway = net.createServer((socket) => {
    socket.on('data', (chunk) => {
      arrived += chunk.toString('latin1');
      if (arrived.includes('hidden')) socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n');
    });
  });
  await new Promise<void>((listening) => gateway.listen(0, '127.0.0.1', listening));
  const { port } = gateway.address() as net.AddressInfo;
  const own = await startProxy({ gateway: { host: '127.0.0.1', port, certificate: null, token: 'key-of-intern' } });
  try {
    const hidden = 'GET /hidden HTTP/1.1\r\n\r\n';
    const body = `transfer-encoding: chunked\r\n\r\n${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`;
    for (const method of ['GET', 'DELETE', 'POST']) {
      arrived = '';
      await raw(own.socketPath, `${method} /api/v1/models HTTP/1.1\r\nHost: 127.0.0.1:3128\r\n${body}`);
      assert.match(
        arrived,
        /^[A-Z]+ \/api\/v1\/models [\s\S]*transfer-encoding: chunked[\s\S]*\r\n\r\n18\r\nGET \/hidden/i,
      );
    }
  } finally {
    await own.close();
    gateway.close();
  }
});

test('a sandbox cannot hold more than its connections', async () => {
  const sockets = Array.from({ length: 256 }, () => net.connect(socketPath).on('error', () => {}));
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
  assert.match(
    await raw(socketPath, `GET http://${FREE}/ HTTP/1.1\r\nHost: ${FREE}\r\n\r\n`),
    /^HTTP\/1\.1 503 [\s\S]*more than 256/,
  );
  for (const socket of sockets) socket.destroy();
});
