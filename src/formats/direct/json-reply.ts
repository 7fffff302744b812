/** Reads replies that should be JSON objects. */
import { parseJson } from '../../base/json.ts';
import { decodeInBand } from '../chat/failure.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { type Fields, isFields } from '../conversation/fields.ts';
import type { Reply } from './index.ts';

const LARGEST_RAW = 1024;

/** The reply as an object, or the failure it reports despite its status. */
export function readObject(reply: Reply): { value: Fields } | { failure: UpstreamFailure } {
  const read = readFields(reply);
  if ('failure' in read) return read;
  const told = decodeInBand('', read.value);
  return told === undefined ? read : { failure: told };
}

/** The reply as an object, for services whose `error` member does not mean failure. */
export function readFields({ body }: Reply): { value: Fields } | { failure: UpstreamFailure } {
  const text = body.toString('utf8');
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return { failure: malformed('a body that is not JSON', text) };
  }
  return isFields(value) ? { value } : { failure: malformed('JSON that is not an object', text) };
}

export function malformed(what: string, raw?: string): UpstreamFailure {
  const shown = raw === undefined ? undefined : raw.slice(0, LARGEST_RAW);
  return {
    kind: 'malformed',
    status: null,
    message: `the upstream answered with ${what}`,
    ...(shown !== undefined && { raw: shown }),
  };
}
