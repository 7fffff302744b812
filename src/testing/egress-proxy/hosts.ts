/** TLS hosts of the tests' own authority on loopback, and the names that lead there. */
import type http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import net from 'node:net';
import { systemClock } from '../../base/clock.ts';
import type { Dialling } from '../../egress/index.ts';
import { makeAuthority } from '../../egress-proxy/trust/authority.ts';
import { LeafIssuer } from '../../egress-proxy/trust/leaf-issuer.ts';

export interface SeenRequest {
  version: string;
  method: string;
  path: string;
  headers: http.IncomingHttpHeaders;
  rawHeaders: string[];
  body: Buffer;
}

type Answerer = (
  seen: SeenRequest,
  response: http.ServerResponse,
  request: http.IncomingMessage,
) => void | Promise<void>;

export interface TlsHost {
  port: number;
  seen: SeenRequest[];
  /** What it answers from now on. By default it echoes the request as JSON, its headers as `x-echo-*`. */
  answer(answerer: Answerer | undefined): void;
  /** Reads no body before `gate`. */
  hold(gate: Promise<void>): void;
  server: http2.Http2SecureServer | https.Server;
  connections(): number;
  close(): Promise<void>;
}

export const root = await makeAuthority(systemClock);
const issuer = new LeafIssuer(root, systemClock);

/** A certificate of the root for some names. */
export function issueFor(names: readonly string[]): { certificate: string; key: string } {
  return issuer.issue(...(names as [string, ...string[]]));
}

function echo(seen: SeenRequest, response: http.ServerResponse): void {
  const body = JSON.stringify({ ...seen, rawHeaders: undefined, body: seen.body.toString() });
  const echoed = Object.entries(seen.headers).filter(([name]) => /^(?:authorization|x-)/.test(name));
  for (const [name, value] of echoed) response.setHeader(`x-echo-${name}`, value as string);
  response.setHeader('content-type', 'application/json');
  // With a string, Node would write the headers in the encoding of the body.
  response.end(Buffer.from(body));
}

export interface HostOptions {
  http1Only?: boolean;
  /** Serves requests of HTTP/2 instead of what is described here. */
  serve?(server: http2.Http2SecureServer): void;
}

/** @param name for which its certificate is valid */
export async function startTlsHost(name: string, options: HostOptions = {}): Promise<TlsHost> {
  const { http1Only = false, serve: own } = options;
  const leaf = issuer.issue(name);
  const secure = { key: leaf.key, cert: leaf.certificate + root.certificate };
  const seen: SeenRequest[] = [];
  let answerer: Answerer = echo;
  let connections = 0;
  let gate: Promise<void> | undefined;
  const serve = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    request.on('error', () => {});
    response.on('error', () => {});
    const chunks: Buffer[] = [];
    await gate;
    try {
      for await (const chunk of request) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const entry = {
      version: request.httpVersion,
      method: request.method ?? '',
      path: request.url ?? '',
      headers: request.headers,
      rawHeaders: request.rawHeaders,
      body: Buffer.concat(chunks),
    };
    seen.push(entry);
    await answerer(entry, response, request);
  };
  const server = http1Only
    ? https.createServer(secure)
    : http2.createSecureServer({ ...secure, allowHTTP1: true, strictSingleValueFields: false });
  if (own !== undefined) own(server as http2.Http2SecureServer);
  else (server as https.Server).on('request', (request, response) => void serve(request, response));
  server.on('secureConnection', (socket) => {
    connections += 1;
    socket.on('error', () => {});
  });
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as net.AddressInfo).port,
    seen,
    answer: (next) => {
      answerer = next ?? echo;
    },
    hold: (until) => {
      gate = until;
    },
    server,
    connections: () => connections,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        for (const socket of sockets) socket.destroy();
      }),
  };
}

/** The address that tests use for public hosts: connections to it go to loopback. */
export const PUBLIC = '93.184.216.34';

/**
 * @param names each with the addresses that it resolves to, once after the other
 * @param ports for a port of the public address, the port on loopback
 */
export function dialling(names: Record<string, string[][]>, ports: Record<string, number>) {
  const dialled: string[] = [];
  const asked: string[] = [];
  const network: Dialling = {
    async resolve(host) {
      const answers = names[host];
      if (answers === undefined) throw new Error('ENOTFOUND');
      const turn = asked.filter((each) => each === host).length;
      asked.push(host);
      return answers[Math.min(turn, answers.length - 1)]!;
    },
    open(address, port) {
      dialled.push(`${address}:${port}`);
      return net.connect(ports[`${address}:${port}`] ?? 1, '127.0.0.1');
    },
  };
  return { network, dialled, asked };
}
