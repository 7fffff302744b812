/** The history of a client's request: results of calls are parts of the user's content after them. */
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import { type HistoryWords, textsOf } from '../conversation/history.ts';
import { givenName, member } from './names.ts';

export const history: HistoryWords = {
  root: 'contents',
  content: 'parts',
  textPart: (text) => ({ text }),
  instructions: {
    member: (request) => givenName(request, 'systemInstruction'),
    read: (value) => textsOf(fieldsOf(value)['parts']),
    with: (value, text) => {
      const { parts, ...others } = fieldsOf(value);
      return { ...others, parts: [...(isFields(parts) ? [parts] : listOf(parts)), { text }] };
    },
  },
  item(value) {
    const { role, parts: given } = fieldsOf(value);
    const parts = (isFields(given) ? [given] : listOf(given)).map(fieldsOf);
    if (role === 'model') return { kind: 'assistant', calls: idsOf(parts, 'functionCall') };
    const results = idsOf(parts, 'functionResponse');
    return results.length > 0 ? { kind: 'result', results } : { kind: 'user' };
  },
};

/** Calls without an id are known by their names. */
function idsOf(parts: readonly Fields[], name: string): string[] {
  return parts.flatMap((part) => {
    const call = member(part, name);
    return isFields(call) ? [textOf(call['id']) || textOf(call['name'])] : [];
  });
}
