/** Errors for a client of the chat format: the response envelope, and the `error` of a chunk that ends a stream. */
import type { GatewayError } from '../../base/errors.ts';
import type { Fields } from '../conversation/fields.ts';
import type { FailureContext } from '../conversation/format.ts';

/**
 * Clients detect an overlong prompt by the vendor's code or wording. `code` is the HTTP status here, so the vendor's
 * code goes in the metadata; for clients that only read the message, both are in the message.
 */
export function messageOf({ type, message }: GatewayError): string {
  if (type !== 'context_length_exceeded' || OVERFLOW.test(message)) return message;
  return `maximum context length exceeded (context_length_exceeded): ${message}`;
}

const OVERFLOW = /maximum context length|context_length_exceeded/i;

/** The `error` of a response or chunk: `{code, message, metadata: {error_type, ...}}`. */
export function errorObject(error: GatewayError): Fields {
  const { metadata, availability } = error.details;
  return {
    code: error.status,
    message: messageOf(error),
    metadata: { error_type: error.type, ...metadata },
    ...(availability !== undefined && { availability }),
  };
}

export function encodeFailure(error: GatewayError, about: FailureContext): Fields {
  const body: Fields = { error: errorObject(error) };
  if (about.userId !== undefined) body['user_id'] = about.userId;
  // Routing details stay private when the fault is the gateway's.
  if (about.metadata !== undefined && error.status !== 500) body[about.metadata.key] = about.metadata.value;
  return body;
}
