/** The history of a messages request: results of calls are blocks of the user's message after them. */
import { type Fields, fieldsOf, listOf, textOf } from '../conversation/fields.ts';
import { type HistoryWords, textsOf } from '../conversation/history.ts';

const textPart = (text: string) => ({ type: 'text', text });

export const history: HistoryWords = {
  root: 'messages',
  content: 'content',
  textPart,
  instructions: {
    member: () => 'system',
    read: textsOf,
    with(value, text) {
      if ((value ?? null) === null) return text;
      return [...(typeof value === 'string' ? [textPart(value)] : listOf(value)), textPart(text)];
    },
  },
  item(value) {
    const { role, content } = fieldsOf(value);
    const blocks = listOf(content).map(fieldsOf);
    // A compaction block replaces everything before it.
    if (role === 'system' || blocks.some(({ type }) => type === 'compaction')) return { kind: 'pinned' };
    if (role === 'assistant') {
      const calls = blocks.filter(({ type }) => type === 'tool_use').map(({ id }) => textOf(id));
      return { kind: 'assistant', calls };
    }
    const results = blocks.filter(({ type }) => type === 'tool_result').map(({ tool_use_id: id }) => textOf(id));
    return results.length > 0 ? { kind: 'result', results } : { kind: 'user' };
  },
};

/** The path of the first compaction block that replaces everything before it; one without content failed. */
export function compactionIn(request: Fields): string | undefined {
  for (const [index, message] of listOf(request['messages']).entries()) {
    const block = listOf(fieldsOf(message)['content']).findIndex((each) => isCompaction(fieldsOf(each)));
    if (block !== -1) return `messages[${index}].content[${block}]`;
  }
  return undefined;
}

function isCompaction({ type, content, encrypted_content: encrypted }: Fields): boolean {
  return type === 'compaction' && (content ?? encrypted ?? null) !== null;
}
