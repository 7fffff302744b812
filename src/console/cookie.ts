/** The cookies of the console: the session's, and that of a sign-in at the identity provider. */
import { hash } from 'node:crypto';

/**
 * The prefixes make browsers refuse the cookie from another host or without TLS. The port is part of the name, because
 * cookies of one host are shared by all of its ports, and so is the installation, because a proxy that says nothing of its
 * paths can serve several at one port. Cookies of earlier versions do not name it.
 */
const NAME = /^(__Host-|__Secure-)?gatehouse_(session|oidc)(?:_\d{1,5})?(?:_i([0-9a-f]{8}))?$/;
const VALUES = {
  session: /^[A-Za-z0-9_-]{43}$/,
  oidc: /^[A-Za-z0-9_-]{43}(?:\.[A-Za-z0-9_-]{43}){2}\.[A-Za-z0-9_-]{1,400}$/,
};
type Purpose = keyof typeof VALUES;
/** Gateways on other ports of the same host leave their cookies too. */
const MOST_COOKIES = 8;

interface CookiePlace {
  /** `https://gateway.example:8443` */
  origin: string;
  /** The path below which a proxy serves the gateway; mostly empty. */
  prefix: string;
  /** Names the installation: `installationOf`. */
  installation: string;
}

const INSTALLATION_DIGITS = 8;

/** Eight hexadecimal digits. */
export function installationOf(organizationId: string): string {
  return hash('sha256', organizationId).slice(0, INSTALLATION_DIGITS);
}

/** @param value empty to delete the cookie */
export function sessionCookie(value: string, place: CookiePlace, seconds: number): string {
  return cookie('session', value, place, seconds, 'Strict');
}

/** Also sent when the identity provider sends the browser back. */
export function oidcCookie(value: string, place: CookiePlace, seconds: number): string {
  return cookie('oidc', value, place, seconds, 'Lax');
}

function cookie(
  purpose: Purpose,
  value: string,
  { origin, prefix, installation }: CookiePlace,
  seconds: number,
  sameSite: 'Strict' | 'Lax',
): string {
  const { protocol, port } = new URL(origin);
  const secure = protocol === 'https:';
  const kind = !secure ? '' : prefix === '' ? '__Host-' : '__Secure-';
  const name = `${kind}gatehouse_${purpose}${port === '' ? '' : `_${port}`}_i${installation}`;
  const attributes = `Path=${prefix}/; HttpOnly; SameSite=${sameSite}; Max-Age=${seconds}`;
  return `${name}=${value}; ${attributes}${secure ? '; Secure' : ''}`;
}

interface Values {
  tokens: string[];
  arePrefixed: boolean;
}

/** Values of cookies that may be sessions of this gateway. */
export function sessionTokens(cookies: string | undefined, installation: string): Values {
  return valuesOf('session', cookies, installation);
}

/** Values of cookies that may belong to a sign-in at the identity provider. */
export function oidcValues(cookies: string | undefined, installation: string): Values {
  return valuesOf('oidc', cookies, installation);
}

/**
 * Another host of the gateway's domain can set cookies here, but none with a prefix: where one has a prefix, the others do
 * not count.
 */
function valuesOf(purpose: Purpose, cookies: string | undefined, installation: string): Values {
  const prefixed: string[] = [];
  const others: string[] = [];
  for (const each of cookies?.split(';') ?? []) {
    const [name = '', value = ''] = each.trim().split('=', 2);
    const match = VALUES[purpose].test(value) ? NAME.exec(name) : null;
    if (match?.[2] !== purpose || (match[3] ?? installation) !== installation) continue;
    (match[1] === undefined ? others : prefixed).push(value);
  }
  const arePrefixed = prefixed.length > 0;
  return { tokens: (arePrefixed ? prefixed : others).slice(0, MOST_COOKIES), arePrefixed };
}
