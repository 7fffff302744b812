/**
 * Decodes and encodes token counts of chat completions. `prompt_tokens` includes cache reads and writes,
 * `completion_tokens` includes reasoning, and `total_tokens` is their sum.
 */
import type { Usage } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, fieldsOrUndefined, isImpossibleCount } from '../conversation/fields.ts';
import { type Closing, type Cost, costMembers } from '../conversation/format.ts';
import { addServerToolCounts, serverToolCounts } from '../conversation/server-tool-counts.ts';

/** Reads any vendor's usage record; undefined when it has no counts. */
export function decodeUsage(value: unknown): Usage | undefined {
  const record = fieldsOrUndefined(value);
  if (record === undefined || typeof record['prompt_tokens'] !== 'number') return undefined;
  if (isImpossibleCount(record['prompt_tokens']) || isImpossibleCount(record['completion_tokens'])) return undefined;
  const input = fieldsOf(record['prompt_tokens_details']);
  const output = fieldsOf(record['completion_tokens_details']);
  const prompt = countOf(record['prompt_tokens']);
  const reasoning = countOf(output['reasoning_tokens']) || countOf(record['reasoning_tokens']);
  const cacheRead =
    countOf(input['cached_tokens']) ||
    countOf(record['prompt_cache_hit_tokens']) ||
    countOf(record['cache_read_input_tokens']) ||
    countOf(record['cached_tokens']);
  const cacheWrite = countOf(input['cache_write_tokens']) || countOf(record['cache_creation_input_tokens']);
  const cacheWrite1h = Math.min(
    cacheWrite,
    countOf(fieldsOrUndefined(record['cache_creation'])?.['ephemeral_1h_input_tokens']),
  );
  let completion = countOf(record['completion_tokens']);
  // xAI does not include reasoning in completion_tokens; the total shows it.
  if (reasoning > 0 && record['total_tokens'] === prompt + completion + reasoning) completion += reasoning;
  const usage: Usage = {
    // A cache count larger than the prompt means that the service does not include it in the prompt.
    input: cacheRead + cacheWrite > prompt ? prompt : prompt - cacheRead - cacheWrite,
    cacheRead,
    cacheWrite5m: cacheWrite - cacheWrite1h,
    cacheWrite1h,
    output: completion,
    reasoning,
    native: { origin: 'chat', value: record },
  };
  addCount(usage, 'inputAudio', input['audio_tokens']);
  addCount(usage, 'inputImage', input['image_tokens']);
  addCount(usage, 'outputAudio', output['audio_tokens']);
  addCount(usage, 'outputImage', output['image_tokens']);
  addCount(usage, 'acceptedPrediction', output['accepted_prediction_tokens']);
  addCount(usage, 'rejectedPrediction', output['rejected_prediction_tokens']);
  addServerToolCounts(usage, record['server_tool_use_details'], record['server_tool_use']);
  return usage;
}

type RareCount =
  | 'inputAudio'
  | 'inputImage'
  | 'outputAudio'
  | 'outputImage'
  | 'acceptedPrediction'
  | 'rejectedPrediction';

function addCount(usage: Usage, key: RareCount, amount: unknown): void {
  if (countOf(amount) > 0) usage[key] = countOf(amount);
}

/** The members of `usage` in the chat format; the cost is left out when unknown. */
export function encodeUsage(usage: Usage, cost: Cost | undefined): Fields {
  const cacheWrite = usage.cacheWrite5m + usage.cacheWrite1h;
  const prompt = usage.input + usage.cacheRead + cacheWrite;
  const inputDetails: Fields = { cached_tokens: usage.cacheRead, cache_write_tokens: cacheWrite };
  const outputDetails: Fields = { reasoning_tokens: usage.reasoning };
  if (usage.inputAudio !== undefined) inputDetails['audio_tokens'] = usage.inputAudio;
  if (usage.inputImage !== undefined) inputDetails['image_tokens'] = usage.inputImage;
  if (usage.outputAudio !== undefined) outputDetails['audio_tokens'] = usage.outputAudio;
  if (usage.outputImage !== undefined) outputDetails['image_tokens'] = usage.outputImage;
  if (usage.acceptedPrediction !== undefined) outputDetails['accepted_prediction_tokens'] = usage.acceptedPrediction;
  if (usage.rejectedPrediction !== undefined) outputDetails['rejected_prediction_tokens'] = usage.rejectedPrediction;
  const record: Fields = {
    prompt_tokens: prompt,
    completion_tokens: usage.output,
    total_tokens: prompt + usage.output,
    prompt_tokens_details: inputDetails,
    completion_tokens_details: outputDetails,
  };
  const served = serverToolCounts(usage);
  if (served !== undefined) Object.assign(record, { server_tool_use: served, server_tool_use_details: served });
  Object.assign(record, costMembers(cost));
  return record;
}

/** `usage` of an answer whose counts are known, otherwise undefined. */
export function closingUsage(closing: Closing): Fields | undefined {
  return closing.usage === undefined ? undefined : encodeUsage(closing.usage, closing.cost);
}

/**
 * The same for a relayed answer: the upstream's record and its unknown members, with our counts and cost. An upstream's
 * own cost is never passed on.
 */
export function relayedUsage(closing: Closing): Fields | undefined {
  const ours = closingUsage(closing);
  const native = closing.usage?.native;
  if (ours === undefined || native === undefined || native.origin !== 'chat') return ours;
  const theirs = native.value;
  const merged: Fields = {};
  for (const key in theirs) if (!NOT_THEIRS.has(key)) merged[key] = theirs[key];
  for (const key in ours) {
    const before = isRecord(key) ? fieldsOrUndefined(merged[key]) : undefined;
    merged[key] = before === undefined ? ours[key] : { ...before, ...fieldsOrUndefined(ours[key]) };
  }
  return merged;
}

/** Whether the member is a record of counts, whose unknown members are kept. */
function isRecord(key: string): boolean {
  return key.endsWith('_details') || key === 'server_tool_use';
}

/** Only the gateway reports cost. `__proto__` could not be assigned as a member. */
const NOT_THEIRS: ReadonlySet<string> = new Set(['cost', 'is_byok', 'cost_details', '__proto__']);
