/** What calls that an upstream makes by itself within an answer can use and cost at most, besides the answer. Pure. */
import type { Price } from '../base/money.ts';
import { type Ceiling, ceilingOf, type Endpoint, type PricingOf } from '../catalog/index.ts';
import type { InnerCalls } from '../formats/conversation/format.ts';

/** A summary is no longer than this, or than the answer may be. */
const SUMMARY_TOKENS = 32_768;
/** An advice without `max_tokens`: twice what Anthropic documents as usual, thinking included. */
const ADVICE_TOKENS = 4_096;
/** Rounds of an answer with tools of the upstream. */
const MOST_ROUNDS = 10;

/** The answering call, and where it runs. */
export interface Around {
  endpoint: Endpoint;
  contextTokens: number;
  promptTokens: number;
  maxOutputTokens: number;
}

/** Calls of one model together. */
export interface InnerTokens {
  /** Absent: the model that answers. */
  model?: string;
  input: number;
  output: number;
}

/** Empty for none, which is the rule. */
export function innerTokens(inner: InnerCalls | undefined, around: Around): InnerTokens[] {
  if (inner === undefined) return [];
  return [...compactions(inner, around), ...advisors(inner, around)];
}

/** @param pricingOf of an advisor's model; where it is unknown the price of the answering model holds */
export function innerPrice(tokens: readonly InnerTokens[], own: Ceiling, pricingOf: PricingOf): Price {
  let sum = 0n;
  for (const { model, input, output } of tokens) {
    const pricing = model === undefined ? undefined : pricingOf(model);
    const { prompt, completion } = pricing === undefined ? own : ceilingOf(pricing);
    sum += BigInt(Math.ceil(input)) * prompt + BigInt(Math.ceil(output)) * completion;
  }
  return sum;
}

/** The trigger is looked at before each round: once, unless tools of the upstream let the conversation grow. */
function compactions({ compactsFrom, serverTools }: InnerCalls, around: Around): InnerTokens[] {
  const { promptTokens, maxOutputTokens, contextTokens, endpoint } = around;
  if (compactsFrom === undefined || (!serverTools && promptTokens < compactsFrom)) return [];
  const summary = Math.min(endpoint.maxCompletionTokens ?? contextTokens, Math.max(maxOutputTokens, SUMMARY_TOKENS));
  const rounds = serverTools ? MOST_ROUNDS : 1;
  return [{ input: rounds * (serverTools ? contextTokens : promptTokens), output: rounds * summary }];
}

/** Each advice is a call of the advisor and a further one of the answering model; both read all that was written before. */
function advisors({ advisors: all }: InnerCalls, { promptTokens, maxOutputTokens }: Around): InnerTokens[] {
  const uses = all.reduce((sum, each) => sum + each.uses, 0);
  const advice = Math.max(0, ...all.map((each) => each.maxOutputTokens ?? ADVICE_TOKENS));
  // The n-th call reads n pieces of advice; on average half of them.
  const read = promptTokens + maxOutputTokens + (advice * (uses + 1)) / 2;
  return all.flatMap((each) => [
    { model: each.model, input: each.uses * read, output: each.uses * (each.maxOutputTokens ?? ADVICE_TOKENS) },
    { input: each.uses * read, output: 0 },
  ]);
}
