/** When files expire. */
import { invalidField } from '../base/errors.ts';

/** An hour to 30 days, as OpenAI's clients may ask for. */
export const EXPIRY_SECONDS = { minimum: 3_600, maximum: 2_592_000 };
/** Files of batches, unless their client asks for something else. */
export const BATCH_FILE_SECONDS = EXPIRY_SECONDS.maximum;

/** @param fields of the form of an upload @throws GatewayError 400 */
export function expiryOf(fields: ReadonlyMap<string, string>, purpose: string, createdAt: Date): Date | null {
  const anchor = fields.get('expires_after[anchor]');
  const text = fields.get('expires_after[seconds]');
  if (anchor === undefined && text === undefined) {
    return purpose === 'batch' ? secondsAfter(createdAt, BATCH_FILE_SECONDS) : null;
  }
  if (anchor !== 'created_at') throw invalidField('expires_after[anchor]', 'must be created_at');
  const seconds = /^\d{1,9}$/.test(text ?? '') ? Number(text) : 0;
  const { minimum, maximum } = EXPIRY_SECONDS;
  if (seconds < minimum || seconds > maximum) {
    throw invalidField('expires_after[seconds]', `must be an integer from ${minimum} to ${maximum}`);
  }
  return secondsAfter(createdAt, seconds);
}

export function secondsAfter(time: Date, seconds: number): Date {
  return new Date(time.getTime() + seconds * 1000);
}
