/**
 * Thinking that a client does not want to see (wire/chat.md, `reasoning.exclude`), for services that show it all the same.
 * Signatures and encrypted thinking stay: they say nothing, and the next turn needs them.
 */
import type { Part, Turn, TurnEvent } from './conversation.ts';
import type { TurnDecoder } from './format.ts';

export function hidingDecoder(inner: TurnDecoder): TurnDecoder {
  /** Parts that are thinking, by choice and index. */
  const thinking = new Set<string>();
  const hide = (events: readonly TurnEvent[]) => events.flatMap((event) => hidden(event, thinking));
  return {
    read: (name, data, value) => hide(inner.read(name, data, value)),
    close: () => hide(inner.close()),
    toldFinish: () => inner.toldFinish(),
  };
}

function hidden(event: TurnEvent, thinking: Set<string>): TurnEvent[] {
  if (event.type === 'partStart') {
    if (event.part.type === 'reasoning') thinking.add(`${event.choice} ${event.index}`);
    return [{ ...event, part: withoutThinking(event.part) }];
  }
  if (event.type !== 'partDelta' || !thinking.has(`${event.choice} ${event.index}`)) return [event];
  const { text: _, ...delta } = event.delta;
  return Object.keys(delta).length === 0 ? [] : [{ ...event, delta }];
}

function withoutThinking(part: Part): Part {
  return part.type === 'reasoning' ? { ...part, text: '' } : part;
}

/** Of a whole answer nothing is left of thinking that nobody has signed. */
export function hidingTurn(turn: Turn): Turn {
  const isKept = (part: Part) =>
    part.type !== 'reasoning' || part.signature !== undefined || part.encrypted !== undefined;
  const choices = turn.choices.map((choice) => ({
    ...choice,
    parts: choice.parts.filter(isKept).map(withoutThinking),
  }));
  return { ...turn, choices };
}
