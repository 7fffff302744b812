/** Items of a request's input that only name a stored item: of a response or a conversation of the workspace. */
import { GatewayError, invalidField } from '../base/errors.ts';
import { type JsonDocument, parseJson, readDocument, stringifyJson } from '../base/json.ts';
import { applyEdits } from '../base/json-edits.ts';
import { storable } from '../base/storable.ts';
import { isFields, listOf } from '../formats/conversation/fields.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Queryable } from '../storage/database.ts';
import { namedItems } from './conversations/items.ts';
import { tooLarge } from './history.ts';
import { memberOf } from './response.ts';
import { dataKeysOf, presented } from './sealed.ts';
import { contentsOf, responsesWithItems, type Viewer } from './store.ts';

const MOST_REFERENCES = 1_000;

interface ReferenceParts {
  database: Queryable;
  sealing: Sealing;
  limits: { inferenceBodyBytes: number };
}

function isReference(item: unknown): boolean {
  if (!isFields(item)) return false;
  const { type = null, role, id } = item;
  return type === 'item_reference' || (type === null && role === undefined && id !== undefined);
}

export function hasReferences({ structure: { input } }: JsonDocument): boolean {
  return Array.isArray(input) && input.some(isReference);
}

/**
 * The request with the items in place of their references.
 * @throws GatewayError 404 with the path of an item that the workspace does not have, 413
 */
export async function withReferenced(
  document: JsonDocument,
  viewer: Viewer,
  parts: ReferenceParts,
): Promise<JsonDocument> {
  const input = listOf(document.exact['input']);
  const named = new Map<number, string>();
  input.forEach((item, index) => {
    if (!isReference(item)) return;
    const { id } = item as { id?: unknown };
    const path = `input[${index}].id`;
    if (typeof id !== 'string' || id === '') throw invalidField(path, 'must be the id of an item');
    named.set(index, storable(path, id));
  });
  if (named.size > MOST_REFERENCES) throw invalidField('input', `has more than ${MOST_REFERENCES} references`);
  const found = await itemsOf([...new Set(named.values())], viewer, parts);
  let length = 0;
  const items = input.map((item, index) => {
    const id = named.get(index);
    if (id === undefined) return stringifyJson(item);
    const stored = found.get(id);
    if (stored !== undefined) {
      // One item may be named often, so this is asked before they are joined.
      length += stored.length;
      if (length > parts.limits.inferenceBodyBytes) throw tooLarge('input', parts.limits.inferenceBodyBytes);
      return stored;
    }
    const problem = 'refers to an item that the workspace has not stored: send the item itself';
    throw new GatewayError('not_found', `input[${index}] ${problem}`, { path: `input[${index}]` });
  });
  const bytes = applyEdits(document, [{ key: 'input', json: `[${items.join(',')}]` }]);
  if (bytes.length > parts.limits.inferenceBodyBytes) throw tooLarge('input', parts.limits.inferenceBodyBytes);
  return readDocument(bytes);
}

/** JSON by id. */
async function itemsOf(
  ids: readonly string[],
  viewer: Viewer,
  { database, sealing, limits }: ReferenceParts,
): Promise<ReadonlyMap<string, string>> {
  const found = new Map(await namedItems(ids, viewer.workspaceId, { database, sealing, limits }));
  const missing = ids.filter((id) => !found.has(id));
  if (missing.length === 0) return found;
  const rows = await responsesWithItems(database, missing, viewer);
  if (rows.reduce((sum, { bytes }) => sum + bytes, 0) > limits.inferenceBodyBytes) {
    throw tooLarge('input', limits.inferenceBodyBytes);
  }
  const keys = await dataKeysOf(sealing, rows);
  const contents = await contentsOf(
    database,
    rows.map(({ id }) => id),
  );
  return presented(() => {
    rows.forEach((row, index) => {
      const sealed = contents.get(row.id);
      for (const item of sealed === undefined ? [] : outputOf(keys[index]!.open('answer', sealed.answer))) {
        const { id } = item as { id?: unknown };
        if (typeof id === 'string' && !found.has(id)) found.set(id, stringifyJson(item));
      }
    });
    return found;
  });
}

function outputOf(answer: string): unknown[] {
  return listOf(parseJson(memberOf(answer, 'output') ?? '[]'));
}

const LONGEST_ID = 200;
const MOST_NAMED = 1_000;

/** Ids by which later requests may name the items of an answer. */
export function nameableItems(answer: string): string[] {
  const ids = outputOf(answer).flatMap((item) => {
    const { id } = item as { id?: unknown };
    return typeof id === 'string' && id !== '' && id.length <= LONGEST_ID && !id.includes('\0') ? [id] : [];
  });
  return [...new Set(ids)].slice(0, MOST_NAMED);
}
