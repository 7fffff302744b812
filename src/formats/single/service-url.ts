/** Addresses that a service hands out to be asked with our credential: only its own may be. */

/**
 * The address, when it is of the very origin of the configured base URL, or when both are https hosts of one domain of the
 * service; undefined otherwise. Whatever a hostile or broken answer names beyond that never sees a credential.
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
