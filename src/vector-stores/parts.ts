/** What the operations on vector stores need, and how they find what a request names. */
import type { Caller } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
import { invalidField, orNotFound } from '../base/errors.ts';
import type { FileContents } from '../files/index.ts';
import { INFERENCE } from '../http/access-rule.ts';
import type { Exchange } from '../http/operation.ts';
import type { Jobs } from '../jobs/index.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Changes, Database, Queryable } from '../storage/database.ts';
import type { AddFileJob } from './add-job.ts';
import * as entries from './entries.sql.ts';
import { limitOf, type PageQuery } from './schema.ts';
import type { VectorSearch } from './search.ts';
import { refuseExpired, storedBatchId, storedStoreId, wireStoreId } from './shape.ts';
import * as store from './store.ts';

export interface VectorStoreParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  sealing: Sealing;
  jobs: Pick<Jobs, 'send'>;
  files: Pick<FileContents, 'find'>;
  addFile: AddFileJob;
  search: VectorSearch;
  /** The model of new stores, as currently configured; null: they rank by keywords only. */
  embeddingModel(): string | null;
  /** A governed request of the caller. Rejects with GatewayError. */
  embed(caller: Caller, model: string, texts: readonly string[], signal: AbortSignal): Promise<Float32Array[]>;
}

export const common = { tag: 'Vector stores', access: { ...INFERENCE, regions: ['global'] } } as const;
const STORE = 'vector store with this id in the workspace';
const ENTRY = 'file with this id in the vector store';

/** @throws GatewayError 404 */
export async function storeOf(exchange: Exchange<Caller>, db: Queryable): Promise<store.VectorStore> {
  const id = storedStoreId(exchange.params['vector_store_id'] ?? '');
  const [found] = id === undefined ? [] : await store.findStores(db, exchange.caller.workspaceId, [id]);
  return orNotFound(found, STORE);
}

/** Held for the transaction. @throws GatewayError 404 */
export async function lockedStoreOf(exchange: Exchange<Caller>, tx: Queryable): Promise<store.VectorStore> {
  const id = storedStoreId(exchange.params['vector_store_id'] ?? '');
  return orNotFound(id === undefined ? undefined : await store.lockStore(tx, exchange.caller.workspaceId, id), STORE);
}

/** Held for the transaction, and not expired. @throws GatewayError 400, 404 */
export async function usableStoreOf(exchange: Exchange<Caller>, tx: Queryable, now: Date): Promise<store.VectorStore> {
  const found = await lockedStoreOf(exchange, tx);
  refuseExpired(found, now);
  return found;
}

/** @throws GatewayError 404 */
export async function entryOf(
  { params, caller }: Exchange<Caller>,
  { files }: Pick<VectorStoreParts, 'files'>,
  db: Queryable,
  storeId: string,
): Promise<entries.Entry> {
  const wire = params['file_id'] ?? '';
  const file = (await files.find(caller.workspaceId, [wire])).get(wire);
  return orNotFound(file && (await entries.entryOf(db, storeId, file.id)), ENTRY);
}

/** @throws GatewayError 404 */
export async function batchOf({ params }: Exchange<Caller>, db: Queryable, storeId: string): Promise<entries.Batch> {
  const id = storedBatchId(params['batch_id'] ?? '');
  const found = id === undefined ? undefined : await entries.batchOf(db, storeId, id);
  return orNotFound(found, 'batch with this id in the vector store');
}

/**
 * The page that a query asks for, with one more row than it shows.
 * @param storedId of an id as on the wire
 * @throws GatewayError 400
 */
export function pageOf(query: PageQuery, storedId: (wire: string) => string | undefined): store.ListPage {
  const read = (name: 'after' | 'before') => {
    const wire = query[name];
    const id = wire === undefined ? undefined : storedId(wire);
    if (wire !== undefined && id === undefined) throw invalidField(name, 'is not an id of the list');
    return id;
  };
  return {
    after: read('after'),
    before: read('before'),
    newestFirst: query.order !== 'asc',
    limit: limitOf(query) + 1,
  };
}

export function listReply(rows: readonly Record<string, unknown>[], limit: number): Record<string, unknown> {
  const data = rows.slice(0, limit);
  const [first = null, last = null] = [data[0]?.['id'], data.at(-1)?.['id']];
  return { object: 'list', data, first_id: first, last_id: last, has_more: rows.length > limit };
}

export function nowOf({ clock }: Pick<VectorStoreParts, 'clock'>): Date {
  return new Date(clock.now());
}

/** For the audit log. */
export function resourceOf({ id, workspaceId }: store.VectorStore) {
  return { resourceType: 'vector_store', resourceId: wireStoreId(id), workspaceId };
}
