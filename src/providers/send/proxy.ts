/**
 * Proxies for upstream calls: which calls use one, and how a connection through it is opened. A proxy only ever sees
 * `CONNECT host:port`; the tunnel's content is visible only to us and the upstream.
 */
import { BlockList, isIP, isIPv6, type Socket } from 'node:net';
import { portOf } from './port.ts';

export interface ProxySettings {
  /**
   * Proxies for https and for http upstreams: an http or https URL, optionally with user and password; null for none.
   */
  https: string | null;
  http: string | null;
  /**
   * NO_PROXY entries: `*`, host names (including their subdomains), IP addresses or networks, each with an optional
   * port.
   */
  exceptions: readonly string[];
}

export interface ProxyRoute {
  host: string;
  port: number;
  secure: boolean;
  /** Value of `Proxy-Authorization`. */
  authorization: string | null;
}

/** The proxy for an upstream; undefined for a direct connection. Loopback is always direct. */
export function proxyFor(target: URL, settings: ProxySettings | undefined): ProxyRoute | undefined {
  const text = target.protocol === 'https:' ? settings?.https : settings?.http;
  const host = bare(target.hostname).toLowerCase();
  if (!text || isLoopback(host)) return undefined;
  const port = portOf(target);
  if (settings!.exceptions.some((entry) => isExcepted(entry.toLowerCase(), host, port))) return undefined;
  const url = new URL(text);
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return {
    host: bare(url.hostname),
    port: portOf(url),
    secure: url.protocol === 'https:',
    authorization: credentials === ':' ? null : `Basic ${Buffer.from(credentials).toString('base64')}`,
  };
}

function bare(hostname: string): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host.endsWith('.localhost') || host === '::1' || /^127\.\d+\.\d+\.\d+$/.test(host);
}

function isExcepted(entry: string, host: string, port: number): boolean {
  if (entry === '*') return true;
  const [, name = entry, only] = /^(\[[^\]]+\]|[^:]*):(\d+)$/.exec(entry) ?? [];
  if (only !== undefined && Number(only) !== port) return false;
  const pattern = bare(name);
  const [network = '', bits] = pattern.split('/');
  if (bits !== undefined) return isInNetwork(host, network, Number(bits));
  if (isIP(pattern) !== 0) return pattern === host;
  const suffix = pattern.replace(/^\*?\./, '');
  return suffix !== '' && (host === suffix || host.endsWith(`.${suffix}`));
}

function isInNetwork(host: string, network: string, bits: number): boolean {
  const version = isIP(network);
  if (version === 0 || isIP(host) !== version || !(bits >= 0 && bits <= (version === 4 ? 32 : 128))) return false;
  const list = new BlockList();
  const family = version === 4 ? 'ipv4' : 'ipv6';
  list.addSubnet(network, bits, family);
  return list.check(host, family);
}

const LARGEST_HEAD = 16 * 1024;

/** `networkFailure` shows its code. */
class ProxyError extends Error {
  readonly code: string;

  constructor(code: string) {
    super('the proxy did not open a connection');
    this.code = code;
  }
}

/** Asks the proxy at `socket` for a connection to the target. `done` is called once. */
export function openTunnel(
  socket: Socket,
  target: { host: string; port: number },
  authorization: string | null,
  done: (error: Error | null) => void,
): void {
  const place = `${isIPv6(target.host) ? `[${target.host}]` : target.host}:${target.port}`;
  let head = Buffer.alloc(0);
  const finish = (error: Error | null) => {
    socket.off('readable', read).off('end', ended).off('error', finish);
    done(error);
  };
  const ended = () => finish(new ProxyError('PROXY_CLOSED'));
  const read = () => {
    for (let piece = socket.read() as Buffer | null; piece !== null; piece = socket.read() as Buffer | null) {
      head = Buffer.concat([head, piece]);
      const end = head.indexOf('\r\n\r\n');
      if (end === -1) {
        if (head.length > LARGEST_HEAD) return finish(new ProxyError('PROXY_ANSWER_TOO_LARGE'));
        continue;
      }
      const status = /^HTTP\/1\.[01] (\d{3})/.exec(head.toString('latin1'))?.[1];
      if (status === undefined) return finish(new ProxyError('PROXY_ANSWER_MALFORMED'));
      if (!status.startsWith('2')) return finish(new ProxyError(`PROXY_ANSWERED_${status}`));
      // An upstream never speaks first, so bytes after the head are not from it.
      return finish(head.length === end + 4 ? null : new ProxyError('PROXY_ANSWER_MALFORMED'));
    }
  };
  socket.on('readable', read).on('end', ended).on('error', finish);
  const identity = authorization === null ? '' : `Proxy-Authorization: ${authorization}\r\n`;
  socket.write(`CONNECT ${place} HTTP/1.1\r\nHost: ${place}\r\n${identity}\r\n`);
}
