/** Connections to the outside: proxies, further authorities, and whether servers of this machine are looked for. */
import { Secret } from '../secret.ts';
import type { Environment } from './environment.ts';

export interface OutgoingSettings {
  proxy: ProxyAddresses;
  /** Authorities in PEM form that are trusted beside the usual ones. */
  extraCa: string | null;
  /** Servers of this machine that run models are looked for (`GATEHOUSE_DISCOVERY`). */
  discovery: boolean;
}

/** The addresses may hold a password. */
export interface ProxyAddresses {
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

/** The usual tools read these names in either case. */
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
  // As other tools have it, a proxy is asked in plain HTTP unless it says otherwise.
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
  return environment.fail('GATEHOUSE_CA_FILE', 'names a file that holds no certificate in PEM form') ?? null;
}

/** Off beside an external database: such a gateway serves others, and what runs beside it is not meant for them. */
function discovery(environment: Environment): boolean {
  const value = environment.get('GATEHOUSE_DISCOVERY');
  if (value === undefined) return environment.get('DATABASE_URL') === undefined;
  if (value === 'on' || value === 'off') return value === 'on' && environment.get('DATABASE_URL') === undefined;
  return environment.fail('GATEHOUSE_DISCOVERY', 'must be on or off') ?? false;
}
