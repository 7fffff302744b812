/** The member `callback_url` of a new batch. */
import { invalidField } from '../../base/errors.ts';
import { storable } from '../../base/storable.ts';
import { EgressError } from '../../egress/index.ts';
import type { CallbackParts } from './deliver.ts';
import type { Callback } from './store.ts';

const MAX_LENGTH = 2048;

/** Checks all but the addresses of a host name, which are checked at each delivery. */
export function checkerOf({ egress }: Pick<CallbackParts, 'egress'>): (value: unknown) => string {
  return (value) => {
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
  };
}

export function newCallback(batchId: string, url: string, createdAt: Date): Callback {
  return { batchId, url, status: 'pending', attempts: 0, attemptedAt: null, lastError: null, seenAt: createdAt };
}
