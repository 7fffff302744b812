/**
 * Cost bounds: the budgets that a caller's spend counts in, and the most that one attempt can cost and use, which is
 * reserved before the attempt is sent ([guarantees](../../docs/guarantees.md)).
 */
import type { Caller } from '../../access/index.ts';
import { GatewayError } from '../../base/errors.ts';
import { type Nano, nanoFromPrice, type Price, priceFromNano } from '../../base/money.ts';
import { ceilingOf, costsNothing, type Endpoint, type PricingOf } from '../../catalog/index.ts';
import type { RequestFacts } from '../../formats/conversation/format.ts';
import { policyOf } from '../../guardrails/index.ts';
import type { Budget } from '../../spend/index.ts';
import type { TokenBound } from '../task.ts';
import { type InnerTokens, imagesPrice, innerPrice, innerTokens } from './inner-calls.ts';
import { countedOverhead, promptOverhead } from './prompt-overhead.ts';

/** The most that vendors count for one image, whatever its size: they cut it into a bounded number of tiles. */
const IMAGE_TOKENS = 8_192;
/** Pages, seconds and frames are bounded only by the context length; this is used where that is unknown. */
const UNKNOWN_CONTEXT_TOKENS = 1_000_000;
/** The least output for which a call is sent when the remaining budget sets its cap. */
const MIN_AFFORDABLE_TOKENS = 1024;

interface CompiledBudgets {
  accountBalanceNano: Nano | null;
  budgets: readonly Budget[];
}

/** A caller object is replaced when anything about it changes, so it can serve as the key. */
const compiled = new WeakMap<Caller, CompiledBudgets>();

/**
 * The budgets that this caller's spend counts in, the account's first and the key's own last. An empty list means that
 * spend is unlimited. Returns the same objects for each request of the caller, which lets spend recognize them by
 * identity.
 */
export function budgetsOf(caller: Caller, accountBalanceNano: Nano | null): readonly Budget[] {
  const known = compiled.get(caller);
  if (known !== undefined && known.accountBalanceNano === accountBalanceNano) return known.budgets;
  const budgets: Budget[] = [];
  if (accountBalanceNano !== null) budgets.push(accountBudget(caller.organizationId, accountBalanceNano));
  // A management key spends nothing, so no workspace budget applies.
  if (caller.kind === 'inference') budgets.push(...caller.workspace.budgets, ...policyOf(caller).budgets);
  if (caller.limitNano !== null) {
    budgets.push({
      scope: 'key',
      scopeId: caller.keyId,
      interval: caller.limitReset ?? 'lifetime',
      limitNano: caller.limitNano,
      includeByok: caller.includeByokInLimit,
    });
  }
  compiled.set(caller, { accountBalanceNano, budgets });
  return budgets;
}

let lastAccount: Budget | undefined;

/** One object for all keys of an account. */
function accountBudget(organizationId: string, limitNano: Nano): Budget {
  if (lastAccount?.scopeId !== organizationId || lastAccount.limitNano !== limitNano) {
    lastAccount = { scope: 'account', scopeId: organizationId, interval: 'lifetime', limitNano, includeByok: false };
  }
  return lastAccount;
}

/** The size of a prompt: its UTF-8 bytes, or its tokens if they were counted. */
export type PromptSize = { bytes: number } | { tokens: number };

/** The most that one attempt can cost, as a function of the output cap. Exact: rounded once, as the bill is. */
interface Bound {
  /** The endpoint costs nothing, so it fits in every budget. */
  free: boolean;
  /** Prompt, fixed fees and the upstream's inner calls at their highest price, in 10^-18 USD. */
  promptPrice: Price;
  outputPrice: Price;
  /** The output cap without a budget: the request's, the endpoint's, or the rest of the context. */
  maxOutputTokens: number;
  /** True when the request set the cap itself, so no smaller one may replace it. */
  fixed: boolean;
  choices: number;
}

/** The most tokens that one attempt can use, whatever they cost. */
interface TokenLimits {
  promptTokens: number;
  maxOutputTokens: number;
  /** True when the request set the cap itself. */
  fixed: boolean;
  /** Tokens that the upstream may use for inner calls. */
  inner: readonly InnerTokens[];
}

/** Throws GatewayError 400 if neither the request nor the catalog limits the output. */
export function tokenLimitsOf(endpoint: Endpoint, facts: RequestFacts, prompt: PromptSize): TokenLimits {
  const contextLeft = endpoint.contextLength === null ? null : Math.max(endpoint.contextLength - 1, 1);
  const own = endpoint.maxCompletionTokens ?? contextLeft;
  const wanted = facts.maxOutputTokens;
  if (wanted === undefined && own === null) {
    throw new GatewayError(
      'invalid_request',
      'max_tokens is required: the output limit of this model is unknown, and the key has a budget or a token limit',
      { path: 'max_tokens' },
    );
  }
  const promptTokens = maxPromptTokens(endpoint, facts, prompt);
  const maxOutputTokens = Math.min(wanted ?? Number.POSITIVE_INFINITY, own ?? Number.POSITIVE_INFINITY);
  const contextTokens = endpoint.contextLength ?? UNKNOWN_CONTEXT_TOKENS;
  const inner = innerTokens(facts.inner, { endpoint, contextTokens, promptTokens, maxOutputTokens });
  return { promptTokens, maxOutputTokens, fixed: wanted !== undefined, inner };
}

const unknown: PricingOf = () => undefined;

/**
 * An upper bound of the cost. Throws GatewayError 403 for an endpoint without a price, which no budget can bound.
 * @param pricingOf prices of models that the upstream may call itself
 */
export function boundOf(
  endpoint: Endpoint,
  facts: RequestFacts,
  prompt: PromptSize,
  pricingOf: PricingOf = unknown,
): Bound {
  const { pricing } = endpoint;
  if (pricing === null) {
    throw new GatewayError(
      'permission_denied',
      `${endpoint.modelId} has no price, so its cost cannot be bounded, and this key has a budget`,
    );
  }
  const { images } = facts.media;
  const { promptTokens, maxOutputTokens, fixed, inner } = tokenLimitsOf(endpoint, facts, prompt);
  const readTokens = promptWithResults(promptTokens, facts, endpoint);
  const ceiling = ceilingOf(pricing);
  const called = inner.length === 0 ? 0n : innerPrice(inner, ceiling, pricingOf);
  const innerCalls = called + imagesPrice(facts.work, ceiling, pricingOf);
  const fees = ceiling.request + BigInt(images) * ceiling.image + BigInt(facts.work?.searches ?? 0) * ceiling.webSearch;
  return {
    free: innerCalls === 0n && costsNothing(pricing),
    promptPrice: BigInt(readTokens) * ceiling.prompt + fees + innerCalls,
    outputPrice: ceiling.completion,
    maxOutputTokens,
    fixed,
    choices: facts.choices,
  };
}

/** A token has at least one byte, media have rates of their own, and a model reads no more than its context. */
function maxPromptTokens(endpoint: Endpoint, facts: RequestFacts, prompt: PromptSize): number {
  const { contextLength } = endpoint;
  const { media } = facts;
  const written =
    'bytes' in prompt ? prompt.bytes + promptOverhead(endpoint, facts) : prompt.tokens + countedOverhead(facts);
  const counted = written + media.images * IMAGE_TOKENS;
  if (media.documents > 0 || continuesThread(facts)) return Math.max(contextLength ?? UNKNOWN_CONTEXT_TOKENS, counted);
  return contextLength === null ? counted : Math.min(counted, contextLength);
}

/** Rate limits count the tokens that the upstream's tools have read only afterwards; budgets reserve them. */
function promptWithResults(promptTokens: number, { work }: RequestFacts, { contextLength }: Endpoint): number {
  if (work === undefined) return promptTokens;
  return Math.max(promptTokens, Math.min(promptTokens + work.tokens, contextLength ?? Number.POSITIVE_INFINITY));
}

/** True if the upstream also reads stored messages of the thread, which the request does not contain. */
export function continuesThread({ thread }: RequestFacts): boolean {
  return thread?.previousId !== undefined;
}

/** Zero for an endpoint that costs nothing, so that it fits in every budget. */
export function boundNano(bound: Bound, maxOutputTokens: number): Nano {
  if (bound.free) return 0n;
  const tokens = BigInt(Math.ceil(maxOutputTokens)) * BigInt(bound.choices);
  return nanoFromPrice(bound.promptPrice + tokens * bound.outputPrice);
}

/** The output that `leftNano` pays for; undefined when that is too little or the request set its own cap. */
export function affordableTokens(bound: Bound, leftNano: Nano): number | undefined {
  if (bound.fixed || bound.outputPrice === 0n) return undefined;
  const forOutput = priceFromNano(leftNano) - bound.promptPrice;
  if (forOutput <= 0n) return undefined;
  const tokens = Number(forOutput / (bound.outputPrice * BigInt(bound.choices)));
  return tokens >= MIN_AFFORDABLE_TOKENS ? Math.min(tokens, bound.maxOutputTokens) : undefined;
}

/** The most tokens that one attempt can use, within the output `cap` where that is smaller. */
export function tokenBound(limits: TokenLimits, choices: number, cap: number | undefined): TokenBound {
  const inner = limits.inner.reduce((sum, { input, output }) => sum + input + output, 0);
  const prompt = limits.promptTokens + Math.ceil(inner);
  return {
    tokens: prompt + Math.min(limits.maxOutputTokens, cap ?? Number.POSITIVE_INFINITY) * choices,
    within(left) {
      const tokens = Math.floor((left - prompt) / choices);
      if (limits.fixed || tokens < MIN_AFFORDABLE_TOKENS) return undefined;
      const capOutputTokens = Math.min(tokens, limits.maxOutputTokens, cap ?? Number.POSITIVE_INFINITY);
      return { capOutputTokens, tokens: prompt + capOutputTokens * choices };
    },
  };
}
