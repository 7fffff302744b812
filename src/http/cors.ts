/**
 * Cross-origin access: any page may call with a key in a header. Cookies have no meaning here and credentials are never
 * allowed, so a page can do no more than its own key can.
 */
import type { IncomingHttpHeaders } from 'node:http';

const METHODS = 'GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS';
const PREFLIGHT_SECONDS = '86400';
/** Header names and commas only, because the value is repeated in a response header. */
const HEADER_LIST = /^[\w-]+(?:\s*,\s*[\w-]+)*$/;

/** Adds the headers that let a page from another origin read the response with all of its headers. */
export function allowOrigin(headers: IncomingHttpHeaders, answer: Record<string, string>): void {
  if (headers.origin === undefined) return;
  answer['Access-Control-Allow-Origin'] = '*';
  answer['Access-Control-Expose-Headers'] = '*';
}

/** The headers of the response to an OPTIONS request; undefined when it is for an unknown path. @param path `*`: the server */
export function optionsHeaders(
  headers: IncomingHttpHeaders,
  path: string,
  allowedAt: (path: string) => string | undefined,
): Record<string, string> | undefined {
  const allow = path === '*' ? METHODS : allowedAt(path);
  const preflight = preflightHeaders(headers);
  return allow === undefined && preflight === undefined ? undefined : { ...(allow && { Allow: allow }), ...preflight };
}

/** The response headers for a preflight; undefined when the OPTIONS request is not a preflight. */
function preflightHeaders(headers: IncomingHttpHeaders): Record<string, string> | undefined {
  if (headers.origin === undefined || headers['access-control-request-method'] === undefined) return undefined;
  const requested = headers['access-control-request-headers'];
  // Listed by name, since `*` does not cover Authorization.
  const allowed = requested !== undefined && HEADER_LIST.test(requested) ? requested : 'Authorization, Content-Type';
  return {
    'Access-Control-Allow-Methods': METHODS,
    'Access-Control-Allow-Headers': allowed,
    'Access-Control-Max-Age': PREFLIGHT_SECONDS,
    Vary: 'Access-Control-Request-Headers',
  };
}
