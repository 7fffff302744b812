/** The lowest possible cost of a request's prompt, to decide whether a batch is accepted. */
import type { Price } from '../../base/money.ts';
import type { Endpoint } from '../../catalog/index.ts';
import type { Sink } from '../answer/sink.ts';
import { RequestContext } from '../context.ts';
import type { InferenceParts } from '../parts.ts';
import type { AcceptedRequest } from '../request.ts';
import type { Candidate } from '../routing/index.ts';
import { MAX_BYTES_PER_TOKEN } from '../routing/rules.ts';
import { routeOf, taskOf } from '../serve.ts';
import { atBatch, hasBatches } from './prepare.ts';

/** Of one prompt token, in 10^-18 USD. */
export interface LeastPrice {
  /** In credits: zero if a BYOK credential may serve it. */
  credit: Price;
  /** In credits or on a BYOK credential. */
  any: Price;
}

export interface PromptTerms extends LeastPrice {
  /** A prompt with more bytes is too long for every endpoint. */
  mostBytes: number;
}

/** At the cheapest endpoint. @throws GatewayError that routing refuses the request with: no endpoint that the rules allow */
export async function promptTerms(request: AcceptedRequest, sink: Sink, parts: InferenceParts): Promise<PromptTerms> {
  const context = new RequestContext(request, sink, parts.clock);
  await parts.refresh?.();
  const { candidates } = routeOf(context, taskOf(context, parts), parts);
  return {
    credit: least(candidates.map((each) => (each.byok === undefined ? promptPrice(each) : 0n))),
    any: least(candidates.map(promptPrice)),
    mostBytes: Math.max(
      ...candidates.map(({ endpoint }) => (endpoint.contextLength ?? Number.POSITIVE_INFINITY) * MAX_BYTES_PER_TOKEN),
    ),
  };
}

/** A lower bound, as routing assumes it. */
export function leastTokens(bytes: number): number {
  return Math.floor(bytes / MAX_BYTES_PER_TOKEN);
}

function promptPrice(candidate: Candidate): Price {
  const { endpoint } = candidate;
  return lowestPrice(hasBatches(endpoint) ? atBatch(candidate).endpoint : endpoint);
}

/** Zero if it is unknown. */
function lowestPrice({ pricing }: Endpoint): Price {
  if (pricing === null) return 0n;
  return least([pricing.prompt, ...(pricing.overrides ?? []).map(({ prices }) => prices.prompt ?? pricing.prompt)]);
}

function least(prices: readonly Price[]): Price {
  let lowest = prices[0] ?? 0n;
  for (const price of prices) if (price < lowest) lowest = price;
  return lowest;
}
