/**
 * What a Gemini model can do, by its name: the service refuses requests with settings that the model's generation does
 * not know, and its list of models does not tell. Unknown names count as the current generation without quirks.
 */

/** How a family is told how much to think. */
export type Thinking =
  /** `thinkingLevel`, with the words that the family knows, weakest first. */
  | { by: 'level'; words: readonly string[] }
  /** `thinkingBudget` in tokens; `least` 0 can be switched off. */
  | { by: 'budget'; least: number; most: number; mayStop: boolean }
  /** It does not think: the settings are refused. */
  | { by: 'none' };

export interface Family {
  thinking: Thinking;
  /** From the third generation on: signatures of calls are checked, results hold media, tools mix with a JSON answer. */
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

/** For models of names that say nothing (an alias, a tuned model): every budget is tried. */
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
