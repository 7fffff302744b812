/**
 * The order in which endpoints are tried. Criteria, the most important first: cooldown; the request's own order;
 * health; the wanted service tier; whether the prompt is likely to fit; the preferred latency and throughput; the sort
 * metric. Without a metric, load is balanced by price: an endpoint comes first with a probability proportional to the
 * inverse square of its price, and the fallbacks follow by the same rule.
 */
import type { EndpointFigures } from '../../catalog/index.ts';
import { type Cutoffs, PERCENTILES, type SortMetric } from '../../formats/conversation/preferences.ts';
import { isUnhealthy } from './health.ts';
import { type PreparedEndpoint, positionIn } from './prepared.ts';

export interface Wanted {
  /** Names that come first, in this order; empty for no order. */
  order: readonly string[];
  sort: SortMetric | undefined;
  /** Requests with tools prefer endpoints whose tool calls are valid. */
  tools: boolean;
  minThroughput: Cutoffs | null | undefined;
  /** Seconds. */
  maxLatency: Cutoffs | null | undefined;
  /** Estimated. */
  promptTokens: number;
}

/** The current state of the endpoints. */
export interface Live {
  figures(endpointId: string): EndpointFigures;
  /** Remaining cooldown in ms; 0 if not in cooldown. */
  cooldownMs(candidate: PreparedEndpoint): number;
  /** Rank of the endpoint's service tier; 0 is the best. */
  tier(candidate: PreparedEndpoint): number;
  /** A number between 0 and 1, exclusive: random, or constant for a session and endpoint. */
  fraction(endpointId: string): number;
}

interface Ranked<T> {
  candidate: T;
  /** Compared one after the other, lower first. */
  keys: readonly number[];
}

/** All candidates in the order in which they are tried. Ties keep their order. */
export function inOrder<T extends PreparedEndpoint>(
  candidates: readonly T[],
  wanted: Wanted,
  live: Live,
): readonly T[] {
  if (candidates.length < 2) return candidates;
  const highest = highestPrice(candidates);
  const ranked = candidates.map((candidate): Ranked<T> => {
    const figures = live.figures(candidate.endpoint.id);
    const keys = [
      live.cooldownMs(candidate),
      wanted.order.length === 0 ? 0 : positionIn(candidate.slugs, wanted.order),
      isUnhealthy(figures) ? 1 : 0,
      live.tier(candidate),
      mayNotFit(candidate, wanted.promptTokens) ? 1 : 0,
      preferenceRank(figures, wanted),
    ];
    addMetric(keys, candidate, figures, wanted, live, highest);
    return { candidate, keys };
  });
  return ranked.sort(compare).map(({ candidate }) => candidate);
}

function compare(a: Ranked<unknown>, b: Ranked<unknown>): number {
  for (let at = 0; at < a.keys.length; at++) {
    const left = a.keys[at]!;
    const right = b.keys[at]!;
    // Unknown figures are Infinity, and two infinities tie.
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

/** The prompt may not fit into the context. */
function mayNotFit({ endpoint: { contextLength } }: PreparedEndpoint, promptTokens: number): boolean {
  return contextLength !== null && promptTokens > contextLength;
}

// biome-ignore lint/complexity/useMaxParams: it runs for each endpoint of each request, so it takes no object.
function addMetric(
  keys: number[],
  { endpoint, price }: PreparedEndpoint,
  figures: EndpointFigures,
  wanted: Wanted,
  live: Live,
  highest: number,
): void {
  const sort = wanted.order.length === 0 ? wanted.sort : undefined;
  if (sort === 'price') keys.push(price);
  else if (sort === 'latency') keys.push(figures.latencyMs?.p50 ?? Number.POSITIVE_INFINITY);
  else if (sort === 'throughput') keys.push(-(figures.throughput?.p50 ?? Number.NEGATIVE_INFINITY));
  else if (sort === 'exacto') keys.push(-validCallRate(figures), -(figures.uptime30m ?? 100), price);
  else {
    if (wanted.tools) keys.push(-validCallRate(figures));
    keys.push(weightedKey(Number.isFinite(price) ? price : highest, live.fraction(endpoint.id)));
  }
}

/**
 * The sort key of a weighted random order; the lowest comes first. With keys of -ln(u) / w, where w is the inverse square
 * of the price, each key is the lowest with probability w / sum of all w, and likewise among the remaining ones. Free
 * endpoints come before all others.
 */
export function weightedKey(price: number, fraction: number): number {
  return price === 0 ? fraction - 2 : -Math.log(fraction) * price * price;
}

/** The highest known price, which stands in for unknown prices; 1 when no price is known. */
function highestPrice(candidates: readonly PreparedEndpoint[]): number {
  let highest = 0;
  for (const { price } of candidates) if (Number.isFinite(price) && price > highest) highest = price;
  return highest === 0 ? 1 : highest;
}

/** Every endpoint starts with this many assumed calls, nearly all valid, so that few calls cannot decide the order. */
const CREDITED_CALLS = 20;
const CREDITED_INVALID = 0.2;
/** Endpoints whose rates of valid calls fall into the same step tie. */
const VALID_RATE_STEPS = 50;

/** The rate of tool calls that a client could run, in steps of 2 % from 0 to 49. */
function validCallRate({ toolCalls1d, invalidToolCalls1d }: EndpointFigures): number {
  const share = 1 - (invalidToolCalls1d + CREDITED_INVALID) / (toolCalls1d + CREDITED_CALLS);
  return Math.floor(share * VALID_RATE_STEPS);
}

/** 0: known to meet the preference, 1: unknown, 2: known to miss it. */
function preferenceRank(figures: EndpointFigures, { minThroughput, maxLatency }: Wanted): number {
  if (minThroughput === undefined && maxLatency === undefined) return 0;
  const latency = cutoffsRank(maxLatency, figures.latencyMs, (is, cutoff) => is <= cutoff * 1000);
  const throughput = cutoffsRank(minThroughput, figures.throughput, (is, cutoff) => is >= cutoff);
  return Math.max(latency, throughput);
}

function cutoffsRank(
  cutoffs: Cutoffs | null | undefined,
  known: EndpointFigures['latencyMs'],
  holds: (is: number, cutoff: number) => boolean,
): number {
  if (cutoffs === null || cutoffs === undefined) return 0;
  const each = typeof cutoffs === 'number' ? { p50: cutoffs } : cutoffs;
  const requested = PERCENTILES.filter((name) => typeof each[name] === 'number');
  if (requested.length === 0) return 0;
  if (known === null) return 1;
  return requested.every((name) => holds(known[name], each[name]!)) ? 0 : 2;
}
