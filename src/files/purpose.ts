/** The purpose of an upload, as OpenAI's clients state it. */
import { invalidField } from '../base/errors.ts';
import { PURPOSES } from './schema.ts';

const DEFAULT_PURPOSE = 'user_data';

/** Throws GatewayError 400. */
export function purposeOf(given: string | undefined): string {
  if (given === undefined) return DEFAULT_PURPOSE;
  if ((PURPOSES as readonly string[]).includes(given)) return given;
  throw invalidField('purpose', `must be one of ${PURPOSES.join(', ')}`);
}
