/** The history of a responses request: messages, calls, results and reasoning are items of one list. */
import { type Fields, fieldsOf, listOf, textOf } from '../conversation/fields.ts';
import { type HistoryItem, type HistoryWords, textsOf } from '../conversation/history.ts';
import { INCLUDE_ENCRYPTED, INCLUDE_LOGPROBS } from './fields.ts';

const COMPACTIONS = new Set<unknown>(['compaction', 'context_compaction']);

/** Items that apply to all of the history, or stand for a part of it. */
const PINNED = /^(?:additional_tools|compaction|context_compaction|mcp_list_tools|tool_search_(?:call|output))$/;

export const history: HistoryWords = {
  root: 'input',
  content: 'content',
  textPart: (text) => ({ type: 'input_text', text }),
  instructions: {
    member: () => 'instructions',
    echoed: true,
    read: textsOf,
    with: (value, text) => [...textsOf(value), text].join('\n\n'),
  },
  item(value) {
    const item = fieldsOf(value);
    const type = textOf(item['type']) || 'message';
    if (type === 'message') return { kind: ofRole(item['role']) };
    if (type === 'reasoning') return { kind: 'prefix' };
    if (PINNED.test(type)) return { kind: 'pinned' };
    if (type === 'mcp_approval_request') return { kind: 'assistant', calls: [textOf(item['id'])] };
    if (type === 'mcp_approval_response') return { kind: 'result', results: [textOf(item['approval_request_id'])] };
    const id = textOf(item['call_id']) || textOf(item['id']);
    return type.endsWith('_output') ? { kind: 'result', results: [id] } : { kind: 'assistant', calls: [id] };
  },
};

function ofRole(role: unknown): HistoryItem['kind'] {
  return role === 'user' || role === 'assistant' ? role : 'pinned';
}

/** The path of the first compaction, which replaces the conversation before it, or of the first unknown `include`. */
export function ownContent({ input, include }: Fields): string | undefined {
  const index = listOf(input).findIndex((item) => COMPACTIONS.has(fieldsOf(item)['type']));
  if (index !== -1) return `input[${index}]`;
  const unknown = listOf(include).findIndex((name) => !INCLUDES.has(textOf(name)));
  return unknown === -1 ? undefined : `include[${unknown}]`;
}

/**
 * The values that OpenAI and xAI document. Endpoints of other formats report the ones that they lack as dropped. Other values go
 * only to endpoints of this format, whose vendors may know them.
 */
const INCLUDES: ReadonlySet<string> = new Set([
  'code_interpreter_call.outputs',
  'computer_call_output.output.image_url',
  'file_search_call.results',
  'message.input_image.image_url',
  INCLUDE_LOGPROBS,
  INCLUDE_ENCRYPTED,
  'web_search_call.action.sources',
  'web_search_call.results',
  'attachment_search_call_output',
  'code_execution_call_output',
  'collections_search_call_output',
  'inline_citations',
  'mcp_call_output',
  'no_inline_citations',
  'verbose_streaming',
  'web_search_call_output',
  'x_search_call_output',
]);
