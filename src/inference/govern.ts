/**
 * What a caller may do and spend, before anything is dispatched: which budgets its spend counts in, how much one attempt
 * could cost at most, and the reservation of that (design, promise 2).
 */
import type { Caller } from '../access/index.ts';
import { GatewayError } from '../base/errors.ts';
import { type Nano, nanoFromPrice, type Price, priceFromNano } from '../base/money.ts';
import { ceilingOf, costsNothing, type Endpoint, type PricingOf } from '../catalog/index.ts';
import type { Asked } from '../formats/conversation/format.ts';
import { policyOf } from '../guardrails/index.ts';
import type { Budget } from '../spend/index.ts';
import { type InnerTokens, innerPrice, innerTokens } from './inner-calls.ts';
import { countedOverhead, promptOverhead } from './prompt-overhead.ts';
import type { TokenBound } from './task.ts';

/** The most that vendors count for one picture, however few bytes it has: they cut it into a bounded number of tiles. */
const IMAGE_TOKENS = 8_192;
/** Pages, seconds and frames are bounded by nothing but the context, and this stands for one that is not known. */
const UNKNOWN_CONTEXT_TOKENS = 1_000_000;
/** The least output that is worth a call when a budget's remainder decides (promise 2). */
const MIN_AFFORDABLE_TOKENS = 1024;

interface CompiledBudgets {
  accountBalanceNano: Nano | null;
  budgets: readonly Budget[];
}

/** A caller is made anew when anything about it changes. */
const compiled = new WeakMap<Caller, CompiledBudgets>();

/**
 * The budgets that this caller's spend counts in, the account's first and the key's own last; none means that it may spend
 * without limit. The same objects for each of its requests, which is how spend knows them again at once.
 */
export function budgetsOf(caller: Caller, accountBalanceNano: Nano | null): readonly Budget[] {
  const known = compiled.get(caller);
  if (known !== undefined && known.accountBalanceNano === accountBalanceNano) return known.budgets;
  const budgets: Budget[] = [];
  if (accountBalanceNano !== null) budgets.push(accountBudget(caller.organizationId, accountBalanceNano));
  // A management key spends nothing, so no workspace limits it.
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

/** All keys of an account come with one object. */
function accountBudget(organizationId: string, limitNano: Nano): Budget {
  if (lastAccount?.scopeId !== organizationId || lastAccount.limitNano !== limitNano) {
    lastAccount = { scope: 'account', scopeId: organizationId, interval: 'lifetime', limitNano, includeByok: false };
  }
  return lastAccount;
}

/** The size of a prompt: its UTF-8 bytes, or its tokens where they were counted. */
export type PromptSize = { bytes: number } | { tokens: number };

/** The most that one attempt can cost, as a function of the output cap. Exact: rounded once, as the bill is. */
export interface Bound {
  /** The endpoint costs nothing, so every budget can hold it. */
  free: boolean;
  /** Prompt, fixed fees and calls of the upstream's own at their dearest, 10^-18 USD. */
  promptPrice: Price;
  outputPrice: Price;
  /** The output cap that holds anyway: the request's, the endpoint's, or what the context leaves. */
  maxOutputTokens: number;
  /** True when the request itself gave the cap, so that no smaller one may be put in its place. */
  fixed: boolean;
  choices: number;
}

/** What one attempt can use, whatever it costs. */
export interface TokenLimits {
  promptTokens: number;
  maxOutputTokens: number;
  /** True when the request itself gave the cap. */
  fixed: boolean;
  /** What the upstream may use for calls of its own. */
  inner: readonly InnerTokens[];
}

/** Throws GatewayError 400 when nobody says how much the model may write. */
export function tokenLimitsOf(endpoint: Endpoint, asked: Asked, prompt: PromptSize): TokenLimits {
  const contextLeft = endpoint.contextLength === null ? null : Math.max(endpoint.contextLength - 1, 1);
  const own = endpoint.maxCompletionTokens ?? contextLeft;
  const wanted = asked.maxOutputTokens;
  if (wanted === undefined && own === null) {
    throw new GatewayError(
      'invalid_request',
      'max_tokens is required: the output limit of this model is unknown and the key has a budget or a limit of tokens',
      { path: 'max_tokens' },
    );
  }
  const promptTokens = mostPromptTokens(endpoint, asked, prompt);
  const maxOutputTokens = Math.min(wanted ?? Number.POSITIVE_INFINITY, own ?? Number.POSITIVE_INFINITY);
  const contextTokens = endpoint.contextLength ?? UNKNOWN_CONTEXT_TOKENS;
  const inner = innerTokens(asked.inner, { endpoint, contextTokens, promptTokens, maxOutputTokens });
  return { promptTokens, maxOutputTokens, fixed: wanted !== undefined, inner };
}

const unknown: PricingOf = () => undefined;

/**
 * An upper bound. Throws GatewayError 403 for an endpoint without a price, which no limit could hold.
 * @param pricingOf of models that the upstream may call by itself
 */
export function boundOf(endpoint: Endpoint, asked: Asked, prompt: PromptSize, pricingOf: PricingOf = unknown): Bound {
  const { pricing } = endpoint;
  if (pricing === null) {
    throw new GatewayError(
      'permission_denied',
      `${endpoint.modelId} has no price, so no budget can hold what it costs, and this key has one`,
    );
  }
  const { images } = asked.media;
  const { promptTokens, maxOutputTokens, fixed, inner } = tokenLimitsOf(endpoint, asked, prompt);
  const dearest = ceilingOf(pricing);
  const innerCalls = inner.length === 0 ? 0n : innerPrice(inner, dearest, pricingOf);
  const fees = dearest.request + BigInt(images) * dearest.image;
  return {
    free: innerCalls === 0n && costsNothing(pricing),
    promptPrice: BigInt(promptTokens) * dearest.prompt + fees + innerCalls,
    outputPrice: dearest.completion,
    maxOutputTokens,
    fixed,
    choices: asked.choices,
  };
}

/** No token is shorter than a byte; media have rates of their own; and nothing longer than the context is read. */
function mostPromptTokens(endpoint: Endpoint, asked: Asked, prompt: PromptSize): number {
  const { contextLength } = endpoint;
  const { media } = asked;
  const written =
    'bytes' in prompt ? prompt.bytes + promptOverhead(endpoint, asked) : prompt.tokens + countedOverhead(asked);
  const counted = written + media.images * IMAGE_TOKENS;
  if (media.documents > 0 || holdsMore(asked)) return Math.max(contextLength ?? UNKNOWN_CONTEXT_TOKENS, counted);
  return contextLength === null ? counted : Math.min(counted, contextLength);
}

/** The upstream reads more than what the request brings. */
export function holdsMore({ thread }: Asked): boolean {
  return thread?.previousId !== undefined;
}

/** Nothing for what costs nothing, which every budget can hold. */
export function boundNano(bound: Bound, maxOutputTokens: number): Nano {
  if (bound.free) return 0n;
  const tokens = BigInt(Math.ceil(maxOutputTokens)) * BigInt(bound.choices);
  return nanoFromPrice(bound.promptPrice + tokens * bound.outputPrice);
}

/** The output that `leftNano` pays for, or undefined when it is too little or the request fixed its own cap. */
export function affordableTokens(bound: Bound, leftNano: Nano): number | undefined {
  if (bound.fixed || bound.outputPrice === 0n) return undefined;
  const forOutput = priceFromNano(leftNano) - bound.promptPrice;
  if (forOutput <= 0n) return undefined;
  const tokens = Number(forOutput / (bound.outputPrice * BigInt(bound.choices)));
  return tokens >= MIN_AFFORDABLE_TOKENS ? Math.min(tokens, bound.maxOutputTokens) : undefined;
}

/** The most tokens that `rounds` calls of one answer can use together, with `cap` where that is smaller. */
export function tokenBound(limits: TokenLimits, choices: number, rounds: number, cap: number | undefined): TokenBound {
  const inner = limits.inner.reduce((sum, { input, output }) => sum + input + output, 0);
  const prompt = (limits.promptTokens + Math.ceil(inner)) * rounds;
  return {
    most: prompt + Math.min(limits.maxOutputTokens, cap ?? Number.POSITIVE_INFINITY) * choices,
    within(left) {
      const tokens = Math.floor((left - prompt) / choices);
      if (limits.fixed || tokens < MIN_AFFORDABLE_TOKENS) return undefined;
      const capOutputTokens = Math.min(tokens, limits.maxOutputTokens, cap ?? Number.POSITIVE_INFINITY);
      return { capOutputTokens, tokens: prompt + capOutputTokens * choices };
    },
  };
}
