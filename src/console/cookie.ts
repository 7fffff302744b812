/** The cookie of a console session. */

/**
 * The prefixes make browsers refuse the cookie from another host or without TLS. The port is part of the name, because
 * cookies of one host are shared by all of its ports.
 */
const NAME = /^(__Host-|__Secure-)?gatehouse_session(?:_\d{1,5})?$/;
const VALUE = /^[A-Za-z0-9_-]{43}$/;
/** Gateways on other ports of the same host leave their cookies too. */
const MOST_COOKIES = 8;

interface CookiePlace {
  /** `https://gateway.example:8443` */
  origin: string;
  /** The path below which a proxy serves the gateway; mostly empty. */
  prefix: string;
}

/** @param value empty to delete the cookie */
export function sessionCookie(value: string, { origin, prefix }: CookiePlace, seconds: number): string {
  const { protocol, port } = new URL(origin);
  const secure = protocol === 'https:';
  const kind = !secure ? '' : prefix === '' ? '__Host-' : '__Secure-';
  const name = `${kind}gatehouse_session${port === '' ? '' : `_${port}`}`;
  const attributes = `Path=${prefix}/; HttpOnly; SameSite=Strict; Max-Age=${seconds}`;
  return `${name}=${value}; ${attributes}${secure ? '; Secure' : ''}`;
}

/**
 * What may be session cookies of this gateway. Another host of its domain can set cookies here, but none with a prefix: where
 * one has a prefix, the others do not count.
 */
export function sessionTokens(cookies: string | undefined): { tokens: string[]; arePrefixed: boolean } {
  const prefixed: string[] = [];
  const others: string[] = [];
  for (const cookie of cookies?.split(';') ?? []) {
    const [name = '', value = ''] = cookie.trim().split('=', 2);
    const match = VALUE.test(value) ? NAME.exec(name) : null;
    if (match !== null) (match[1] === undefined ? others : prefixed).push(value);
  }
  const arePrefixed = prefixed.length > 0;
  return { tokens: (arePrefixed ? prefixed : others).slice(0, MOST_COOKIES), arePrefixed };
}
