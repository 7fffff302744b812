/**
 * Response healing: turns an answer that is almost JSON into JSON. Fences, prose and thinking around it are removed,
 * faults are repaired, and the schema of the request decides whether the result is used. Text is held back until its
 * choice is complete, in streams too.
 */
import type { OutputFormat, Part, Turn, TurnEvent } from '../../../formats/conversation/conversation.ts';
import { collect, eventsOf } from '../../../formats/conversation/replay.ts';
import type { AnswerRevision, PipelineStage, Plugin } from '../plugin.ts';
import { type Healed, heal } from './heal.ts';

export const responseHealing: Plugin = {
  id: 'response-healing',
  parameters: {},
  revise({ conversation: { output }, context }) {
    return output?.type === 'json' || output?.type === 'schema'
      ? new Healing(output, (stage) => context.addStage(stage))
      : undefined;
  },
};

/** The most UTF-16 units held back for one choice; a longer text goes out as it is. */
const MAX_HELD = 4 * 1024 * 1024;

type ChoiceEvent = Extract<TurnEvent, { choice: number }>;

class Healing implements AnswerRevision {
  readonly #output: OutputFormat;
  readonly #acted: (stage: PipelineStage) => void;
  readonly #choices = new Map<number, HeldChoice>();

  constructor(output: OutputFormat, acted: (stage: PipelineStage) => void) {
    this.#output = output;
    this.#acted = acted;
  }

  take(events: readonly TurnEvent[]): TurnEvent[] {
    return events.flatMap((event) => ('choice' in event ? this.#choice(event.choice).take(event) : [event]));
  }

  turn(turn: Turn): Turn {
    return { ...turn, choices: collect(this.take(eventsOf(turn))).choices };
  }

  #choice(number: number): HeldChoice {
    let choice = this.#choices.get(number);
    if (choice === undefined) {
      choice = new HeldChoice((text) => this.#heal(number, text));
      this.#choices.set(number, choice);
    }
    return choice;
  }

  #heal(choice: number, text: string): Healed {
    const healed = heal(text, this.#output);
    const { outcome } = healed;
    if (outcome !== 'valid') {
      this.#acted({
        type: 'response_healing',
        name: 'response-healing',
        summary: SUMMARIES[outcome],
        data: { choice, outcome },
      });
    }
    return healed;
  }
}

const SUMMARIES: Readonly<Record<Exclude<Healed['outcome'], 'valid'>, string>> = {
  stripped: 'removed the text around the JSON',
  repaired: 'repaired the JSON',
  unrepairable: 'found no JSON that matches the request',
};

/** The events of one choice from its first text on. */
class HeldChoice {
  readonly #heal: (text: string) => Healed;
  /** Undefined before the first text, and once everything is released. */
  #held: ChoiceEvent[] | undefined;
  #heldLength = 0;
  #released = false;

  constructor(heal: (text: string) => Healed) {
    this.#heal = heal;
  }

  take(event: ChoiceEvent): readonly TurnEvent[] {
    if (this.#released) return [event];
    if (this.#held === undefined) {
      if (event.type !== 'partStart' || event.part.type !== 'text') return [event];
      this.#held = [];
    }
    this.#held.push(event);
    this.#heldLength += lengthOf(event);
    if (event.type !== 'finish' && this.#heldLength <= MAX_HELD) return [];
    this.#released = true;
    const held = this.#held;
    this.#held = undefined;
    return event.type === 'finish' ? this.#healed(held) : held;
  }

  #healed(held: readonly ChoiceEvent[]): readonly TurnEvent[] {
    const { parts, finish } = collect(held.map((event) => ({ ...event, choice: 0 }))).choices[0]!;
    // Text next to calls is no answer yet, and a filtered one is not the model's.
    const isAnswer = finish.unified === 'stop' || finish.unified === 'length';
    if (!isAnswer || parts.some((part) => part?.type === 'toolCall' || part?.type === 'refusal')) return held;
    const text = parts.map((part) => (part?.type === 'text' ? part.text : '')).join('');
    const healed = this.#heal(text);
    if (healed.outcome === 'valid' || healed.outcome === 'unrepairable') return held;
    return withText(held, healed.text);
  }
}

function lengthOf(event: ChoiceEvent): number {
  if (event.type === 'partDelta') return (event.delta.text ?? '').length + (event.delta.arguments ?? '').length;
  return event.type === 'partStart' && event.part.type === 'text' ? event.part.text.length : 0;
}

/** The events with one text in place of all text. Citations and probabilities of the old text do not fit it. */
function withText(events: readonly ChoiceEvent[], text: string): TurnEvent[] {
  const first = events[0]!;
  const texts = new Set<number>();
  const changed: TurnEvent[] = [];
  for (const event of events) {
    if (event.type === 'logprobs') continue;
    if (event.type === 'partStart' && event.part.type === 'text') {
      texts.add(event.index);
      const { citations: _, ...part } = event.part;
      changed.push({ ...event, part: { ...part, text: event === first ? text : '' } satisfies Part });
    } else if (event.type !== 'partDelta' || !texts.has(event.index)) changed.push(event);
  }
  return changed;
}
