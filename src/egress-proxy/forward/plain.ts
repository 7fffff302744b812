/** Requests without TLS (`GET http://host/path`): they may pass, but never with a secret. */
import type http from 'node:http';
import { type AllowList, type Destination, readAuthority } from '../destination.ts';
import { Refusal } from '../refusal.ts';
import { Release, type SecretTexts } from '../text/release.ts';
import type { ProxyContext } from './context.ts';
import { exchange } from './exchange.ts';
import { checkAuthority, pairsOf } from './heads.ts';
import { HostConnections } from './host-connections.ts';
import { sendHttp1 } from './send-http1.ts';
import { reach } from './upstream.ts';

const DEFAULT_PORT = 80;
const URL_PARTS = /^http:\/\/([^/?#]*)([^#]*)$/i;

/** @throws Refusal */
export function plainDestination(url: string): { destination: Destination; path: string } {
  if (/^https:/i.test(url)) throw new Refusal('bad_request', 'An https URL needs CONNECT.');
  const [, authority, path = ''] = URL_PARTS.exec(url) ?? [];
  if (authority === undefined) {
    throw new Refusal('not_a_proxy_request', 'This is a proxy: use CONNECT, or a whole http URL.');
  }
  return { destination: readAuthority(authority, DEFAULT_PORT), path: path.startsWith('/') ? path : `/${path}` };
}

interface Plain {
  texts: SecretTexts;
  domains: AllowList;
  context: ProxyContext;
}

/** @throws Refusal, or what broke */
export async function forwardPlain(
  { texts, domains, context }: Plain,
  { destination, path }: ReturnType<typeof plainDestination>,
  request: http.IncomingMessage,
  response: http.ServerResponse,
): Promise<void> {
  domains.check(destination);
  const pairs = pairsOf(request.rawHeaders);
  checkAuthority(pairs, destination, DEFAULT_PORT);
  const release = new Release(texts, destination.host, false);
  // Each request is a connection: the address of a name is checked for each.
  const connections = new HostConnections(() => reach(destination, context), context.clock);
  response.once('close', () => connections.close());
  const send = (outgoing: Parameters<typeof sendHttp1>[0]) => sendHttp1(outgoing, connections, DEFAULT_PORT);
  await exchange({ destination, release, allowance: context.bodies, send }, { path, pairs }, request, response);
}
