/** Turns token counts into cost: one path for streamed and whole, relayed and translated answers. Pure. */
import type { Pricing } from '../../base/config.ts';
import { type Nano, nanoFromPrice, usdFromNano } from '../../base/money.ts';
import { type Endpoint, type PricingOf, priceOf } from '../../catalog/index.ts';
import type { Usage } from '../../formats/conversation/conversation.ts';
import type { Cost } from '../../formats/conversation/format.ts';
import { addUsage, callsOf } from '../../formats/conversation/usage.ts';

export interface Metered {
  usage: Usage;
  /**
   * True when the counts are estimated from bytes, in whole or in part, because the upstream reported no usage for
   * them.
   */
  estimated: boolean;
  /** The cost charged to credits. */
  costNano: Nano;
  /** The cost that the provider charges to the customer's own account (BYOK). */
  byokNano: Nano;
  /** The cost of requests that tools made: in `cost`, but not in the two sums, since they have rows of their own. */
  nested?: NestedCost;
  cacheDiscountNano: bigint | null;
  /** The cost as the response's `usage` shows it. */
  cost: Cost;
}

/** Charged to credits, and to the customer's own account. */
export interface NestedCost {
  nano: Nano;
  byokNano: Nano;
}

/** Estimates the tokens of a text whose tokenizer is unknown: about four bytes a token in all of them. */
export function estimateTokens(bytes: number): number {
  return Math.ceil(bytes / 4);
}

/** A model reads no more than its context, which is also all that budgets have reserved. */
function promptTokens({ contextLength }: Endpoint, bytes: number): number {
  return Math.min(estimateTokens(bytes), contextLength ?? Number.POSITIVE_INFINITY);
}

/**
 * @param reported the upstream's counts; undefined if it reported none
 * @param promptBytes size of the request body, in which media count as their tokens do
 * @param outputBytes measures the output text
 * @param images number of images in the prompt, for models that charge per image
 * @param uncountedBytes output bytes of an incomplete answer after the last report: some upstreams report only at the
 * start of a stream, when next to nothing is written
 * @param pricingOf prices of other models that the upstream called in this answer
 */
export function meter(
  endpoint: Endpoint,
  reported: Usage | undefined,
  promptBytes: number,
  outputBytes: () => number,
  {
    uncountedBytes = 0,
    images = 0,
    pricingOf,
  }: { uncountedBytes?: number; images?: number; pricingOf?: PricingOf } = {},
): Metered {
  // An upstream that answered read and wrote something: a zero next to a non-zero count means it was not reported.
  const unread = reported !== undefined && reported.output > 0 && inputOf(reported) === 0;
  const unwritten = reported !== undefined && reported.output === 0 && inputOf(reported) > 0;
  const unreportedPromptBytes = unread ? promptBytes : 0;
  const unreportedBytes = unwritten ? outputBytes() : uncountedBytes;
  const estimated = reported === undefined || unreportedBytes + unreportedPromptBytes > 0;
  const usage =
    reported === undefined
      ? { ...UNREPORTED, input: promptTokens(endpoint, promptBytes), output: estimateTokens(outputBytes()) }
      : estimated
        ? {
            ...reported,
            input: reported.input + promptTokens(endpoint, unreportedPromptBytes),
            output: reported.output + estimateTokens(unreportedBytes),
          }
        : reported;
  return metered(endpoint, usage, estimated, images, [], pricingOf);
}

function inputOf({ input, cacheRead, cacheWrite5m, cacheWrite1h }: Usage): number {
  return input + cacheRead + cacheWrite5m + cacheWrite1h;
}

/** The cost of a usage at an endpoint. */
// biome-ignore lint/complexity/useMaxParams: it runs for each answer; the last three are for images alone.
export function metered(
  endpoint: Endpoint,
  usage: Usage,
  estimated: boolean,
  images = 0,
  words: readonly string[] = [],
  pricingOf?: PricingOf,
): Metered {
  if (endpoint.pricing === null) {
    const cost = costView(null, 0n, 0n);
    return { usage, estimated, costNano: 0n, byokNano: 0n, cacheDiscountNano: null, cost };
  }
  const bill = priceOf(usage, endpoint.pricing, images, words, pricingOf);
  return {
    usage,
    estimated: estimated || callsUnknownModel(usage, endpoint.pricing, pricingOf),
    costNano: bill.totalNano,
    byokNano: 0n,
    cacheDiscountNano: cacheDiscount(usage, endpoint, pricingOf),
    cost: costView(bill.totalNano, bill.promptNano, bill.completionNano),
  };
}

/**
 * Adds the cost of hedged attempts that were aborted to an answer. The usage remains the answer's own; the cost covers
 * all attempts and counts as estimated.
 */
export function withLosses(answer: Metered, losses: readonly Metered[]): Metered {
  if (losses.length === 0) return answer;
  const sum = (read: (metered: Metered) => number) => losses.reduce((total, each) => total + read(each), read(answer));
  const costNano = losses.reduce((total, each) => total + each.costNano, answer.costNano);
  const byokNano = losses.reduce((total, each) => total + each.byokNano, answer.byokNano);
  return {
    ...answer,
    estimated: true,
    costNano,
    byokNano,
    cost: {
      ...answer.cost,
      cost: answer.cost.cost === null && costNano === 0n ? null : usdFromNano(costNano),
      cost_details: {
        ...answer.cost.cost_details,
        ...(byokNano > 0n && { upstream_inference_cost: usdFromNano(byokNano) }),
        upstream_inference_prompt_cost: sum(({ cost }) => cost.cost_details.upstream_inference_prompt_cost),
        upstream_inference_completions_cost: sum(({ cost }) => cost.cost_details.upstream_inference_completions_cost),
      },
    },
  };
}

/** The sum of an answer's turns, each at its own price. */
export function sumOfTurns(earlier: readonly Metered[], last: Metered | null): Metered | null {
  if (earlier.length === 0) return last;
  const all = last === null ? earlier : [...earlier, last];
  return all.slice(1).reduce(added, all[0]!);
}

function added(first: Metered, second: Metered): Metered {
  const [one, other] = [first.cost, second.cost];
  const upstream = nullableSum(one.cost_details.upstream_inference_cost, other.cost_details.upstream_inference_cost);
  const tools = one.cost_details.server_tool_cost ?? other.cost_details.server_tool_cost;
  const nested = addedNested(first.nested, second.nested);
  const shownNano = first.costNano + second.costNano + (nested?.nano ?? 0n);
  return {
    usage: addUsage(first.usage, second.usage),
    estimated: first.estimated || second.estimated,
    costNano: first.costNano + second.costNano,
    byokNano: first.byokNano + second.byokNano,
    ...(nested && { nested }),
    cacheDiscountNano: nullableSum(first.cacheDiscountNano, second.cacheDiscountNano),
    cost: {
      cost: one.cost === null && other.cost === null ? null : usdFromNano(shownNano),
      is_byok: other.is_byok,
      cost_details: {
        upstream_inference_cost: upstream,
        upstream_inference_prompt_cost:
          one.cost_details.upstream_inference_prompt_cost + other.cost_details.upstream_inference_prompt_cost,
        upstream_inference_completions_cost:
          one.cost_details.upstream_inference_completions_cost + other.cost_details.upstream_inference_completions_cost,
        ...(tools !== undefined && { server_tool_cost: tools }),
      },
    },
  };
}

function addedNested(one: NestedCost | undefined, other: NestedCost | undefined): NestedCost | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return { nano: one.nano + other.nano, byokNano: one.byokNano + other.byokNano };
}

function nullableSum<N extends number | bigint>(one: N | null, other: N | null): N | null {
  if (one === null || other === null) return one ?? other;
  return ((one as number) + (other as number)) as N;
}

/** The same answer over a BYOK credential: credits pay nothing, and the provider's charge is reported separately. */
export function onByok(answer: Metered): Metered {
  const { cost, costNano } = answer;
  return {
    ...answer,
    costNano: 0n,
    byokNano: costNano,
    cost: {
      cost: 0,
      is_byok: true,
      cost_details: { ...cost.cost_details, upstream_inference_cost: cost.cost },
    },
  };
}

const UNREPORTED: Usage = { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0, output: 0, reasoning: 0 };

function costView(total: Nano | null, prompt: Nano, completion: Nano): Cost {
  return {
    cost: total === null ? null : usdFromNano(total),
    is_byok: false,
    cost_details: {
      upstream_inference_cost: null,
      upstream_inference_prompt_cost: usdFromNano(prompt),
      upstream_inference_completions_cost: usdFromNano(completion),
    },
  };
}

/** The saving of caching compared with reading everything at the prompt price; negative if cache writes cost more. */
function cacheDiscount(usage: Usage, { pricing }: Endpoint, pricingOf?: PricingOf): bigint | null {
  if (pricing === null || usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h === 0) return null;
  const plain = uncached(usage);
  if (usage.calls !== undefined) {
    plain.calls = callsOf(usage).map((call) => ({ ...call, usage: uncached(call.usage) }));
  }
  return priceOf(plain, pricing, 0, [], pricingOf).totalNano - priceOf(usage, pricing, 0, [], pricingOf).totalNano;
}

function uncached(usage: Usage): Usage {
  return { ...usage, input: inputOf(usage), cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0 };
}

/**
 * A call of a model without a known price is charged at the answering model's price, so the cost is an estimate, unless that
 * has a price of its own for the images that the call made.
 */
function callsUnknownModel(usage: Usage, own: Pricing, pricingOf: PricingOf | undefined): boolean {
  const isUnknown = (model: string) => pricingOf?.(model) === undefined;
  if (usage.calls?.some(({ model }) => model !== undefined && isUnknown(model))) return true;
  if (usage.imageCalls === undefined || own.imageOutput !== undefined) return false;
  return usage.imageCalls.some(({ model }) => model === undefined || isUnknown(model));
}

/** Cost of an estimated prompt, for the intent that is journaled before dispatch. */
export function promptEstimate(endpoint: Endpoint, promptBytes: number): { promptTokens: number; promptNano: Nano } {
  const tokens = promptTokens(endpoint, promptBytes);
  const price = endpoint.pricing?.prompt ?? 0n;
  return { promptTokens: tokens, promptNano: nanoFromPrice(BigInt(tokens) * price) };
}
