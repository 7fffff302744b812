/** Lists of model patterns in the settings of routers: `acme/large`, `acme/*`, `*:free`. */
import Type, { type TProperties } from 'typebox';
import { invalidField } from '../../../base/errors.ts';
import { type Fields, listOf } from '../../../formats/conversation/fields.ts';
import { nullable } from '../../../formats/conversation/loose-schema.ts';
import type { Offer } from '../../routing/router-models.ts';

const MAX_TOTAL_LENGTH = 65_536;

/** The schemas of the lists. */
export function patternLists(...names: readonly string[]): TProperties {
  const list = Type.Array(Type.String({ maxLength: 1024 }), { maxItems: 1024 });
  return Object.fromEntries(names.map((name) => [name, Type.Optional(nullable(list))]));
}

/** Throws GatewayError 400 for a list that is too long as a whole. */
export function checkPatterns(settings: Fields, path: string, names: readonly string[]): void {
  for (const name of names) {
    const length = listOf(settings[name]).reduce<number>((sum, pattern) => sum + (pattern as string).length, 0);
    if (length > MAX_TOTAL_LENGTH) {
      throw invalidField(`${path}.${name}`, `must have at most ${MAX_TOTAL_LENGTH} characters in all its patterns`);
    }
  }
}

/** The offers that the patterns leave; an empty list of allowed ones allows all. Exclusion wins. */
export function allowed(offers: readonly Offer[], allow: unknown, exclude: unknown): readonly Offer[] {
  const [only, never] = [matcher(allow), matcher(exclude)];
  return offers.filter(({ model: { id } }) => (only?.(id) ?? true) && !(never?.(id) ?? false));
}

/** Undefined for an empty list. */
function matcher(patterns: unknown): ((id: string) => boolean) | undefined {
  const list = listOf(patterns) as string[];
  if (list.length === 0) return undefined;
  const exact = new Set(list.filter((pattern) => !pattern.includes('*')));
  const wild = list.filter((pattern) => pattern.includes('*')).map((pattern) => pattern.split('*'));
  return (id) => exact.has(id) || wild.some((pieces) => matches(id, pieces));
}

/** Whether the text is the pieces in order, with anything between them. Linear time. */
function matches(text: string, pieces: readonly string[]): boolean {
  const [first = '', ...rest] = pieces;
  const last = rest.pop() ?? '';
  if (!text.startsWith(first) || text.length < first.length + last.length || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const piece of rest) {
    const found = text.indexOf(piece, at);
    if (found === -1 || found + piece.length > end) return false;
    at = found + piece.length;
  }
  return true;
}
