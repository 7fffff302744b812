/** A proxy in the process of the test, with a sandbox that has two secrets, and raw clients of its socket. */
import { mkdtempSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Duplex } from 'node:stream';
import tls from 'node:tls';
import { systemClock } from '../../base/clock.ts';
import { ProxyProcess } from '../../egress-proxy/proxy.ts';
import { createPlaceholder } from '../../egress-proxy/secret.ts';
import type { News, RefusalReport, SandboxSettings } from '../../egress-proxy/settings.ts';
import { makeAuthority } from '../../egress-proxy/trust/authority.ts';
import { dialling, type HostOptions, PUBLIC, root, startTlsHost } from './hosts.ts';

export const BOUND = 'api.bound.test';
export const OTHER = 'other.bound.test';
export const FREE = 'free.test';
export const VALUE = 'REAL-secret/value+1&"x"';
export const OTHER_VALUE = 'OTHER-secret-value-2';

export type Setup = Awaited<ReturnType<typeof startProxy>>;

export async function startProxy(changes: Partial<SandboxSettings> = {}, options: HostOptions = {}) {
  const bound = await startTlsHost(BOUND, options);
  const other = await startTlsHost(OTHER);
  const free = await startTlsHost(FREE);
  const names = {
    [BOUND]: [[PUBLIC]],
    [OTHER]: [['93.184.216.35']],
    [FREE]: [['93.184.216.36']],
    'wrong-name.test': [[PUBLIC]],
    'wrong-bound.test': [[PUBLIC]],
    'rebind.test': [[PUBLIC], ['127.0.0.1']],
    'rebind-bound.test': [['127.0.0.1']],
    'private.test': [['10.0.0.1']],
    'metadata.test': [['169.254.169.254']],
    'mixed.test': [[PUBLIC, '127.0.0.1']],
    'silent.test': [['93.184.216.99']],
  };
  const network = dialling(names, {
    ...{ [`${PUBLIC}:443`]: bound.port, [`${PUBLIC}:8443`]: bound.port },
    ...{ '93.184.216.35:443': other.port, '93.184.216.36:443': free.port },
  });
  const folder = mkdtempSync(path.join(tmpdir(), 'egress-'));
  const socketPath = path.join(folder, 'egress.sock');
  const news: News[] = [];
  const proxy = new ProxyProcess((each) => news.push(each), network.network);
  const authority = await makeAuthority(systemClock);
  const [placeholder, otherPlaceholder] = [createPlaceholder(), createPlaceholder()];
  const sandbox: SandboxSettings = {
    secrets: [
      { name: 'token', value: VALUE, hosts: [BOUND, 'wrong-bound.test', 'rebind-bound.test'], placeholder },
      { name: 'other', value: OTHER_VALUE, hosts: [OTHER], placeholder: otherPlaceholder },
    ],
    domains: ['*'],
    ports: [443, 80],
    authority,
    ...changes,
  };
  const update = (next: Partial<SandboxSettings>) =>
    proxy.receive({
      ...{ type: 'open', id: 'box', path: socketPath, mode: 0o600, keyHash: null },
      sandbox: { ...sandbox, ...next },
    });
  await proxy.receive({ type: 'start', settings: { networks: [], extraCa: root.certificate, user: null } });
  await update({});
  return {
    ...{
      bound,
      other,
      free,
      network,
      socketPath,
      news,
      proxy,
      authority,
      placeholder,
      otherPlaceholder,
      sandbox,
      update,
    },
    refusals: (): RefusalReport[] => news.flatMap((each) => (each.type === 'refused' ? [each.refusal] : [])),
    async close() {
      proxy.close();
      await Promise.all([bound.close(), other.close(), free.close()]);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Everything that a socket received until it ended, or until `enough` of it. */
export function read(socket: Duplex, enough: (text: string) => boolean = () => false): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    const done = () => {
      socket.off('data', more);
      resolve(text);
    };
    const more = (chunk: Buffer) => {
      text += chunk.toString('latin1');
      if (enough(text)) done();
    };
    socket.on('data', more);
    socket.once('end', done).once('close', done).on('error', done);
  });
}

/** Whether a text is a whole HTTP/1.1 response with a length. */
export function isWhole(text: string): boolean {
  const [head = '', ...rest] = text.split('\r\n\r\n');
  const length = /content-length: *(\d+)/i.exec(head)?.[1];
  if (/transfer-encoding: *chunked/i.test(head)) return text.endsWith('\r\n0\r\n\r\n');
  return rest.length > 0 && length !== undefined && rest.join('\r\n\r\n').length >= Number(length);
}

/** Writes bytes to the proxy and returns what it answers. */
export async function raw(socketPath: string, bytes: string | Buffer): Promise<string> {
  const socket = net.connect(socketPath);
  const answer = read(socket, isWhole);
  socket.write(bytes);
  const text = await answer;
  socket.destroy();
  return text;
}

/** A tunnel through the proxy, or its refusal. */
export async function connect(socketPath: string, authority: string, headers = ''): Promise<net.Socket | string> {
  const socket = net.connect(socketPath);
  socket.on('error', () => {});
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${headers}\r\n`);
  const head = await read(socket, (text) =>
    text.startsWith('HTTP/1.1 200') ? text.includes('\r\n\r\n') : isWhole(text),
  );
  if (head.startsWith('HTTP/1.1 200')) return socket;
  socket.destroy();
  return head;
}

/** What a sandbox has: the socket, and the certificates that it trusts. */
interface Sandboxed {
  socketPath: string;
  authority: { certificate: string };
}

/** TLS inside of a tunnel, as a client that trusts the sandbox's bundle. */
export async function secure(
  { socketPath, authority }: Sandboxed,
  host: string,
  options: tls.ConnectionOptions = {},
): Promise<tls.TLSSocket> {
  const socket = await connect(socketPath, options.port === undefined ? `${host}:443` : `${host}:${options.port}`);
  if (typeof socket === 'string') throw new Error(socket);
  const ca = [authority.certificate, root.certificate];
  const client = tls.connect({ servername: host, ALPNProtocols: ['http/1.1'], ca, ...options, socket });
  await new Promise((resolve, reject) => client.once('secureConnect', resolve).once('error', reject));
  client.on('error', () => {});
  return client;
}

/** One request of HTTP/1.1 as raw bytes, in a tunnel to a host. */
export async function rawIn(setup: Sandboxed, host: string, bytes: string | Buffer): Promise<string> {
  const socket = await secure(setup, host);
  const answer = read(socket, isWhole);
  socket.write(bytes);
  const text = await answer;
  socket.destroy();
  return text;
}
