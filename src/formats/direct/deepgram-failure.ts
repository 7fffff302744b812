import { parseJson, stringifyJson } from '../../base/json.ts';
import { decodeFailure } from '../chat/failure.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { fieldsOf, nonEmptyText } from '../conversation/fields.ts';

/** Errors of Deepgram: `{err_code, err_msg, request_id}`. */
export function deepgramFailure(status: number, body: string): UpstreamFailure {
  let value: unknown;
  try {
    value = parseJson(body);
  } catch {
    return decodeFailure(status, body);
  }
  const { err_code: code, err_msg: message } = fieldsOf(value);
  const told = nonEmptyText(message);
  return decodeFailure(status, told === undefined ? body : stringifyJson({ error: { message: told, code } }));
}
