/**
 * Capabilities of Gemini models, derived from their names: the service rejects settings that the model's generation
 * does not support, and its model list does not state them. Unknown names accept any thinking
 * budget, and count as third generation only if they contain `latest`.
 */

/** How a family controls thinking. */
export type Thinking =
  /** `thinkingLevel`, with the family's levels, weakest first. */
  | { by: 'level'; words: readonly string[] }
  /** `thinkingBudget` in tokens, from `least` to `most`. `mayStop`: 0 disables thinking. */
  | { by: 'budget'; least: number; most: number; mayStop: boolean }
  /** No thinking: the service rejects the settings. */
  | { by: 'none' };

export interface Family {
  thinking: Thinking;
  /**
   * From the third generation on: call signatures are checked, results may hold media, tools combine with JSON output.
   */
  third: boolean;
}

const GENERATION = /gemini-(?:exp-|pro-|flash-)?(\d+)(?:\.(\d+))?/;

export function familyOf(model: string): Family {
  const name = model.toLowerCase();
  const [, major, minor] = GENERATION.exec(name) ?? [];
  if (major === undefined) {
    return { thinking: /^(models\/)?gemma/.test(name) ? { by: 'none' } : WIDE, third: /latest/.test(name) };
  }
  const generation = Number(major);
  const silent = /image|tts|embedding/.test(name);
  if (generation >= 3)
    return { thinking: silent ? { by: 'none' } : { by: 'level', words: wordsOf(name, minor) }, third: true };
  if (generation === 2 && minor === '5' && !silent) return { thinking: budgetsOf(name), third: false };
  return { thinking: { by: 'none' }, third: false };
}

/** For names that reveal nothing (an alias, a tuned model): accepts every budget. */
const WIDE: Thinking = { by: 'budget', least: 1, most: 24_576, mayStop: true };

function wordsOf(name: string, minor: string | undefined): readonly string[] {
  if (/flash|lite/.test(name)) return ['minimal', 'low', 'medium', 'high'];
  return minor === undefined || minor === '0' ? ['low', 'high'] : ['low', 'medium', 'high'];
}

function budgetsOf(name: string): Thinking {
  if (name.includes('flash-lite')) return { by: 'budget', least: 512, most: 24_576, mayStop: true };
  if (name.includes('flash')) return WIDE;
  return { by: 'budget', least: 128, most: 32_768, mayStop: false };
}
