/**
 * Finds the client behind reverse proxies. `X-Forwarded-*` headers count only from addresses that the operator trusts.
 * Of several values the last one counts, because the trusted proxy wrote it; earlier ones may come from the client.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { BlockList, isIP } from 'node:net';

/** Of a path below which a proxy serves the gateway. */
const PREFIX = /^(?:\/[\w.~-]+)+$/;
const LONGEST_PREFIX = 255;
const BITS = { 4: 32, 6: 128 } as const;
/** The longest chain of proxies that is followed. */
const MOST_HOPS = 32;

/** Addresses, and networks as `address/bits`. */
export class TrustedProxies {
  readonly #networks = new BlockList();
  readonly #any: boolean;

  constructor(networks: readonly string[]) {
    this.#any = networks.length > 0;
    for (const network of networks) {
      const [address = '', bits] = network.split('/');
      const version = isIP(address) === 6 ? 6 : 4;
      this.#networks.addSubnet(address, bits === undefined ? BITS[version] : Number(bits), `ipv${version}`);
    }
  }

  /** @param address of the connection's peer; undefined after it has closed */
  trusts(address: string | undefined): boolean {
    if (!this.#any || address === undefined) return false;
    const version = isIP(address);
    return version !== 0 && this.#networks.check(address, version === 6 ? 'ipv6' : 'ipv4');
  }

  /** Reads `X-Forwarded-For` backwards and returns the first address that is not a trusted proxy. */
  clientAddress(peer: string | undefined, headers: IncomingHttpHeaders): string | undefined {
    let client = peer;
    const hops = valuesOf(headers['x-forwarded-for']);
    for (let at = hops.length - 1; at >= Math.max(0, hops.length - MOST_HOPS) && this.trusts(client); at--) {
      const hop = addressOf(hops[at]!);
      if (hop === undefined) break;
      client = hop;
    }
    return client;
  }

  /** The host that the client asked for, with its port if there is one. */
  host(peer: string | undefined, headers: IncomingHttpHeaders): string | undefined {
    const forwarded = this.trusts(peer) ? valuesOf(headers['x-forwarded-host']).at(-1) : undefined;
    return forwarded ?? headers.host;
  }

  /** @param encrypted whether the connection to the gateway is */
  protocol(peer: string | undefined, headers: IncomingHttpHeaders, encrypted: boolean): 'http' | 'https' {
    const forwarded = this.trusts(peer) ? valuesOf(headers['x-forwarded-proto']).at(-1)?.toLowerCase() : undefined;
    if (forwarded === 'http' || forwarded === 'https') return forwarded;
    return encrypted ? 'https' : 'http';
  }

  /** The path below which the proxy serves the gateway and which it removes: `/llm`; empty if there is none. */
  prefix(peer: string | undefined, headers: IncomingHttpHeaders): string {
    const forwarded = this.trusts(peer) ? valuesOf(headers['x-forwarded-prefix']).at(-1) : undefined;
    const prefix = forwarded?.replace(/\/+$/, '') ?? '';
    return prefix.length <= LONGEST_PREFIX && PREFIX.test(prefix) ? prefix : '';
  }
}

function valuesOf(header: string | string[] | undefined): string[] {
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return text
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '');
}

/** Some proxies add a port, and brackets around IPv6 addresses. */
function addressOf(hop: string): string | undefined {
  const bare = /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
  return isIP(bare) === 0 ? undefined : bare;
}
