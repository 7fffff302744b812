/** `/vector_stores/{id}/files` and `/vector_stores/{id}/file_batches`: the files of a vector store. */
import type { Caller } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import { invalidField } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import { storedFileId, wireFileId } from '../files/index.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import { addFiles } from './add.ts';
import { chunksOfEntry } from './chunks.sql.ts';
import * as entries from './entries.sql.ts';
import {
  batchOf,
  common,
  entryOf,
  listReply,
  lockedStoreOf,
  nowOf,
  pageOf,
  resourceOf,
  storeOf,
  usableStoreOf,
  type VectorStoreParts,
} from './parts.ts';
import * as schema from './schema.ts';
import { storeKeyOf } from './sealed.ts';
import { batchReply, entryReply } from './shape.ts';
import type { VectorStore } from './store.ts';

/** Chunks of a page of a file's content. */
const CONTENT_PAGE = 500;

/** Looks into `parts` only when a request comes. */
export function entryOperations(parts: VectorStoreParts): Operation<Caller>[] {
  return [
    addFile(parts),
    listFiles(parts),
    getFile(parts),
    updateFile(parts),
    removeFile(parts),
    fileContent(parts),
    createBatch(parts),
    getBatch(parts),
    cancelBatch(parts),
    listBatchFiles(parts),
  ];
}

function addFile(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'createVectorStoreFile',
    method: 'POST',
    path: '/vector_stores/{vector_store_id}/files',
    summary: 'Add a file of the workspace to a vector store',
    params: schema.StoreParams,
    body: { schema: schema.AddFile },
    replies: ok('The file, which is added in the background', schema.EntrySchema),
    async handle(exchange) {
      const body = exchange.body as schema.AddFile;
      const entry = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const store = await usableStoreOf(exchange, tx, nowOf(parts));
        const target = targetOf(exchange, parts, store, null);
        const [made] = await addFiles(tx, parts, target, [body], () => 'file_id');
        await changed({ action: 'vector_store.file_added', ...resourceOf(store), after: { file_id: body.file_id } });
        return made!;
      });
      exchange.reply(200, entryReply(entry));
    },
  };
}

function listFiles(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'listVectorStoreFiles',
    method: 'GET',
    path: '/vector_stores/{vector_store_id}/files',
    summary: 'List the files of a vector store, newest first',
    params: schema.StoreParams,
    query: schema.ListEntriesQuery,
    replies: ok('One page', schema.EntryList),
    async handle(exchange) {
      const { id } = await storeOf(exchange, parts.database);
      exchange.reply(200, await listed(exchange, parts, id, undefined));
    },
  };
}

function getFile(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'getVectorStoreFile',
    method: 'GET',
    path: '/vector_stores/{vector_store_id}/files/{file_id}',
    summary: 'Show a file of a vector store',
    params: schema.EntryParams,
    replies: ok('The file', schema.EntrySchema),
    async handle(exchange) {
      const { id } = await storeOf(exchange, parts.database);
      exchange.reply(200, entryReply(await entryOf(exchange, parts, parts.database, id)));
    },
  };
}

function updateFile(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'updateVectorStoreFile',
    method: 'POST',
    path: '/vector_stores/{vector_store_id}/files/{file_id}',
    summary: 'Replace the attributes of a file in a vector store',
    params: schema.EntryParams,
    body: { schema: schema.UpdateEntry },
    replies: ok('The file', schema.EntrySchema),
    async handle(exchange) {
      const attributes = (exchange.body as schema.UpdateEntry).attributes ?? {};
      const entry = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const store = await lockedStoreOf(exchange, tx);
        const before = await entryOf(exchange, parts, tx, store.id);
        await entries.setAttributes(tx, before.id, attributes);
        await changed({
          action: 'vector_store.file_updated',
          ...resourceOf(store),
          before: { file_id: wireFileId(before.fileId), attributes: before.attributes },
          after: { file_id: wireFileId(before.fileId), attributes },
        });
        return { ...before, attributes };
      });
      exchange.reply(200, entryReply(entry));
    },
  };
}

function removeFile(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'deleteVectorStoreFile',
    method: 'DELETE',
    path: '/vector_stores/{vector_store_id}/files/{file_id}',
    summary: 'Remove a file from a vector store; the file itself stays',
    params: schema.EntryParams,
    replies: ok('The file is removed', schema.EntryDeleted),
    async handle(exchange) {
      const fileId = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const store = await lockedStoreOf(exchange, tx);
        const entry = await entryOf(exchange, parts, tx, store.id);
        await entries.deleteEntry(tx, entry.id);
        const id = wireFileId(entry.fileId);
        await changed({ action: 'vector_store.file_removed', ...resourceOf(store), before: { file_id: id } });
        return id;
      });
      exchange.reply(200, { id: fileId, object: 'vector_store.file.deleted', deleted: true });
    },
  };
}

function fileContent(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'getVectorStoreFileContent',
    method: 'GET',
    path: '/vector_stores/{vector_store_id}/files/{file_id}/content',
    summary: 'Read the chunks of a file in a vector store',
    params: schema.EntryParams,
    query: schema.ContentQuery,
    replies: ok('One page of the chunks, in the order of the text', schema.EntryContent),
    async handle(exchange) {
      const { database, sealing } = parts;
      const store = await storeOf(exchange, database);
      const { id } = await entryOf(exchange, parts, database, store.id);
      const first = Number((exchange.query as { page?: string }).page ?? 0);
      const chunks = await chunksOfEntry(database, id, { first, limit: CONTENT_PAGE + 1 });
      const key = await storeKeyOf(sealing, store);
      const hasMore = chunks.length > CONTENT_PAGE;
      exchange.reply(200, {
        object: 'vector_store.file_content.page',
        data: chunks.slice(0, CONTENT_PAGE).map(({ position, sealed }) => {
          return { type: 'text', text: key.open(id, `chunk ${position}`, sealed).toString() };
        }),
        has_more: hasMore,
        next_page: hasMore ? String(first + CONTENT_PAGE) : null,
      });
    },
  };
}

function createBatch(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'createVectorStoreFileBatch',
    method: 'POST',
    path: '/vector_stores/{vector_store_id}/file_batches',
    summary: 'Add several files of the workspace to a vector store',
    params: schema.StoreParams,
    body: { schema: schema.CreateBatch },
    replies: ok('The batch, whose files are added in the background', schema.BatchSchema),
    async handle(exchange) {
      const { files, pathOf } = batchedFiles(exchange.body as schema.CreateBatch);
      const batch = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const now = nowOf(parts);
        const store = await usableStoreOf(exchange, tx, now);
        const id = uuidv7(now.getTime());
        await entries.insertBatch(tx, { id, storeId: store.id, createdAt: now });
        await addFiles(tx, parts, targetOf(exchange, parts, store, id), files, pathOf);
        const ids = files.map((file) => file.file_id);
        await changed({ action: 'vector_store.files_added', ...resourceOf(store), after: { file_ids: ids } });
        return (await entries.batchOf(tx, store.id, id))!;
      });
      exchange.reply(200, batchReply(batch));
    },
  };
}

function batchedFiles(body: schema.CreateBatch) {
  const { file_ids: ids, files, attributes, chunking_strategy: chunking } = body;
  if ((ids === undefined) === (files === undefined)) {
    throw invalidField('file_ids', 'is required, or files in its place; not both');
  }
  const shared = {
    ...(attributes !== undefined && { attributes }),
    ...(chunking !== undefined && { chunking_strategy: chunking }),
  };
  if (files === undefined) {
    return { files: ids!.map((id) => ({ ...shared, file_id: id })), pathOf: (index: number) => `file_ids[${index}]` };
  }
  for (const name of Object.keys(shared))
    throw invalidField(name, 'cannot be combined with files: each file has its own');
  return { files, pathOf: (index: number) => `files[${index}].file_id` };
}

function getBatch(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'getVectorStoreFileBatch',
    method: 'GET',
    path: '/vector_stores/{vector_store_id}/file_batches/{batch_id}',
    summary: 'Show a batch of files',
    params: schema.BatchParams,
    replies: ok('The batch', schema.BatchSchema),
    async handle(exchange) {
      const { id } = await storeOf(exchange, parts.database);
      exchange.reply(200, batchReply(await batchOf(exchange, parts.database, id)));
    },
  };
}

function cancelBatch(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'cancelVectorStoreFileBatch',
    method: 'POST',
    path: '/vector_stores/{vector_store_id}/file_batches/{batch_id}/cancel',
    summary: 'Cancel a batch of files; those that are added already stay',
    params: schema.BatchParams,
    replies: ok('The batch', schema.BatchSchema),
    async handle(exchange) {
      const batch = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const store = await lockedStoreOf(exchange, tx);
        const before = await batchOf(exchange, tx, store.id);
        if (before.inProgress === 0) return before;
        await entries.cancelBatch(tx, before.id, nowOf(parts));
        const after = (await entries.batchOf(tx, store.id, before.id))!;
        const shown = { before: batchReply(before), after: batchReply(after) };
        await changed({ action: 'vector_store.batch_cancelled', ...resourceOf(store), ...shown });
        return after;
      });
      exchange.reply(200, batchReply(batch));
    },
  };
}

function listBatchFiles(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'listVectorStoreBatchFiles',
    method: 'GET',
    path: '/vector_stores/{vector_store_id}/file_batches/{batch_id}/files',
    summary: 'List the files of a batch, newest first',
    params: schema.BatchParams,
    query: schema.ListEntriesQuery,
    replies: ok('One page', schema.EntryList),
    async handle(exchange) {
      const { id } = await storeOf(exchange, parts.database);
      const batch = await batchOf(exchange, parts.database, id);
      exchange.reply(200, await listed(exchange, parts, id, batch.id));
    },
  };
}

async function listed(
  { query: given }: Exchange<Caller>,
  { database }: VectorStoreParts,
  storeId: string,
  batchId: string | undefined,
): Promise<Record<string, unknown>> {
  const query = given as schema.PageQuery;
  // Pages are those of the rows; clients know the ids of files.
  const ids = new Map<string, string>();
  for (const wire of [query.after, query.before]) {
    const fileId = wire === undefined ? undefined : storedFileId(wire);
    const entry = fileId === undefined ? undefined : await entries.entryOf(database, storeId, fileId);
    if (entry !== undefined) ids.set(wire!, entry.id);
  }
  const page = { ...pageOf(query, (wire) => ids.get(wire)), batchId, status: query.filter };
  const rows = await entries.listEntries(database, storeId, page);
  return listReply(rows.map(entryReply), schema.limitOf(query));
}

function targetOf({ caller }: Exchange<Caller>, parts: VectorStoreParts, { id }: VectorStore, batchId: string | null) {
  return { storeId: id, batchId, workspaceId: caller.workspaceId, keyHash: caller.keyHash, now: nowOf(parts) };
}
