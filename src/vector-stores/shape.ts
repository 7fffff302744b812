/** Vector stores as clients see them: the ids, and the schemas of OpenAI's SDKs. */
import { GatewayError } from '../base/errors.ts';
import { prefixedId, uuidOf } from '../base/ids.ts';
import { unixSeconds } from '../base/timestamp.ts';
import { wireFileId } from '../files/index.ts';
import type { Batch, Entry } from './entries.sql.ts';
import type { Holdings, VectorStore } from './store.ts';

const STORE_PREFIX = 'svc_vs_';
const BATCH_PREFIX = 'svc_vsfb_';
const DAY_MS = 24 * 60 * 60 * 1000;

export function wireStoreId(id: string): string {
  return prefixedId(STORE_PREFIX, id);
}

/** Undefined for what is not an id of a store of this gateway. */
export function storedStoreId(wire: string): string | undefined {
  return uuidOf(STORE_PREFIX, wire);
}

function wireBatchId(id: string): string {
  return prefixedId(BATCH_PREFIX, id);
}

export function storedBatchId(wire: string): string | undefined {
  return uuidOf(BATCH_PREFIX, wire);
}

/** Undefined: never. */
function expiryOf({ expiresDays, activeAt }: VectorStore): Date | undefined {
  return expiresDays === null ? undefined : new Date(activeAt.getTime() + expiresDays * DAY_MS);
}

export function isExpired(store: VectorStore, now: Date): boolean {
  const expiry = expiryOf(store);
  return expiry !== undefined && expiry <= now;
}

/** @throws GatewayError 400 */
export function refuseExpired(store: VectorStore, now: Date): void {
  if (isExpired(store, now)) throw new GatewayError('invalid_request', 'the vector store has expired');
}

const EMPTY: Holdings = { inProgress: 0, completed: 0, failed: 0, cancelled: 0, bytes: 0 };

export function storeReply(store: VectorStore, holdings: Holdings | undefined, now: Date): Record<string, unknown> {
  const held = holdings ?? EMPTY;
  const expiry = expiryOf(store);
  return {
    id: wireStoreId(store.id),
    object: 'vector_store',
    created_at: unixSeconds(store.createdAt),
    name: store.name,
    usage_bytes: held.bytes,
    file_counts: countsOf(held),
    status: isExpired(store, now) ? 'expired' : held.inProgress > 0 ? 'in_progress' : 'completed',
    ...(store.expiresDays !== null && { expires_after: { anchor: 'last_active_at', days: store.expiresDays } }),
    expires_at: expiry === undefined ? null : unixSeconds(expiry),
    last_active_at: unixSeconds(store.activeAt),
    metadata: store.metadata,
  };
}

function countsOf({ inProgress, completed, failed, cancelled }: Omit<Holdings, 'bytes'>): Record<string, number> {
  const total = inProgress + completed + failed + cancelled;
  return { in_progress: inProgress, completed, failed, cancelled, total };
}

export function entryReply(entry: Entry): Record<string, unknown> {
  const { errorCode, errorMessage } = entry;
  return {
    id: wireFileId(entry.fileId),
    object: 'vector_store.file',
    created_at: unixSeconds(entry.createdAt),
    vector_store_id: wireStoreId(entry.storeId),
    status: entry.status,
    last_error: errorCode === null ? null : { code: errorCode, message: errorMessage ?? '' },
    usage_bytes: entry.bytes,
    attributes: entry.attributes,
    chunking_strategy: {
      type: 'static',
      static: { max_chunk_size_tokens: entry.chunkTokens, chunk_overlap_tokens: entry.overlapTokens },
    },
  };
}

export function batchReply(batch: Batch): Record<string, unknown> {
  const { inProgress, completed, failed, cancelledAt } = batch;
  const ended = cancelledAt !== null ? 'cancelled' : failed > 0 && completed === 0 ? 'failed' : 'completed';
  return {
    id: wireBatchId(batch.id),
    object: 'vector_store.files_batch',
    created_at: unixSeconds(batch.createdAt),
    vector_store_id: wireStoreId(batch.storeId),
    status: inProgress > 0 && cancelledAt === null ? 'in_progress' : ended,
    file_counts: countsOf(batch),
  };
}
