/** Counts of tools that an upstream runs itself, which chat and responses keep in one record of `usage`. */
import type { Usage } from './conversation.ts';
import { countOf, type Fields, fieldsOf } from './fields.ts';

const COUNTS = [
  ['web_search_requests', 'webSearches'],
  ['tool_calls_requested', 'toolCallsRequested'],
  ['tool_calls_executed', 'toolCallsExecuted'],
] as const;

/** Adds the counts of a record, of which several may say the same; what is zero or absent is left out. */
export function addServerToolCounts(usage: Usage, ...records: unknown[]): void {
  for (const [member, name] of COUNTS) {
    for (const record of records) {
      const amount = countOf(fieldsOf(record)[member]);
      if (amount > 0) usage[name] ??= amount;
    }
  }
}

/** The record; undefined where there is nothing to count. */
export function serverToolCounts(usage: Usage): Fields | undefined {
  const record: Fields = {};
  for (const [member, name] of COUNTS) if (usage[name] !== undefined) record[member] = usage[name];
  return Object.keys(record).length === 0 ? undefined : record;
}
