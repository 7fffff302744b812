/**
 * Removes thinking text when the client excludes it (`reasoning.exclude`) but the service returns it anyway. Signatures
 * and encrypted thinking stay: they reveal nothing, and the next turn needs them.
 */

import type { Part, Turn, TurnEvent } from '../conversation/conversation.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import type { Restoring } from './adapter.ts';

/** For the client's side only: the model gets its reasoning back between the turns of one answer. */
export const hideReasoning: Restoring = { decoder: hidingDecoder, turn: hidingTurn };

function hidingDecoder(inner: TurnDecoder): TurnDecoder {
  /** The parts that hold thinking, by choice and index. */
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

/** Hides the thinking of a complete answer; parts that are neither signed nor encrypted are dropped. */
function hidingTurn(turn: Turn): Turn {
  const isKept = (part: Part) =>
    part.type !== 'reasoning' || part.signature !== undefined || part.encrypted !== undefined;
  const choices = turn.choices.map((choice) => ({
    ...choice,
    parts: choice.parts.filter(isKept).map(withoutThinking),
  }));
  return { ...turn, choices };
}
