/** Reading replies that should be JSON objects. */
import { parseJson } from '../../base/json.ts';
import { decodeInBand } from '../chat/failure.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { type Fields, isFields } from '../conversation/fields.ts';
import type { Reply } from './index.ts';

const LARGEST_RAW = 1024;

/** The reply as an object, or the failure that it is or reports in spite of its status. */
export function readObject({ body }: Reply): { value: Fields } | { failure: UpstreamFailure } {
  const text = body.toString('utf8');
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return { failure: malformed('something that is not JSON', text) };
  }
  if (!isFields(value)) return { failure: malformed('JSON that is no object', text) };
  const told = decodeInBand('', value);
  return told === undefined ? { value } : { failure: told };
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
