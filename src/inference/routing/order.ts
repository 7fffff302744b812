/**
 * In which order endpoints are tried (wire/chat.md, "Details"). From the most to the least important: the caller's own
 * order; health; the wanted service tier; whether the prompt is likely to fit; the preferred latency and throughput; then
 * the metric that is sorted by. Without one the load is balanced: the cheaper an endpoint, the likelier it comes first, by
 * the inverse square of its price, and the others follow as its fallbacks by the same rule.
 */
import type { EndpointFigures } from '../../catalog/index.ts';
import { type Cutoffs, PERCENTILES, type SortMetric } from '../../formats/conversation/preferences.ts';
import { isAiling } from './health.ts';
import { type PreparedEndpoint, placeIn } from './prepared.ts';

export interface Wanted {
  /** Names that come first, in this order; empty: none. */
  order: readonly string[];
  sort: SortMetric | undefined;
  /** Requests with tools go where tool calls are sound. */
  tools: boolean;
  minThroughput: Cutoffs | null | undefined;
  /** Seconds. */
  maxLatency: Cutoffs | null | undefined;
  /** Estimated. */
  promptTokens: number;
}

/** What is known of the endpoints at this moment. */
export interface Live {
  figures(endpointId: string): EndpointFigures;
  /** How long it rests after a failure, ms; 0: it does not. */
  rest(candidate: PreparedEndpoint): number;
  /** Place of the endpoint's service tier; 0 is the best. */
  tier(candidate: PreparedEndpoint): number;
  /** From 0 to 1, neither of them: chance, or for a session always the same for this endpoint. */
  fraction(endpointId: string): number;
}

interface Ranked<T> {
  candidate: T;
  /** Compared one after the other, the lower first. */
  keys: readonly number[];
}

/** All candidates, the first to be tried first. A total order: equals stay as they are. */
export function inOrder<T extends PreparedEndpoint>(
  candidates: readonly T[],
  wanted: Wanted,
  live: Live,
): readonly T[] {
  if (candidates.length < 2) return candidates;
  const dearest = dearestOf(candidates);
  const ranked = candidates.map((candidate): Ranked<T> => {
    const figures = live.figures(candidate.endpoint.id);
    const keys = [
      live.rest(candidate),
      wanted.order.length === 0 ? 0 : placeIn(candidate.slugs, wanted.order),
      isAiling(figures) ? 1 : 0,
      live.tier(candidate),
      isTight(candidate, wanted.promptTokens) ? 1 : 0,
      preferencePlace(figures, wanted),
    ];
    addMetric(keys, candidate, figures, wanted, live, dearest);
    return { candidate, keys };
  });
  return ranked.sort(compare).map(({ candidate }) => candidate);
}

function compare(a: Ranked<unknown>, b: Ranked<unknown>): number {
  for (let at = 0; at < a.keys.length; at++) {
    const left = a.keys[at]!;
    const right = b.keys[at]!;
    // Infinity stands for what is not known, and two of it are equal.
    if (left !== right) return left < right ? -1 : 1;
  }
  return 0;
}

/** The prompt may fit, or may not. */
function isTight({ endpoint: { contextLength } }: PreparedEndpoint, promptTokens: number): boolean {
  return contextLength !== null && promptTokens > contextLength;
}

function addMetric(
  keys: number[],
  { endpoint, price }: PreparedEndpoint,
  figures: EndpointFigures,
  wanted: Wanted,
  live: Live,
  dearest: number,
): void {
  const sort = wanted.order.length === 0 ? wanted.sort : undefined;
  if (sort === 'price') keys.push(price);
  else if (sort === 'latency') keys.push(figures.latencyMs?.p50 ?? Number.POSITIVE_INFINITY);
  else if (sort === 'throughput') keys.push(-(figures.throughput?.p50 ?? Number.NEGATIVE_INFINITY));
  else if (sort === 'exacto') keys.push(-soundness(figures), -(figures.uptime30m ?? 100), price);
  else {
    if (wanted.tools) keys.push(-soundness(figures));
    keys.push(lot(Number.isFinite(price) ? price : dearest, live.fraction(endpoint.id)));
  }
}

/**
 * The lowest lot is drawn first. Among lots of -ln(u) / w with w the inverse square of the price, each is the lowest with
 * the probability w / sum of all w, and so on among the rest. What is free is drawn before everything else.
 */
export function lot(price: number, fraction: number): number {
  return price === 0 ? fraction - 2 : -Math.log(fraction) * price * price;
}

/** What is not known is taken for as dear as the dearest; 1 when no price is known. */
function dearestOf(candidates: readonly PreparedEndpoint[]): number {
  let dearest = 0;
  for (const { price } of candidates) if (Number.isFinite(price) && price > dearest) dearest = price;
  return dearest === 0 ? 1 : dearest;
}

/** Calls that an endpoint is credited with before it has made any, nearly all of them sound. */
const CREDITED_CALLS = 20;
const CREDITED_INVALID = 0.2;
/** Endpoints whose share of sound calls differs by less are equally good. */
const SOUNDNESS_STEPS = 50;

/** The share of tool calls that a client could run, in steps of 2 % from 0 to 49. */
function soundness({ toolCalls1d, invalidToolCalls1d }: EndpointFigures): number {
  const share = 1 - (invalidToolCalls1d + CREDITED_INVALID) / (toolCalls1d + CREDITED_CALLS);
  return Math.floor(share * SOUNDNESS_STEPS);
}

/** 0: known to be as fast as preferred, 1: not known, 2: known to be slower. */
function preferencePlace(figures: EndpointFigures, { minThroughput, maxLatency }: Wanted): number {
  if (minThroughput === undefined && maxLatency === undefined) return 0;
  const latency = cutoffsPlace(maxLatency, figures.latencyMs, (is, cutoff) => is <= cutoff * 1000);
  const throughput = cutoffsPlace(minThroughput, figures.throughput, (is, cutoff) => is >= cutoff);
  return Math.max(latency, throughput);
}

function cutoffsPlace(
  cutoffs: Cutoffs | null | undefined,
  known: EndpointFigures['latencyMs'],
  holds: (is: number, cutoff: number) => boolean,
): number {
  if (cutoffs === null || cutoffs === undefined) return 0;
  const each = typeof cutoffs === 'number' ? { p50: cutoffs } : cutoffs;
  const given = PERCENTILES.filter((name) => typeof each[name] === 'number');
  if (given.length === 0) return 0;
  if (known === null) return 1;
  return given.every((name) => holds(known[name], each[name]!)) ? 0 : 2;
}
