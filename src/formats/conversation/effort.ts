/**
 * Converts between reasoning effort and thinking budget. All formats share one table, so a request means the same on
 * every endpoint.
 */
import type { Effort, ReasoningSettings } from './conversation.ts';

/** All effort words, weakest first. */
export const EFFORTS: readonly Effort[] = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'];

/** The effort of `reasoning: { enabled: true }`. */
export const DEFAULT_EFFORT: Effort = 'medium';

/** The share of the output cap that each effort may spend on thinking. */
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
/** Default when neither the client nor the catalog gives an output cap. */
const USUAL_OUTPUT = 32_000;

export function isEffort(word: unknown): word is Effort {
  return typeof word === 'string' && (EFFORTS as readonly string[]).includes(word);
}

/**
 * Thinking budget in tokens for an effort, 1,024 to 128,000; null for `none`. `maxOutputTokens` is the cap sent with
 * the request. The budget can exceed a very small cap: formats that require it to be lower must check.
 */
export function budgetFromEffort(effort: Effort, maxOutputTokens: number | null): number | null {
  if (effort === 'none') return null;
  const budget = Math.floor((maxOutputTokens ?? USUAL_OUTPUT) * SHARE[effort]);
  return Math.min(Math.max(budget, SMALLEST_BUDGET), LARGEST_BUDGET);
}

/**
 * The effort nearest to a budget: `low`, `medium` or `high`, which every model with an effort setting supports, or
 * `none` for a budget of 0 or less.
 */
export function effortFromBudget(budgetTokens: number, maxOutputTokens: number | null): Effort {
  if (budgetTokens <= 0) return 'none';
  const share = budgetTokens / (maxOutputTokens ?? USUAL_OUTPUT);
  if (share < (SHARE.low + SHARE.medium) / 2) return 'low';
  return share < (SHARE.medium + SHARE.high) / 2 ? 'medium' : 'high';
}

/**
 * The requested effort, given as a word or as a budget; undefined when the settings leave it to the model (no setting,
 * or an adaptive budget without an effort).
 */
export function effortOf(settings: ReasoningSettings | undefined, maxOutputTokens: number | null): Effort | undefined {
  if (settings === undefined) return undefined;
  if (settings.enabled === false) return 'none';
  if (settings.effort !== undefined) return settings.effort;
  if (settings.budgetTokens !== undefined) return effortFromBudget(settings.budgetTokens, maxOutputTokens);
  return settings.enabled === true && settings.adaptive !== true ? DEFAULT_EFFORT : undefined;
}

/** The requested thinking budget; null for none, undefined when the settings leave it to the model. */
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
