/** The input of a request that continues a stored response: the items before its own, as JSON text. */
import { GatewayError, invalidField } from '../base/errors.ts';
import { type JsonDocument, readDocument } from '../base/json.ts';
import { applyEdits } from '../base/json-edits.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Queryable } from '../storage/database.ts';
import type { Claims } from './claims.ts';
import { isLost, isOver, memberOf, type StoredResponse } from './response.ts';
import { dataKeysOf, presented } from './sealed.ts';
import { chainOf, contentsOf, type Viewer } from './store.ts';

/** Longer chains would be over the limit of any model. */
const LONGEST_CHAIN = 1_000;

interface HistoryParts {
  database: Queryable;
  claims: Claims;
  sealing: Sealing;
  limits: { inferenceBodyBytes: number };
}

export interface History {
  /** JSON lists, in order. */
  lists: readonly string[];
  /** The responses that they are from. */
  ids: readonly string[];
  /** The field that names them. */
  path: string;
}

/** @throws GatewayError 400, 404 or 413 that names the field */
export async function historyOf(id: string, viewer: Viewer, parts: HistoryParts): Promise<History> {
  const path = 'previous_response_id';
  const chain = await chainOf(parts.database, id, viewer, LONGEST_CHAIN);
  const newest = chain.at(-1);
  if (newest === undefined) {
    const problem = 'the workspace has no stored response with this id';
    throw new GatewayError('not_found', `${path}: ${problem}`, { path });
  }
  if (!isOver(newest) && !isLost(newest, parts.claims.now())) {
    throw invalidField(path, 'names a response that has not ended yet');
  }
  if (chain[0]!.previousId !== null) throw incomplete(chain.length, path);
  const bytes = chain.reduce((sum, row) => sum + row.bytes, 0);
  // What encryption adds does not count, but it is little.
  if (bytes > parts.limits.inferenceBodyBytes) throw tooLarge(path, parts.limits.inferenceBodyBytes);
  return { lists: await listsOf(chain, parts), ids: chain.map((row) => row.id), path };
}

function incomplete(length: number, path: string): GatewayError {
  if (length === LONGEST_CHAIN) return invalidField(path, `continues more than ${LONGEST_CHAIN} responses`);
  const problem = 'an earlier response of this chain was deleted or has expired; send the items in input';
  return new GatewayError('not_found', `${path}: ${problem}`, { path });
}

/** 413 for stored items that are too many. */
export function tooLarge(path: string, most: number): GatewayError {
  const problem = `makes the request larger than ${most} bytes`;
  return new GatewayError('payload_too_large', `${path} ${problem}`, { path });
}

/** Of each response its input, then its output. */
export async function listsOf(
  chain: readonly StoredResponse[],
  { database, sealing }: Pick<HistoryParts, 'database' | 'sealing'>,
): Promise<string[]> {
  const keys = await dataKeysOf(sealing, chain);
  const contents = await contentsOf(
    database,
    chain.map(({ id }) => id),
  );
  return presented(() =>
    chain.flatMap(({ id }, index) => {
      const sealed = contents.get(id);
      // Deleted at this moment.
      if (sealed === undefined) throw incomplete(0, 'previous_response_id');
      const key = keys[index]!;
      return [key.open('input', sealed.input), memberOf(key.open('answer', sealed.answer), 'output') ?? '[]'];
    }),
  );
}

/** The request's own input as a JSON list. */
export function ownItems(document: JsonDocument): string {
  const { structure, members, bytes } = document;
  const { input } = structure;
  if (input === undefined || input === null) return '[]';
  const { valueStart, valueEnd } = members.findLast(({ key }) => key === 'input')!;
  const text = bytes.toString('utf8', valueStart, valueEnd);
  return typeof input === 'string' ? `[{"type":"message","role":"user","content":${text}}]` : text;
}

/** The request with the history before its own input. */
export function joined(document: JsonDocument, { lists, path }: History, mostBytes: number): JsonDocument {
  const all = [...lists, ownItems(document)]
    .map((list) => list.trim().slice(1, -1).trim())
    .filter((list) => list !== '');
  const bytes = applyEdits(document, [{ key: 'input', json: `[${all.join(',')}]` }]);
  if (bytes.length > mostBytes) throw tooLarge(path, mostBytes);
  return readDocument(bytes);
}
