/** `/vector_stores`: the stores and searches in them. */
import type { Caller } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import { GatewayError, invalidField } from '../base/errors.ts';
import { uuidv7 } from '../base/ids.ts';
import { ok } from '../http/contract.ts';
import type { Operation } from '../http/operation.ts';
import { addFiles, chunkingOf } from './add.ts';
import { entryOperations } from './entry-operations.ts';
import { readFilter } from './filters.ts';
import {
  common,
  listReply,
  lockedStoreOf,
  nowOf,
  pageOf,
  resourceOf,
  storeOf,
  type VectorStoreParts,
} from './parts.ts';
import { readRanking } from './ranking-options.ts';
import * as schema from './schema.ts';
import { newStoreKey } from './sealed.ts';
import { storedStoreId, storeReply, wireStoreId } from './shape.ts';
import * as store from './store.ts';

/** Of a workspace. */
const MOST_STORES = 1_000;
const DEFAULT_RESULTS = 10;
/** Of the request for the vector of a query. */
const SEARCH_ERRORS = [402, 404, 408, 429, 502, 504, 529];

/** Looks into `parts` only when a request comes. */
export function vectorStoreOperations(parts: VectorStoreParts): Operation<Caller>[] {
  return [
    createStore(parts),
    listStores(parts),
    getStore(parts),
    updateStore(parts),
    deleteStore(parts),
    searchStore(parts),
    ...entryOperations(parts),
  ];
}

function createStore(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'createVectorStore',
    method: 'POST',
    path: '/vector_stores',
    summary: 'Create a vector store, with files of the workspace if wanted',
    body: { schema: schema.CreateStore },
    errors: [404],
    replies: ok('The vector store', schema.Store),
    async handle(exchange) {
      const body = exchange.body as schema.CreateStore;
      const { organizationId, workspaceId, keyHash } = exchange.caller;
      const now = nowOf(parts);
      const id = uuidv7(now.getTime());
      const made: store.VectorStore = {
        ...{ id, organizationId, workspaceId, createdAt: now, activeAt: now },
        name: body.name ?? '',
        metadata: body.metadata ?? {},
        expiresDays: body.expires_after?.days ?? null,
        embeddingModel: parts.embeddingModel(),
        dataKey: await newStoreKey(parts.sealing, id),
      };
      const { chunking_strategy: chunking, file_ids: fileIds = [] } = body;
      chunkingOf(chunking);
      const reply = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        if ((await store.lockCountOf(tx, workspaceId)) >= MOST_STORES) {
          throw new GatewayError('permission_denied', `a workspace has at most ${MOST_STORES} vector stores`);
        }
        await store.insertStore(tx, made);
        const target = { storeId: id, batchId: null, workspaceId, keyHash, now };
        const files = fileIds.map((each) => ({ file_id: each, ...(chunking && { chunking_strategy: chunking }) }));
        await addFiles(tx, parts, target, files, (index) => `file_ids[${index}]`);
        const shown = storeReply(made, (await store.holdingsOf(tx, [id])).get(id), now);
        await changed({ action: 'vector_store.created', ...resourceOf(made), after: { ...shown, file_ids: fileIds } });
        return shown;
      });
      exchange.reply(200, reply);
    },
  };
}

function listStores(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'listVectorStores',
    method: 'GET',
    path: '/vector_stores',
    summary: 'List the vector stores of the workspace, newest first',
    query: schema.ListStoresQuery,
    replies: ok('One page', schema.StoreList),
    async handle(exchange) {
      const query = exchange.query as schema.PageQuery;
      const { database } = parts;
      const found = await store.listStores(database, exchange.caller.workspaceId, pageOf(query, storedStoreId));
      const holdings = await store.holdingsOf(
        database,
        found.map(({ id }) => id),
      );
      const rows = found.map((each) => storeReply(each, holdings.get(each.id), nowOf(parts)));
      exchange.reply(200, listReply(rows, schema.limitOf(query)));
    },
  };
}

function getStore(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'getVectorStore',
    method: 'GET',
    path: '/vector_stores/{vector_store_id}',
    summary: 'Show a vector store',
    params: schema.StoreParams,
    replies: ok('The vector store', schema.Store),
    async handle(exchange) {
      const { database } = parts;
      const found = await storeOf(exchange, database);
      const holdings = await store.holdingsOf(database, [found.id]);
      exchange.reply(200, storeReply(found, holdings.get(found.id), nowOf(parts)));
    },
  };
}

function updateStore(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'updateVectorStore',
    method: 'POST',
    path: '/vector_stores/{vector_store_id}',
    summary: 'Change the name, metadata or expiry of a vector store',
    params: schema.StoreParams,
    body: { schema: schema.UpdateStore },
    replies: ok('The vector store', schema.Store),
    async handle(exchange) {
      const { name, metadata, expires_after: expiry } = exchange.body as schema.UpdateStore;
      const reply = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const before = await lockedStoreOf(exchange, tx);
        const after: store.VectorStore = {
          ...before,
          ...(name !== undefined && { name: name ?? '' }),
          ...(metadata !== undefined && { metadata: metadata ?? {} }),
          ...(expiry !== undefined && { expiresDays: expiry?.days ?? null }),
        };
        await store.updateStore(tx, after);
        const holdings = (await store.holdingsOf(tx, [before.id])).get(before.id);
        const shown = storeReply(after, holdings, nowOf(parts));
        const shownBefore = storeReply(before, holdings, nowOf(parts));
        await changed({ action: 'vector_store.updated', ...resourceOf(before), before: shownBefore, after: shown });
        return shown;
      });
      exchange.reply(200, reply);
    },
  };
}

function deleteStore(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'deleteVectorStore',
    method: 'DELETE',
    path: '/vector_stores/{vector_store_id}',
    summary: 'Delete a vector store; the files stay',
    params: schema.StoreParams,
    replies: ok('The vector store is deleted', schema.StoreDeleted),
    async handle(exchange) {
      const id = await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const found = await lockedStoreOf(exchange, tx);
        const before = storeReply(found, (await store.holdingsOf(tx, [found.id])).get(found.id), nowOf(parts));
        await store.deleteStore(tx, found.id);
        await changed({ action: 'vector_store.deleted', ...resourceOf(found), before });
        return found.id;
      });
      exchange.reply(200, { id: wireStoreId(id), object: 'vector_store.deleted', deleted: true });
    },
  };
}

function searchStore(parts: VectorStoreParts): Operation<Caller> {
  return {
    ...common,
    id: 'searchVectorStore',
    method: 'POST',
    path: '/vector_stores/{vector_store_id}/search',
    summary: 'Search the files of a vector store',
    params: schema.StoreParams,
    body: { schema: schema.SearchStore },
    errors: SEARCH_ERRORS,
    replies: ok('The best chunks, best first', schema.SearchResults),
    async handle(exchange) {
      const body = exchange.body as schema.SearchStore;
      if (body.rewrite_query === true)
        throw invalidField('rewrite_query', 'is not supported: queries are not rewritten');
      const { caller } = exchange;
      const queries = typeof body.query === 'string' ? [body.query] : body.query;
      const { threshold, weights } = readRanking(body.ranking_options, 'ranking_options');
      const left = new AbortController();
      exchange.onClose(() => left.abort());
      const { id } = await storeOf(exchange, parts.database);
      const found = await parts.search.search({
        workspaceId: caller.workspaceId,
        storeIds: [wireStoreId(id)],
        queries,
        filter: (body.filters ?? null) === null ? undefined : readFilter(body.filters, 'filters'),
        maxResults: body.max_num_results ?? DEFAULT_RESULTS,
        ...{ threshold, weights },
        embed: (model, texts) => parts.embed(caller, model, texts, left.signal),
      });
      exchange.reply(200, {
        object: 'vector_store.search_results.page',
        search_query: queries,
        data: found.map(({ fileId, filename, score, attributes, text }) => {
          return { file_id: fileId, filename, score, attributes, content: [{ type: 'text', text }] };
        }),
        has_more: false,
        next_page: null,
      });
    },
  };
}
