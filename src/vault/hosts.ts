/** The hosts that a secret is bound to: exact DNS names, brought into one form when they are written. */
import { isIP } from 'node:net';
import { invalidField } from '../base/errors.ts';

const LONGEST_NAME = 253;
const LABEL = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;
/** ASCII that no DNS name of a host has. URL parsers cut, decode or drop some of it. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it looks for.
const NOT_IN_NAMES = /[\x00-\x2c\x2f\x3a-\x40\x5b-\x60\x7b-\x7f]/;

/**
 * Lower case, A-labels, without the trailing dot and without duplicates, in the given order: the form in which the egress proxy
 * compares names.
 *
 * @throws GatewayError 400 with the index of the first entry that is not an exact DNS name. It never contains the entry,
 *   which may be a misplaced value.
 */
export function boundHosts(entries: readonly string[]): string[] {
  const hosts = entries.map((entry, index) => {
    const host = boundHost(entry);
    if (host !== undefined) return host;
    throw invalidField(
      `hosts[${index}]`,
      'must be an exact DNS name such as api.example.com, without a scheme, port, path or wildcard, and no IP address',
    );
  });
  return [...new Set(hosts)];
}

function boundHost(entry: string): string | undefined {
  if (NOT_IN_NAMES.test(entry)) return undefined;
  const host = URL.parse(`https://${entry.replace(/\.$/, '')}/`)?.hostname;
  if (host === undefined || host.length > LONGEST_NAME || isIP(host) !== 0) return undefined;
  return host.split('.').every((label) => LABEL.test(label)) ? host : undefined;
}
