/** Errors for a client of the format, as `google.rpc.Status`. */
import type { GatewayError } from '../../base/errors.ts';
import type { Fields } from '../conversation/fields.ts';
import type { FailureContext } from '../conversation/format.ts';

const STATUS: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'UNIMPLEMENTED',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  504: 'DEADLINE_EXCEEDED',
};
const DOMAIN = 'gatehouse';
const TYPE = 'type.googleapis.com/google.rpc.';

/** The `error` of a response, and of the last event of a stream that failed. */
export function errorMember(error: GatewayError, generationId: string | null = null): Fields {
  const { metadata, availability, path } = error.details;
  const texts = Object.entries({
    ...metadata,
    ...(availability && { availability }),
    ...(path !== undefined && { path }),
  })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, typeof value === 'string' ? value : JSON.stringify(value)]);
  const details: Fields[] = [
    {
      '@type': `${TYPE}ErrorInfo`,
      reason: error.type.toUpperCase(),
      domain: DOMAIN,
      ...(texts.length > 0 && { metadata: Object.fromEntries(texts) }),
    },
  ];
  if (path !== undefined && path !== '') {
    const violation = { field: path, description: error.message };
    details.push({ '@type': `${TYPE}BadRequest`, fieldViolations: [violation] });
  }
  if (generationId !== null) details.push({ '@type': `${TYPE}RequestInfo`, requestId: generationId });
  return { code: error.status, message: error.message, status: statusOf(error), details };
}

function statusOf({ status }: GatewayError): string {
  return STATUS[status] ?? (status < 500 ? 'INVALID_ARGUMENT' : 'UNAVAILABLE');
}

export function encodeFailure(error: GatewayError, about: FailureContext): Fields {
  const body: Fields = { error: errorMember(error, about.generationId) };
  // Routing details stay private when the fault is the gateway's.
  if (about.metadata !== undefined && error.status !== 500) body[about.metadata.key] = about.metadata.value;
  return body;
}
