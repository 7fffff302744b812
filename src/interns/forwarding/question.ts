/** The requests of a process to the holder of an intern, and the replies, as JSON. */
import { GatewayError } from '../../base/errors.ts';
import type { ChatRequest } from '../chat/request.ts';

/** The process that asks has checked that the caller may do this, and that the session is the caller's. */
export type Question = { readonly internId: string; readonly caller: string } & (
  | { readonly kind: 'chat'; readonly request: ChatRequest }
  | { readonly kind: 'invoke'; readonly sessionId: string | null; readonly text: string }
);

/** If it is not a stream. */
export type Answer =
  /** The process that was asked does not hold the intern. */
  | { readonly kind: 'elsewhere' }
  | { readonly kind: 'refused'; readonly error: Refusal }
  | { readonly kind: 'reply'; readonly status: number; readonly body: object };

type Refusal = Pick<GatewayError, 'type' | 'message' | 'details'>;

export function refusal({ type, message, details: { cause: _, ...details } }: GatewayError): Refusal {
  return { type, message, details };
}

export function errorOf({ type, message, details }: Refusal): GatewayError {
  return new GatewayError(type, message, details);
}
