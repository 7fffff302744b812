/** The cookie of a console session. */

/**
 * The prefixes make browsers refuse the cookie from another host or without TLS. The port is part of the name, because
 * cookies of one host are shared by all of its ports.
 */
const NAME = /^(?:__Host-|__Secure-)?gatehouse_session(?:_\d{1,5})?$/;
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

/** What may be session cookies of this gateway. */
export function sessionTokens(cookies: string | undefined): string[] {
  const tokens: string[] = [];
  for (const cookie of cookies?.split(';') ?? []) {
    const [name = '', value = ''] = cookie.trim().split('=', 2);
    if (NAME.test(name) && VALUE.test(value)) tokens.push(value);
  }
  return tokens.slice(0, MOST_COOKIES);
}
