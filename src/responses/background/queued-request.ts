/** A request that waits for its run, as it is stored. */
import type { IncomingHttpHeaders } from 'node:http';
import type { Fields } from '../../formats/conversation/fields.ts';
import type { RequestAbout } from '../../inference/index.ts';

export interface QueuedRequest {
  /** JSON of the stateless request, its whole input included. */
  body: string;
  about: RequestAbout;
  /** What the response repeats of the state that was asked for. */
  members: Fields;
}

/** Headers that a provider may receive. */
const KEPT_HEADERS = ['anthropic-version', 'anthropic-beta'];

/** Without headers for the gateway itself: credentials, and the response cache. */
export function keptAbout(about: RequestAbout): RequestAbout {
  return { ...about, cache: undefined, headers: keptHeaders(about.headers) };
}

function keptHeaders(headers: RequestAbout['headers']): IncomingHttpHeaders {
  const kept: IncomingHttpHeaders = {};
  for (const name of KEPT_HEADERS) {
    const value = headers[name];
    if (typeof value === 'string') kept[name] = value;
  }
  return kept;
}
