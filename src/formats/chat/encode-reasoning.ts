/** Encodes reasoning settings as the upstream's own parameters. */
import type { ReasoningSettings } from '../conversation/conversation.ts';
import { budgetOf, effortOf } from '../conversation/effort.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Losses } from '../conversation/losses.ts';
import type { ChatDialect, ReasoningRule } from './dialect.ts';

/** `cap` is the output cap that is sent, `model` the upstream's name of the model. */
interface ReasoningTarget {
  cap: number | null;
  model: string;
}

export function encodeReasoning(
  body: Fields,
  settings: ReasoningSettings | undefined,
  target: ReasoningTarget,
  dialect: ChatDialect,
  losses: Losses,
): void {
  if (settings === undefined) return;
  const way = dialect.reasoning ?? 'effort';
  if (way === 'object') {
    const reasoning = reasoningObject(settings, target.cap);
    if (Object.keys(reasoning).length > 0) body['reasoning'] = reasoning;
    return;
  }
  const rule = dialect.reasoningRules?.find(({ models }) => models?.test(target.model) ?? true) ?? {};
  const effort = effortOf(settings, target.cap);
  if (effort !== undefined) {
    if (way === 'none') {
      if (effort !== 'none') losses.drop('reasoning', 'the upstream has no setting for reasoning effort');
    } else if (way === 'enable_thinking') {
      body['enable_thinking'] = effort !== 'none';
      if (effort !== 'none' && settings.budgetTokens !== undefined) body['thinking_budget'] = settings.budgetTokens;
      else if (effort !== 'none' && settings.effort !== undefined) {
        losses.drop('reasoning.effort', 'the upstream can only switch thinking on or off');
      }
    } else {
      if (way === 'thinking' && !rule.always) body['thinking'] = { type: effort === 'none' ? 'disabled' : 'enabled' };
      if (way === 'enabled' && !rule.always) body['reasoning'] = { enabled: effort !== 'none' };
      if (way === 'effort' || (rule.words !== undefined && (effort !== 'none' || rule.always))) {
        sayEffort(body, effort, rule, losses);
      }
    }
    if (effort !== 'none' && settings.exclude !== true) Object.assign(body, rule.also);
  }
  if (settings.exclude === true) {
    if (rule.hide !== undefined) Object.assign(body, rule.hide);
    else losses.drop('reasoning.exclude', 'the upstream cannot hide its thinking');
  }
  if (settings.summary !== undefined) losses.drop('reasoning.summary', 'chat completions have no summary setting');
}

function sayEffort(
  body: Fields,
  effort: keyof NonNullable<ReasoningRule['words']>,
  rule: ReasoningRule,
  losses: Losses,
): void {
  const word = rule.words?.[effort];
  if (word === null) losses.drop('reasoning.effort', 'the model has no setting for this effort');
  else body['reasoning_effort'] = word ?? effort;
}

function reasoningObject(settings: ReasoningSettings, cap: number | null): Fields {
  const reasoning: Fields = {};
  if (settings.enabled !== undefined) reasoning['enabled'] = settings.enabled;
  else if (settings.adaptive === true && settings.effort === undefined) reasoning['enabled'] = true;
  if (settings.effort !== undefined) reasoning['effort'] = settings.effort;
  else if (settings.budgetTokens !== undefined) reasoning['max_tokens'] = budgetOf(settings, cap) ?? 0;
  if (settings.exclude !== undefined) reasoning['exclude'] = settings.exclude;
  if (settings.summary !== undefined) reasoning['summary'] = settings.summary;
  return { ...reasoning, ...settings.extras?.chat };
}
