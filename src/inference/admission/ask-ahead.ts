/** For requests that are stored now and run later: checks limits and budgets first, so that no request is stored in vain. */
import { GatewayError } from '../../base/errors.ts';
import { WholeSink } from '../answer/whole-sink.ts';
import { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { AcceptedRequest } from '../request.ts';
import type { Candidate } from '../routing/index.ts';
import { routeOf, taskOf } from '../serve.ts';
import { countRequest } from './rate-limits.ts';
import { RequestReservation } from './reservation.ts';

/**
 * Counts the request against rate limits, and checks that an endpoint may serve it and that budgets cover it; nothing stays reserved.
 * The request then runs with `countedAhead`. Resolves with headers for its client.
 * @throws GatewayError as the request itself would be refused
 */
export async function askAhead(
  request: AcceptedRequest,
  parts: InferenceParts,
): Promise<Readonly<Record<string, string>> | undefined> {
  const context = new RequestContext(request, new WholeSink(), parts.clock);
  try {
    await countRequest(context, parts);
    await parts.refresh?.();
    const task = taskOf(context, parts);
    // Plugins, which have not run yet, may make the prompt shorter.
    const promptBytes = request.plugins === undefined ? task.promptBytes : 0;
    await holdOne(routeOf(context, task, parts, promptBytes).candidates, new RequestReservation(context, task, parts));
    return context.headers;
  } finally {
    context.rateLimitHold?.settle(0);
    context.end();
  }
}

/** At least one of several candidates must be within the limits. */
async function holdOne(candidates: readonly Candidate[], reservation: RequestReservation): Promise<void> {
  let refusal: GatewayError | undefined;
  try {
    for (const candidate of candidates) {
      try {
        await reservation.hold(candidate);
        return;
      } catch (error) {
        if (!(error instanceof GatewayError) || error.status >= 500) throw error;
        refusal ??= error;
      }
    }
    if (refusal !== undefined) throw refusal;
  } finally {
    reservation.release();
  }
}
