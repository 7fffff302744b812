/** Converts a complete answer to stream events and back: `collect(eventsOf(turn))` equals the turn. */
import type { Choice, Part, PartDelta, Turn, TurnEvent } from './conversation.ts';

/** The events of a stream that carries this turn: start ... usage, end. */
export function eventsOf(turn: Turn): TurnEvent[] {
  const events: TurnEvent[] = [
    {
      type: 'start',
      id: turn.id,
      model: turn.model,
      created: turn.created,
      serviceTier: turn.serviceTier,
      fingerprint: turn.fingerprint,
    },
  ];
  turn.choices.forEach((choice, number) => {
    choice.parts.forEach((part, index) => {
      events.push({ type: 'partStart', choice: number, index, part });
      events.push({ type: 'partStop', choice: number, index });
    });
    if (choice.logprobs) events.push({ type: 'logprobs', choice: number, logprobs: choice.logprobs });
    events.push({ type: 'finish', choice: number, finish: choice.finish });
  });
  if (turn.safeguards) events.push({ type: 'safeguards', results: turn.safeguards });
  if (turn.usage) events.push({ type: 'usage', usage: turn.usage });
  events.push({ type: 'end' });
  return events;
}

/** Collects stream events into a turn. Stops at a failure and keeps what came before it. */
export function collect(events: Iterable<TurnEvent>): Turn {
  const turn: Turn = { choices: [] };
  for (const event of events) {
    if (event.type === 'failure' || event.type === 'end') break;
    if (event.type === 'start') {
      const { type: _, ...head } = event;
      for (const [key, value] of Object.entries(head)) if (value !== undefined) Object.assign(turn, { [key]: value });
    } else if (event.type === 'usage') turn.usage = event.usage;
    else if (event.type === 'safeguards') turn.safeguards = event.results;
    else gather(choiceAt(turn, event.choice), event);
  }
  return turn;
}

type ChoiceEvent = Extract<TurnEvent, { choice: number }>;

function gather(choice: Choice, event: ChoiceEvent): void {
  switch (event.type) {
    case 'partStart':
      choice.parts[event.index] = structuredClone(event.part);
      break;
    case 'partDelta': {
      const part = choice.parts[event.index];
      if (part) append(part, event.delta);
      break;
    }
    case 'logprobs': {
      const known = choice.logprobs;
      choice.logprobs = {
        content: joined(known?.content, event.logprobs.content),
        ...((known?.refusal || event.logprobs.refusal) && { refusal: joined(known?.refusal, event.logprobs.refusal) }),
      };
      break;
    }
    case 'finish':
      choice.finish = event.finish;
  }
}

function append(part: Part, delta: PartDelta): void {
  const target = part as unknown as Record<string, unknown>;
  for (const key of ['text', 'arguments', 'signature', 'encrypted', 'transcript'] as const) {
    const more = delta[key];
    if (more !== undefined) target[key] = ((target[key] as string | undefined) ?? '') + more;
  }
  if (delta.value !== undefined && part.type === 'opaque') part.value = delta.value;
  if (delta.citation && part.type === 'text') part.citations = [...(part.citations ?? []), delta.citation];
  if (delta.data !== undefined && part.type === 'audio') {
    const before = part.source?.kind === 'bytes' ? part.source : { mediaType: '', data: '' };
    part.source = { kind: 'bytes', mediaType: before.mediaType, data: before.data + delta.data };
  }
}

function joined(before: unknown[] | null | undefined, more: unknown[] | null | undefined): unknown[] | null {
  return before || more ? [...(before ?? []), ...(more ?? [])] : null;
}

function choiceAt(turn: Turn, index: number): Choice {
  while (turn.choices.length <= index) turn.choices.push({ parts: [], finish: { unified: 'stop', native: null } });
  return turn.choices[index] as Choice;
}
