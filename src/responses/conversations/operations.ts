/** `/conversations`. */

import type { Caller } from '../../access/index.ts';
import { authorOf, changeAs } from '../../audit/index.ts';
import type { Clock } from '../../base/clock.ts';
import { GatewayError, invalidField, orNotFound } from '../../base/errors.ts';
import { uuidv7 } from '../../base/ids.ts';
import { readDocument, stringifyJson } from '../../base/json.ts';
import { unixSeconds } from '../../base/timestamp.ts';
import { listOf } from '../../formats/conversation/fields.ts';
import { responses } from '../../formats/index.ts';
import { policyOf } from '../../guardrails/index.ts';
import { INFERENCE } from '../../http/access-rule.ts';
import { ok } from '../../http/contract.ts';
import type { Exchange, Operation } from '../../http/operation.ts';
import { documentCheck } from '../../http/validate.ts';
import type { InferenceLimits, InferenceParts } from '../../inference/index.ts';
import type { Sealing } from '../../sealing/index.ts';
import type { Changes, Database } from '../../storage/database.ts';
import { DEFAULT_ITEMS, type ItemsQuery } from '../item-page.ts';
import { ItemPage, ItemQuery, ItemsQuery as ItemsQuerySchema } from '../schema.ts';
import { newDataKey, presented } from '../sealed.ts';
import * as sql from './conversations.sql.ts';
import {
  append,
  CONVERSATION,
  checkRoom,
  type OpenConversation,
  openConversation,
  renamed,
  shownStored,
} from './items.ts';
import * as schema from './schema.ts';

interface ConversationParts {
  database: Database;
  changes: Changes;
  clock: Clock;
  sealing: Sealing;
  inference: InferenceParts;
}

const ITEM = 'item with this id in the conversation';
const METADATA = 'metadata';

const common = { tag: 'Conversations', access: INFERENCE } as const;
const one = { ...common, path: '/conversations/{conversation_id}', params: schema.ConversationParams } as const;
const items = { ...one, path: '/conversations/{conversation_id}/items' } as const;
const item = {
  ...common,
  path: '/conversations/{conversation_id}/items/{item_id}',
  params: schema.ItemParams,
} as const;

/** Looks into `parts` only when a request comes. */
export function conversationOperations(parts: ConversationParts, limits: InferenceLimits): Operation<Caller>[] {
  return [
    createConversation(parts, limits),
    {
      ...one,
      id: 'getConversation',
      method: 'GET',
      summary: 'Show a conversation',
      replies: ok('The conversation', schema.Conversation),
      async handle(exchange) {
        exchange.reply(200, await shown(await opened(exchange, parts)));
      },
    },
    updateConversation(parts),
    deleteConversation(parts),
    createItems(parts, limits),
    listItems(parts),
    {
      ...item,
      id: 'getConversationItem',
      method: 'GET',
      summary: 'Show an item of a conversation',
      query: ItemQuery,
      replies: ok('The item', schema.ConversationItem),
      async handle(exchange) {
        const { row, key } = await opened(exchange, parts);
        const found = orNotFound(await sql.findItem(parts.database, row.id, exchange.params['item_id']!), ITEM);
        exchange.reply(200, await presented(() => shownStored(found, key)));
      },
    },
    {
      ...item,
      id: 'deleteConversationItem',
      method: 'DELETE',
      summary: 'Delete an item of a conversation',
      replies: ok('The conversation', schema.Conversation),
      async handle(exchange) {
        const conversation = await opened(exchange, parts);
        const gone = await sql.deleteItem(parts.database, conversation.row.id, exchange.params['item_id']!);
        orNotFound(gone || undefined, ITEM);
        exchange.reply(200, await shown(conversation));
      },
    },
  ];
}

function createConversation(parts: ConversationParts, limits: InferenceLimits): Operation<Caller> {
  return {
    ...common,
    id: 'createConversation',
    method: 'POST',
    path: '/conversations',
    summary: 'Create a conversation, which requests of the responses format can continue',
    body: { schema: schema.CreateConversation, maxBytes: limits.inferenceBodyBytes, optional: true },
    replies: ok('The conversation', schema.Conversation),
    async handle(exchange) {
      const { caller } = exchange;
      const now = parts.clock.now();
      const given = givenItems(exchange, parts);
      const metadata = metadataOf(exchange);
      const id = `conv_${uuidv7(now).replaceAll('-', '')}`;
      const { key, record } = await newDataKey(parts.sealing, id);
      const row: sql.StoredConversation = {
        id,
        organizationId: caller.organizationId,
        workspaceId: caller.workspaceId,
        createdAt: new Date(now),
        usedAt: new Date(now),
        dataKey: record,
        metadata: key.seal(METADATA, stringifyJson(metadata)),
      };
      await parts.database.transaction(async (tx) => {
        await sql.insertConversation(tx, row);
        await append(tx, { row, key }, given, now);
      });
      exchange.reply(200, await shown({ row, key }));
    },
  };
}

function updateConversation(parts: ConversationParts): Operation<Caller> {
  return {
    ...one,
    id: 'updateConversation',
    method: 'POST',
    summary: 'Replace the metadata of a conversation',
    body: { schema: schema.UpdateConversation },
    replies: ok('The conversation', schema.Conversation),
    async handle(exchange) {
      const { row, key } = await opened(exchange, parts);
      const metadata = key.seal(METADATA, stringifyJson(metadataOf(exchange)));
      await sql.setMetadata(parts.database, row.id, metadata);
      exchange.reply(200, await shown({ row: { ...row, metadata }, key }));
    },
  };
}

function deleteConversation(parts: ConversationParts): Operation<Caller> {
  return {
    ...one,
    id: 'deleteConversation',
    method: 'DELETE',
    summary: 'Delete a conversation with its items; stored responses stay',
    replies: ok('The conversation is gone', schema.ConversationDeleted),
    async handle(exchange) {
      const id = exchange.params['conversation_id']!;
      const { workspaceId } = exchange.caller;
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        orNotFound((await sql.deleteConversation(tx, id, workspaceId)) || undefined, CONVERSATION);
        await changed({ action: 'conversation.deleted', resourceType: 'conversation', resourceId: id, workspaceId });
      });
      exchange.reply(200, { id, object: 'conversation.deleted', deleted: true });
    },
  };
}

function createItems(parts: ConversationParts, limits: InferenceLimits): Operation<Caller> {
  return {
    ...items,
    id: 'createConversationItems',
    method: 'POST',
    summary: 'Add items to a conversation',
    query: ItemQuery,
    body: { schema: schema.CreateItems, maxBytes: limits.inferenceBodyBytes },
    replies: ok('The new items', ItemPage),
    async handle(exchange) {
      const conversation = await opened(exchange, parts);
      const given = givenItems(exchange, parts);
      await checkRoom(parts.database, conversation, given.length);
      const now = parts.clock.now();
      const ids = await parts.database.transaction((tx) => append(tx, conversation, given, now));
      const { row, key } = conversation;
      const found = await Promise.all(ids.map((id) => sql.findItem(parts.database, row.id, id)));
      const data = await presented(() =>
        found.filter((each) => each !== undefined).map((each) => shownStored(each, key)),
      );
      exchange.reply(200, pageReply(data, false));
    },
  };
}

function listItems(parts: ConversationParts): Operation<Caller> {
  return {
    ...items,
    id: 'listConversationItems',
    method: 'GET',
    summary: 'List the items of a conversation, newest first',
    query: ItemsQuerySchema,
    replies: ok('One page', ItemPage),
    async handle(exchange) {
      const { row, key } = await opened(exchange, parts);
      const { after, limit = DEFAULT_ITEMS, order = 'desc' } = exchange.query as ItemsQuery;
      const found = await sql.itemPage(parts.database, row.id, { after, limit, order });
      if (found === undefined) throw invalidField('after', 'is not the id of an item of this list');
      const data = await presented(() => found.slice(0, limit).map((each) => shownStored(each, key)));
      exchange.reply(200, pageReply(data, found.length > limit));
    },
  };
}

function pageReply(data: readonly Record<string, unknown>[], hasMore: boolean) {
  return {
    object: 'list',
    data,
    first_id: data[0]?.['id'] ?? null,
    last_id: data.at(-1)?.['id'] ?? null,
    has_more: hasMore,
  };
}

function opened({ caller, params }: Exchange<Caller>, parts: ConversationParts): Promise<OpenConversation> {
  return openConversation(params['conversation_id']!, caller.workspaceId, parts);
}

async function shown({ row, key }: OpenConversation) {
  const metadata = await presented(() => JSON.parse(key.open(METADATA, row.metadata)) as object);
  const createdAt = unixSeconds(row.createdAt);
  return { id: row.id, object: 'conversation', created_at: createdAt, metadata };
}

/** @throws GatewayError 400 */
function metadataOf({ document }: Exchange<Caller>): object {
  const metadata = (document?.member('metadata') ?? {}) as object;
  responses.check({ input: 'unchecked', metadata });
  return metadata;
}

/** Compiled with the first items. */
let checkSchema: ReturnType<typeof documentCheck> | undefined;

/** The items of the body, as guardrails let them pass. @throws GatewayError 400, 403 */
function givenItems({ document, caller }: Exchange<Caller>, { inference }: ConversationParts): unknown[] {
  const list = listOf(document?.exact['items']);
  if (inference.accountPolicy().zdr || policyOf(caller).compiled.zdr.size > 0) {
    throw new GatewayError('permission_denied', 'conversations cannot be stored: zero data retention is demanded');
  }
  if (list.length === 0) return [];
  const input = readDocument(Buffer.from(stringifyJson({ input: list })));
  renamed(() => {
    checkSchema ??= documentCheck(responses.schema);
    checkSchema(input);
    responses.check(input.value);
  });
  const { filters } = policyOf(caller).compiled;
  const screened = filters === undefined ? input : filters.screen(input, responses.texts, inference.clock).document;
  return listOf(screened.exact['input']);
}
