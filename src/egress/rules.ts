/** Decides which URLs and addresses may be fetched. Pure. */
import { isIP } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { EgressSettings } from '../base/config.ts';
import { EgressError } from './fault.ts';

type Address = ipaddr.IPv4 | ipaddr.IPv6;

/** The range of IPv6 that is assigned to the public; all others are special-purpose or reserved. */
const GLOBAL_UNICAST = ipaddr.IPv6.parseCIDR('2000::/3');

export class EgressRules {
  readonly #networks: readonly [Address, number][];
  readonly #ports: EgressSettings['ports'];

  constructor({ networks, ports }: EgressSettings) {
    this.#networks = networks.map((network) => {
      const [address = '', bits] = network.split('/');
      const parsed = ipaddr.parse(address);
      return [parsed, bits === undefined ? parsed.toByteArray().length * 8 : Number(bits)];
    });
    this.#ports = ports;
  }

  /**
   * Parses and checks a URL, except for the addresses that its host resolves to.
   * @param base for a relative URL
   */
  url(text: string, base?: URL): URL {
    const url = URL.parse(text, base?.href);
    if (url === null) throw new EgressError('url', 'is not a URL');
    if (url.protocol !== 'http:' && url.protocol !== 'https:') {
      throw new EgressError('url', 'is not an http or https URL');
    }
    if (url.username !== '' || url.password !== '') throw new EgressError('url', 'contains a user name or a password');
    const port = portOf(url);
    if (!this.#ports.some(({ from, to }) => port >= from && port <= to)) {
      throw new EgressError('url', `uses port ${port}, which is not allowed`);
    }
    return url;
  }

  /** Whether an IP address is public or in a network that the operator allows. */
  allows(text: string): boolean {
    if (isIP(text) === 0) return false;
    // Converts an IPv4-mapped IPv6 address to the IPv4 address that it connects to.
    return isPublic(ipaddr.process(text)) || this.isOperators(text);
  }

  /** Whether the operator allows any networks that are not public. */
  get hasNetworks(): boolean {
    return this.#networks.length > 0;
  }

  /** Whether an IP address is in a network that the operator allows. */
  isOperators(text: string): boolean {
    const address = ipaddr.process(text);
    return this.#networks.some((network) => isIn(address, network));
  }
}

function isPublic(address: Address): boolean {
  if (address.range() !== 'unicast') return false;
  return address.kind() === 'ipv4' || (address as ipaddr.IPv6).match(GLOBAL_UNICAST);
}

function isIn(address: Address, network: [Address, number]): boolean {
  return address.kind() === network[0].kind() && address.match(network as [ipaddr.IPv4 & ipaddr.IPv6, number]);
}

export function portOf(url: URL): number {
  if (url.port !== '') return Number(url.port);
  return url.protocol === 'https:' ? 443 : 80;
}

/** The host without the brackets of an IPv6 literal. */
export function hostOf(url: URL): string {
  return url.hostname.startsWith('[') ? url.hostname.slice(1, -1) : url.hostname;
}
