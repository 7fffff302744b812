/** What clients write and the database keeps. */
import { invalidField } from './errors.ts';

/** Throws GatewayError 400 for the one character that PostgreSQL's text and jsonb do not hold. */
export function storable<T extends string | null>(path: string, text: T): T {
  if (text?.includes('\0')) throw invalidField(path, 'must not contain the character U+0000');
  return text;
}

/** A name as it is kept. Throws GatewayError 400 for a blank one. */
export function shownName(name: string): string {
  const trimmed = name.trim();
  if (trimmed === '') throw invalidField('name', 'must not be blank');
  return storable('name', trimmed);
}
