/** Adds citations to the texts of an answer. */
import type { Citation, Turn, TurnEvent } from '../../formats/conversation/conversation.ts';
import { collect, eventsOf } from '../../formats/conversation/replay.ts';
import type { AnswerRevision } from './plugin.ts';

/** UTF-16 units of a text that are searched for what it cites. */
const MAX_LENGTH = 1024 * 1024;

export class Citing implements AnswerRevision {
  readonly #cites: (text: string, isFirst: boolean) => readonly Citation[];
  /** The open texts of the first choice, by the index of their part. */
  readonly #texts = new Map<number, string>();
  #first: number | undefined;

  /** @param cites the citations of a complete text of the answer */
  constructor(cites: (text: string, isFirst: boolean) => readonly Citation[]) {
    this.#cites = cites;
  }

  take(events: readonly TurnEvent[]): TurnEvent[] {
    return events.flatMap((event) => {
      if (!('choice' in event) || event.choice !== 0) return [event];
      if (event.type === 'partStart' && event.part.type === 'text') {
        this.#first ??= event.index;
        this.#texts.set(event.index, event.part.text);
      } else if (event.type === 'partDelta') {
        const text = this.#texts.get(event.index);
        const more = event.delta.text ?? '';
        if (text !== undefined && text.length < MAX_LENGTH) this.#texts.set(event.index, text + more);
      } else if (event.type === 'partStop') return [...this.#citations(event.index), event];
      return [event];
    });
  }

  turn(turn: Turn): Turn {
    return { ...turn, choices: collect(this.take(eventsOf(turn))).choices };
  }

  #citations(index: number): TurnEvent[] {
    const text = this.#texts.get(index);
    if (text === undefined) return [];
    this.#texts.delete(index);
    return this.#cites(text, index === this.#first).map((citation) => {
      return { type: 'partDelta', choice: 0, index, delta: { citation } };
    });
  }
}
