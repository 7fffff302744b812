/** The id under which a request is found in the log: the client's, if it is fit for a header and a log line. */
import type { IncomingHttpHeaders } from 'node:http';
import { uuidv7 } from '../base/ids.ts';

const SANE = /^[\w.:-]{1,128}$/;

/** @param now wall time in ms */
export function requestIdOf(headers: IncomingHttpHeaders, now: number): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && SANE.test(given) ? given : uuidv7(now);
}
