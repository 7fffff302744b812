/**
 * Unique call ids. Some servers reuse one id for two calls of a turn, or for every call (xorbitsai/inference#4237).
 * Clients get distinct ids; duplicate ids in a history are made distinct before the request is sent, and results are
 * matched to their calls in order.
 */

import type { Conversation, Message, Part, Turn, TurnEvent } from '../conversation/conversation.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import type { TurnAdapter } from './adapter.ts';

/** The id itself if free, otherwise the id with a number appended. */
function freeId(id: string, isTaken: (id: string) => boolean): string {
  let free = id;
  for (let number = 2; isTaken(free); number++) free = `${id}_${number}`;
  return free;
}

/** The calls of one answer. */
export class CallIds {
  readonly #earlier: () => ReadonlySet<string>;
  #before: ReadonlySet<string> | undefined;
  /** Ids in use, by choice. */
  readonly #taken = new Map<number, Set<string>>();

  /** `earlier` returns the ids in the request's history; called only when the answer has a call. */
  constructor(earlier: () => ReadonlySet<string>) {
    this.#earlier = earlier;
  }

  distinct(id: string, choice: number): string {
    this.#before ??= this.#earlier();
    let taken = this.#taken.get(choice);
    if (taken === undefined) {
      taken = new Set();
      this.#taken.set(choice, taken);
    }
    const free = freeId(id, (one) => taken.has(one) || this.#before!.has(one));
    taken.add(free);
    return free;
  }
}

/** Gives the calls of an answer ids that the client does not know yet. */
export const distinctAnswerCalls: TurnAdapter = (conversation, { callIds }) => ({
  conversation,
  restoring: {
    decoder: (inner) => distinctDecoder(inner, callIds),
    turn: (turn) => distinctTurn(turn, callIds),
  },
});

export function distinctDecoder(inner: TurnDecoder, ids: CallIds): TurnDecoder {
  const renamed = (events: TurnEvent[]): TurnEvent[] => {
    for (const event of events) {
      if (event.type === 'partStart' && event.part.type === 'toolCall')
        event.part = withId(event.part, ids, event.choice);
    }
    return events;
  };
  return {
    read: (name, data, value) => renamed(inner.read(name, data, value)),
    close: () => renamed(inner.close()),
    toldFinish: () => inner.toldFinish(),
  };
}

/** Makes the call ids of a complete answer distinct. */
export function distinctTurn(turn: Turn, ids: CallIds): Turn {
  turn.choices.forEach((choice, index) => {
    choice.parts = choice.parts.map((part) => (part.type === 'toolCall' ? withId(part, ids, index) : part));
  });
  return turn;
}

function withId<P extends Part & { type: 'toolCall' }>(part: P, ids: CallIds, choice: number): P {
  const id = ids.distinct(part.id, choice);
  return id === part.id ? part : { ...part, id };
}

/** The calls in a history that share one id. */
interface Known {
  /** Their distinct ids, in order. */
  ids: string[];
  /** The last turn with such a call, and the number of calls before it. */
  turn: number;
  before: number;
  /** How many calls of that turn have a result. */
  answered: number;
}

/** Gives the calls of a history ids of their own. */
export const distinctHistoryCalls: TurnAdapter = (conversation) => ({ conversation: withDistinctCalls(conversation) });

/**
 * Returns the conversation with distinct call ids, or unchanged if they already are. An id depends only on earlier
 * calls.
 */
function withDistinctCalls(conversation: Conversation): Conversation {
  if (!hasTwins(conversation.messages)) return conversation;
  const history = new History();
  return { ...conversation, messages: conversation.messages.map((message) => history.renamed(message)) };
}

function hasTwins(messages: readonly Message[]): boolean {
  const seen = new Set<string>();
  for (const { parts } of messages) {
    for (const part of parts) {
      if (part.type !== 'toolCall') continue;
      if (seen.has(part.id)) return true;
      seen.add(part.id);
    }
  }
  return false;
}

class History {
  readonly #known = new Map<string, Known>();
  readonly #taken = new Set<string>();
  #turn = 0;
  #inTurn = false;

  renamed(message: Message): Message {
    const assistant = message.role === 'assistant';
    if (assistant && !this.#inTurn) this.#turn += 1;
    this.#inTurn = assistant;
    return { ...message, parts: message.parts.map((part) => this.#part(part)) };
  }

  #part(part: Part): Part {
    if (part.type === 'toolCall') {
      const id = this.#call(part.id);
      return id === part.id ? part : { ...part, id };
    }
    if (part.type !== 'toolResult') return part;
    const callId = this.#result(part.callId);
    return callId === part.callId ? part : { ...part, callId };
  }

  #call(given: string): string {
    const id = freeId(given, (one) => this.#taken.has(one));
    this.#taken.add(id);
    const turn = this.#turn;
    const known = this.#known.get(given);
    if (known === undefined) this.#known.set(given, { ids: [id], turn, before: 0, answered: 0 });
    else {
      if (known.turn !== turn) Object.assign(known, { turn, before: known.ids.length, answered: 0 });
      known.ids.push(id);
    }
    return id;
  }

  /** Results match the calls of the last turn in order; surplus results belong to its last call. */
  #result(callId: string): string {
    const known = this.#known.get(callId);
    if (known === undefined) return callId;
    const at = Math.min(known.before + known.answered, known.ids.length - 1);
    known.answered += 1;
    return known.ids[at]!;
  }
}
