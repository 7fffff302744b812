/** `/responses/{id}`. `POST /responses` itself is an operation of `inference/`. */
import type { Caller } from '../access/index.ts';
import { authorOf, changeAs } from '../audit/index.ts';
import { invalidField, orNotFound } from '../base/errors.ts';
import { parseJson } from '../base/json.ts';
import { responses } from '../formats/index.ts';
import { INFERENCE } from '../http/access-rule.ts';
import { ok } from '../http/contract.ts';
import type { Exchange, Operation } from '../http/operation.ts';
import { HttpSink } from '../inference/index.ts';
import type { Changes } from '../storage/database.ts';
import { EVENTS_TOPIC } from './background/events.ts';
import { EventAnnouncements, follow } from './background/follow.ts';
import { BackgroundRunner, CANCELLED_TOPIC, type RunnerParts } from './background/run.ts';
import { Claims } from './claims.ts';
import type { ResponseParts } from './create.ts';
import { listsOf } from './history.ts';
import { distinct, withIds } from './item.ts';
import { type ItemsQuery, pageOfItems } from './item-page.ts';
import { type Contents, isLost, isOver, type StoredResponse, shown } from './response.ts';
import * as schema from './schema.ts';
import { type DataKey, dataKeysOf, presented } from './sealed.ts';
import * as store from './store.ts';

export interface ResponseOperationParts extends ResponseParts {
  changes: Changes;
  runner: BackgroundRunner;
}

const common = { tag: 'Inference', access: INFERENCE, params: schema.ResponseParams } as const;
const RESPONSE = 'stored response with this id in the workspace of the key';

/** With what runs in the background. Its `runner` is to be registered with the jobs, and closed. */
export function createResponses(
  given: Omit<ResponseOperationParts, 'claims' | 'runner' | 'announcements'> & Pick<RunnerParts, 'callerOfKey'>,
) {
  const claims = new Claims(given);
  const runner = new BackgroundRunner({ ...given, claims }, given.jobs);
  return { ...given, claims, runner, announcements: new EventAnnouncements(given.changes) };
}

/** Looks into `parts` only when a request comes. */
export function responseOperations(parts: ResponseOperationParts): Operation<Caller>[] {
  return [getResponse(parts), listInputItems(parts), cancelResponse(parts), deleteResponse(parts)];
}

function getResponse(parts: ResponseOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'getResponse',
    method: 'GET',
    path: '/responses/{response_id}',
    summary: 'Show a stored response, or stream the events of one in the background',
    query: schema.GetResponseQuery,
    replies: {
      200: {
        description: 'The response as its client got it, or its events when `stream` is true',
        schema: schema.StoredResponseReply,
        events: responses.operation.events,
      },
    },
    async handle(exchange) {
      const { stream = false, starting_after: after } = exchange.query as { stream?: boolean; starting_after?: number };
      if (after !== undefined && !stream) throw invalidField('starting_after', 'requires stream=true');
      const { row, contents, key } = await found(exchange, parts);
      if (stream) {
        if (!row.background || !row.streamed) {
          throw invalidField('stream', 'requires a response that was created with background and stream true');
        }
        const { clock, keepAliveComment } = parts.inference;
        const followed = { id: row.id, workspaceId: row.workspaceId, key, after: after ?? -1, headers: {} };
        return follow(new HttpSink(exchange), followed, { ...parts, clock, keepAliveComment });
      }
      exchange.reply(200, shown(row, contents.answer, parts.claims.now()));
    },
  };
}

function listInputItems(parts: ResponseOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'listResponseInputItems',
    method: 'GET',
    path: '/responses/{response_id}/input_items',
    summary: 'List the input items of a stored response: those of earlier responses, then those of its own request',
    query: schema.ItemsQuery,
    replies: ok('One page', schema.ItemPage),
    async handle(exchange) {
      const { row, contents } = await found(exchange, parts);
      const items = await earlierItems(row, viewerOf(exchange, parts), parts);
      items.push(...withIds(parseJson(contents.input) as unknown[], `${seedOf(row)}_`));
      exchange.reply(200, pageOfItems(distinct(items), exchange.query as ItemsQuery));
    },
  };
}

/** Of the responses that it continues, as far as they still exist. */
async function earlierItems(row: StoredResponse, viewer: store.Viewer, parts: ResponseParts) {
  if (row.previousId === null) return [];
  const chain = await store.chainOf(parts.database, row.previousId, viewer, MOST_SHOWN);
  const lists = await listsOf(chain, parts);
  return lists.flatMap((list, index) =>
    withIds(parseJson(list) as unknown[], `${seedOf(chain[index >> 1]!)}_${index % 2 === 0 ? '' : 'o'}`),
  );
}

const MOST_SHOWN = 1_000;

function seedOf({ id }: StoredResponse): string {
  return id.replace(/^resp_/, '');
}

function cancelResponse(parts: ResponseOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'cancelResponse',
    method: 'POST',
    path: '/responses/{response_id}/cancel',
    summary: 'Cancel a response in the background; one that has ended stays as it is',
    replies: ok('The response', schema.StoredResponseReply),
    async handle(exchange) {
      const id = exchange.params['response_id']!;
      await parts.database.transaction(async (tx) => {
        const row = orNotFound(await store.lockResponse(tx, id, viewerOf(exchange, parts)), RESPONSE);
        if (!row.background) throw invalidField('response_id', 'names a response that does not run in the background');
        if (isOver(row) || isLost(row, parts.claims.now())) return;
        await store.cancelResponse(tx, id);
        await parts.changes.announce(tx, CANCELLED_TOPIC, id);
        await parts.changes.announce(tx, EVENTS_TOPIC, id);
      });
      const { row, contents } = await found(exchange, parts);
      exchange.reply(200, shown(row, contents.answer, parts.claims.now()));
    },
  };
}

function deleteResponse(parts: ResponseOperationParts): Operation<Caller> {
  return {
    ...common,
    id: 'deleteResponse',
    method: 'DELETE',
    path: '/responses/{response_id}',
    summary: 'Delete a stored response; responses that continue it cannot be continued any more',
    replies: ok('The response is gone', schema.ResponseDeleted),
    async handle(exchange) {
      const id = exchange.params['response_id']!;
      const { workspaceId } = exchange.caller;
      await changeAs(authorOf(exchange), parts, async (tx, changed) => {
        const gone = await store.deleteResponse(tx, id, viewerOf(exchange, parts));
        orNotFound(gone || undefined, RESPONSE);
        await parts.changes.announce(tx, CANCELLED_TOPIC, id);
        await parts.changes.announce(tx, EVENTS_TOPIC, id);
        await changed({ action: 'response.deleted', resourceType: 'response', resourceId: id, workspaceId });
      });
      exchange.reply(200, { id, object: 'response', deleted: true });
    },
  };
}

function viewerOf({ caller }: Exchange<Caller>, { clock }: ResponseParts): store.Viewer {
  return { workspaceId: caller.workspaceId, now: new Date(clock.now()) };
}

async function found(
  exchange: Exchange<Caller>,
  parts: ResponseParts,
): Promise<{ row: StoredResponse; contents: Contents; key: DataKey }> {
  const id = exchange.params['response_id']!;
  const row = orNotFound(await store.findResponse(parts.database, id, viewerOf(exchange, parts)), RESPONSE);
  const [key] = await dataKeysOf(parts.sealing, [row]);
  const contents = await presented(() => ({
    input: key!.open('input', row.input),
    answer: key!.open('answer', row.answer),
  }));
  return { row, contents, key: key! };
}
