/**
 * Headers that identify the caller and the host. If one occurs twice, Node.js keeps the first or joins them, while a
 * proxy in front may have checked the other, so duplicates are refused.
 */
import type { IncomingMessage } from 'node:http';
import { GatewayError } from '../base/errors.ts';

const SINGLE = ['host', 'authorization', 'x-api-key', 'x-goog-api-key'];
/** RFC 3986, host and port; empty if the request target has no host. */
const HOST = /^(?:[\w.~!$&'()*+,;=%-]*|\[[0-9a-f:.%\w-]*\])(?::\d*)?$/i;

/** Throws GatewayError 400 if one of them occurs more than once, or the host is missing or invalid. */
export function checkSingleHeaders({ rawHeaders, headers, httpVersion }: IncomingMessage): void {
  let seen = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    // Their lengths differ from each other and from most other names, which keeps the check cheap.
    const { length } = name;
    const index = length === 4 ? 0 : length === 13 ? 1 : length === 9 ? 2 : length === 14 ? 3 : -1;
    if (index === -1 || name.toLowerCase() !== SINGLE[index]) continue;
    if ((seen & (1 << index)) !== 0) throw refusal(`the header ${SINGLE[index]} is given more than once`);
    seen |= 1 << index;
  }
  const { host } = headers;
  if (host === undefined) {
    if (httpVersion === '1.1') throw refusal('the header host is missing');
  } else if (!HOST.test(host)) throw refusal('the header host is not a valid host name or address');
}

function refusal(message: string): GatewayError {
  return new GatewayError('invalid_request', message);
}
