/** The heads of requests and responses on their way through the proxy. */

import { lowerCase } from '../../http/header-names.ts';
import { type Destination, readAuthority } from '../destination.ts';
import { Refusal } from '../refusal.ts';
import type { Release, SecretTexts } from '../text/release.ts';

/** A header: name, value in byte text, and the name in lower case. */
export type Pair = readonly [name: string, value: string, lower: string];

/** @param name in lower case */
export function pair(name: string, value: string): Pair {
  return [name, value, name];
}

export interface RequestHead {
  method: string;
  /** With the query. */
  path: string;
  pairs: readonly Pair[];
}

/** The most bytes of a head with its secrets. */
const MOST_RELEASED_BYTES = 256 * 1024;

/** Headers of one connection, which the proxy makes for itself. */
const HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authorization', 'proxy-authenticate', 'upgrade'],
  ...['transfer-encoding', 'content-length', 'expect', 'host', 'http2-settings'],
]);

const CONNECTION = 'connection';
const ALT_SVC = 'alt-svc';

export function pairsOf(rawHeaders: readonly string[]): Pair[] {
  const pairs: Pair[] = [];
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    pairs.push([name, rawHeaders[at + 1]!, lowerCase(name)]);
  }
  return pairs;
}

/** The first value of a header. @param name in lower case */
export function headerOf(pairs: readonly Pair[], name: string): string | undefined {
  for (const each of pairs) if (each[2] === name) return each[1];
  return undefined;
}

/** Refuses a request whose Host header or `:authority` is not the destination of its tunnel. */
export function checkAuthority(pairs: readonly Pair[], destination: Destination, defaultPort: number): void {
  let hosts = 0;
  let authorities = 0;
  for (const [, value, lower] of pairs) {
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

/**
 * The headers that pass, without those of the connection and those that its `Connection` header names. Every header of every
 * request and response comes by here, so there are loops instead of lists in between.
 */
function passing(pairs: readonly Pair[], alsoWithout?: string): Pair[] {
  const named = namedByConnection(pairs);
  const passed: Pair[] = [];
  for (const pair of pairs) {
    const lower = pair[2];
    // gRPC asks its servers in this way whether they can send trailers.
    const passes =
      lower === 'te'
        ? pair[1].trim().toLowerCase() === 'trailers'
        : !HOP.has(lower) && named?.has(lower) !== true && lower !== alsoWithout && !lower.startsWith(':');
    if (passes) passed.push(pair);
  }
  return passed;
}

/** Headers named by `Connection`, except those that are never forwarded; undefined if it names no others. */
function namedByConnection(pairs: readonly Pair[]): Set<string> | undefined {
  let names: Set<string> | undefined;
  for (const [, value, lower] of pairs) {
    if (lower !== CONNECTION) continue;
    for (const each of value.toLowerCase().split(',')) {
      const named = each.trim();
      if (HOP.has(named)) continue;
      names ??= new Set();
      names.add(named);
    }
  }
  return names;
}

/**
 * The head that is sent to the host, with the values of its secrets.
 * @throws Refusal
 */
export function releasedHead({ method, path, pairs }: RequestHead, release: Release): RequestHead {
  const released: Pair[] = [];
  // Without TLS, too: the host may show there what it was given over TLS.
  const isScrubbed = release.isVerified || release.texts.isBound(release.host);
  let bytes = 0;
  for (const pair of passing(pairs)) {
    const asked = isScrubbed ? askScrubbable(pair) : pair;
    if (asked === undefined) continue;
    const [name, value, lower] = asked;
    release.forbid(name);
    const sent = release.header(value);
    released.push(sent === value ? asked : [name, sent, lower]);
    bytes += name.length + sent.length;
  }
  const head = { method, path: release.path(path), pairs: released };
  bytes += head.path.length;
  if (bytes > MOST_RELEASED_BYTES) {
    throw new Refusal('too_large', `The headers are larger than ${MOST_RELEASED_BYTES} bytes with their secrets.`);
  }
  return head;
}

/**
 * Asks for responses in which values can be found: without an encoding, and whole. Parts of a response could show a value piece by
 * piece; a server may answer a request for a part with the whole. Undefined: the header is left out.
 */
function askScrubbable(pair: Pair): Pair | undefined {
  switch (pair[2]) {
    case 'range':
    case 'if-range':
    // Azure and old servers know it by these names, too.
    case 'x-ms-range':
    case 'request-range':
      return undefined;
    case 'accept-encoding':
    case 'grpc-accept-encoding':
      return [pair[0], 'identity', pair[2]];
    default:
      return pair;
  }
}

/** The headers of a response as the sandbox may see them. Alternative services would lead around the proxy. */
export function scrubbedPairs(pairs: readonly Pair[], texts: SecretTexts): Pair[] {
  const passed = passing(pairs, ALT_SVC);
  if (!texts.shows(passed)) return passed;
  return passed.flatMap(([name, value, lower]): Pair[] =>
    texts.scrub(name) === name ? [[name, texts.scrub(value), lower]] : [],
  );
}

/** As Node takes the headers of HTTP/2: repeated names as lists. */
export function asObject(pairs: readonly Pair[]): Record<string, string | string[]> {
  const headers: Record<string, string | string[]> = {};
  for (const [, value, lower] of pairs) {
    const known = headers[lower];
    headers[lower] = known === undefined ? value : [known, value].flat();
  }
  return headers;
}

/** As Node takes the headers of HTTP/1.1: names and values in turn. */
export function flat(pairs: readonly Pair[]): string[] {
  const all: string[] = [];
  for (const [name, value] of pairs) all.push(name, value);
  return all;
}
