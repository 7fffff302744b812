/** The content of an answer for the content log: the text, reasoning and tool calls of its first choice. */
import type { Part, Turn, TurnEvent } from '../../formats/conversation/conversation.ts';
import type { AnswerReader } from '../../formats/conversation/format.ts';
import { EventReader } from '../../http/sse.ts';

interface TranscribedCall {
  id: string;
  name: string;
  arguments: string;
}

/** How much of a request's input and answers may be logged. */
export interface ContentBounds {
  /** Limit for the input, and for each answer. */
  maxBytes: number;
  /** Reserves buffer for so many more UTF-16 units of the request's content. Returns false when the buffer is full. */
  take(units: number): boolean;
}

type Kind = 'completion' | 'reasoning' | TranscribedCall | undefined;

/** The most calls of one answer that are logged. */
const MAX_CALLS = 1_000;

export class Transcript {
  completion = '';
  reasoning = '';
  readonly calls: TranscribedCall[] = [];
  /** True if the answer exceeded the limits. */
  truncated = false;
  #left: number;
  /** By part index. */
  readonly #open = new Map<number, Kind>();
  readonly #bounds: ContentBounds;

  constructor(bounds: ContentBounds) {
    this.#bounds = bounds;
    this.#left = bounds.maxBytes;
  }

  event(event: TurnEvent): void {
    if (event.type === 'partDelta') {
      if (event.choice !== 0) return;
      const kind = this.#open.get(event.index);
      const { text, arguments: more, transcript } = event.delta;
      if (kind !== undefined) this.#add(kind, text ?? more ?? transcript);
    } else if (event.type === 'partStart' && event.choice === 0) this.#open.set(event.index, this.#begin(event.part));
    else if (event.type === 'partStop' && event.choice === 0) this.#open.delete(event.index);
  }

  turn({ choices }: Turn): void {
    for (const part of choices[0]?.parts ?? []) this.#begin(part);
  }

  text(text: string): void {
    this.#add('completion', text);
  }

  #begin(part: Part): Kind {
    switch (part.type) {
      case 'text':
      case 'refusal':
        return this.#add('completion', part.text);
      case 'audio':
        return this.#add('completion', part.transcript);
      case 'reasoning':
        return this.#add('reasoning', part.text);
      case 'toolCall': {
        const { id, name } = part;
        if (this.calls.length >= MAX_CALLS) {
          this.truncated = true;
          return undefined;
        }
        const call = { id: this.#fitting(id), name: this.#fitting(name), arguments: '' };
        this.calls.push(call);
        return this.#add(call, part.arguments);
      }
      default:
        return undefined;
    }
  }

  #add(kind: NonNullable<Kind>, text: string | undefined): Kind {
    if (text === undefined || text === '') return kind;
    const fitting = this.#fitting(text);
    if (typeof kind === 'object') kind.arguments += fitting;
    else this[kind] += fitting;
    return kind;
  }

  #fitting(text: string): string {
    const fitting = text.length > this.#left ? text.slice(0, this.#left) : text;
    if (fitting.length < text.length) this.truncated = true;
    if (!this.#bounds.take(fitting.length)) {
      this.truncated = true;
      this.#left = 0;
      return '';
    }
    this.#left -= fitting.length;
    return fitting;
  }
}

/** The content of an answer as it was written to a client. */
export function transcriptOf(format: AnswerReader, text: string, streamed: boolean, bounds: ContentBounds): Transcript {
  const transcript = new Transcript(bounds);
  if (!streamed) {
    const reply = format.decodeReply(JSON.parse(text), {});
    if ('turn' in reply) transcript.turn(reply.turn);
    return transcript;
  }
  const decoder = format.decoder({});
  const reader = new EventReader((name, data) => {
    const value: unknown = data.startsWith('{') ? JSON.parse(data) : undefined;
    for (const event of decoder.read(name, data, value)) transcript.event(event);
  });
  reader.push(Buffer.from(text));
  return transcript;
}
