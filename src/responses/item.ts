/** An item of an input as the API lists it. Pure. */

type Item = Record<string, unknown>;
type ShownItem = Item & { id: string };

/** Items with an id each. @param seed makes the ids of those that have none */
export function withIds(items: readonly unknown[], seed: string): ShownItem[] {
  return items.map((value, index) => {
    const item = value as Item;
    const id = typeof item['id'] === 'string' && item['id'] !== '' ? item['id'] : `${prefixOf(item)}_${seed}${index}`;
    return { ...shownItem(item), id };
  });
}

/** With other ids for items whose id an earlier item has: clients send items again, and a page begins after an id. */
export function distinct<Item extends { id: string }>(items: readonly Item[]): Item[] {
  const uses = new Map<string, number>();
  return items.map((item) => {
    let { id } = item;
    while (uses.has(id)) {
      const count = uses.get(id)! + 1;
      uses.set(id, count);
      id = `${id}_${count}`;
    }
    uses.set(id, 1);
    return { ...item, id };
  });
}

const PREFIXES = new Map<unknown, string>(
  Object.entries({
    message: 'msg',
    function_call: 'fc',
    function_call_output: 'fco',
    apply_patch_call: 'apc',
    apply_patch_call_output: 'apco',
    custom_tool_call: 'ctc',
    custom_tool_call_output: 'ctco',
    reasoning: 'rs',
  }),
);

export function prefixOf({ type = 'message' }: Item): string {
  return PREFIXES.get(type) ?? 'item';
}

/** A message with its content as a list, which clients expect. */
export function shownItem(item: Item): Item {
  const { type = 'message', content, role } = item;
  if (type !== 'message') return item;
  if (typeof content !== 'string') return { ...item, type };
  const part =
    role === 'assistant'
      ? { type: 'output_text', text: content, annotations: [] }
      : { type: 'input_text', text: content };
  return { status: 'completed', ...item, type, content: [part] };
}
