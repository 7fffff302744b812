/**
 * One inference request from acceptance to its row. The stages: `route` finds who may serve it, `dispatch` governs
 * (reserves, journals) and sends to one candidate after the other, `call` answers from the first that does, `meter`
 * and `record` enter what it cost.
 */
import type { SortMetric } from '../formats/conversation/preferences.ts';
import { answerError, asGatewayError } from './answer.ts';
import { findCached, wantsCache } from './cached/lookup.ts';
import { Replay } from './cached/replay.ts';
import { Call } from './call.ts';
import { ConversationTask } from './conversation.ts';
import { Abandoned } from './dispatch.ts';
import { listen } from './log-contents.ts';
import type { InferenceParts } from './parts.ts';
import { refuseDisabledTools, withDefaultModel } from './prescribed.ts';
import type { AcceptedRequest, InferenceRequest, SingleRequest } from './request.ts';
import { type Route, route, sessionKey } from './routing/index.ts';
import { SingleTask } from './single.ts';
import type { Task } from './task.ts';

/** A conversation. Resolves when it is answered and entered. Never rejects: whatever goes wrong is told to the client. */
export function serve(request: InferenceRequest, parts: InferenceParts): Promise<void> {
  listen(request, request.format.id, parts);
  return run(request, new ConversationTask(request, parts), parts);
}

/** The same for an operation with one public form: embeddings, rerank, images. */
export function serveSingle<Request, Answer>(
  request: SingleRequest<Request, Answer>,
  parts: InferenceParts,
): Promise<void> {
  listen(request, request.form.id, parts);
  return run(request, new SingleTask(request, parts), parts);
}

async function run(request: AcceptedRequest, task: Task, parts: InferenceParts): Promise<void> {
  try {
    refuseDisabledTools(request.caller, request.document);
    const route = routeOf(request, task, parts);
    const answer = wantsCache(request, task, parts) ? await findCached(request, task, route, parts) : undefined;
    const call = answer ? new Replay(request, task, answer, parts) : new Call(request, task, route, parts);
    parts.running.add(call);
    try {
      await call.run();
    } finally {
      parts.running.delete(call);
    }
  } catch (thrown) {
    if (thrown instanceof Abandoned) return;
    const error = asGatewayError(thrown);
    if (error.status === 500) parts.log.error('request failed', { generation: request.id, cause: thrown });
    answerError(request, task, error, undefined);
  }
}

/** Which endpoints may serve it, in order, by all that is set for its caller. */
export function routeOf(request: AcceptedRequest, task: Task, parts: InferenceParts): Route {
  const { caller, about, document } = request;
  const asked = withDefaultModel(request.asked, caller, task.apiType);
  const { health, credentials, statistics, sessions, random } = parts;
  return route(
    {
      asked,
      promptBytes: task.promptBytes,
      servedBy: (endpoint) => task.servedBy(endpoint),
      session: (model) =>
        sessionKey({
          keyId: caller.keyId,
          model,
          sessionId: asked.sessionId ?? about.sessionId,
          cacheKey: asked.cacheKey,
          body: document.bytes,
        }),
    },
    {
      ...{ health, credentials, statistics, sessions, random },
      catalog: parts.catalog(),
      policy: parts.policy(),
      defaultSort: caller.workspace.defaultProviderSort as SortMetric | null,
      maxCandidates: parts.limits.candidates,
    },
  );
}
