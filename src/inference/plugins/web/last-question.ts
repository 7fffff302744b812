/** The client's last question: its text, and the request with a text before it. Pure. */
import type { JsonDocument } from '../../../base/json.ts';
import { readDocument, stringifyJson } from '../../../base/json.ts';
import { applyEdits } from '../../../base/json-edits.ts';
import { fieldsOf, listOf, textOf } from '../../../formats/conversation/fields.ts';
import type { ServedFormat } from '../../../formats/conversation/format.ts';

type Asked = Pick<ServedFormat, 'history'>;

/** '' if there is none. */
export function lastQuestion({ history }: Asked, body: Readonly<Record<string, unknown>>): string {
  const input = body[history.root];
  if (typeof input === 'string') return input;
  const last = fieldsOf(listOf(input).findLast((item) => history.item(item).kind === 'user'));
  const content = last[history.content];
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((part) => textOf(fieldsOf(part)['text']))
    .filter((text) => text !== '')
    .join('\n');
}

/** @param document has a last question */
export function withTextBefore({ history }: Asked, document: JsonDocument, text: string): JsonDocument {
  const { root } = history;
  const input = document.exact[root];
  const changed = typeof input === 'string' ? `${text}\n\n${input}` : inList(listOf(input));
  return readDocument(applyEdits(document, [{ key: root, json: stringifyJson(changed) }]));

  function inList(items: readonly unknown[]): unknown[] {
    const at = items.findLastIndex((item) => history.item(item).kind === 'user');
    return items.map((item, index) => {
      if (index !== at) return item;
      const content = fieldsOf(item)[history.content];
      const changed =
        typeof content === 'string' ? `${text}\n\n${content}` : [history.textPart(text), ...listOf(content)];
      return { ...fieldsOf(item), [history.content]: changed };
    });
  }
}
