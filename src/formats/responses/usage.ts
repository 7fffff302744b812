/**
 * Token counts in the responses format, both ways: `input_tokens` includes both caches, `output_tokens` includes
 * reasoning, and `total_tokens` is their sum.
 */
import type { Usage } from '../conversation/conversation.ts';
import {
  countOf,
  type Fields,
  fieldsOf,
  isFields,
  isImpossibleCount,
  listOf,
  nonEmptyText,
} from '../conversation/fields.ts';
import { type Cost, costMembers } from '../conversation/format.ts';
import { addServerToolCounts, serverToolCounts } from '../conversation/server-tool-counts.ts';
import type { UsageCall } from '../conversation/usage.ts';
import { imagesIn, searchesIn } from './served-calls.ts';

/** Undefined if the response has no counts. */
export function decodeUsage(response: Fields): Usage | undefined {
  const { usage: value } = response;
  if (!isFields(value) || typeof value['input_tokens'] !== 'number') return undefined;
  if (isImpossibleCount(value['input_tokens']) || isImpossibleCount(value['output_tokens'])) return undefined;
  const details = fieldsOf(value['input_tokens_details']);
  const input = countOf(value['input_tokens']);
  const cacheRead = countOf(details['cached_tokens']);
  const cacheWrite5m = countOf(details['cache_write_tokens']);
  const reasoning = countOf(fieldsOf(value['output_tokens_details'])['reasoning_tokens']);
  let output = countOf(value['output_tokens']);
  // Such a service counts reasoning outside the output, which its total reveals.
  if (reasoning > 0 && value['total_tokens'] === input + output + reasoning) output += reasoning;
  const usage: Usage = {
    input: Math.max(input - cacheRead - cacheWrite5m, 0),
    cacheRead,
    cacheWrite5m,
    cacheWrite1h: 0,
    output,
    reasoning,
    native: { origin: 'responses', value },
  };
  addServerToolCounts(usage, value['server_tool_use_details']);
  // Most services do not count what their tools do.
  const items = listOf(response['output']);
  const searches = searchesIn(items);
  if (searches > 0) usage.webSearches ??= searches;
  const made = imageCallOf(response);
  const images = made === undefined ? imagesIn(items) : 0;
  if (made !== undefined) usage.imageCalls = [made];
  if (images > 0) usage.outputImages = images;
  return usage;
}

/**
 * The usage of the tool for images, as OpenAI reports it: tokens of another model. Undefined if nothing is reported.
 */
function imageCallOf(response: Fields): UsageCall | undefined {
  const counts = fieldsOf(fieldsOf(response['tool_usage'])['image_gen']);
  const [input, output] = [countOf(counts['input_tokens']), countOf(counts['output_tokens'])];
  if (input + output === 0) return undefined;
  const cacheRead = Math.min(countOf(counts['cached_tokens']), input);
  const read = fieldsOf(counts['input_tokens_details'])['image_tokens'];
  const written = fieldsOf(counts['output_tokens_details'])['text_tokens'];
  const tool = listOf(response['tools']).find((each) => fieldsOf(each)['type'] === 'image_generation');
  const model = nonEmptyText(fieldsOf(tool)['model']);
  return {
    ...(model !== undefined && { model }),
    usage: {
      input: input - cacheRead,
      cacheRead,
      cacheWrite5m: 0,
      cacheWrite1h: 0,
      output,
      reasoning: 0,
      inputImage: countOf(read),
      outputImage: Math.max(output - countOf(written), 0),
    },
  };
}

/** The full usage record. Unknown fields of a native record are kept, except an upstream's own cost. */
export function encodeUsage(usage: Usage, cost: Cost | undefined): Fields {
  const native = usage.native?.origin === 'responses' ? usage.native.value : {};
  const { cost: _cost, is_byok: _byok, cost_details: _details, ...others } = native;
  const served = serverToolCounts(usage);
  const input = usage.input + usage.cacheRead + usage.cacheWrite5m + usage.cacheWrite1h;
  return {
    ...others,
    input_tokens: input,
    input_tokens_details: {
      ...fieldsOf(native['input_tokens_details']),
      cached_tokens: usage.cacheRead,
      cache_write_tokens: usage.cacheWrite5m + usage.cacheWrite1h,
    },
    output_tokens: usage.output,
    output_tokens_details: {
      ...fieldsOf(native['output_tokens_details']),
      reasoning_tokens: usage.reasoning,
    },
    total_tokens: input + usage.output,
    ...(served !== undefined && {
      server_tool_use_details: { ...fieldsOf(native['server_tool_use_details']), ...served },
    }),
    ...renamedCost(cost),
  };
}

/** The cost, with the member names of this format. */
function renamedCost(cost: Cost | undefined): Fields {
  const { cost_details: details, ...members } = costMembers(cost);
  if (details === undefined) return members;
  return {
    ...members,
    cost_details: {
      upstream_inference_cost: details.upstream_inference_cost,
      upstream_inference_input_cost: details.upstream_inference_prompt_cost,
      upstream_inference_output_cost: details.upstream_inference_completions_cost,
      ...(details.server_tool_cost !== undefined && { server_tool_cost: details.server_tool_cost }),
    },
  };
}
