/**
 * One inference request from acceptance to its row: the table of contents. The stages, in order:
 *
 * 1. `admission` counts the request against rate limits and finds the stored files that it names, then guardrail filters
 *    refuse, redact or flag it.
 * 2. `answer/log-contents` listens to the answer if its content is logged, `answer/export-generation` if its workspace has
 *    destinations.
 * 3. `plugins` that the request names change it.
 * 4. `routing` ranks the endpoints that may serve it. Then other services list their tools, and calls run that the client
 *    has approved or that waited for it. `before-turns.ts` waits for these and for plugins. If the calls wait again, the
 *    answer consists of them (`own-answer.ts`).
 * 5. `cache` replays the answer to an identical request that opted in.
 * 6. `turns` reserve, send and read; `answer` writes to the client; `accounting` turns usage into cost and the row.
 */
import type { Caller } from '../access/index.ts';
import type { GatewayError } from '../base/errors.ts';
import type { Endpoint } from '../catalog/index.ts';
import type { Closing } from '../formats/conversation/format.ts';
import type { SortMetric } from '../formats/conversation/preferences.ts';
import { policyOf } from '../guardrails/index.ts';
import { enterUnserved, needsRow } from './accounting/unserved.ts';
import { admit } from './admission/admit.ts';
import { metadataOfRefusal } from './admission/guardrails.ts';
import { withDefaultModel } from './admission/workspace-rules.ts';
import { answerError, asGatewayError, unservedStamp } from './answer/error-response.ts';
import { exportGeneration } from './answer/export-generation.ts';
import { logContents } from './answer/log-contents.ts';
import type { Sink } from './answer/sink.ts';
import { EarlyWork, holdFirstTurn } from './before-turns.ts';
import { findCached, wantsCache } from './cache/lookup.ts';
import { Replay } from './cache/replay.ts';
import { Call } from './call.ts';
import { type Admission, RequestContext } from './context.ts';
import { ConversationTask } from './conversation-task.ts';
import { DirectTask } from './direct-task.ts';
import { sendOwnAnswer } from './own-answer.ts';
import type { InferenceParts } from './parts.ts';
import { runPlugins } from './plugins/index.ts';
import type { Paying, RequestedPlugin } from './plugins/plugin.ts';
import { type AcceptedRequest, type ConversationRequest, type DirectRequest, isConversation } from './request.ts';
import { type CallerByok, continuing, type Route, route, sessionKey } from './routing/index.ts';
import type { Task } from './task.ts';
import { withOwnCode } from './tools/index.ts';
import { Abandoned } from './turns/dispatch.ts';

/** Serves an accepted request. Resolves when its row is settled. Never rejects: every error is sent to the sink. */
export function serve(request: AcceptedRequest, sink: Sink, parts: InferenceParts): Promise<void> {
  return serveInContext(new RequestContext(request, sink, parts.clock), parts);
}

/** The same for a caller that adds listeners of the answer to the context first. */
export async function serveInContext(context: RequestContext, parts: InferenceParts): Promise<void> {
  try {
    const admitting = admit(context, parts, payingOf(context, parts));
    if (admitting !== undefined) await admitting;
    logContents(context, parts);
    exportGeneration(context, parts);
    const refreshing = parts.refresh?.();
    if (refreshing !== undefined) await refreshing;
    const { plugins } = context.request;
    if (plugins !== undefined) await changeBy(plugins, context as RequestContext<ConversationRequest>, parts);
    if (isConversation(context.request)) withOwnCode(context as RequestContext<ConversationRequest>, parts);
    const task = taskOf(context, parts);
    let route = routeOf(context, task, parts);
    if (context.continues !== undefined) route = continuing(route, context.continues);
    if (needsThreads(context.request)) route = await parts.threads.route(route, context);
    const { discover } = task;
    if (discover !== undefined) await new EarlyWork(context, parts, serve).run(discover);
    context.request.about.trace?.passed('admit');
    const { continueCalls } = task;
    if (continueCalls !== undefined) {
      // They have side effects, so they wait until the first turn is reserved.
      const own = await new EarlyWork(context, parts, serve).run((running) =>
        holdFirstTurn(context, task, route, parts).then(() => continueCalls(running)),
      );
      if (own !== undefined) {
        await sendOwnAnswer(context as RequestContext<ConversationRequest>, task, own, parts);
        return;
      }
    }
    const cached = wantsCache(context, task, parts) ? await findCached(context, route, parts) : undefined;
    await answerWith(
      cached ? new Replay(context, task, cached, parts) : new Call(context, task, route, parts, serve),
      parts,
    );
  } catch (thrown) {
    if (needsRow(context, thrown)) await entered(context, thrown, parts);
    if (!(thrown instanceof Abandoned)) refuse(context, thrown, parts);
  } finally {
    if (needsRow(context, undefined)) await entered(context, undefined, parts);
    // Both do nothing if the request's row has settled them already.
    context.rateLimitHold?.settle(0);
    context.prepaid?.reservation.release();
    context.end();
  }
}

/** A request that is refused is refused, even if its row cannot be written. */
async function entered(context: RequestContext, thrown: unknown, parts: InferenceParts): Promise<void> {
  await enterUnserved(context, taskOf(context, parts), thrown, parts.spend).catch((cause: unknown) =>
    parts.log.warn('cannot enter the row of a request', { generation: context.request.id, cause }),
  );
}

/** The paid work that a step of admission may do. */
function payingOf(context: RequestContext, parts: InferenceParts): Paying | undefined {
  if (context.request.plugins === undefined) return undefined;
  const leaving = new AbortController();
  context.sink.onClose(() => leaving.abort());
  return {
    signal: leaving.signal,
    get spending() {
      return context.payingForTools(parts);
    },
  };
}

function changeBy(
  plugins: readonly RequestedPlugin[],
  context: RequestContext<ConversationRequest>,
  parts: InferenceParts,
): Promise<void> {
  const candidates = () => routeOf(context, taskOf(context, parts), parts, 0).candidates;
  return new EarlyWork(context, parts, serve).run((early) =>
    runPlugins(plugins, { context, parts, early, candidates }),
  );
}

export function taskOf(context: RequestContext, parts: InferenceParts): Task {
  return isConversation(context.request)
    ? new ConversationTask(context as RequestContext<ConversationRequest>, parts)
    : new DirectTask(context as RequestContext<DirectRequest>, parts);
}

async function answerWith(call: Call | Replay, { inFlight }: InferenceParts): Promise<void> {
  const slot = inFlight.add(call);
  try {
    await call.run();
  } finally {
    inFlight.delete(call, slot);
  }
}

function refuse(context: RequestContext, thrown: unknown, parts: InferenceParts): void {
  const error = asGatewayError(thrown);
  if (error.status === 500) parts.log.error('request failed', { generation: context.request.id, cause: thrown });
  const metadata = metadataOfRefusal(context.request, thrown, parts.metadataKey);
  if (context.onlyKeptAlive) endWith(error, context, metadata);
  else answerError(context, error, metadata);
}

/** For a stream that was opened to keep it alive, while plugins or tools worked. */
function endWith(error: GatewayError, { request, sink }: RequestContext, metadata: Closing['metadata']): void {
  if (sink.closed || !isConversation(request)) return;
  const encoder = request.format.encoder(unservedStamp(request));
  sink.write(encoder.failure(error, metadata ? { metadata } : {}));
  sink.end();
}

function needsThreads({ facts }: AcceptedRequest): boolean {
  return facts.thread !== undefined || facts.comparedId !== undefined;
}

/**
 * The endpoints that may serve the request, in order, under all rules of its caller.
 * @param promptBytes size that has to fit into their contexts
 */
export function routeOf(
  { request }: Admission,
  task: Task,
  parts: InferenceParts,
  promptBytes: number = task.promptBytes,
): Route {
  const { caller, about, document } = request;
  const facts = withDefaultModel(request.facts, caller, task.apiType);
  return route(
    {
      facts,
      accepted: request,
      promptBytes,
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
      health: parts.health,
      credentials: parts.credentials,
      statistics: parts.statistics,
      sessions: parts.sessions,
      routers: parts.routers,
      ...(parts.fallbacksOf && { fallbacksOf: parts.fallbacksOf }),
      random: parts.random,
      catalog: parts.catalog(),
      accountPolicy: parts.accountPolicy(),
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
    undecrypted: (endpoint) => byokCredentials.undecrypted(caller, idsOf(endpoint), endpoint.modelId),
  };
}
