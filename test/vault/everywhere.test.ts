/**
 * A secret that a sandbox uses, with hosts that repeat, encode, split and garble it, is nowhere but in the proxy's memory and at its host:
 * not in rows, files, logs, metrics, environments and arguments of processes, nor in any byte that the sandbox received.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import http2 from 'node:http2';
import type net from 'node:net';
import path from 'node:path';
import { after, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { operatorAuthor } from '../../src/audit/index.ts';
import { createLog } from '../../src/base/log.ts';
import { secretForms } from '../../src/base/secret-forms.ts';
import { SOCKET_NAME } from '../../src/egress-proxy/index.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { wholeDatabase } from '../../src/testing/database/rows.ts';
import { type SeenRequest, startTlsHost } from '../../src/testing/egress-proxy/hosts.ts';
import { raw, read, secure } from '../../src/testing/egress-proxy/setup.ts';
import { startSupervised } from '../../src/testing/egress-proxy/supervised.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { rotateAuthorities, rotateVaultKeys, SecretReleases } from '../../src/vault/index.ts';
import { auditOf, partsOf, vaultOf } from './vault.ts';

const end = { after: (close: unknown) => after(close as () => Promise<void>) };
const CANARY = 'canary/0123456789+of&"a"+customer';
const bytes = Buffer.from(CANARY);
const TRACES = [
  ...secretForms(CANARY),
  ...[bytes.toString('hex'), bytes.toString('hex').toUpperCase()],
  // Forms that hosts do not choose, but that files and rows may contain.
  ...['canary/0123', Buffer.from('canary/0123').toString('hex'), Buffer.from('canary/0123').toString('base64')],
];
const [BOUND, FREE] = ['api.test', 'free.test'];
const JSON_TYPE = { 'content-type': 'application/json' };

type Answer = Parameters<NonNullable<Parameters<Awaited<ReturnType<typeof startTlsHost>>['answer']>[0]>>[1];

/** What hosts do with a value, by path. */
const HOSTS: Record<string, (value: string, answer: Answer) => void> = {
  '/plain': (value, answer) => answer.writeHead(200, { ...JSON_TYPE, 'x-echo': value }).end(JSON.stringify({ value })),
  '/error': (value, answer) => answer.writeHead(500, value.replace(/[^ -~]/g, '')).end(`failed for ${value}`),
  '/gzip': (value, answer) => answer.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(value)),
  '/br': (value, answer) => answer.writeHead(200, { 'content-encoding': 'br' }).end(brotliCompressSync(value)),
  '/zstd': (value, answer) => answer.writeHead(200, { 'content-encoding': 'zstd' }).end(zstdCompressSync(value)),
  '/deflate': (value, answer) => answer.writeHead(200, { 'content-encoding': 'deflate' }).end(deflateSync(value)),
  '/twice': (value, answer) =>
    answer.writeHead(200, { 'content-encoding': 'gzip, br' }).end(brotliCompressSync(gzipSync(value))),
  '/thrice': (value, answer) => answer.writeHead(200, { 'content-encoding': 'gzip, gzip, gzip' }).end(gzipSync(value)),
  '/mislabelled': (value, answer) => answer.writeHead(200, { 'content-encoding': 'gzip' }).end(value),
  '/hex': (value, answer) => answer.end(Buffer.from(value).toString('hex')),
  '/base64': (value, answer) => answer.end(`x${Buffer.from(`ab${value}`).toString('base64')}`),
  '/form': (value, answer) => answer.end(`a=${encodeURIComponent(value)}`),
  '/binary': (value, answer) => answer.writeHead(200, { 'content-type': 'image/png' }).end(`\0${value}`),
  '/part': (value, answer) => answer.writeHead(206, { 'content-range': 'bytes 0-99/100' }).end(value.padEnd(100)),
  '/multipart': (value, answer) =>
    answer
      .writeHead(206, { 'content-type': 'multipart/byteranges; boundary=b' })
      .end(`--b\r\ncontent-range: bytes 0-9/100\r\n\r\n${value}\r\n--b--`),
  '/redirect': (value, answer) =>
    answer.writeHead(302, { location: `https://${FREE}/?v=${encodeURIComponent(value)}` }).end(),
  '/cookie': (value, answer) => answer.writeHead(200, { 'set-cookie': [`a=${value}`, 'b=c'] }).end(),
  '/trailer': (value, answer) => {
    answer.writeHead(200, { trailer: 'x-last' });
    answer.write('body');
    answer.addTrailers({ 'x-last': value });
    answer.end();
  },
  '/aborted': (value, answer) => {
    answer.writeHead(200, { 'content-length': '1000' });
    answer.write(`${value}, and then`);
    setImmediate(() => answer.destroy());
  },
  '/malformed': (value, answer) => answer.socket?.end(`HTTP/1.1 200 OK\r\n${value}\r\nx y: ${value}\r\n\r\n${value}`),
  '/bytewise': (value, answer) => {
    answer.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const byte of Buffer.from(`data: ${value}\n\n`)) answer.write(Buffer.from([byte]));
    answer.end();
  },
  '/many': (value, answer) => answer.end(value.repeat(10_000)),
};

const sentTo = ({ headers }: SeenRequest) => String(headers['authorization']).replace(/^Bearer /, '');

test('a value is at its host, and nowhere else', async (t) => {
  const lines: string[] = [];
  const log = createLog({ stream: { write: (line: string) => lines.push(line) > 0 } as never, level: 'debug' });
  const [bound, free] = [await startTlsHost(BOUND), await startTlsHost(FREE)];
  t.after(() => Promise.all([bound.close(), free.close()]));
  bound.answer((seen, answer) => (HOSTS[seen.path] ?? ((_, unknown) => unknown.end()))(sentTo(seen), answer));
  const gateway = await startGateway(end, { log });
  const parts = { ...(await partsOf(end, gateway))(), log };
  const { proxy, logged } = startSupervised(end, { [BOUND]: bound.port, [FREE]: free.port });
  const releases = new SecretReleases({ ...parts, settings: () => ({ domains: ['*'], ports: [443, 80] }) });
  t.after(() => releases.end());
  const vault = vaultOf(gateway);
  await vault.put('token', CANARY, [BOUND]);
  const [owner] = (await parts.database.query(
    `select 'workspace' as type, workspace_id::text as id, organization_id as "organizationId",
       workspace_id as "workspaceId" from vaults`,
  )) as [{ type: 'workspace'; id: string; organizationId: string; workspaceId: string }];
  const policy = { held: { owner, hold: async () => {} }, borrowedVaultId: null, domains: ['*'] };
  const egress = await releases.prepare('box', policy);
  const folder = await proxy.open('box', { ...egress.network, gid: null });
  const inside = { socketPath: path.join(folder, SOCKET_NAME), authority: egress.network };
  const P = egress.environment()['TOKEN']!;

  const received: string[] = [JSON.stringify(egress.environment())];
  const send = async (host: string, request: string) => {
    const socket = await secure(inside, host);
    const answer = read(socket);
    socket.write(request);
    received.push(await answer);
  };
  const get = (target: string, host = BOUND) =>
    `GET ${target} HTTP/1.1\r\nHost: ${host}\r\nauthorization: Bearer ${P}\r\nconnection: close\r\n\r\n`;
  for (const target of Object.keys(HOSTS)) {
    await send(BOUND, get(target));
    assert.ok(
      bound.seen.some((seen) => seen.path === target && sentTo(seen) === CANARY),
      target,
    );
  }
  for (const target of ['/plain', '/error', '/gzip', '/trailer', '/aborted', '/bytewise']) {
    received.push(await overHttp2(await secure(inside, BOUND, { ALPNProtocols: ['h2'] }), target, P));
  }
  // Refused, misdirected and malformed requests, and tunnels.
  await send(BOUND, get('/plain', FREE));
  await send(BOUND, `GET / HTTP/1.1\r\nHost: ${BOUND}\r\nx y: ${P}\r\n\r\n`);
  await send(BOUND, `GET / HTTP/1.1\r\nHost: ${BOUND}\r\nx-${P}: 1\r\nconnection: close\r\n\r\n`);
  await send(BOUND, `POST / HTTP/1.1\r\nHost: ${BOUND}\r\ncontent-length: 9\r\nconnection: close\r\n\r\n${P}`);
  await send(FREE, get('/plain', FREE));
  received.push(await raw(inside.socketPath, `GET http://${BOUND}/?${P} HTTP/1.1\r\nHost: ${BOUND}\r\n\r\n`));
  received.push(await raw(inside.socketPath, `CONNECT ${P}.test:443 HTTP/1.1\r\nHost: x\r\n\r\n`));
  const leaving = await secure(inside, BOUND);
  leaving.end(get('/many'));
  leaving.destroy();
  assert.ok(received.filter((text) => text.includes(P)).length > Object.keys(HOSTS).length / 2);
  assert.ok(free.seen.some(({ headers }) => headers['authorization'] === `Bearer ${P}`));

  // What happens to a vault while its secrets are used.
  await until(
    async () => (await auditOf(gateway, 'vault_secret')).some(({ action }) => action.endsWith('refused')),
    'audited',
  );
  await rotateVaultKeys(parts, null, operatorAuthor);
  await rotateAuthorities(parts, null, operatorAuthor);
  process.kill(proxy.pid!, 'SIGKILL');
  await until(
    () =>
      send(BOUND, get('/plain')).then(
        () => true,
        () => false,
      ),
    'the proxy is back',
  );
  const proc = `/proc/${proxy.pid}`;
  assert.match(readFileSync(`${proc}/limits`, 'utf8'), /Max core file size +0 +0 /);
  const processes = processTexts();
  assert.ok(processes.length > 2);
  await parts.database.query(`update vault_secrets set sealed = set_byte(sealed, 29, get_byte(sealed, 29) # 255)`);
  await vault.put('other', 'another value', [BOUND]);
  await assert.rejects(releases.prepare('late', policy), { status: 503 });
  await assert.rejects(secure(inside, BOUND), /ENOENT|ECONNREFUSED|./);

  log.flush();
  const metrics = await fetch(`${gateway.url}/metrics`, { headers: { authorization: `Bearer ${MANAGEMENT_KEY}` } });
  const places: Record<string, string[]> = {
    'what the sandbox received': received,
    'what the free host received': free.seen.map((seen) => JSON.stringify({ ...seen, body: seen.body.toString() })),
    'the database': [await wholeDatabase(gateway.target)],
    files: filesIn(gateway.dataDir),
    sockets: [folder],
    logs: [...lines, ...logged],
    metrics: [await metrics.text(), JSON.stringify(await gateway.app.report())],
    'arguments and environments': processes,
  };
  for (const [place, texts] of Object.entries(places)) {
    assert.ok(texts.length > 0, place);
    for (const text of texts) for (const trace of TRACES) assert.ok(!text.includes(trace), `${trace} in ${place}`);
  }
  // The search finds what is there.
  assert.ok(TRACES.some((trace) => bound.seen.map(sentTo).join().includes(trace)));
});

async function overHttp2(socket: net.Socket, target: string, placeholder: string): Promise<string> {
  const session = http2.connect(`https://${BOUND}`, { createConnection: () => socket });
  session.on('error', () => {});
  const stream = session.request({ ':path': target, authorization: `Bearer ${placeholder}` });
  const heads: string[] = [];
  stream.on('response', (headers) => heads.push(JSON.stringify(headers)));
  stream.on('trailers', (headers) => heads.push(JSON.stringify(headers)));
  const text = await read(stream);
  session.destroy();
  return heads.join() + text;
}

/** Arguments and environments of every process of this machine that may be read. */
function processTexts(): string[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) =>
      ['cmdline', 'environ'].flatMap((file) => {
        try {
          return [readFileSync(`/proc/${pid}/${file}`, 'latin1')];
        } catch {
          return [];
        }
      }),
    );
}

function filesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => {
    const file = path.join(folder, name);
    return statSync(file).isFile() ? readFileSync(file, 'latin1') : name;
  });
}
