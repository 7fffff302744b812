/** The item that replaces a compacted conversation, and the input from which a model writes its summary. Pure. */
import { type JsonDocument, readDocument, stringifyJson } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import { packSummary, summaryOf } from '../../formats/conversation/compaction.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../../formats/conversation/fields.ts';

const TYPE = 'compaction';
/** Begins the message that takes the place of the item, so that the next compaction does not keep it as the user's own. */
const PREFACE = 'Summary of the conversation before this point:\n\n';

const PROMPT =
  'Your context is nearly full. Write a summary of the conversation so far that lets another model continue it without ' +
  'having seen it: what the user asked for, what was decided and why, what was done and found (with names, paths, numbers ' +
  'and code that will be needed again), and what remains to be done. Write the summary only.';

/** Longer strings inside of an item that is only described are cut. */
const LONGEST_MEMBER = 2_000;

export function compactionItem(id: string, summary: string): Fields {
  return { id, type: TYPE, encrypted_content: packSummary(summary) };
}

export function hasCompactions({ structure: { input } }: JsonDocument): boolean {
  return Array.isArray(input) && input.some((item) => isFields(item) && item['type'] === TYPE);
}

/** The request with the summary in place of each compaction that this gateway made. Those of vendors stay. */
export function withSummaries(document: JsonDocument): JsonDocument {
  const items = listOf(document.exact['input']).map((item) => {
    const summary = summaryOf(fieldsOf(item));
    return summary === undefined ? item : message('user', PREFACE + summary);
  });
  return readDocument(applyEdits(document, [{ key: 'input', json: stringifyJson(items) }]));
}

/** What the compacted conversation keeps unchanged. */
export function userMessages(items: readonly unknown[]): Fields[] {
  return items.filter((item): item is Fields => {
    const { type = 'message', role, content } = fieldsOf(item);
    return type === 'message' && role === 'user' && !(typeof content === 'string' && content.startsWith(PREFACE));
  });
}

/**
 * The input that asks for a summary. Calls and their results become texts: the request declares no tools, and many
 * providers refuse calls of tools that are not declared.
 */
export function summaryInput(items: readonly unknown[]): Fields[] {
  return [...items.flatMap(described), message('user', PROMPT)];
}

function described(value: unknown): Fields[] {
  const item = fieldsOf(value);
  const type = textOf(item['type']) || 'message';
  if (type === 'message' || type === TYPE) return [item];
  // Its provider would want the call that it belongs to.
  if (type === 'reasoning') return [];
  if (type === 'function_call' || type === 'custom_tool_call') {
    return [message('assistant', `[Call of ${textOf(item['name'])}: ${textOf(item['arguments'] ?? item['input'])}]`)];
  }
  if (type === 'function_call_output' || type === 'custom_tool_call_output') {
    const { output } = item;
    if (typeof output === 'string') return [message('user', `[Result: ${output}]`)];
    return [{ ...message('user', ''), content: [{ type: 'input_text', text: '[Result]' }, ...listOf(output)] }];
  }
  return [message('user', `[${type}: ${stringifyJson(cut(item))}]`)];
}

function cut(value: unknown): unknown {
  if (typeof value === 'string') return value.length > LONGEST_MEMBER ? `${value.slice(0, LONGEST_MEMBER)}...` : value;
  if (Array.isArray(value)) return value.map(cut);
  return isFields(value) ? Object.fromEntries(Object.entries(value).map(([key, member]) => [key, cut(member)])) : value;
}

function message(role: 'user' | 'assistant', content: string): Fields {
  return { type: 'message', role, content };
}
