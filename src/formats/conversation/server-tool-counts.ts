/** Counts of server-side tool calls, which chat and responses report in one record of `usage`. */
import type { Usage } from './conversation.ts';
import { countOf, type Fields, fieldsOf } from './fields.ts';

const COUNTS = [
  ['web_search_requests', 'webSearches'],
  ['tool_calls_requested', 'toolCallsRequested'],
  ['tool_calls_executed', 'toolCallsExecuted'],
] as const;

/** Adds the counts of several records that may repeat each other; leaves out zero and absent counts. */
export function addServerToolCounts(usage: Usage, ...records: unknown[]): void {
  for (const [member, name] of COUNTS) {
    for (const record of records) {
      const amount = countOf(fieldsOf(record)[member]);
      if (amount > 0) usage[name] ??= amount;
    }
  }
}

/** The record; undefined when there is nothing to report. */
export function serverToolCounts(usage: Usage): Fields | undefined {
  const record: Fields = {};
  for (const [member, name] of COUNTS) if (usage[name] !== undefined) record[member] = usage[name];
  return Object.keys(record).length === 0 ? undefined : record;
}
