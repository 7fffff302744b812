/**
 * A request that a provider's batch interface will answer: governed and encoded as if it was sent now, and not sent. Its answer
 * is read later, maybe by another process (`settle.ts`).
 */
import { joinedBody } from '../../base/body.ts';
import { GatewayError } from '../../base/errors.ts';
import { atBatchPrice, type Endpoint } from '../../catalog/index.ts';
import { Uncarried } from '../../formats/conversation/losses.ts';
import { policyOf } from '../../guardrails/index.ts';
import type { BatchedCall } from '../../providers/index.ts';
import type { Reservation } from '../../spend/index.ts';
import { admit } from '../admission/admit.ts';
import { countRequest } from '../admission/rate-limits.ts';
import { RequestReservation } from '../admission/reservation.ts';
import type { Sink } from '../answer/sink.ts';
import { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import { type AcceptedRequest, isConversation } from '../request.ts';
import { type Candidate, targetOf } from '../routing/index.ts';
import { routeOf, taskOf } from '../serve.ts';
import type { AttemptOwner, Task } from '../task.ts';
import { gatewayToolsFor } from '../turns/turn-loop.ts';

export interface BatchableCall {
  /** The endpoint is at its batch price. */
  candidate: Candidate;
  call: BatchedCall;
  /**
   * Counts the request against rate limits and reserves its bound. Undefined: a budget does not cover it in addition to
   * what is reserved. Rejects with GatewayError 429.
   */
  reserve(): Promise<Reservation | undefined>;
}

/**
 * Undefined: no endpoint of the request has a batch interface for it. Rejects with GatewayError where the request itself would be
 * refused.
 */
export async function encodeForBatch(
  request: AcceptedRequest,
  parts: InferenceParts,
): Promise<BatchableCall | undefined> {
  // No provider runs plugins or tools of the gateway.
  if (request.plugins !== undefined) return undefined;
  // Until the answer is read, its preset may change or be gone, and what was asked could not be charged.
  if (request.presetId !== undefined) return undefined;
  const context = new RequestContext(request, NOWHERE, parts.clock);
  await admit(context, uncounted(parts));
  await parts.refresh?.();
  const { request: admitted } = context;
  const { facts } = admitted;
  const continues = facts.thread?.previousId !== undefined || facts.comparedId !== undefined;
  if (continues || (isConversation(admitted) && gatewayToolsFor(admitted, parts) !== undefined)) return undefined;
  const task = taskOf(context, parts);
  for (const each of routeOf(context, task, parts).candidates) {
    if (!hasBatches(each.endpoint) || keepsNothing(context.request, each.endpoint, parts)) continue;
    const candidate = atBatch(each);
    const service = candidate.endpoint.provider.kind.batches!;
    if (service.lacks?.(targetOf(candidate, parts.credentials.choose(candidate))) !== undefined) {
      // A batch does not move a request from the customer's credential to another account.
      if (each.byok !== undefined) return undefined;
      continue;
    }
    const call = await callOf(candidate, context, task, parts);
    if (call === undefined || !service.carries(call, context.request.about.headers)) continue;
    return { candidate, call, reserve: () => reserve(candidate, context, task, parts) };
  }
  return undefined;
}

/** Without rate limits: they count a request once it is certain that it goes out with a batch. */
export function uncounted(parts: InferenceParts): InferenceParts {
  const { rateLimits: _, ...rest } = parts;
  return rest;
}

/** Whether a batch interface exists for the endpoint at all. A service tier is another offering. */
export function hasBatches({ provider, tier }: Endpoint): boolean {
  return provider.kind.batches !== undefined && provider.batches !== false && tier === undefined;
}

export function atBatch(candidate: Candidate): Candidate {
  return { ...candidate, endpoint: atBatchPrice(candidate.endpoint) };
}

/** Providers keep the calls and results of batches, whatever they do with others. */
function keepsNothing({ caller, facts }: AcceptedRequest, { modelId }: Endpoint, parts: InferenceParts): boolean {
  return parts.accountPolicy().zdr || facts.provider.zdr === true || policyOf(caller).wantsZdr(modelId);
}

async function reserve(
  candidate: Candidate,
  context: RequestContext,
  task: Task,
  parts: InferenceParts,
): Promise<Reservation | undefined> {
  await countRequest(context, parts);
  const reservation = new RequestReservation(context, task, parts);
  let capped: number | undefined;
  try {
    capped = await reservation.hold(candidate);
  } catch (error) {
    reservation.release();
    if (error instanceof GatewayError && error.type === 'payment_required') return undefined;
    throw error;
  } finally {
    // The provider runs it within a day; it counts now.
    context.rateLimitHold?.settle(context.rateLimitHold.heldTokens);
  }
  if (capped === undefined) return reservation.reservation;
  // A smaller output than asked for would fit; the whole one may, later.
  reservation.release();
  return undefined;
}

/** The call that the attempt would make. */
async function callOf(
  candidate: Candidate,
  { request }: RequestContext,
  task: Task,
  parts: InferenceParts,
): Promise<BatchedCall | undefined> {
  const { endpoint } = candidate;
  const never = new AbortController();
  await task.prepare?.(endpoint, {
    signal: () => never.signal,
    target: () => ({
      target: targetOf(candidate, parts.credentials.choose(candidate)),
      byokId: candidate.byok?.id ?? null,
    }),
  });
  const estimate = task.estimate(endpoint);
  const stamp = {
    id: request.id,
    model: endpoint.modelId,
    provider: endpoint.provider.name,
    created: Math.floor(request.startedAt / 1000),
    promptTokens: estimate.promptTokens,
    usage: 'finish' as const,
    echo: task.echo,
  };
  let call: BatchedCall | undefined;
  try {
    const user = parts.hashUser(request.caller, request.facts.user);
    const attempt = task.attempt(endpoint, { stamp, owner: NOBODY, user });
    attempt.start(({ format, path, body }) => {
      call = { format, path, body: Buffer.from(joinedBody(body)), model: endpoint.upstreamId };
      return { pause() {}, resume() {}, abort() {} };
    });
    attempt.abort();
  } catch (error) {
    if (!(error instanceof Uncarried)) throw error;
  }
  return call;
}

const NOBODY: AttemptOwner = {
  attemptAdvanced() {},
  attemptAccepted() {},
  attemptCompleted() {},
  attemptFailed() {},
  attemptBlocked() {},
  fallsBack: () => false,
};

const NOWHERE: Sink = {
  closed: false,
  reply() {},
  open() {},
  write: () => true,
  end() {},
  onDrain() {},
  onClose() {},
};
