/** Where a request leads, and whether a sandbox may go there. */
import { isIP } from 'node:net';
import { Refusal } from './refusal.ts';

export interface Destination {
  /** In canonical form: lower case, without a trailing dot; an IP address without brackets. */
  host: string;
  port: number;
  isAddress: boolean;
}

const AUTHORITY = /^(\[[\da-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?$/i;
const LONGEST_NAME = 253;

/**
 * Reads `host:port`. Forms that parsers disagree about are refused: a user, a path, escapes, characters outside ASCII.
 * @param defaultPort where the port may be missing
 * @throws Refusal
 */
export function readAuthority(text: string, defaultPort?: number): Destination {
  const [, name = '', digits] = AUTHORITY.exec(text) ?? [];
  const port = digits === undefined ? defaultPort : Number(digits);
  const host = canonicalHost(name);
  if (host === undefined || port === undefined || port < 1 || port > 65_535) {
    throw new Refusal('bad_request', 'The authority is not of the form host:port in plain ASCII.');
  }
  return { host, port, isAddress: isIP(host) !== 0 };
}

/**
 * The one form in which names are compared. Numbers that programs read as an IPv4 address (`0x7f.1`, `2130706433`) become that
 * address. Undefined if it is neither a name nor an address.
 */
function canonicalHost(name: string): string | undefined {
  if (name.startsWith('[')) {
    const url = URL.parse(`http://${name}/`);
    return url === null ? undefined : url.hostname.slice(1, -1);
  }
  const plain = name.toLowerCase().replace(/\.$/, '');
  const parsed = URL.parse(`http://${plain}/`)?.hostname;
  if (parsed === undefined || plain.length > LONGEST_NAME) return undefined;
  if (isIP(parsed) !== 0) return parsed;
  return parsed === plain && plain.split('.').every((label) => label.length >= 1 && label.length <= 63)
    ? plain
    : undefined;
}

/**
 * A list of domains and ports.
 *  - `api.test`: exactly this host, or this IP address
 *  - `*.api.test`: every host below it, at any depth, but not `api.test`; `*` elsewhere in a label: any characters of it
 *  - `*`: every name, but no IP address
 */
export class AllowList {
  readonly #exact = new Set<string>();
  readonly #globs: RegExp[] = [];
  readonly #ports: ReadonlySet<number>;
  readonly #within: AllowList | undefined;
  #any = false;

  /** @param within a list that must allow it, too @throws Error if a domain is malformed */
  constructor(domains: readonly string[], ports: readonly number[], within?: AllowList) {
    this.#ports = new Set(ports);
    this.#within = within;
    for (const domain of domains) this.#add(domain);
  }

  #add(domain: string): void {
    const text = domain.toLowerCase().replace(/\.$/, '');
    if (domain === '*') {
      this.#any = true;
    } else if (text.includes('*')) {
      if (!/^[\w*-]+(?:\.[\w*-]+)+$/.test(text)) throw new Error(`the domain ${domain} is malformed`);
      const labels = text.replace(/^\*\./, '').split('.');
      const tail = labels.map((label) => label.split('*').map(RegExp.escape).join('[^.]*')).join('\\.');
      this.#globs.push(new RegExp(`^${text.startsWith('*.') ? '(?:[^.]+\\.)+' : ''}${tail}$`));
    } else {
      const host = canonicalHost(isIP(text) === 6 ? `[${text}]` : text);
      if (host === undefined || !AUTHORITY.test(isIP(host) === 6 ? `[${host}]` : host)) {
        throw new Error(`the domain ${domain} is malformed`);
      }
      this.#exact.add(host);
    }
  }

  /** @throws Refusal */
  check(destination: Destination): void {
    const { host, port, isAddress } = destination;
    if (!this.#ports.has(port)) {
      throw new Refusal(
        'port',
        `Port ${port} is not allowed from this sandbox; allowed: ${[...this.#ports].join(', ')}.`,
      );
    }
    const isListed =
      this.#exact.has(host) || (!isAddress && (this.#any || this.#globs.some((glob) => glob.test(host))));
    if (!isListed)
      throw new Refusal('not_allowed', `${host} is not on the list of domains that this sandbox may reach.`);
    this.#within?.check(destination);
  }
}
