/** Reads the body of `POST /messages/batches`: `{requests: [{custom_id, params}]}`, an item at a time. */
import { GatewayError, invalidField } from '../../base/errors.ts';
import type { ItemTarget } from '../item.ts';
import type { IntakeParts, ItemIntake } from '../submission/item-intake.ts';
import { RequestsReader } from '../submission/requests-reader.ts';
import type { Origin } from '../submission/submit.ts';
import { type ItemForm, readItem } from '../submission/submitted-item.ts';

/** Items are named as Anthropic's API names them: `requests.3.params.max_tokens`. */
export const messageItems: ItemForm = {
  name: (position) => `requests.${position}`,
  read: (bytes, position) => readItem(bytes, messageItems.name(position), 'params'),
  explain(error, position, customId) {
    const within = `${messageItems.name(position)}.params`;
    const { path = '' } = error.details;
    const { message } = error;
    const named = path !== '' && message.startsWith(path) ? `${within}.${message}` : `${within}: ${message}`;
    return new GatewayError(error.type, `${named} (custom_id ${JSON.stringify(customId)})`, {
      ...error.details,
      path: path === '' ? within : `${within}.${path}`,
    });
  },
};

/** There are no members besides `requests` that could hold more than a name. */
const MEMBER_BYTES = 1024;

/** @throws GatewayError for the first thing that is wrong */
export async function readRequests(
  body: AsyncIterable<Buffer>,
  items: ItemIntake,
  origin: Origin,
  { itemBytes }: Pick<IntakeParts, 'itemBytes'>,
): Promise<ItemTarget> {
  const target: ItemTarget = { endpoint: '/v1/messages', model: null, provider: null, ...origin };
  const reader = new RequestsReader({ itemBytes, memberBytes: MEMBER_BYTES, nameItem: messageItems.name });
  for await (const chunk of body) {
    for (const piece of reader.read(chunk)) {
      if (piece.kind === 'item') await items.add(piece.bytes, target);
      else throw invalidField(piece.key.slice(0, 100), 'is not a member of a message batch; accepted: requests');
    }
  }
  reader.end();
  if (items.total === 0) throw invalidField('requests', 'must have at least one request');
  return target;
}
