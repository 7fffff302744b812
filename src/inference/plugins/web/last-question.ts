/** The client's last question: its text, and the request with a text before it. Pure. */
import type { JsonDocument } from '../../../base/json.ts';
import { applyEdits, readDocument, stringifyJson } from '../../../base/json.ts';
import { fieldsOf, listOf, textOf } from '../../../formats/conversation/fields.ts';
import type { ServedFormat } from '../../../formats/conversation/format.ts';

type Asked = Pick<ServedFormat, 'history' | 'id'>;

/** '' if there is none. */
export function lastQuestion({ history }: Asked, body: Readonly<Record<string, unknown>>): string {
  const input = body[history.root];
  if (typeof input === 'string') return input;
  const { content } = fieldsOf(listOf(input).findLast((item) => history.item(item).kind === 'user'));
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((part) => textOf(fieldsOf(part)['text']))
    .filter((text) => text !== '')
    .join('\n');
}

/** @param document has a last question */
export function withTextBefore({ history, id }: Asked, document: JsonDocument, text: string): JsonDocument {
  const { root } = history;
  const input = document.exact[root];
  const changed = typeof input === 'string' ? `${text}\n\n${input}` : inList(listOf(input));
  return readDocument(applyEdits(document, [{ key: root, json: stringifyJson(changed) }]));

  function inList(items: readonly unknown[]): unknown[] {
    const at = items.findLastIndex((item) => history.item(item).kind === 'user');
    return items.map((item, index) => {
      if (index !== at) return item;
      const { content, ...rest } = fieldsOf(item);
      const part = { type: id === 'responses' ? 'input_text' : 'text', text };
      return { ...rest, content: typeof content === 'string' ? `${text}\n\n${content}` : [part, ...listOf(content)] };
    });
  }
}
