/**
 * The headers that say who asks, and at which of our names. Of one that stands twice Node.js keeps the first or joins them,
 * and a proxy before us may have looked at the other.
 */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../base/errors.ts';

const SINGLE = ['host', 'authorization', 'x-api-key'];
/** RFC 3986, host and port; empty where the target has none. */
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[0-9a-f:.%\w-]*\])(?::\d*)?$/i;

/** Throws GatewayError 400 where one of them stands twice, or the host is missing or is none. */
export function checkSingleHeaders({ rawHeaders, headers, httpVersion }: IncomingMessage): void {
  let seen = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    // They are of different lengths, which most other names do not have.
    const index = name.length === 4 ? 0 : name.length === 13 ? 1 : name.length === 9 ? 2 : -1;
    if (index === -1 || name.toLowerCase() !== SINGLE[index]) continue;
    if ((seen & (1 << index)) !== 0) throw refusal(`the header ${SINGLE[index]} stands more than once`);
    seen |= 1 << index;
  }
  const { host } = headers;
  if (host === undefined) {
    if (httpVersion === '1.1') throw refusal('the header host is missing');
  } else if (!HOST.test(host)) throw refusal('the header host is neither a name nor an address');
}

function refusal(message: string): GatewayError {
  return new GatewayError('invalid_request', message);
}
