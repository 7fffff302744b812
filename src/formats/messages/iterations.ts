/**
 * `usage.iterations`: the calls that form one answer. An upstream summarizes the conversation (`compaction`), asks
 * another model (`advisor_message`), or hands a declined request to another model (`fallback_message`). Each call is
 * billed at its own model's price, except those declined before any output (platform.claude.com, "Compaction", "Advisor
 * tool", "Refusals and fallback"; also BerriAI/litellm#27060, pydantic/pydantic-ai#5065).
 */
import type { Usage } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, textOrUndefined } from '../conversation/fields.ts';
import { beyond, type UsageCall } from '../conversation/usage.ts';
import { countsOf } from './counts.ts';

/** Calls of the answering model; the record's own counts are their sum. */
const ANSWERING: readonly unknown[] = ['message', 'fallback_message'];
/** Further calls are ignored. */
const MOST_CALLS = 1_000;

/**
 * The billed calls. Undefined if the iterations add nothing to the record.
 * @param own the counts of the record itself
 */
export function billedCalls(iterations: readonly unknown[], own: Usage): UsageCall[] | undefined {
  const records = iterations.slice(0, MOST_CALLS).filter(isFields);
  if (records.length === 0) return undefined;
  const lastFallback = records.findLastIndex(({ type }) => type === 'fallback_message');
  const billed = records.filter((record, index) => !(index < lastFallback && isDeclined(record)));
  const calls = billed.map(callOf);
  splitCacheWrites(billed, calls, own);
  const answering = calls.filter((_, index) => ANSWERING.includes(billed[index]!['type']));
  spreadReasoning(answering, own);
  const rest = beyond(own, answering);
  // An answer that ends with its compaction may repeat those counts in the record.
  const repeated =
    answering.length === 0 && calls.length === 1 && beyond(calls[0]!.usage, [{ usage: own }]) === undefined;
  if (rest !== undefined && !(repeated && beyond(own, calls) === undefined)) calls.push({ usage: rest });
  return calls;
}

/** Whether a model declined the request before writing anything. */
function isDeclined(record: Fields): boolean {
  return ANSWERING.includes(record['type']) && countsOf(record).output === 0;
}

function callOf(record: Fields): UsageCall {
  const model = textOrUndefined(record['model']);
  return { ...(model !== undefined && { model }), usage: countsOf(record) };
}

/** Iterations may report only the sum of their cache writes; the record has the split. */
function splitCacheWrites(records: readonly Fields[], calls: readonly UsageCall[], own: Usage): void {
  let hours = own.cacheWrite1h - calls.reduce((sum, { usage }) => sum + usage.cacheWrite1h, 0);
  for (const [index, { usage }] of calls.entries()) {
    if (hours <= 0) return;
    if (Object.keys(fieldsOf(records[index]!['cache_creation'])).length > 0) continue;
    const part = Math.min(hours, usage.cacheWrite5m);
    usage.cacheWrite5m -= part;
    usage.cacheWrite1h += part;
    hours -= part;
  }
}

/** Iterations rarely report thinking; the record has the total of all answering calls. */
function spreadReasoning(calls: readonly UsageCall[], own: Usage): void {
  let left = own.reasoning - calls.reduce((sum, { usage }) => sum + usage.reasoning, 0);
  for (const { usage } of calls) {
    if (left <= 0) return;
    const part = Math.min(left, usage.output - usage.reasoning);
    usage.reasoning += part;
    left -= part;
  }
}
