/** Errors for a client of this form: the envelope of wire/common.md, and the `error` of a chunk that ends a stream. */
import type { GatewayError } from '../../base/errors.ts';
import type { FailureContext } from '../conversation/format.ts';
import type { JsonObject } from './read.ts';

/**
 * Clients find a prompt that does not fit by the vendor's code or words. The code has its place in the metadata, as `code`
 * is the status; clients that see the message alone find both there.
 */
export function messageOf({ type, message }: GatewayError): string {
  if (type !== 'context_length_exceeded' || OVERFLOW.test(message)) return message;
  return `maximum context length exceeded (context_length_exceeded): ${message}`;
}

const OVERFLOW = /maximum context length|context_length_exceeded/i;

/** `error` of an answer or of a chunk: `{code, message, metadata: {error_type, ...}}`. */
export function errorObject(error: GatewayError): JsonObject {
  const { metadata, availability } = error.details;
  return {
    code: error.status,
    message: messageOf(error),
    metadata: { error_type: error.type, ...metadata },
    ...(availability !== undefined && { availability }),
  };
}

export function encodeFailure(error: GatewayError, about: FailureContext): JsonObject {
  const body: JsonObject = { error: errorObject(error) };
  if (about.userId !== undefined) body['user_id'] = about.userId;
  // Routing state is nobody's business when the fault is ours (wire/common.md, "Error envelope").
  if (about.metadata !== undefined && error.status !== 500) body[about.metadata.key] = about.metadata.value;
  return body;
}
