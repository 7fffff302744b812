/** SCIM error responses (RFC 7644, section 3.12). */
import { Type } from 'typebox';
import { GatewayError } from '../../base/errors.ts';
import type { ErrorContext } from '../../http/operation.ts';

export const FaultSchema = Type.Object(
  {
    schemas: Type.Array(Type.String()),
    status: Type.String({ description: 'The HTTP status' }),
    scimType: Type.Optional(Type.String()),
    detail: Type.String(),
  },
  { $id: 'ScimError' },
);

export const SCIM_TYPE = 'application/scim+json';

type ScimType =
  | 'invalidFilter'
  | 'tooMany'
  | 'uniqueness'
  | 'mutability'
  | 'invalidSyntax'
  | 'invalidPath'
  | 'noTarget'
  | 'invalidValue'
  | 'invalidVers';

/** 400, or 409 for `uniqueness`. */
export function refusal(scimType: ScimType, message: string): GatewayError {
  const status = scimType === 'uniqueness' ? 409 : 400;
  return new GatewayError('invalid_request', message, { status, metadata: { scim_type: scimType } });
}

export function notFound(what: string, id: string): GatewayError {
  return new GatewayError('not_found', `no ${what} has the id ${id.slice(0, 100)}`);
}

export function encodeFault(error: GatewayError, _context?: ErrorContext): Record<string, unknown> {
  const { metadata } = error.details;
  // A 400 without a type was raised before the protocol: invalid JSON, or an invalid query parameter.
  const scimType = metadata?.['scim_type'] ?? (error.status === 400 ? 'invalidSyntax' : undefined);
  return {
    schemas: ['urn:ietf:params:scim:api:messages:2.0:Error'],
    status: String(error.status),
    ...(scimType !== undefined && { scimType }),
    detail: error.message,
  };
}
