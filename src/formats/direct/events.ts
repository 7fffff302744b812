/** Server-sent events of operations with a single public format. */
import type { GatewayError } from '../../base/errors.ts';
import { stringifyJson } from '../../base/json.ts';

export function event(value: unknown): string {
  return `data: ${stringifyJson(value)}\n\n`;
}

/** Ends a stream with an error. */
export function errorEvent(error: GatewayError): string {
  return event({
    type: 'error',
    error: { code: String(error.status), message: error.message, param: error.details.path ?? null, type: error.type },
  });
}
