/** When files expire. */
import { invalidField } from '../base/errors.ts';

/** An hour to 30 days, as OpenAI's clients may ask for. */
export const EXPIRY_SECONDS = { minimum: 3_600, maximum: 2_592_000 };
/** An hour to 90 days, as Anthropic's clients may ask for. */
export const PLAIN_EXPIRY_SECONDS = { minimum: 3_600, maximum: 7_776_000 };
/** Files of batches, unless their client asks for something else. */
export const BATCH_FILE_SECONDS = EXPIRY_SECONDS.maximum;

/** @param fields of the form of an upload @throws GatewayError 400 */
export function expiryOf(fields: ReadonlyMap<string, string>, purpose: string, createdAt: Date): Date | null {
  const seconds = lifetimeOf(fields) ?? (purpose === 'batch' ? BATCH_FILE_SECONDS : undefined);
  return seconds === undefined ? null : secondsAfter(createdAt, seconds);
}

/** In seconds; undefined if the form does not say. @throws GatewayError 400 */
export function lifetimeOf(fields: ReadonlyMap<string, string>): number | undefined {
  const anchor = fields.get('expires_after[anchor]');
  const text = fields.get('expires_after[seconds]');
  const plain = fields.get('expires_in_seconds');
  if (anchor === undefined && text === undefined) {
    return plain === undefined ? undefined : secondsOf('expires_in_seconds', plain, PLAIN_EXPIRY_SECONDS);
  }
  if (plain !== undefined) throw invalidField('expires_in_seconds', 'cannot be combined with expires_after');
  if (anchor !== 'created_at') throw invalidField('expires_after[anchor]', 'must be created_at');
  return secondsOf('expires_after[seconds]', text, EXPIRY_SECONDS);
}

function secondsOf(field: string, text: string | undefined, { minimum, maximum }: typeof EXPIRY_SECONDS): number {
  const seconds = /^\d{1,9}$/.test(text ?? '') ? Number(text) : 0;
  if (seconds < minimum || seconds > maximum) {
    throw invalidField(field, `must be an integer from ${minimum} to ${maximum}`);
  }
  return seconds;
}

export function secondsAfter(time: Date, seconds: number): Date {
  return new Date(time.getTime() + seconds * 1000);
}
