/** Tells the model the rules in the system prompt of its request. Pure. */
import { type JsonDocument, readDocument, stringifyJson } from '../../../base/json.ts';
import { applyEdits } from '../../../base/json-edits.ts';
import { fieldsOf, listOf } from '../../../formats/conversation/fields.ts';
import type { ServedFormat } from '../../../formats/conversation/format.ts';

/** After the request's own instructions, so that prompt caches keep those, and where no answer repeats the rules. */
export function withInstructions(
  { history: { root, instructions } }: Pick<ServedFormat, 'history'>,
  document: JsonDocument,
  rules: readonly string[],
): JsonDocument {
  const text = `Keep to these rules in everything that you write:\n${rules.map((rule) => `- ${rule}`).join('\n')}`;
  const own = instructions?.echoed === true ? undefined : instructions;
  const key = own === undefined ? root : own.member(document.structure);
  const given = document.exact[key];
  const changed = own === undefined ? historyWith(given, text) : own.with(given, text);
  return readDocument(applyEdits(document, [{ key, json: stringifyJson(changed) }]));
}

function historyWith(history: unknown, text: string): unknown[] {
  const items = typeof history === 'string' ? [{ role: 'user', content: history }] : listOf(history);
  const at = items.findIndex((item) => !INSTRUCTING.has(fieldsOf(item)['role']));
  return items.toSpliced(at === -1 ? items.length : at, 0, { role: 'system', content: text });
}

const INSTRUCTING: ReadonlySet<unknown> = new Set(['system', 'developer']);
