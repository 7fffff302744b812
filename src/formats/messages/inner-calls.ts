/**
 * Calls that a messages upstream makes within an answer: compactions (`context_management`, `compaction`) and advisors
 * (platform.claude.com, "Compaction", "Advisor tool"). Their tokens are reported in `usage.iterations`.
 */
import { countOf, type Fields, fieldsOf, listOf, textOrUndefined } from '../conversation/fields.ts';
import type { InnerCalls } from '../conversation/format.ts';

/** Default when an edit names no trigger. */
const COMPACTS_FROM = 150_000;
/** Default without `max_uses`: the service pauses the turn after this many server tool rounds. */
const MOST_USES = 10;
/** Client-side tools that have a type. */
const CLIENT_TOOL = /^(?:custom$|function$|bash_|text_editor_|computer_|memory_)/;

/** Undefined (the usual case) when there are none. */
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
  // Requested explicitly, so it applies at any size.
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
