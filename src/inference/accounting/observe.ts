/** Reports an attempt's outcome to the endpoint's statistics, the session and the request's row. */

import type { Endpoint, Measured } from '../../catalog/index.ts';
import type { UpstreamFailure } from '../../formats/conversation/failure.ts';
import type { ProviderResponse } from '../../spend/index.ts';
import type { AttemptOutcome, InferenceParts } from '../parts.ts';
import type { Route } from '../routing/index.ts';
import type { Task } from '../task.ts';
import type { Dispatched } from '../turns/dispatched-call.ts';
import { type Metered, onByok } from './meter.ts';

/**
 * @param firstOutputAt monotonic time of a stream's first visible output; null before it
 * @param whole the operation's answers arrive in one piece (embeddings, images), so the first token comes with the end
 */
export function observe(
  { candidate, attempt, startedAt }: Dispatched,
  outcome: Measured['outcome'],
  firstOutputAt: number | null,
  { clock, statistics }: InferenceParts,
  whole = false,
): void {
  const { usage, toolCalls } = attempt;
  const now = clock.monotonic();
  const seconds = (now - startedAt) / 1000;
  const firstAt = firstOutputAt ?? (whole && outcome === 'answered' ? now : null);
  const counted = outcome === 'answered' && usage !== undefined && usage.output > 0 && seconds > 0;
  statistics.record(candidate.endpoint.id, {
    outcome,
    latencyMs: firstAt === null ? null : firstAt - startedAt,
    throughput: counted ? usage.output / seconds : null,
    toolCalls: toolCalls?.made ?? 0,
    invalidToolCalls: toolCalls?.invalid ?? 0,
  });
}

/** The cost of an attempt so far, charged to credits or, for BYOK, to the customer's provider account. */
export function costOf({ candidate: { endpoint, byok }, attempt }: Dispatched, task: Task, complete: boolean): Metered {
  const metered = task.meter(endpoint, attempt, complete);
  return byok === undefined ? metered : onByok(metered);
}

/** A named session stays with the endpoint that answered; an unnamed prompt does once the provider has cached it. */
export function keepSession(
  { candidate, attempt }: Dispatched,
  { session }: Route,
  { sessions }: InferenceParts,
): void {
  if (session === undefined) return;
  const { usage } = attempt;
  const cached = usage !== undefined && usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h > 0;
  if (session.named || cached) sessions.keep(session, candidate.endpoint.id);
}

/** Enters an attempt that has ended in the list for the request's row. */
export function enterResponse(
  responses: ProviderResponse[],
  { candidate: { endpoint, byok }, attempt, startedAt }: Dispatched,
  { status, ended, acceptedAt }: AttemptEnd,
  { clock }: InferenceParts,
): void {
  const latency = Math.round(clock.monotonic() - startedAt);
  const response: ProviderResponse = {
    endpoint_id: endpoint.id,
    id: attempt.upstreamId,
    is_byok: byok !== undefined,
    latency,
    model_permaslug: endpoint.modelId,
    provider_name: endpoint.provider.name,
    status: status || null,
  };
  // Most requests have one attempt, whose row stays small.
  if (ended !== 'answered' || responses.length > 0) {
    response.started = Math.max(0, Math.round(clock.now() - acceptedAt) - latency);
    if (ended !== 'answered') response.ended = ended;
  }
  responses.push(response);
}

interface AttemptEnd {
  status: number | null;
  ended: AttemptOutcome;
  /** Wall time in ms when the request was accepted. */
  acceptedAt: number;
}

/** The log fields of a failed attempt. */
export function failureFields(
  generation: string,
  { provider, modelId }: Endpoint,
  { kind, status, message }: UpstreamFailure,
) {
  return { generation, provider: provider.id, model: modelId, kind, status, message };
}
