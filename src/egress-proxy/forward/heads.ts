/** The heads of requests and responses on their way through the proxy. */
import { type Destination, readAuthority } from '../destination.ts';
import { Refusal } from '../refusal.ts';
import type { Release, SecretTexts } from '../text/release.ts';

/** A header: name, and value in byte text. */
export type Pair = [name: string, value: string];

export interface RequestHead {
  method: string;
  /** With the query. */
  path: string;
  pairs: Pair[];
}

/** The most bytes of a head with its secrets. */
const MOST_RELEASED_BYTES = 256 * 1024;

/** Headers of one connection, which the proxy makes for itself. */
const HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate', 'upgrade'],
  ...['transfer-encoding', 'content-length', 'expect', 'host', 'http2-settings'],
]);

export function pairsOf(rawHeaders: readonly string[]): Pair[] {
  const pairs: Pair[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) pairs.push([rawHeaders[at]!, rawHeaders[at + 1]!]);
  return pairs;
}

/** The first value of a header. @param name in lower case */
export function headerOf(pairs: readonly Pair[], name: string): string | undefined {
  return pairs.find(([each]) => each.toLowerCase() === name)?.[1];
}

/** Refuses a request whose Host header or `:authority` is not the destination of its tunnel. */
export function checkAuthority(pairs: readonly Pair[], destination: Destination, defaultPort: number): void {
  let hosts = 0;
  let authorities = 0;
  for (const [name, value] of pairs) {
    const lower = name.toLowerCase();
    if (lower !== 'host' && lower !== ':authority') continue;
    if (lower === 'host') hosts += 1;
    else authorities += 1;
    if (!leadsTo(value, destination, defaultPort)) {
      const problem = `This connection leads to ${destination.host}, but the request names another host.`;
      throw new Refusal('misdirected', problem);
    }
  }
  if (hosts + authorities === 0) throw new Refusal('bad_request', 'The request names no host.');
  if (hosts > 1) throw new Refusal('bad_request', 'The request has more than one Host header.');
}

function leadsTo(authority: string, destination: Destination, defaultPort: number): boolean {
  if (authority === destination.host && destination.port === defaultPort) return true;
  if (authority === `${destination.host}:${destination.port}`) return true;
  const { host, port } = readAuthority(authority, defaultPort);
  return host === destination.host && port === destination.port;
}

/** The headers that pass, without those of the connection and those that its `Connection` header names. */
function passing(pairs: readonly Pair[]): Pair[] {
  const named = namedByConnection(pairs);
  return pairs.filter(([name, value]) => {
    const lower = name.toLowerCase();
    // gRPC asks its servers in this way whether they can send trailers.
    if (lower === 'te') return value.trim().toLowerCase() === 'trailers';
    return !HOP.has(lower) && !named?.has(lower) && !lower.startsWith(':');
  });
}

function namedByConnection(pairs: readonly Pair[]): Set<string> | undefined {
  const values = pairs.filter(([name]) => name.length === 10 && name.toLowerCase() === 'connection');
  const names = values.flatMap(([, value]) => value.toLowerCase().split(','));
  return names.length === 0 ? undefined : new Set(names.map((name) => name.trim()));
}

/**
 * The head that is sent to the host, with the values of its secrets.
 * @throws Refusal
 */
export function releasedHead({ method, path, pairs }: RequestHead, release: Release): RequestHead {
  const passed = release.isVerified ? askScrubbable(passing(pairs)) : passing(pairs);
  const released = passed.map(([name, value]): Pair => {
    release.forbid(name);
    return [name, release.header(value)];
  });
  const head = { method, path: release.path(path), pairs: released };
  const bytes = released.reduce((sum, [name, value]) => sum + name.length + value.length, head.path.length);
  if (bytes > MOST_RELEASED_BYTES) {
    throw new Refusal('too_large', `The headers are larger than ${MOST_RELEASED_BYTES} bytes with their secrets.`);
  }
  return head;
}

/**
 * Asks for responses in which values can be found: without an encoding, and whole. Parts of a response could show a value piece by
 * piece; a server may answer a request for a part with the whole.
 */
function askScrubbable(pairs: readonly Pair[]): Pair[] {
  return pairs.flatMap(([name, value]): Pair[] => {
    if (/^(?:if-)?range$/i.test(name)) return [];
    return [[name, /^(?:grpc-)?accept-encoding$/i.test(name) ? 'identity' : value]];
  });
}

/** The headers of a response as the sandbox may see them. Alternative services would lead around the proxy. */
export function scrubbedPairs(pairs: readonly Pair[], texts: SecretTexts): Pair[] {
  const passed = passing(pairs).filter(([name]) => name.toLowerCase() !== 'alt-svc');
  if (!texts.shows(passed)) return passed;
  return passed.flatMap(([name, value]): Pair[] => (texts.scrub(name) === name ? [[name, texts.scrub(value)]] : []));
}

/** As Node takes the headers of HTTP/2: repeated names as lists. */
export function asObject(pairs: readonly Pair[]): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [name, value] of pairs) {
    const lower = name.toLowerCase();
    const known = headers[lower];
    headers[lower] = known === undefined ? value : [known, value].flat();
  }
  return headers;
}
