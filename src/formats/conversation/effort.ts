/**
 * Effort words and thinking budgets, each from the other (wire/chat.md, "reasoning"). One table for all formats, so a
 * request means the same wherever it is sent.
 */
import type { Effort, ReasoningSettings } from './conversation.ts';

/** All effort words, weakest first. */
export const EFFORTS: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** What `reasoning: { enabled: true }` asks for. */
export const DEFAULT_EFFORT: Effort = 'medium';

/** The share of the output cap that each effort may think. */
const SHARE: Record<Exclude<Effort, 'none'>, number> = {
  minimal: 0.1,
  low: 0.2,
  medium: 0.5,
  high: 0.8,
  xhigh: 0.95,
  max: 0.95,
};

const SMALLEST_BUDGET = 1_024;
const LARGEST_BUDGET = 128_000;
/** Stands in for an output cap that neither the client nor the catalog gives. */
const USUAL_OUTPUT = 32_000;

export function isEffort(word: unknown): word is Effort {
  return typeof word === 'string' && (EFFORTS as readonly string[]).includes(word);
}

/**
 * Thinking budget in tokens for an effort, 1,024 to 128,000; null for `none`. `maxOutputTokens` is the cap that the
 * request goes out with. The result may reach a very small cap: a form whose budget must stay below the cap checks that.
 */
export function budgetFromEffort(effort: Effort, maxOutputTokens: number | null): number | null {
  if (effort === 'none') return null;
  const budget = Math.floor((maxOutputTokens ?? USUAL_OUTPUT) * SHARE[effort]);
  return Math.min(Math.max(budget, SMALLEST_BUDGET), LARGEST_BUDGET);
}

/**
 * The effort nearest to a budget. Answers only `low`, `medium` and `high` (and `none` for no budget at all): the words
 * that every thinking model with an effort knows.
 */
export function effortFromBudget(budgetTokens: number, maxOutputTokens: number | null): Effort {
  if (budgetTokens <= 0) return 'none';
  const share = budgetTokens / (maxOutputTokens ?? USUAL_OUTPUT);
  if (share < (SHARE.low + SHARE.medium) / 2) return 'low';
  return share < (SHARE.medium + SHARE.high) / 2 ? 'medium' : 'high';
}

/**
 * The effort that the settings ask for, whichever way they say it; undefined when they leave it to the model
 * (nothing said, or an adaptive budget without an effort).
 */
export function effortOf(settings: ReasoningSettings | undefined, maxOutputTokens: number | null): Effort | undefined {
  if (settings === undefined) return undefined;
  if (settings.enabled === false) return 'none';
  if (settings.effort !== undefined) return settings.effort;
  if (settings.budgetTokens !== undefined) return effortFromBudget(settings.budgetTokens, maxOutputTokens);
  return settings.enabled === true && settings.adaptive !== true ? DEFAULT_EFFORT : undefined;
}

/** The thinking budget that the settings ask for; null for none, undefined when they leave it to the model. */
export function budgetOf(
  settings: ReasoningSettings | undefined,
  maxOutputTokens: number | null,
): number | null | undefined {
  if (settings === undefined) return undefined;
  if (settings.enabled === false) return null;
  if (settings.budgetTokens !== undefined) return settings.budgetTokens <= 0 ? null : settings.budgetTokens;
  const effort = effortOf(settings, maxOutputTokens);
  return effort === undefined ? undefined : budgetFromEffort(effort, maxOutputTokens);
}
