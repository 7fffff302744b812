/** Checks of client texts before they are stored. */
import { invalidField } from './errors.ts';

/** Throws GatewayError 400 for NUL, which PostgreSQL's text and jsonb cannot store. */
export function storable<T extends string | null>(path: string, text: T): T {
  if (text?.includes('\0')) throw invalidField(path, 'must not contain the character U+0000');
  return text;
}

/** A name as it is stored. Throws GatewayError 400 if it is blank. */
export function shownName(name: string): string {
  const trimmed = name.trim();
  if (trimmed === '') throw invalidField('name', 'must not be blank');
  return storable('name', trimmed);
}
