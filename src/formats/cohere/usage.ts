/**
 * Token counts of the cohere format, which has two: `tokens` is what the model processed, including the service's
 * template and cached input; `billed_units` is what is charged.
 */
import type { Usage } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, isFields, isImpossibleCount } from '../conversation/fields.ts';

/** Undefined if the record has no output count. */
export function decodeUsage(value: unknown): Usage | undefined {
  if (!isFields(value)) return undefined;
  const billed = countsIn(value['billed_units']);
  const counted = countsIn(value['tokens']) ?? billed;
  if (counted === undefined) return undefined;
  const { input, output } = counted;
  const cacheRead = Math.min(countOf(value['cached_tokens']), input);
  const reasoning = Math.min(countOf(fieldsOf(value['tokens'])['reasoning_tokens']), output);
  return {
    input: input - cacheRead,
    cacheRead,
    cacheWrite5m: 0,
    cacheWrite1h: 0,
    output,
    reasoning,
    ...(billed !== undefined && billed !== counted && { billed }),
    native: { origin: 'cohere', value },
  };
}

function countsIn(value: unknown): { input: number; output: number } | undefined {
  const { input_tokens: input, output_tokens: output }: Fields = fieldsOf(value);
  if (typeof output !== 'number' || isImpossibleCount(input) || isImpossibleCount(output)) return undefined;
  return { input: countOf(input), output: countOf(output) };
}
