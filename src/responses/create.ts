/**
 * `POST /responses` with state. References to stored state are read here and replaced by the items that they stand for,
 * so the pipeline sees a stateless request, whose limits, guardrails and costs are those of the whole input.
 */
import type { Caller } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
import type { RetentionSettings } from '../base/config.ts';
import type { JsonDocument } from '../base/json.ts';
import type { Log } from '../base/log.ts';
import type { ServedFormat } from '../formats/conversation/format.ts';
import { responses } from '../formats/index.ts';
import { BlockedByFilter, policyOf } from '../guardrails/index.ts';
import type { Exchange } from '../http/operation.ts';
import { type AcceptedRequest, acceptExchange, HttpSink, type InferenceParts, serve } from '../inference/index.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Database } from '../storage/database.ts';
import { type SubmitParts, submit } from './background/submit.ts';
import type { Claims } from './claims.ts';
import { hasCompactions, withSummaries } from './compaction/summary.ts';
import {
  addsTo,
  append,
  itemLists,
  type OpenConversation,
  openConversation,
  turnItems,
} from './conversations/items.ts';
import { type History, historyOf, joined, ownItems } from './history.ts';
import { type NewResponse, newResponse } from './new-response.ts';
import { type Recorded, Recorder } from './recorder.ts';
import { hasReferences, nameableItems, withReferenced } from './references.ts';
import { memberOf } from './response.ts';
import { stampOf } from './stamp.ts';
import * as store from './store.ts';
import { StoringSink } from './storing-sink.ts';
import { echoing, refuseUnderZdr, stateMembers, type Wanted, wantedOf, withoutState } from './wanted.ts';

export interface ResponseParts extends SubmitParts {
  database: Database;
  clock: Clock;
  log: Log;
  sealing: Sealing;
  inference: InferenceParts;
  claims: Claims;
  /** How long responses and conversations are kept. */
  retention(): RetentionSettings;
  limits: { inferenceBodyBytes: number };
}

/** Answers a request that needs state. Undefined for any other, which is the usual case. */
export function answerWithState(exchange: Exchange<Caller>, parts: ResponseParts): Promise<void> | undefined {
  const document = exchange.document!;
  const wanted =
    wantedOf(document) ?? (hasReferences(document) || hasCompactions(document) ? NOTHING_WANTED : undefined);
  return wanted && answer(exchange, wanted, parts);
}

/** Nothing is kept or continued. */
export const NOTHING_WANTED: Wanted = { store: false, background: false, previousId: null, conversationId: null };

async function answer(exchange: Exchange<Caller>, wanted: Wanted, parts: ResponseParts): Promise<void> {
  const { caller } = exchange;
  const given = await statelessOf(exchange, parts);
  checkOwn(given, wanted);
  const keeps = wanted.store || wanted.conversationId !== null;
  const screened = keeps ? screenedBy(caller, given, parts) : undefined;
  const own = screened ?? given;
  const { history, conversation } = await stateOf(caller, wanted, itemCount(own), parts);
  const document = history ? joined(own, history, parts.limits.inferenceBodyBytes) : own;
  const accepted = acceptExchange(exchange, echoing(stateMembers(wanted)), parts.inference, document);
  // A cached answer would repeat the state of another request.
  const request = { ...accepted, about: { ...accepted.about, cache: undefined } };
  if (keeps) refuseUnderZdr(wanted.store ? 'store' : 'conversation', request.document, termsOf(request, parts));
  const client = new HttpSink(exchange);
  // Without a screened text the pipeline refuses the request, and nothing is stored.
  if (screened === undefined) return serve(request, client, parts.inference);
  const input = ownItems(own);
  // A copy: the response can still be continued when items of its conversation are deleted.
  const whole = conversation === undefined ? input : ownItems(document);
  const contextItems = conversation === undefined ? 0 : itemCount(document) - itemCount(own);
  const made = wanted.store
    ? await newResponse(request, { wanted, history, input: whole, contextItems }, parts)
    : undefined;
  if (made?.row.background) return submit(exchange, client, { request, made, wanted }, parts);
  await serveAndKeep(request, client, { made, conversation, input }, parts);
}

/** The request with the items that it only names, and without the members about state. */
export async function statelessOf({ document, caller }: Exchange<Caller>, parts: ResponseParts): Promise<JsonDocument> {
  const stateless = withoutState(document!);
  const viewer = { workspaceId: caller.workspaceId, now: new Date(parts.clock.now()) };
  const whole = hasReferences(stateless) ? await withReferenced(stateless, viewer, parts) : stateless;
  return hasCompactions(whole) ? withSummaries(whole) : whole;
}

/**
 * Checks what the request brings itself, before the history is added, so that errors have the paths that the client knows. A
 * request that continues something needs no input; the whole of it is checked later.
 */
export function checkOwn(own: JsonDocument, { previousId, conversationId }: Wanted): void {
  const continues = previousId !== null || conversationId !== null;
  if (itemCount(own) > 0 || !continues) responses.check(own.value, true);
}

interface State {
  history?: History;
  conversation?: OpenConversation;
}

export function itemCount({ structure: { input } }: JsonDocument): number {
  return Array.isArray(input) ? input.length : input === undefined || input === null ? 0 : 1;
}

/** @param more items that the request brings itself */
export async function stateOf(
  { workspaceId }: Caller,
  wanted: Wanted,
  more: number,
  parts: ResponseParts,
): Promise<State> {
  const { previousId, conversationId } = wanted;
  if (previousId !== null) {
    const viewer = { workspaceId, now: new Date(parts.clock.now()) };
    return { history: await historyOf(previousId, viewer, parts) };
  }
  if (conversationId === null) return {};
  const conversation = await openConversation(conversationId, workspaceId, parts, 'conversation');
  return {
    conversation,
    history: { lists: await itemLists(conversation, more, parts), ids: [], path: 'conversation' },
  };
}

/** The request as guardrails let it pass; undefined if they do not. */
function screenedBy(caller: Caller, own: JsonDocument, { inference }: ResponseParts): JsonDocument | undefined {
  try {
    const { filters } = policyOf(caller).compiled;
    return filters === undefined ? own : filters.screen(own, responses.texts, inference.clock).document;
  } catch (error) {
    if (error instanceof BlockedByFilter) return undefined;
    throw error;
  }
}

function termsOf({ caller, facts }: AcceptedRequest, { inference }: ResponseParts) {
  return { caller, facts, zdr: inference.accountPolicy().zdr, catalog: inference.catalog() };
}

/** The stored part of a response. */
interface Kept {
  /** Undefined: only its conversation keeps something of it. */
  made: NewResponse | undefined;
  conversation: OpenConversation | undefined;
  /** JSON of a list: the items of the request itself. */
  input: string;
}

async function serveAndKeep(
  request: AcceptedRequest<ServedFormat>,
  client: HttpSink,
  kept: Kept,
  parts: ResponseParts,
): Promise<void> {
  const { database, claims } = parts;
  const { made } = kept;
  if (made !== undefined) {
    const { row, insert } = made;
    const running = { ...row, status: 'in_progress', claim: claims.id, claimedUntil: claims.until() } as const;
    await database.transaction((tx) => insert(tx, running, null));
    claims.hold(row.id);
  }
  try {
    const recorder = new Recorder(stampOf(request), made?.answer ?? '{}');
    const sink = new StoringSink(client, recorder, keeperOf(kept, parts));
    await serve(request, sink, parts.inference);
    await sink.settled();
  } finally {
    if (made !== undefined) claims.release(made.row.id);
  }
}

function keeperOf({ made, conversation, input }: Kept, parts: ResponseParts) {
  const { database, clock, log, claims } = parts;
  const tried = (work: () => Promise<unknown>) =>
    work().then(
      () => true,
      (cause: unknown) => {
        log.warn('cannot store a response', { response: made?.row.id, conversation: conversation?.row.id, cause });
        return false;
      },
    );
  return {
    keep: ({ status, answer: told }: Recorded) =>
      tried(() =>
        database.transaction(async (tx) => {
          const ended =
            made === undefined
              ? status
              : await store.finishResponse(tx, {
                  ...{ id: made.row.id, claim: claims.id, status },
                  answer: made.key.seal('answer', told),
                  items: nameableItems(told),
                });
          if (conversation && addsTo(ended)) {
            await append(tx, conversation, turnItems(input, memberOf(told, 'output')), clock.now());
          }
        }),
      ),
    async discard() {
      if (made === undefined) return;
      const viewer = { workspaceId: made.row.workspaceId, now: new Date(clock.now()) };
      await tried(() => store.deleteResponse(database, made.row.id, viewer));
    },
  };
}
