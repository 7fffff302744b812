/** Adds the gateway's cache breakpoints to a relayed body. All other bytes stay as the client sent them. */
import { type JsonDocument, scanMembers } from '../../base/json.ts';
import { type Edit, patchMembers, type Splice, spliced } from '../../base/json-edits.ts';
import { scanElements } from '../../base/json-list.ts';
import { turnEnds } from '../conversation/cache-breakpoints.ts';
import { fieldsOf, listOf, textOf } from '../conversation/fields.ts';

const MARK = '{"type":"ephemeral"}';
/** A member name: within a string its quotes would be escaped. */
const MARKED = '"cache_control"';

/**
 * Edits that place breakpoints like `withBreakpoints`, at most `limit`; none when the client set any.
 * @param messages the text of `messages` if another edit replaces it
 */
export function breakpointEdits(document: JsonDocument, messages: string | undefined, limit: number): Edit[] {
  if (document.bytes.includes(MARKED)) return [];
  const list: Edit[] = [];
  let left = limit;
  const { tools } = document.structure;
  const text = messages ?? textOfMember(document, 'messages') ?? '[]';
  const rows = listOf(messages === undefined ? document.structure['messages'] : JSON.parse(messages));
  const [last, beforeLast] = turnEnds(
    rows.map((row) => textOf(fieldsOf(row)['role'])),
    listOf(tools).length > 0,
  );
  const spans = scanElements(text);
  const place = (splices: Splice[], at: number | undefined) => {
    const span = at === undefined || left === 0 ? undefined : spans[at];
    const marked = span && markContent(text.slice(span.start, span.end));
    if (marked === undefined) return;
    left -= 1;
    splices.push({ ...span!, text: marked });
  };
  const turns: Splice[] = [];
  place(turns, last);
  const system = left > 0 ? markTexts(textOfMember(document, 'system')) : undefined;
  if (system !== undefined) {
    left -= 1;
    list.push({ key: 'system', json: system });
  }
  place(turns, beforeLast);
  if (turns.length > 0)
    list.push({
      key: 'messages',
      json: spliced(
        text,
        turns.toSorted((a, b) => a.start - b.start),
      ),
    });
  const toolAt = listOf(tools).findLastIndex((tool) => fieldsOf(tool)['defer_loading'] !== true);
  if (toolAt >= 0 && left > 0) {
    const toolText = textOfMember(document, 'tools')!;
    const span = scanElements(toolText)[toolAt]!;
    list.push({
      key: 'tools',
      json: spliced(toolText, [{ ...span, text: markObject(toolText.slice(span.start, span.end)) }]),
    });
  }
  return list;
}

function textOfMember({ bytes, members }: JsonDocument, key: string): string | undefined {
  const member = members.find((one) => one.key === key);
  return member && bytes.toString('utf8', member.valueStart, member.valueEnd);
}

/** The message with a breakpoint on its last block that accepts one; undefined if there is none. */
function markContent(message: string): string | undefined {
  const members = scanMembers(message);
  const content = members.findLast(({ key }) => key === 'content');
  const marked = content && markTexts(message.slice(content.valueStart, content.valueEnd));
  return marked && patchMembers(message, members, [{ key: 'content', json: marked }]);
}

/** Converts a text or list of blocks (JSON) to blocks with a breakpoint; undefined if no block accepts one. */
function markTexts(json: string | undefined): string | undefined {
  if (json === undefined) return undefined;
  const value: unknown = JSON.parse(json);
  if (typeof value === 'string') {
    return value.trim() === '' ? undefined : `[{"type":"text","text":${json},"cache_control":${MARK}}]`;
  }
  if (!Array.isArray(value)) return undefined;
  const at = value.findLastIndex(takesMark);
  const span = at < 0 ? undefined : scanElements(json)[at];
  return span && spliced(json, [{ ...span, text: markObject(json.slice(span.start, span.end)) }]);
}

/** The vendor rejects breakpoints on thinking and on blank text. */
function takesMark(block: unknown): boolean {
  const { type, text } = fieldsOf(block);
  if (type === 'thinking' || type === 'redacted_thinking') return false;
  return type !== 'text' || textOf(text).trim() !== '';
}

function markObject(json: string): string {
  return patchMembers(json, scanMembers(json), [{ key: 'cache_control', json: MARK }]);
}
