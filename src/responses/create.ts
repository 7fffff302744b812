/**
 * `POST /responses` with state. What a request names of the state is read here and replaced by the items that it stands for,
 * so the pipeline sees a stateless request, whose limits, guardrails and costs are those of the whole input.
 */
import type { Caller } from '../access/index.ts';
import type { Clock } from '../base/clock.ts';
import { type JsonDocument, stringifyJson } from '../base/json.ts';
import type { Log } from '../base/log.ts';
import type { ServedFormat, Stamp } from '../formats/conversation/format.ts';
import { responseOf, responses } from '../formats/index.ts';
import { BlockedByFilter, policyOf } from '../guardrails/index.ts';
import type { Exchange } from '../http/operation.ts';
import { type AcceptedRequest, acceptExchange, HttpSink, type InferenceParts, serve } from '../inference/index.ts';
import type { Sealing } from '../sealing/index.ts';
import type { Database } from '../storage/database.ts';
import type { Claims } from './claims.ts';
import { type History, historyOf, joined, ownItems } from './history.ts';
import { Recorder } from './recorder.ts';
import type { StoredResponse } from './response.ts';
import { type DataKey, newDataKey } from './sealed.ts';
import * as store from './store.ts';
import { StoringSink } from './storing-sink.ts';
import { refuseUnderZdr, stateMembers, type Wanted, wantedOf, withoutState } from './wanted.ts';

export interface ResponseParts {
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

const DAY_MS = 86_400_000;

/** Answers a request that needs state. Undefined for any other, which is the usual case. */
export function answerWithState(exchange: Exchange<Caller>, parts: ResponseParts): Promise<void> | undefined {
  const wanted = wantedOf(exchange.document!);
  return wanted && answer(exchange, wanted, parts);
}

async function answer(exchange: Exchange<Caller>, wanted: Wanted, parts: ResponseParts): Promise<void> {
  const own = withoutState(exchange.document!);
  // Before the history is added, so that errors have the paths that the client knows.
  responses.check(own.value);
  const viewer = { workspaceId: exchange.caller.workspaceId, now: new Date(parts.clock.now()) };
  const history = wanted.previousId === null ? undefined : await historyOf(wanted.previousId, viewer, parts);
  const document = history ? joined(own, history, parts.limits.inferenceBodyBytes) : own;
  const accepted = acceptExchange(exchange, formatOf(wanted), parts.inference, document);
  // A cached answer would repeat the state of another request.
  const request = { ...accepted, about: { ...accepted.about, cache: undefined } };
  const client = new HttpSink(exchange);
  const input = wanted.store ? inputToStore(own, request, parts) : undefined;
  if (input === undefined) return serve(request, client, parts.inference);
  await serveAndStore(request, client, { wanted, input, history }, parts);
}

/** The format, with responses that repeat the state that was asked for. */
function formatOf(wanted: Wanted): ServedFormat {
  const members = stateMembers(wanted);
  return { ...responses, echo: (document) => ({ ...responses.echo!(document), ...members }) };
}

/**
 * The items as guardrails let them pass. Undefined if they do not: then nothing is stored, and the pipeline refuses the request.
 * @throws GatewayError 403 under zero data retention
 */
function inputToStore(own: JsonDocument, request: AcceptedRequest, { inference }: ResponseParts): string | undefined {
  const { caller, facts } = request;
  const terms = { caller, facts, zdr: inference.accountPolicy().zdr, catalog: inference.catalog() };
  refuseUnderZdr(own, terms);
  try {
    const { filters } = policyOf(caller).compiled;
    return ownItems(filters === undefined ? own : filters.screen(own, responses.texts, inference.clock).document);
  } catch (error) {
    if (error instanceof BlockedByFilter) return undefined;
    throw error;
  }
}

interface ToStore {
  wanted: Wanted;
  input: string;
  history: History | undefined;
}

async function serveAndStore(
  request: AcceptedRequest<ServedFormat>,
  client: HttpSink,
  { wanted, input, history }: ToStore,
  parts: ResponseParts,
): Promise<void> {
  const { database, claims } = parts;
  const stamp = stampOf(request);
  const first = stringifyJson(responseOf(stamp, { status: 'in_progress', output: [], created: stamp.created }));
  const { row, key } = await newResponse(request, wanted, parts);
  const [sealedInput, sealedAnswer] = [key.seal('input', input), key.seal('answer', first)];
  const bytes = sealedInput.length + sealedAnswer.length;
  const contents = { input: sealedInput, answer: sealedAnswer, request: null };
  await database.transaction(async (tx) => {
    await store.insertResponse(tx, { ...row, bytes, ...contents });
    if (history !== undefined) await store.keepUntil(tx, history.ids, row.expiresAt);
  });
  claims.hold(row.id);
  try {
    const sink = new StoringSink(client, new Recorder(stamp, first), keeperOf(row, key, parts));
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

async function newResponse(
  { id, caller, facts }: AcceptedRequest,
  wanted: Wanted,
  { clock, claims, sealing, retentionDays }: ResponseParts,
): Promise<{ row: StoredResponse; key: DataKey }> {
  const now = clock.now();
  const responseId = id.replace(/^gen-/, 'resp_');
  const { key, record } = await newDataKey(sealing, responseId);
  const row: StoredResponse = {
    id: responseId,
    organizationId: caller.organizationId,
    workspaceId: caller.workspaceId,
    keyHash: caller.keyHash,
    status: 'in_progress',
    previousId: wanted.previousId,
    conversationId: null,
    background: false,
    streamed: facts.stream,
    createdAt: new Date(now),
    expiresAt: new Date(now + retentionDays() * DAY_MS),
    claim: claims.id,
    claimedUntil: claims.until(),
    dataKey: record,
    bytes: 0,
  };
  return { row, key };
}

/** Of a response that no endpoint has answered yet. */
function stampOf({ id, format, document, facts, startedAt }: AcceptedRequest<ServedFormat>): Stamp {
  const created = Math.floor(startedAt / 1000);
  const echo = () => format.echo!(document);
  return { id, model: facts.model ?? '', provider: '', created, usage: 'none', echo };
}
