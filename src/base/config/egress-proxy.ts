/** The section `egress_proxy` of the yaml (docs/guides/egress-proxy.md). */
import { isIP } from 'node:net';
import type { Field } from './field.ts';
import { distinct, integer, list, mapping, text } from './readers.ts';

export interface EgressProxySettings {
  /** Exact domains, globs such as `*.example.com`, IP addresses, or `*`. */
  domains: readonly string[];
  ports: readonly number[];
  /** Id of the user and group that the proxy runs as; null: the default. */
  user: number | null;
}

export const DEFAULT_EGRESS_PROXY: EgressProxySettings = Object.freeze({
  domains: Object.freeze(['*']),
  ports: Object.freeze([443, 80]),
  user: null,
});

const LARGEST_PORT = 65_535;
/** The kernel reserves 2^32 - 1. */
const LARGEST_USER = 2 ** 32 - 2;
const NAME = /^(?=.{1,253}$)(?=.*[a-z])[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*$/;
const GLOB = /^(?=.*\*)[a-z0-9*-]+(?:\.[a-z0-9*-]+)+$/;

export function egressProxy(field: Field): EgressProxySettings | undefined {
  const read = mapping(field, {
    domains: distinct(domain),
    ports,
    user: integer(1, LARGEST_USER),
  });
  return (
    read && {
      domains: read.domains ?? DEFAULT_EGRESS_PROXY.domains,
      ports: read.ports ?? DEFAULT_EGRESS_PROXY.ports,
      user: read.user ?? null,
    }
  );
}

function ports(field: Field): readonly number[] | undefined {
  if (field.items()?.length === 0) return field.fail('must not be empty');
  return list(integer(1, LARGEST_PORT))(field);
}

function domain(field: Field): string | undefined {
  const value = text(field)?.toLowerCase();
  if (value === undefined) return undefined;
  // Parsers of URLs refuse some names, and read others as numbers.
  const isName = NAME.test(value) && URL.parse(`http://${value}/`)?.hostname === value;
  if (value === '*' || GLOB.test(value) || isIP(value) !== 0 || isName) return value;
  return field.fail('must be a domain such as api.example.com, a glob such as *.example.com, an IP address, or *');
}
