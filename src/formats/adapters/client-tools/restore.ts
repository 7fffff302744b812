/** Restores function calls in an answer to calls of the client's tools. */
import type { Part, ToolCallPart, TurnEvent } from '../../conversation/conversation.ts';
import type { ClientTool, Directory } from './directory.ts';
import { FreeText } from './free-text.ts';
import { freeTextOf } from './shapes.ts';

export class CallRestorer {
  readonly #directory: Directory;
  /** Open calls of custom tools, by choice and index. */
  readonly #open = new Map<string, FreeText>();

  constructor(directory: Directory) {
    this.#directory = directory;
  }

  take(events: TurnEvent[]): TurnEvent[] {
    let changed: TurnEvent[] | undefined;
    for (let at = 0; at < events.length; at++) {
      const event = events[at]!;
      const shown = this.#one(event);
      if (changed === undefined && shown.length === 1 && shown[0] === event) continue;
      changed ??= events.slice(0, at);
      changed.push(...shown);
    }
    return changed ?? events;
  }

  /** A part of a complete answer. */
  part(part: Part): Part {
    if (part.type !== 'toolCall' || part.custom === true) return part;
    const tool = this.#directory.find(part.name);
    if (tool === undefined) return part;
    const restored = restoredCall(part, tool);
    return tool.kind === 'custom' ? { ...restored, arguments: freeTextOf(part.arguments) } : restored;
  }

  #one(event: TurnEvent): TurnEvent[] {
    switch (event.type) {
      case 'partStart': {
        const { part } = event;
        if (part.type !== 'toolCall') return [event];
        const tool = this.#directory.find(part.name);
        if (tool === undefined) return [event];
        const restored = restoredCall(part, tool);
        if (tool.kind !== 'custom' || part.custom === true) return [{ ...event, part: restored }];
        const text = new FreeText();
        this.#open.set(keyOf(event), text);
        return [{ ...event, part: { ...restored, arguments: text.add(part.arguments) } }];
      }
      case 'partDelta': {
        if (this.#open.size === 0 || event.delta.arguments === undefined) return [event];
        const text = this.#open.get(keyOf(event));
        if (text === undefined) return [event];
        const { arguments: piece, ...others } = event.delta;
        const input = text.add(piece);
        if (input === '' && Object.keys(others).length === 0) return [];
        return [{ ...event, delta: { ...others, ...(input !== '' && { arguments: input }) } }];
      }
      case 'partStop': {
        if (this.#open.size === 0) return [event];
        const key = keyOf(event);
        const rest = this.#open.get(key)?.end() ?? '';
        this.#open.delete(key);
        const { choice, index } = event;
        return rest === '' ? [event] : [{ type: 'partDelta', choice, index, delta: { arguments: rest } }, event];
      }
      default:
        return [event];
    }
  }
}

function keyOf({ choice, index }: { choice: number; index: number }): string {
  return `${choice} ${index}`;
}

function restoredCall(part: ToolCallPart, { name, namespace, kind }: ClientTool): ToolCallPart {
  const { extras, ...call } = part;
  const { id, ...others } = extras?.responses ?? {};
  // An item's id starts with its type, so a call that changes type gets a new one.
  const own = {
    ...others,
    ...(id !== undefined && (kind === 'function' || part.custom === true) && { id }),
    ...(namespace !== undefined && { namespace }),
  };
  return {
    ...call,
    name,
    ...(kind === 'custom' && { custom: true }),
    ...(kind !== 'function' && kind !== 'custom' && { native: kind }),
    ...((extras !== undefined || Object.keys(own).length > 0) && { extras: { ...extras, responses: own } }),
  };
}
