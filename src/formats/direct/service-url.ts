/** Checks URLs that a service returns before they are called with our credential. */

/**
 * The URL if its origin is that of the configured base URL, or if both are https hosts of the service's domain;
 * undefined otherwise. This keeps the credential from any other host that a hostile or broken reply names.
 */
export function serviceUrl(text: string, baseUrl: string, domain: string): string | undefined {
  const [url, base] = [URL.parse(text), URL.parse(baseUrl)];
  if (url === null || base === null || url.username !== '' || url.password !== '') return undefined;
  url.hash = '';
  if (url.origin === base.origin && url.origin !== 'null') return url.href;
  const own = (each: URL) =>
    each.protocol === 'https:' &&
    each.port === '' &&
    (each.hostname === domain || each.hostname.endsWith(`.${domain}`));
  return own(url) && own(base) ? url.href : undefined;
}
