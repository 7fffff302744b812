/** The items of a stored conversation: opened, appended, and as the input of a request. */
import { GatewayError, invalidField, orNotFound } from '../../base/errors.ts';
import { uuidv7 } from '../../base/ids.ts';
import { parseJson, stringifyJson } from '../../base/json.ts';
import type { Sealing } from '../../sealing/index.ts';
import type { Database, Queryable } from '../../storage/database.ts';
import { tooLarge } from '../history.ts';
import { prefixOf, shownItem } from '../item.ts';
import type { ResponseStatus } from '../response.ts';
import { type DataKey, dataKeysOf, presented } from '../sealed.ts';
import * as sql from './conversations.sql.ts';

/** More than any model reads. */
const MOST_ITEMS = 10_000;
export const CONVERSATION = 'conversation with this id in the workspace of the key';

export interface OpenConversation {
  row: sql.StoredConversation;
  key: DataKey;
}

interface Parts {
  database: Database;
  sealing: Sealing;
}

/** @param path field that names it; by default the path of the request does @throws GatewayError 404 */
export async function openConversation(
  id: string,
  workspaceId: string,
  parts: Parts,
  path?: string,
): Promise<OpenConversation> {
  const found = await sql.findConversation(parts.database, id, workspaceId);
  if (found === undefined && path !== undefined) {
    throw new GatewayError('not_found', `${path}: the workspace has no conversation with this id`, { path });
  }
  const row = orNotFound(found, CONVERSATION);
  const [key] = await dataKeysOf(parts.sealing, [row]);
  return { row, key: key! };
}

/** @throws GatewayError 400 if so many items more would be too many */
export async function checkRoom(db: Queryable, { row }: OpenConversation, more: number): Promise<void> {
  const { count } = await sql.sizeOf(db, row.id);
  if (count + more > MOST_ITEMS) throw invalidField('items', `would be more than ${MOST_ITEMS} in the conversation`);
}

/**
 * JSON lists, for the input of a request.
 * @param more items that the request brings itself; at least one more is its output
 * @throws GatewayError 400 or 413 that names the field
 */
export async function itemLists(
  { row, key }: OpenConversation,
  more: number,
  { database, limits }: { database: Database; limits: { inferenceBodyBytes: number } },
): Promise<string[]> {
  const { count, bytes } = await sql.sizeOf(database, row.id);
  if (count + more >= MOST_ITEMS) {
    throw invalidField('conversation', `would have more than ${MOST_ITEMS} items: it has ${count}`);
  }
  if (bytes > limits.inferenceBodyBytes) throw tooLarge('conversation', limits.inferenceBodyBytes);
  const items = await sql.allItems(database, row.id);
  return presented(() => items.map((item) => `[${key.open(partOf(item.id), item.sealed)}]`));
}

/** Stored items with these ids in the conversations of a workspace, as JSON. @throws GatewayError 413 */
export async function namedItems(
  ids: readonly string[],
  workspaceId: string,
  { database, sealing, limits }: { database: Queryable; sealing: Sealing; limits: { inferenceBodyBytes: number } },
): Promise<[id: string, json: string][]> {
  const most = limits.inferenceBodyBytes;
  if ((await sql.bytesNamed(database, ids, workspaceId)) > most) throw tooLarge('input', most);
  const rows = await sql.itemsNamed(database, ids, workspaceId);
  const keys = await dataKeysOf(
    sealing,
    rows.map(({ conversation }) => conversation),
  );
  return presented(() => rows.map(({ id, sealed }, index) => [id, keys[index]!.open(partOf(id), sealed)]));
}

/** As the API shows it. */
export function shownStored(item: sql.StoredItem, key: DataKey): Record<string, unknown> {
  const value = parseJson(key.open(partOf(item.id), item.sealed)) as Record<string, unknown>;
  return { ...shownItem(value), id: item.id };
}

/**
 * Adds items at the end, as many as there is room for. Does nothing if the conversation was deleted meanwhile.
 * @returns their ids
 */
export async function append(
  tx: Queryable,
  { row, key }: OpenConversation,
  items: readonly unknown[],
  now: number,
): Promise<string[]> {
  if (items.length === 0 || (await sql.findConversation(tx, row.id, row.workspaceId, true)) === undefined) return [];
  const room = Math.max(MOST_ITEMS - (await sql.sizeOf(tx, row.id)).count, 0);
  const given = items.slice(0, room).map((value) => value as Record<string, unknown>);
  const wished = given.map(({ id }) => (typeof id === 'string' && id !== '' && id.length <= 200 ? id : undefined));
  const taken = new Set(
    await sql.takenIds(
      tx,
      row.id,
      wished.filter((id) => id !== undefined),
    ),
  );
  const stored = given.map((item, index) => {
    const wish = wished[index];
    const id = wish === undefined || taken.has(wish) ? `${prefixOf(item)}_${uuidv7(now).replaceAll('-', '')}` : wish;
    taken.add(id);
    return { id, sealed: key.seal(partOf(id), stringifyJson(item)) };
  });
  await sql.insertItems(tx, row.id, stored, new Date(now));
  return stored.map(({ id }) => id);
}

/** What a response that has ended adds: its own input, then its output. Both are JSON. */
export function turnItems(input: string, output: string | undefined): unknown[] {
  return [...(parseJson(input) as unknown[]), ...(parseJson(output ?? '[]') as unknown[])];
}

/** Responses that did not end well leave no turn in their conversation. */
export function addsTo(status: ResponseStatus | undefined): boolean {
  return status === 'completed' || status === 'incomplete';
}

function partOf(itemId: string): string {
  return `item ${itemId}`;
}

/** The same errors as in the input of a request, under the name that they have here. */
export function renamed<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof GatewayError) || !error.details.path?.startsWith('input')) throw error;
    const path = error.details.path.replace('input', 'items');
    throw new GatewayError(error.type, error.message.replace('input', 'items'), { ...error.details, path });
  }
}
