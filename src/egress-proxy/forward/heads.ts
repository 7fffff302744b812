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
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate', 'upgrade', 'te'],
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
  const named = pairs.filter(([name]) => /^(?:host|:authority)$/i.test(name));
  for (const [, value] of named) {
    const { host, port } = readAuthority(value, defaultPort);
    if (host === destination.host && port === destination.port) continue;
    const { host: expected } = destination;
    throw new Refusal('misdirected', `This connection leads to ${expected}, but the request names another host.`);
  }
  if (named.length === 0) throw new Refusal('bad_request', 'The request names no host.');
  if (named.filter(([name]) => name.toLowerCase() === 'host').length > 1) {
    throw new Refusal('bad_request', 'The request has more than one Host header.');
  }
}

/** The headers that pass, without those of the connection and those that its `Connection` header names. */
function passing(pairs: readonly Pair[]): Pair[] {
  const named = pairs
    .filter(([name]) => name.toLowerCase() === 'connection')
    .flatMap(([, value]) =>
      value
        .toLowerCase()
        .split(',')
        .map((name) => name.trim()),
    );
  const dropped = new Set(named);
  return pairs.filter(([name]) => {
    const lower = name.toLowerCase();
    return !HOP.has(lower) && !dropped.has(lower) && !lower.startsWith(':');
  });
}

/**
 * The head that is sent to the host, with the values of its secrets.
 * @throws Refusal
 */
export function releasedHead({ method, path, pairs }: RequestHead, release: Release): RequestHead {
  const released = passing(pairs).map(([name, value]): Pair => {
    release.forbid(name);
    // Responses that are not encoded can be scrubbed.
    if (release.isVerified && /^(?:grpc-)?accept-encoding$/i.test(name)) return [name, 'identity'];
    return [name, release.header(value)];
  });
  const head = { method, path: release.path(path), pairs: released };
  const bytes = released.reduce((sum, [name, value]) => sum + name.length + value.length, head.path.length);
  if (bytes > MOST_RELEASED_BYTES) {
    throw new Refusal('too_large', `The headers are larger than ${MOST_RELEASED_BYTES} bytes with their secrets.`);
  }
  return head;
}

/** The headers of a response as the sandbox may see them. Alternative services would lead around the proxy. */
export function scrubbedPairs(pairs: readonly Pair[], texts: SecretTexts): Pair[] {
  return passing(pairs).flatMap(([name, value]): Pair[] => {
    if (name.toLowerCase() === 'alt-svc' || texts.scrub(name) !== name) return [];
    return [[name, texts.scrub(value)]];
  });
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
