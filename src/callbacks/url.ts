/** The member `callback_url` of a request. */
import { invalidField } from '../base/errors.ts';
import { storable } from '../base/storable.ts';
import { EgressError } from '../egress/index.ts';
import type { CallbackParts } from './deliver.ts';

const MAX_LENGTH = 2048;

/**
 * Checks all but the addresses of a host name, which are checked at each delivery.
 * @throws GatewayError 400
 */
export function checkCallbackUrl(value: unknown, { egress }: Pick<CallbackParts, 'egress'>): string {
  if (typeof value !== 'string' || value.length > MAX_LENGTH) {
    throw invalidField('callback_url', `must be an https URL of at most ${MAX_LENGTH} characters`);
  }
  storable('callback_url', value);
  try {
    egress.check({ url: value, tlsOnly: true });
  } catch (error) {
    if (!(error instanceof EgressError)) throw error;
    throw invalidField('callback_url', error.message);
  }
  return value;
}
