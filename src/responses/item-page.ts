/** One page of a list of items, with a cursor as OpenAI's SDKs send it. Pure. */
import { invalidField } from '../base/errors.ts';

export interface ItemsQuery {
  after?: string;
  limit?: number;
  order?: 'asc' | 'desc';
}

export const DEFAULT_ITEMS = 20;

/** @param items oldest first @throws GatewayError 400 for a cursor that is not in the list */
export function pageOfItems<Item extends { id: unknown }>(items: readonly Item[], query: ItemsQuery) {
  const { after, limit = DEFAULT_ITEMS, order = 'desc' } = query;
  const ordered = order === 'asc' ? items : items.toReversed();
  const before = after === undefined ? -1 : ordered.findIndex(({ id }) => id === after);
  if (after !== undefined && before === -1) throw invalidField('after', 'is not the id of an item of this list');
  const data = ordered.slice(before + 1, before + 1 + limit);
  return {
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: before + 1 + limit < ordered.length,
  };
}
