/**
 * One inference request from acceptance to its row: the table of contents. The stages, in order:
 *
 * 1. `admission` counts the request against rate limits and applies the guardrail filters.
 * 2. `routing` ranks the endpoints that may serve it.
 * 3. `cache` serves a repeated request that opted in.
 * 4. `call` tries one endpoint after the other: `dispatch` reserves, journals and sends; the first answer goes out.
 * 5. `accounting` turns its usage into cost and the row.
 */
import type { Caller } from '../access/index.ts';
import type { Endpoint } from '../catalog/index.ts';
import type { ServedFormat } from '../formats/conversation/format.ts';
import type { SortMetric } from '../formats/conversation/preferences.ts';
import { policyOf } from '../guardrails/index.ts';
import type { RateLimitHold } from '../rate-limits/index.ts';
import { metadataOfRefusal, type Reader, withRequestFilters } from './admission/guardrails.ts';
import { attachRateLimitHold, countRequest } from './admission/rate-limits.ts';
import { refuseDisabledTools, withDefaultModel } from './admission/workspace-rules.ts';
import { answerError, asGatewayError } from './answer/error-response.ts';
import { listen } from './answer/log-contents.ts';
import { findCached, wantsCache } from './cache/lookup.ts';
import { Replay } from './cache/replay.ts';
import { Call } from './call.ts';
import { ConversationTask } from './conversation.ts';
import type { InferenceParts } from './parts.ts';
import type { AcceptedRequest, InferenceRequest, SingleRequest } from './request.ts';
import { type CallerByok, type Route, route, sessionKey } from './routing/index.ts';
import { SingleTask } from './single.ts';
import type { Task } from './task.ts';
import { Abandoned } from './turns/dispatch.ts';

/** Serves a conversation. Resolves when the row is settled. Never rejects: every error is sent to the client. */
export function serve(request: InferenceRequest, parts: InferenceParts): Promise<void> {
  const { format } = request;
  return behindGuardrails(request, format, readerOf(format), parts, (guarded) => {
    listen(guarded, format, parts);
    return run(guarded, new ConversationTask(guarded, parts), parts);
  });
}

/** Reads redacted conversations. */
export function readerOf(format: ServedFormat): Reader {
  return { texts: format.texts, facts: (document) => format.facts(document.value) };
}

/** The same for an operation with a single public format: embeddings, rerank, images. */
export function serveSingle<Request, Answer>(
  request: SingleRequest<Request, Answer>,
  parts: InferenceParts,
): Promise<void> {
  const { form } = request;
  return behindGuardrails(request, form, form, parts, (guarded) => {
    listen(guarded, form, parts);
    return run(guarded, new SingleTask(guarded, parts), parts);
  });
}

/** Applies rate limits and guardrails first: later stages see only admitted, already redacted requests. */
function behindGuardrails<R extends AcceptedRequest>(
  request: R,
  form: Pick<Task, 'encodeFailure'>,
  reader: Reader,
  parts: InferenceParts,
  run: (request: R) => Promise<void>,
): Promise<void> {
  const refused = (thrown: unknown): void => refuse(request, form, thrown, parts);
  const goOn = (hold: RateLimitHold | undefined): Promise<void> => {
    let admitted: R;
    try {
      if (hold !== undefined) attachRateLimitHold(request, hold);
      admitted = withRequestFilters(request, reader, parts);
    } catch (thrown) {
      refused(thrown);
      return DONE;
    }
    const done = run(admitted);
    // Does nothing if the request's row has settled the hold already.
    return hold === undefined ? done : done.finally(() => hold.settle(0));
  };
  let counted: RateLimitHold | undefined | Promise<RateLimitHold>;
  try {
    counted = countRequest(request.caller, request.startedAt, parts.rateLimits, parts.clock);
  } catch (thrown) {
    refused(thrown);
    return DONE;
  }
  return counted instanceof Promise ? counted.then(goOn, refused) : goOn(counted);
}

const DONE = Promise.resolve();

function refuse(
  request: AcceptedRequest,
  form: Pick<Task, 'encodeFailure'>,
  thrown: unknown,
  parts: InferenceParts,
): void {
  const error = asGatewayError(thrown);
  if (error.status === 500) parts.log.error('request failed', { generation: request.id, cause: thrown });
  answerError(request, form, error, metadataOfRefusal(request, thrown, parts.metadataKey));
}

async function run(request: AcceptedRequest, task: Task, parts: InferenceParts): Promise<void> {
  try {
    refuseDisabledTools(request.caller, request.document);
    const refreshing = parts.refresh?.();
    if (refreshing !== undefined) await refreshing;
    let route = routeOf(request, task, parts);
    if (request.facts.comparedId !== undefined) await parts.threads.compare(request);
    if (request.facts.thread !== undefined) route = await parts.threads.route(route, request);
    const answer = wantsCache(request, task, parts) ? await findCached(request, task, route, parts) : undefined;
    const call = answer ? new Replay(request, task, answer, parts) : new Call(request, task, route, parts);
    const slot = parts.running.add(call);
    try {
      await call.run();
    } finally {
      parts.running.delete(call, slot);
    }
  } catch (thrown) {
    if (thrown instanceof Abandoned) return;
    refuse(request, task, thrown, parts);
  }
}

/** The endpoints that may serve the request, in order, under all rules of its caller. */
export function routeOf(request: AcceptedRequest, task: Task, parts: InferenceParts): Route {
  const { caller, about, document } = request;
  const facts = withDefaultModel(request.facts, caller, task.apiType);
  const { health, credentials, statistics, sessions, random } = parts;
  return route(
    {
      facts,
      promptBytes: task.promptBytes,
      servedBy: (endpoint) => task.servedBy(endpoint),
      session: (model) =>
        sessionKey({
          keyId: caller.keyId,
          model,
          sessionId: facts.sessionId ?? about.sessionId,
          cacheKey: facts.cacheKey,
          body: document.bytes,
        }),
    },
    {
      ...{ health, credentials, statistics, sessions, random },
      catalog: parts.catalog(),
      policy: parts.policy(),
      guardrails: policyOf(caller),
      byok: byokOf(caller, parts),
      defaultSort: caller.workspace.defaultProviderSort as SortMetric | null,
      maxCandidates: parts.limits.candidates,
    },
  );
}

function byokOf(caller: Caller, { byokCredentials }: InferenceParts): CallerByok | undefined {
  if (!byokCredentials?.any) return undefined;
  const idsOf = ({ provider }: Endpoint) => ({ id: provider.id, kindId: provider.kind.id });
  return {
    of: (endpoint) => byokCredentials.of(caller, idsOf(endpoint), endpoint.modelId),
    closes: (endpoint) => byokCredentials.closes(caller, idsOf(endpoint), endpoint.modelId),
    unopened: (endpoint) => byokCredentials.unopened(caller, idsOf(endpoint), endpoint.modelId),
  };
}
