/** Tells the model the rules in the system prompt of its request. Pure. */
import { applyEdits, type JsonDocument, readDocument, stringifyJson } from '../../../base/json.ts';
import { fieldsOf, listOf } from '../../../formats/conversation/fields.ts';
import type { ServedFormat } from '../../../formats/conversation/format.ts';

/** After the request's own instructions, so that prompt caches keep those. */
export function withInstructions(
  { id, history: { root } }: Pick<ServedFormat, 'id' | 'history'>,
  document: JsonDocument,
  rules: readonly string[],
): JsonDocument {
  const text = `Keep to these rules in everything that you write:\n${rules.map((rule) => `- ${rule}`).join('\n')}`;
  const key = id === 'messages' ? 'system' : root;
  const given = document.exact[key];
  const changed = id === 'messages' ? systemWith(given, text) : historyWith(given, text);
  return readDocument(applyEdits(document, [{ key, json: stringifyJson(changed) }]));
}

function systemWith(system: unknown, text: string): unknown[] {
  const before = typeof system === 'string' ? [{ type: 'text', text: system }] : listOf(system);
  return [...before, { type: 'text', text }];
}

function historyWith(history: unknown, text: string): unknown[] {
  const items = typeof history === 'string' ? [{ role: 'user', content: history }] : listOf(history);
  const at = items.findIndex((item) => !INSTRUCTING.has(fieldsOf(item)['role']));
  return items.toSpliced(at === -1 ? items.length : at, 0, { role: 'system', content: text });
}

const INSTRUCTING: ReadonlySet<unknown> = new Set(['system', 'developer']);
