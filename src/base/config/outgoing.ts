/** Outgoing connections: proxies, certificate authorities, and discovery of servers on this machine. */
import { Secret } from '../secret.ts';
import type { Environment } from './environment.ts';

export interface OutgoingSettings {
  proxy: ProxyAddresses;
  /** Additional trusted certificate authorities, in PEM. */
  extraCa: string | null;
  /** Whether model servers on this machine are discovered (`GATEHOUSE_DISCOVERY`). */
  discovery: boolean;
}

/** The URLs may contain a password. */
interface ProxyAddresses {
  https: Secret | null;
  http: Secret | null;
  exceptions: readonly string[];
}

export function readOutgoing(environment: Environment): OutgoingSettings {
  return {
    proxy: {
      https: address(environment, 'HTTPS_PROXY'),
      http: address(environment, 'HTTP_PROXY'),
      exceptions: (either(environment, 'NO_PROXY')?.value ?? '').split(/[\s,]+/).filter((entry) => entry !== ''),
    },
    extraCa: authorities(environment),
    discovery: discovery(environment),
  };
}

/** Other tools accept these names in either case. */
function either(environment: Environment, name: string): { name: string; value: string } | undefined {
  for (const variant of [name.toLowerCase(), name]) {
    const value = environment.get(variant);
    if (value !== undefined) return { name: variant, value };
  }
  return undefined;
}

function address(environment: Environment, variable: string): Secret | null {
  const found = either(environment, variable);
  if (found === undefined) return null;
  // As in other tools, a proxy without a scheme uses plain HTTP.
  const text = /^[a-z][a-z0-9+.-]*:\/\//i.test(found.value) ? found.value : `http://${found.value}`;
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && isEncoded(url)) return new Secret(text);
  return environment.fail(found.name, 'must be an http or https URL') ?? null;
}

function isEncoded({ username, password }: URL): boolean {
  try {
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

function authorities(environment: Environment): string | null {
  const file = environment.get('GATEHOUSE_CA_FILE');
  const pem = file === undefined ? undefined : environment.file('GATEHOUSE_CA_FILE', file);
  if (pem === undefined) return null;
  if (pem.includes('-----BEGIN CERTIFICATE-----')) return pem;
  return environment.fail('GATEHOUSE_CA_FILE', 'names a file without a PEM certificate') ?? null;
}

/** Off with an external database: such a gateway serves other machines, for which local servers are not meant. */
function discovery(environment: Environment): boolean {
  const value = environment.get('GATEHOUSE_DISCOVERY');
  if (value === undefined) return environment.get('DATABASE_URL') === undefined;
  if (value === 'on' || value === 'off') return value === 'on' && environment.get('DATABASE_URL') === undefined;
  return environment.fail('GATEHOUSE_DISCOVERY', 'must be on or off') ?? false;
}
