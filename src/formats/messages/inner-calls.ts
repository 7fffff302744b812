/**
 * Calls that an upstream of the messages form makes by itself within an answer: compactions (`context_management`,
 * `compaction`) and advisors (platform.claude.com, "Compaction", "Advisor tool"). What they read and wrote comes back in
 * `usage.iterations`.
 */
import { countOf, type Fields, fieldsOf, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { InnerCalls } from '../conversation/format.ts';

/** Where an edit names no trigger. */
const COMPACTS_FROM = 150_000;
/** Without `max_uses`: after so many rounds of server tools the service pauses the turn. */
const MOST_USES = 10;
/** Tools that the client runs, though they have a type. */
const CLIENT_TOOL = /^(?:custom$|function$|bash_|text_editor_|computer_|memory_)/;

/** Undefined for none, which is the rule. */
export function innerCallsOf(request: Fields): InnerCalls | undefined {
  const compactsFrom = compactionOf(request);
  const advisors: { model: string; uses: number; maxOutputTokens?: number }[] = [];
  for (const tool of listOf(request['tools'])) {
    const { type, model, max_uses: uses, max_tokens } = fieldsOf(tool);
    if (typeof type !== 'string' || !type.startsWith('advisor_')) continue;
    const most = countOf(max_tokens);
    advisors.push({
      model: textOrUndefined(model) ?? '',
      uses: typeof uses === 'number' ? Math.min(countOf(uses), MOST_USES) : MOST_USES,
      ...(most > 0 && { maxOutputTokens: most }),
    });
  }
  if (compactsFrom === undefined && advisors.length === 0) return undefined;
  return { ...(compactsFrom !== undefined && { compactsFrom }), advisors, serverTools: hasServerTools(request) };
}

function compactionOf(request: Fields): number | undefined {
  // Asked for by name, whatever the size.
  if ((request['compaction'] ?? null) !== null) return 0;
  for (const entry of listOf(fieldsOf(request['context_management'])['edits'])) {
    const { type, trigger } = fieldsOf(entry);
    if (typeof type !== 'string' || !type.startsWith('compact_')) continue;
    const value = fieldsOf(trigger)['value'];
    return typeof value === 'number' ? value : COMPACTS_FROM;
  }
  return undefined;
}

function hasServerTools(request: Fields): boolean {
  if (listOf(request['mcp_servers']).length > 0) return true;
  return listOf(request['tools']).some((tool) => {
    const { type } = fieldsOf(tool);
    return typeof type === 'string' && !CLIENT_TOOL.test(type);
  });
}
