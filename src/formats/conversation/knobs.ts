/** Tuning parameters: a format that does not support one drops and reports it. */
import type { Settings } from './conversation.ts';
import type { Losses } from './losses.ts';

const WIRE_NAMES = {
  topA: 'top_a',
  minP: 'min_p',
  frequencyPenalty: 'frequency_penalty',
  presencePenalty: 'presence_penalty',
  repetitionPenalty: 'repetition_penalty',
  seed: 'seed',
  logprobs: 'logprobs',
  topLogprobs: 'top_logprobs',
  logitBias: 'logit_bias',
  serviceTier: 'service_tier',
  verbosity: 'verbosity',
  prediction: 'prediction',
  promptCacheKey: 'prompt_cache_key',
} as const satisfies Partial<Record<keyof Settings, string>>;

export type Knob = keyof typeof WIRE_NAMES;

/** Reports those of `knobs` that are set. @param format the format's name, for the report */
export function dropKnobs(settings: Settings, knobs: readonly Knob[], format: string, losses: Losses): void {
  for (const knob of knobs) {
    if (settings[knob] !== undefined) losses.drop(WIRE_NAMES[knob], `the ${format} format does not support it`);
  }
}
