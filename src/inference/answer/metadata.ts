/** The routing metadata of a response (`svc_metadata`). Pure. */

import { stagesOf } from '../admission/guardrails.ts';
import type { RequestContext } from '../context.ts';
import type { PipelineStage } from '../plugins/plugin.ts';
import type { Candidate, Route } from '../routing/index.ts';
import type { FailedAttempt } from '../turns/verdict.ts';

interface RoutingState {
  /** The candidate tried last. */
  candidate: Candidate | undefined;
  /** True if that candidate gave the answer, or the part of it that exists. */
  serves: boolean;
  /** The number of that attempt, from 1; 0 before the first. */
  attempt: number;
  failed: readonly FailedAttempt[];
  /** From the upstream dispatch to now; null before it. */
  generationMs: number | null;
  /** What server tools did; undefined if none was called. */
  tools: PipelineStage | undefined;
}

export function routingMetadata(
  { request, hits, stages }: RequestContext,
  route: Route,
  state: RoutingState,
): Record<string, unknown> {
  const { attempt, failed, generationMs } = state;
  const served = state.serves ? state.candidate : undefined;
  return {
    requested: route.requested,
    strategy: route.strategy,
    region: request.about.region,
    attempt,
    is_byok: state.candidate?.byok !== undefined,
    endpoints: {
      total: route.candidates.length,
      available: route.candidates.map((candidate) => ({
        model: candidate.endpoint.modelId,
        provider: candidate.endpoint.provider.name,
        selected: candidate === served,
      })),
    },
    ...(failed.length > 0 && {
      attempts: failed.map(({ modelId, providerName, failure }) => ({
        model: modelId,
        provider: providerName,
        status: failure.status ?? 0,
      })),
    }),
    ...(generationMs !== null && { generation_time: Math.round(generationMs) }),
    ...pipelineOf(hits, route, state.tools === undefined ? stages : [...(stages ?? []), state.tools]),
    summary: summaryOf(route, served, failed.length),
  };
}

function pipelineOf(
  hits: RequestContext['hits'],
  { router }: Route,
  stages: RequestContext['stages'],
): { pipeline?: readonly object[] } {
  if (hits === undefined && router === undefined && stages === undefined) return {};
  return { pipeline: [...stagesOf(hits ?? []), ...(router ? [router.stage] : []), ...(stages ?? [])] };
}

function summaryOf(route: Route, served: Candidate | undefined, failures: number): string {
  const after = failures === 0 ? '' : ` after ${failures} failed ${failures === 1 ? 'attempt' : 'attempts'}`;
  if (served === undefined)
    return `no endpoint of ${route.requested} ${failures === 0 ? 'was tried' : 'answered'}${after}`;
  const { modelId, provider } = served.endpoint;
  return `${modelId} by ${provider.name}, 1 of ${route.candidates.length}${after}`;
}
