/**
 * Runs the upstream calls of one answer whose model searches for tools: the client sees all rounds as one answer, and
 * the gateway runs the searches between them.
 */

import type { Conversation, Part, ToolCallPart, Turn, TurnEvent, Usage } from '../conversation/conversation.ts';
import { CALL_TOOL, SEARCH_TOOL, type SearchStep, type SearchTrace } from '../conversation/deferred-search.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import { collect, eventsOf } from '../conversation/replay.ts';
import { addCall } from '../conversation/usage.ts';
import type { Portable } from './portable.ts';

/** Maximum number of upstream calls per answer; budgets reserve for all of them. */
export const MOST_ROUNDS = 6;
/** Limit for the arguments of one search or deferred call, in characters. */
const LONGEST_ARGUMENTS = 4 * 1024 * 1024;

export class Rounds {
  readonly #portable: Portable;
  readonly #trace: SearchTrace;
  /** Output tokens left for all remaining rounds; undefined without a cap. */
  #leftTokens: number | undefined;
  #round = 0;
  #started = false;
  #nextIndex = 0;
  #steps = 0;
  #earlier: Usage | undefined;
  #again = false;
  /** Events of completed rounds of a non-streamed answer. */
  readonly #gathered: TurnEvent[] = [];

  constructor(portable: Portable, trace: SearchTrace, leftTokens: number | undefined) {
    this.#portable = portable;
    this.#trace = trace;
    this.#leftTokens = leftTokens;
  }

  /** The conversation to send next. */
  get conversation(): Conversation {
    return this.#portable.conversation;
  }

  /** What is left of the output cap; undefined without one. */
  get leftTokens(): number | undefined {
    return this.#leftTokens;
  }

  /** Number of the next round, from 0. */
  get number(): number {
    return this.#round;
  }

  /** Adds a complete answer as the next round; returns the combined answer of all rounds so far. */
  whole(turn: Turn): { turn: Turn } | { failure: UpstreamFailure } {
    const events = this.begin().take(eventsOf(turn));
    const failed = events.find((event) => event.type === 'failure');
    if (failed !== undefined) return { failure: failed.failure };
    this.#gathered.push(...events);
    return { turn: collect(this.#gathered) };
  }

  /** True once if the round that ended needs another one. */
  takeAgain(): boolean {
    const again = this.#again;
    this.#again = false;
    return again;
  }

  /** Maps the events of one round to those of the combined answer. */
  decoder(inner: TurnDecoder): TurnDecoder {
    const round = this.begin();
    return {
      read: (name, data, value) => round.take(inner.read(name, data, value)),
      close: () => round.take(inner.close()),
      toldFinish: () => inner.toldFinish(),
    };
  }

  begin(): Round {
    this.#round += 1;
    return new Round(this.#portable, {
      start: () => {
        const first = !this.#started;
        this.#started = true;
        return first;
      },
      place: () => this.#nextIndex++,
      show: (step) => this.#trace.show(step, this.#steps++),
      total: (usage) => addCall(this.#earlier, usage)!,
      ended: (parts, steps, usage, written) => this.#ended(parts, steps, usage, written),
    });
  }

  /** @returns why there is no further round; undefined when there is one */
  #ended(
    parts: Part[],
    steps: readonly SearchStep[],
    usage: Usage | undefined,
    written: number,
  ): 'rounds' | 'tokens' | undefined {
    if (this.#round >= MOST_ROUNDS) return 'rounds';
    if (this.#leftTokens !== undefined) {
      // Bytes bound the tokens: a token is at least one byte.
      this.#leftTokens -= usage?.output ?? written;
      if (this.#leftTokens < 1) return 'tokens';
    }
    this.#earlier = addCall(this.#earlier, usage);
    this.#portable.proceed(parts, steps);
    this.#again = true;
    return undefined;
  }
}

interface Answer {
  /** Returns true the first time. */
  start(): boolean;
  place(): number;
  show(step: SearchStep): Part[];
  total(usage: Usage): Usage;
  ended(
    parts: Part[],
    steps: readonly SearchStep[],
    usage: Usage | undefined,
    written: number,
  ): 'rounds' | 'tokens' | undefined;
}

class Round {
  readonly #portable: Portable;
  readonly #answer: Answer;
  /** All events of the round, for the next call. */
  readonly #events: TurnEvent[] = [];
  /** Part indexes of the round, mapped to those of the answer. */
  readonly #places = new Map<number, number>();
  readonly #held = new Map<number, ToolCallPart>();
  #finish: Extract<TurnEvent, { type: 'finish' }> | undefined;
  #usage: Usage | undefined;
  #written = 0;
  #calls = 0;

  constructor(portable: Portable, answer: Answer) {
    this.#portable = portable;
    this.#answer = answer;
  }

  take(events: readonly TurnEvent[]): TurnEvent[] {
    const shown: TurnEvent[] = [];
    for (const event of events) {
      this.#events.push(event.type === 'partStart' ? structuredClone(event) : event);
      this.#one(event, shown);
    }
    return shown;
  }

  #one(event: TurnEvent, shown: TurnEvent[]): void {
    switch (event.type) {
      case 'start':
        if (this.#answer.start()) shown.push(event);
        break;
      case 'partStart':
        this.#startPart(event, shown);
        break;
      case 'partDelta': {
        const { arguments: more = '', text = '' } = event.delta;
        this.#written += Buffer.byteLength(more) + Buffer.byteLength(text);
        const held = this.#held.get(event.index);
        if (held === undefined) shown.push({ ...event, index: this.#places.get(event.index)! });
        else if (held.arguments.length + more.length > LONGEST_ARGUMENTS) shown.push(tooLong());
        else held.arguments += more;
        break;
      }
      case 'partStop':
        if (!this.#held.has(event.index)) shown.push({ ...event, index: this.#places.get(event.index)! });
        break;
      case 'finish':
        this.#finish = event;
        break;
      case 'usage':
        this.#usage = event.usage;
        shown.push({ type: 'usage', usage: this.#answer.total(event.usage) });
        break;
      case 'end':
        this.#end(shown);
        break;
      default:
        shown.push(event);
    }
  }

  #startPart(event: Extract<TurnEvent, { type: 'partStart' }>, shown: TurnEvent[]): void {
    const { part, index } = event;
    if (part.type === 'toolCall') {
      this.#written += Buffer.byteLength(part.arguments);
      if (part.name === SEARCH_TOOL || part.name === CALL_TOOL) {
        this.#held.set(index, { ...part });
        return;
      }
      this.#calls += 1;
    }
    const place = this.#answer.place();
    this.#places.set(index, place);
    shown.push({ ...event, index: place });
  }

  #end(shown: TurnEvent[]): void {
    const { unified, native } = this.#finish?.finish ?? { unified: 'stop' as const, native: null };
    // Truncated arguments are not run.
    const complete = unified !== 'length' && unified !== 'content_filter';
    const done = complete ? [...this.#held.values()].map((held) => this.#portable.run(held)) : [];
    const steps = done.flatMap((one) => ('step' in one ? one.step : []));
    for (const one of done) {
      const parts = 'step' in one ? this.#answer.show(one.step) : [one.call];
      for (const part of parts) {
        const index = this.#answer.place();
        shown.push({ type: 'partStart', choice: 0, index, part }, { type: 'partStop', choice: 0, index });
      }
    }
    const calls = this.#calls + done.length - steps.length;
    let finish = { unified, native };
    if (steps.length > 0 && calls === 0) {
      const { parts } = collect(this.#events).choices[0]!;
      const obstacle = this.#answer.ended(parts, steps, this.#usage, this.#written);
      if (obstacle === undefined) return;
      if (obstacle === 'rounds') {
        shown.push(endless());
        return;
      }
      finish = { unified: 'length', native: null };
    }
    shown.push({
      type: 'finish',
      choice: 0,
      finish: this.#finish === undefined ? finish : { ...this.#finish.finish, ...finish },
    });
    shown.push({ type: 'end' });
  }
}

function tooLong(): TurnEvent {
  return {
    type: 'failure',
    failure: { kind: 'malformed', status: null, message: 'the arguments of a tool call are too long' },
  };
}

function endless(): TurnEvent {
  const message = `the model was still searching for tools after ${MOST_ROUNDS} rounds`;
  return { type: 'failure', failure: { kind: 'malformed', status: null, message } };
}
