/** Prices of LiteLLM's `litellm_params` and `model_info` as `pricing` of the yaml. */
import type { Findings, Path } from './findings.ts';
import { type Members, priceText } from './values.ts';

const PRICES: Readonly<Record<string, string>> = {
  input_cost_per_token: 'prompt',
  output_cost_per_token: 'completion',
  input_cost_per_request: 'request',
  input_cost_per_image: 'image',
  input_cost_per_image_token: 'image_token',
  input_cost_per_audio_token: 'audio',
  output_cost_per_audio_token: 'audio_output',
  output_cost_per_image_token: 'image_output',
  input_cost_per_character: 'input_character',
  input_cost_per_second: 'input_second',
  output_cost_per_second: 'output_second',
  cache_read_input_token_cost: 'input_cache_read',
  cache_creation_input_token_cost: 'input_cache_write',
  cache_creation_input_token_cost_above_1hr: 'input_cache_write_1h',
  output_cost_per_reasoning_token: 'internal_reasoning',
};
const IS_PRICE = /^((in|out)put_cost_per_|cache_(read|creation)_input_)/;

/** `litellm_params` precedes `model_info`. Without token prices there is no pricing, and the other prices are listed as findings. */
export function pricingOf(params: Members, info: Members, at: Path, findings: Findings): Members {
  const pricing: Members = {};
  const sources = [
    { from: params, at: [...at, 'litellm_params'] },
    { from: info, at: [...at, 'model_info'] },
  ];
  const used: Path[] = [];
  for (const { from, at: place } of sources) {
    for (const [member, value] of Object.entries(from)) {
      if (!IS_PRICE.test(member) || value === null) continue;
      const name = PRICES[member];
      const price = priceText(value);
      if (name === undefined || price === undefined) {
        findings.lacks([...place, member], price === undefined ? 'is not a price' : 'has no counterpart in pricing');
      } else if (pricing[name] === undefined) {
        pricing[name] = price;
        used.push([...place, member]);
      }
    }
  }
  if (used.length === 0) return {};
  if (pricing['prompt'] === undefined && pricing['completion'] === undefined) {
    for (const path of used) findings.lacks(path, 'cannot be set without the prices of prompt and completion');
    return {};
  }
  return { pricing: { prompt: '0', completion: '0', ...pricing } };
}
