/**
 * Deferred tools in the pipeline: the regular expression engine for their search, and bounds for several upstream
 * calls.
 */

import type { Endpoint, PricingOf } from '../../catalog/index.ts';
import type { CompileRegex } from '../../formats/conversation/deferred-search.ts';
import { isFields } from '../../formats/conversation/fields.ts';
import type { RequestFacts } from '../../formats/conversation/format.ts';
import { MOST_ROUNDS } from '../../formats/deferred/index.ts';
import { type Bound, boundOf, type PromptSize, type TokenLimits, tokenLimitsOf } from '../admission/cost-bounds.ts';

/** Bytes that searches and rejected calls add besides tool definitions, over all rounds. */
const STEP_BYTES = 64 * 1024;

let compile: CompileRegex | undefined;

/** Undefined until `loadRegex` has resolved. */
export function regexCompiler(): CompileRegex | undefined {
  return compile;
}

/** Loads the engine (RE2, linear time). Only requests that search by regular expression need it. */
export async function loadRegex(): Promise<void> {
  const { RE2JS } = await import('re2js');
  compile = (pattern) => {
    try {
      const expression = RE2JS.compile(pattern, RE2JS.CASE_INSENSITIVE);
      return (text) => expression.matcher(text).find();
    } catch {
      return undefined;
    }
  };
}

/** @param given `deferred_tools` of a checked request */
export function searchesByRegex(given: unknown): boolean {
  return isFields(given) && isFields(given['search']) && given['search']['type'] === 'regex';
}

/**
 * The most that all rounds of one answer can cost. Each round reads the request, every definition once more and all
 * earlier output; the output of all rounds together is within the one cap.
 */
export function boundOfRounds(
  endpoint: Endpoint,
  facts: RequestFacts,
  prompt: PromptSize,
  pricingOf: PricingOf,
): Bound {
  const { maxOutputTokens } = boundOf(endpoint, facts, prompt, pricingOf);
  const grown = boundOf(endpoint, facts, grownPrompt(prompt, maxOutputTokens), pricingOf);
  return { ...grown, promptPrice: grown.promptPrice * BigInt(MOST_ROUNDS) };
}

/** The same for tokens: the prompt tokens of one round, and the output tokens of all rounds. */
export function tokenLimitsOfRounds(endpoint: Endpoint, facts: RequestFacts, prompt: PromptSize): TokenLimits {
  const { maxOutputTokens } = tokenLimitsOf(endpoint, facts, prompt);
  return tokenLimitsOf(endpoint, facts, grownPrompt(prompt, maxOutputTokens));
}

function grownPrompt(prompt: PromptSize, outputTokens: number): PromptSize {
  if ('bytes' in prompt) return { bytes: 2 * prompt.bytes + STEP_BYTES + outputTokens };
  return { tokens: 2 * prompt.tokens + STEP_BYTES + outputTokens };
}
