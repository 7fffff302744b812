/**
 * Bounds what the calls that an upstream makes within an answer can use and cost, in addition to the answer itself.
 * Pure.
 */
import type { Price } from '../../base/money.ts';
import { type Ceiling, ceilingOf, type Endpoint, type PricingOf } from '../../catalog/index.ts';
import type { InnerCalls, UpstreamWork } from '../../formats/conversation/format.ts';

/** The most tokens of a summary, unless the answer may be longer. */
const SUMMARY_TOKENS = 32_768;
/** Advice without `max_tokens`: twice the usual length that Anthropic documents, thinking included. */
const ADVICE_TOKENS = 4_096;
/** OpenAI counts about 6,300 tokens for its largest and finest image, and less for one that it reads. */
const IMAGE_TOKENS = 8_192;
/** No service makes larger images with a tool. */
const IMAGE_MEGAPIXELS = 4;
/** The most rounds of an answer with the upstream's own tools. */
const MAX_ROUNDS = 10;

/** The answering call and its limits. */
interface OuterCall {
  endpoint: Endpoint;
  contextTokens: number;
  promptTokens: number;
  maxOutputTokens: number;
}

/** The calls of one model, added up. */
export interface InnerTokens {
  /** Absent for the answering model. */
  model?: string;
  input: number;
  output: number;
}

/** Empty without inner calls, the usual case. */
export function innerTokens(inner: InnerCalls | undefined, outer: OuterCall): InnerTokens[] {
  if (inner === undefined) return [];
  return [...compactions(inner, outer), ...advisors(inner, outer)];
}

/** @param pricingOf price of an advisor's model; if unknown, the answering model's price is used */
export function innerPrice(tokens: readonly InnerTokens[], own: Ceiling, pricingOf: PricingOf): Price {
  let sum = 0n;
  for (const { model, input, output } of tokens) {
    const { prompt, completion } = ceilingFor(model, own, pricingOf);
    sum += BigInt(Math.ceil(input)) * prompt + BigInt(Math.ceil(output)) * completion;
  }
  return sum;
}

/**
 * The images that a tool of the upstream makes: each by its tokens or by piece, whichever the service counts.
 * @param pricingOf price of the model that makes them, as in `innerPrice`
 */
export function imagesPrice(work: UpstreamWork | undefined, own: Ceiling, pricingOf: PricingOf): Price {
  if (work === undefined || work.images === 0) return 0n;
  const { prompt, completion, outputImage, outputMegapixel } = ceilingFor(work.imageModel, own, pricingOf);
  const byTokens = BigInt(IMAGE_TOKENS) * (prompt + completion);
  return BigInt(work.images) * (byTokens + outputImage + BigInt(IMAGE_MEGAPIXELS) * outputMegapixel);
}

function ceilingFor(model: string | undefined, own: Ceiling, pricingOf: PricingOf): Ceiling {
  const pricing = model === undefined ? undefined : pricingOf(model);
  return pricing === undefined ? own : ceilingOf(pricing);
}

/** The trigger is checked before each round: once, unless the upstream's own tools let the conversation grow. */
function compactions({ compactsFrom, serverTools }: InnerCalls, outer: OuterCall): InnerTokens[] {
  const { promptTokens, maxOutputTokens, contextTokens, endpoint } = outer;
  if (compactsFrom === undefined || (!serverTools && promptTokens < compactsFrom)) return [];
  const summary = Math.min(endpoint.maxCompletionTokens ?? contextTokens, Math.max(maxOutputTokens, SUMMARY_TOKENS));
  const rounds = serverTools ? MAX_ROUNDS : 1;
  return [{ input: rounds * (serverTools ? contextTokens : promptTokens), output: rounds * summary }];
}

/** Each advice is one call of the advisor and one more of the answering model; both read everything written so far. */
function advisors({ advisors: all }: InnerCalls, { promptTokens, maxOutputTokens }: OuterCall): InnerTokens[] {
  const uses = all.reduce((sum, each) => sum + each.uses, 0);
  const advice = Math.max(0, ...all.map((each) => each.maxOutputTokens ?? ADVICE_TOKENS));
  // The n-th call reads n pieces of advice, so on average half of them.
  const read = promptTokens + maxOutputTokens + (advice * (uses + 1)) / 2;
  return all.flatMap((each) => [
    { model: each.model, input: each.uses * read, output: each.uses * (each.maxOutputTokens ?? ADVICE_TOKENS) },
    { input: each.uses * read, output: 0 },
  ]);
}
