/** Checks of client texts before they are stored. */
import { invalidField } from './errors.ts';

/** Throws GatewayError 400 for NUL, which PostgreSQL's text and jsonb cannot store. */
export function storable<T extends string | null>(path: string, text: T): T {
  if (text?.includes('\0')) throw invalidField(path, 'must not contain the character U+0000');
  return text;
}

/** A character that leaves a mark where a name is shown: no space, control character, zero-width one or filler. */
const VISIBLE = /[^\p{White_Space}\p{Cc}\p{Cf}\p{Default_Ignorable_Code_Point}]/u;

/** A name as it is stored. Throws GatewayError 400 if nothing of it can be seen. */
export function shownName(name: string, path = 'name'): string {
  const trimmed = name.trim();
  if (!VISIBLE.test(trimmed)) throw invalidField(path, 'must not be blank');
  return storable(path, trimmed);
}
