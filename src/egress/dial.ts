/** Resolves a name once, checks every address, and connects to a checked address. */
import dns from 'node:dns';
import net, { isIP } from 'node:net';
import tls from 'node:tls';
import { EgressError } from './fault.ts';
import { type EgressRules, hostOf, portOf } from './rules.ts';

export interface Dialling {
  /** All addresses of a name. */
  resolve(host: string): Promise<readonly string[]>;
  /** A socket that connects to an IP address, never to a name. */
  open(address: string, port: number): net.Socket;
}

export const NETWORK: Dialling = {
  async resolve(host) {
    const answers = await dns.promises.lookup(host, { all: true });
    return answers.map(({ address }) => address);
  },
  open: (host, port) => net.connect({ host, port }),
};

interface Manner {
  /** Plain http only to networks that the operator allows. */
  tlsOnly: boolean;
}

/** A host name, or an IP address without brackets. */
interface Target {
  host: string;
  port: number;
  /** Plain http, which may only lead to networks that the operator allows. */
  plain?: boolean;
}

/** The rules for addresses, and how names are resolved. */
export interface Checks {
  rules: EgressRules;
  dialling: Dialling;
}

/** The most addresses of one name that are tried. */
const MOST_ADDRESSES = 4;

/** Checks a host that is an IP address; a name is checked when it is resolved. @throws EgressError */
export function checkAddress(url: URL, rules: EgressRules, tlsOnly: boolean): void {
  const plain = tlsOnly && url.protocol === 'http:';
  if (plain && !rules.hasNetworks) throw new EgressError('url', 'is not an https URL');
  const host = hostOf(url);
  if (isIP(host) !== 0) checkAll([host], rules, plain);
}

function checkAll(addresses: readonly string[], rules: EgressRules, plain: boolean): void {
  if (!addresses.every((address) => rules.allows(address))) {
    throw new EgressError('address', 'points to an address that is not public');
  }
  if (plain && !addresses.every((address) => rules.isOperators(address))) {
    throw new EgressError('url', 'is not an https URL');
  }
}

/**
 * The addresses of a host, all of them allowed. One forbidden address refuses the whole name: a mix of public and
 * private answers is an attack, not a service.
 */
async function addressesOf({ host, plain = false }: Target, { rules, dialling }: Checks): Promise<readonly string[]> {
  const addresses = isIP(host) !== 0 ? [host] : await resolved(host, dialling);
  checkAll(addresses, rules, plain);
  return addresses.slice(0, MOST_ADDRESSES);
}

async function resolved(host: string, dialling: Dialling): Promise<readonly string[]> {
  const addresses = await dialling.resolve(host).catch(() => []);
  if (addresses.length === 0) throw new EgressError('network', 'has a host name that could not be resolved');
  return addresses;
}

/** Connects to the first checked address that answers, with TLS for https. */
export function connect(
  url: URL,
  rules: EgressRules,
  dialling: Dialling & Manner,
  signal: AbortSignal,
): Promise<net.Socket> {
  const isTls = url.protocol === 'https:';
  const target = { host: hostOf(url), port: portOf(url), plain: dialling.tlsOnly && !isTls };
  return firstOf(target, { rules, dialling }, signal, (socket) =>
    isTls ? secured(socket, url, signal) : Promise.resolve(socket),
  );
}

/** A TCP connection to the first checked address that answers. */
export function dial(target: Target, checks: Checks, signal: AbortSignal): Promise<net.Socket> {
  return firstOf(target, checks, signal, (socket) => Promise.resolve(socket));
}

/** After `signal` is aborted, none of the sockets is left open. */
async function firstOf(
  target: Target,
  checks: Checks,
  signal: AbortSignal,
  finish: (socket: net.Socket) => Promise<net.Socket>,
): Promise<net.Socket> {
  // A DNS lookup cannot be cancelled, so its result is ignored.
  const addresses = await orAborted(addressesOf(target, checks), signal);
  let failed: unknown;
  for (const address of addresses) {
    signal.throwIfAborted();
    try {
      return await finish(await connected(checks.dialling.open(address, target.port), 'connect', signal));
    } catch (error) {
      failed = error;
    }
  }
  signal.throwIfAborted();
  throw failed;
}

function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}

async function secured(socket: net.Socket, url: URL, signal: AbortSignal): Promise<tls.TLSSocket> {
  const host = hostOf(url);
  const secure = tls.connect({
    socket,
    host,
    ALPNProtocols: ['http/1.1'],
    ...(isIP(host) === 0 && { servername: host }),
  });
  return connected(secure, 'secureConnect', signal);
}

function connected<S extends net.Socket>(socket: S, event: 'connect' | 'secureConnect', signal: AbortSignal) {
  return new Promise<S>((resolve, reject) => {
    const abort = () => socket.destroy(signal.reason as Error);
    signal.addEventListener('abort', abort);
    socket.once(event, () => resolve(socket));
    socket.on('error', reject);
    // Kept for the socket's lifetime, because an abort must close it in any state.
    socket.once('close', () => {
      signal.removeEventListener('abort', abort);
      reject(new EgressError('network', 'could not be connected to'));
    });
    if (signal.aborted) abort();
  });
}
