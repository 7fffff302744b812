/** The history of a chat request. */
import { fieldsOf, listOf, textOf } from '../conversation/fields.ts';
import type { HistoryWords } from '../conversation/history.ts';

export const history: HistoryWords = {
  root: 'messages',
  content: 'content',
  textPart: (text) => ({ type: 'text', text }),
  item(value) {
    const { role, tool_calls: calls, tool_call_id: id } = fieldsOf(value);
    if (role === 'user') return { kind: 'user' };
    if (role === 'assistant') {
      return { kind: 'assistant', calls: listOf(calls).map((call) => textOf(fieldsOf(call)['id'])) };
    }
    if (role === 'tool' || role === 'function') return { kind: 'result', results: [textOf(id)] };
    return { kind: 'pinned' };
  },
};
