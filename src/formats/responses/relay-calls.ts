/**
 * Replaces call ids in relayed replies where the upstream's ids are not distinct, with the ids that the decoder
 * assigned.
 */
import { scanMembers, stringifyJson } from '../../base/json.ts';
import { patchMembers } from '../../base/json-edits.ts';
import type { Part, TurnEvent } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, textOf } from '../conversation/fields.ts';

export class RelayedCalls {
  /** Replaced ids, by the output index of their item. */
  readonly #renamed = new Map<unknown, string>();

  /** An `added` or `done` event with the call id that the client sees. */
  item(data: string, value: Fields, events: readonly TurnEvent[]): { data: string; value: Fields } {
    const item = fieldsOf(value['item']);
    if (!isCall(item)) return { data, value };
    const place = value['output_index'];
    const started = events.find((event) => event.type === 'partStart');
    if (started?.part.type === 'toolCall' && started.part.id !== item['call_id'])
      this.#renamed.set(place, started.part.id);
    const id = this.#renamed.get(place);
    if (id === undefined) return { data, value };
    const members = scanMembers(data);
    const inner = members.findLast(({ key }) => key === 'item')!;
    const text = data.slice(inner.valueStart, inner.valueEnd);
    const json = patchMembers(text, scanMembers(text), [{ key: 'call_id', json: JSON.stringify(id) }]);
    return {
      data: patchMembers(data, members, [{ key: 'item', json }]),
      value: { ...value, item: { ...item, call_id: id } },
    };
  }

  /** The output of the terminal event; undefined if unchanged. */
  output(items: readonly unknown[]): unknown[] | undefined {
    if (this.#renamed.size === 0) return undefined;
    return items.map((item, index) => {
      const id = this.#renamed.get(index);
      return id === undefined || !isFields(item) ? item : { ...item, call_id: id };
    });
  }
}

/** The output of a complete reply as JSON, with the call ids of `parts`; undefined if unchanged. */
export function outputWithIds(output: readonly unknown[], parts: readonly Part[]): string | undefined {
  const ids = parts.flatMap((part) => (part.type === 'toolCall' ? part.id : []));
  if (ids.length === 0) return undefined;
  let changed = false;
  let next = 0;
  const items = output.map((item) => {
    if (!isFields(item) || !isCall(item) || textOf(item['name']) === '') return item;
    const id = ids[next++];
    if (id === undefined || id === item['call_id']) return item;
    changed = true;
    return { ...item, call_id: id };
  });
  return changed ? stringifyJson(items) : undefined;
}

function isCall({ type }: Fields): boolean {
  return type === 'function_call' || type === 'custom_tool_call';
}
