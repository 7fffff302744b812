/**
 * `POST /responses` with state. What a request names of the state is read here and replaced by the items that it stands for,
 * so the pipeline sees a stateless request, whose limits, guardrails and costs are those of the whole input.
 */
import type { Caller } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
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
import { historyOf, joined, ownItems } from './history.ts';
import { type NewResponse, newResponse } from './new-response.ts';
import { Recorder } from './recorder.ts';
import type { StoredResponse } from './response.ts';
import type { DataKey } from './sealed.ts';
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
  /** How long responses are kept. */
  retentionDays(): number;
  limits: { inferenceBodyBytes: number };
}

/** Answers a request that needs state. Undefined for any other, which is the usual case. */
export function answerWithState(exchange: Exchange<Caller>, parts: ResponseParts): Promise<void> | undefined {
  const wanted = wantedOf(exchange.document!);
  return wanted && answer(exchange, wanted, parts);
}

async function answer(exchange: Exchange<Caller>, wanted: Wanted, parts: ResponseParts): Promise<void> {
  const { caller } = exchange;
  const given = withoutState(exchange.document!);
  // Before the history is added, so that errors have the paths that the client knows.
  responses.check(given.value);
  const screened = wanted.store ? screenedBy(caller, given, parts) : undefined;
  const own = screened ?? given;
  const viewer = { workspaceId: caller.workspaceId, now: new Date(parts.clock.now()) };
  const history = wanted.previousId === null ? undefined : await historyOf(wanted.previousId, viewer, parts);
  const document = history ? joined(own, history, parts.limits.inferenceBodyBytes) : own;
  const accepted = acceptExchange(exchange, echoing(stateMembers(wanted)), parts.inference, document);
  // A cached answer would repeat the state of another request.
  const request = { ...accepted, about: { ...accepted.about, cache: undefined } };
  if (wanted.store) refuseUnderZdr(own, termsOf(request, parts));
  const client = new HttpSink(exchange);
  // Without a screened text the pipeline refuses the request, and nothing is stored.
  if (screened === undefined) return serve(request, client, parts.inference);
  const made = await newResponse(request, { wanted, history, input: ownItems(own) }, parts);
  if (wanted.background) return submit(exchange, client, { request, made, wanted }, parts);
  await serveAndStore(request, client, made, parts);
}

/** The request as guardrails let it pass; undefined if they do not. */
function screenedBy(caller: Caller, own: JsonDocument, { clock }: ResponseParts): JsonDocument | undefined {
  try {
    const { filters } = policyOf(caller).compiled;
    return filters === undefined ? own : filters.screen(own, responses.texts, clock).document;
  } catch (error) {
    if (error instanceof BlockedByFilter) return undefined;
    throw error;
  }
}

function termsOf({ caller, facts }: AcceptedRequest, { inference }: ResponseParts) {
  return { caller, facts, zdr: inference.accountPolicy().zdr, catalog: inference.catalog() };
}

async function serveAndStore(
  request: AcceptedRequest<ServedFormat>,
  client: HttpSink,
  { row, key, answer: first, insert }: NewResponse,
  parts: ResponseParts,
): Promise<void> {
  const { database, claims } = parts;
  const running = { ...row, status: 'in_progress', claim: claims.id, claimedUntil: claims.until() } as const;
  await database.transaction((tx) => insert(tx, running, null));
  claims.hold(row.id);
  try {
    const sink = new StoringSink(client, new Recorder(stampOf(request), first), keeperOf(row, key, parts));
    await serve(request, sink, parts.inference);
    await sink.settled();
  } finally {
    claims.release(row.id);
  }
}

function keeperOf({ id, workspaceId }: StoredResponse, key: DataKey, parts: ResponseParts) {
  const { database, clock, log, claims } = parts;
  const tried = (work: () => Promise<unknown>) =>
    work().then(
      () => true,
      (cause: unknown) => {
        log.warn('cannot store a response', { response: id, cause });
        return false;
      },
    );
  return {
    keep: ({ status, answer: told }: { status: StoredResponse['status']; answer: string }) =>
      tried(() => store.finishResponse(database, { id, claim: claims.id, status, answer: key.seal('answer', told) })),
    async discard() {
      const viewer = { workspaceId, now: new Date(clock.now()) };
      await tried(() => store.deleteResponse(database, id, viewer));
    },
  };
}
