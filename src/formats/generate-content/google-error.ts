/** Errors as `google.rpc.Status`. */
import type { GatewayError } from '../../base/errors.ts';
import { type Fields, fieldsOf, textOf } from '../conversation/fields.ts';

const STATUS: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  413: 'INVALID_ARGUMENT',
  422: 'INVALID_ARGUMENT',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  504: 'DEADLINE_EXCEEDED',
};
const DOMAIN = 'gatehouse';

export function googleError(error: GatewayError): Fields {
  const { metadata, path } = error.details;
  return status(error.status, error.message, error.type, { ...metadata, ...(path !== undefined && { path }) });
}

/** The error of a chat reply or event. */
export function googleErrorOf(error: unknown): Fields {
  const { code, message, metadata } = fieldsOf(error);
  const { error_type: type, ...others } = fieldsOf(metadata);
  return status(typeof code === 'number' ? code : 500, textOf(message), textOf(type), others);
}

function status(code: number, message: string, type: string, metadata: Fields): Fields {
  const texts = Object.entries(metadata).map(([name, value]) => [
    name,
    typeof value === 'string' ? value : JSON.stringify(value),
  ]);
  const info = {
    '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
    reason: type.toUpperCase(),
    domain: DOMAIN,
    ...(texts.length > 0 && { metadata: Object.fromEntries(texts) }),
  };
  return { error: { code, message, status: STATUS[code] ?? 'UNAVAILABLE', details: [info] } };
}
