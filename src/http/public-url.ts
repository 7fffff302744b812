/** The gateway's URL as its clients see it, for links in replies. */
import type { Exchange } from './operation.ts';

/** Hosts that links may contain: what else a client sends is not repeated. */
const HOST = /^[\w.-]{1,253}(?::\d{1,5})?$|^\[[\da-fA-F:.]{2,45}\](?::\d{1,5})?$/;

/** Without a trailing slash: `https://gateway.test/llm`. */
export function publicUrl({ protocol, host, prefix }: Pick<Exchange, 'protocol' | 'host' | 'prefix'>): string {
  return `${protocol}://${host !== undefined && HOST.test(host) ? host : 'localhost'}${prefix}`;
}
