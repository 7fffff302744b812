/** Decodes one output item of a streamed response: parts arrive as deltas, the rest with the finished item. */
import { originOf } from '../chat/details.ts';
import type { Part, PartDelta, ReasoningOrigin, TurnEvent } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import { decodeAnnotation, IN_CONTENT } from './decode-content.ts';
import { imagePart, reasoningPart } from './decode-item.ts';
import { noted } from './served-calls.ts';

/** Numbers the parts of a reply. */
export interface Numbering {
  /** Origin of reasoning whose item names none. */
  readonly origin: ReasoningOrigin;
  nextPart(part: Part): number;
}

interface OpenPart {
  index: number;
  /** Text, input or arguments received so far. */
  told: string;
  citations: number;
  stopped: boolean;
}

const TEXT_EVENTS = new Set([
  'response.output_text.delta',
  'response.refusal.delta',
  'response.reasoning_text.delta',
  'response.reasoning_summary_text.delta',
]);

const ARGUMENT_EVENTS = new Set(['response.function_call_arguments.delta', 'response.custom_tool_call_input.delta']);

export class ItemDecoder {
  completed = false;
  readonly #type: string;
  readonly #id: string | undefined;
  readonly #numbering: Numbering;
  readonly #item: Fields;
  /** Keyed by position: `content 0`, `summary 1`, `arguments`. */
  readonly #parts = new Map<string, OpenPart>();

  constructor(item: Fields, numbering: Numbering) {
    this.#item = item;
    this.#type = textOf(item['type']);
    this.#id = textOrUndefined(item['id']);
    this.#numbering = numbering;
  }

  /** A call starts here; parts of messages and reasoning start with their own events. */
  begin(): TurnEvent[] {
    if (this.#type !== 'function_call' && this.#type !== 'custom_tool_call') return [];
    const events: TurnEvent[] = [];
    this.#partAt('arguments', () => callPart(this.#item), events);
    return events;
  }

  read(type: string, event: Fields): TurnEvent[] {
    const events: TurnEvent[] = [];
    if (TEXT_EVENTS.has(type)) {
      const summary = type === 'response.reasoning_summary_text.delta';
      const place = summary ? `summary ${event['summary_index']}` : `content ${event['content_index']}`;
      const part = this.#partAt(place, () => this.#emptyPart(type), events);
      this.#add(part, 'text', textOf(event['delta']), events);
      const logprobs = listOf(event['logprobs']);
      if (logprobs.length > 0) events.push({ type: 'logprobs', choice: 0, logprobs: { content: logprobs } });
    } else if (ARGUMENT_EVENTS.has(type)) {
      const part = this.#parts.get('arguments');
      if (part !== undefined) this.#add(part, 'arguments', textOf(event['delta']), events);
    } else if (type === 'response.output_text.annotation.added') {
      const place = `content ${event['content_index']}`;
      const part = this.#partAt(place, () => ({ type: 'text', text: '' }), events);
      this.#cite(part, event['annotation'], events);
    }
    return events;
  }

  /** Handles the finished item: emits whatever was not streamed, then ends its parts. */
  complete(item: Fields): TurnEvent[] {
    if (this.completed) return [];
    this.completed = true;
    const events: TurnEvent[] = [];
    switch (this.#type) {
      case 'message':
        listOf(item['content']).forEach((entry, index) => void this.#completeContent(fieldsOf(entry), index, events));
        break;
      case 'reasoning':
        this.#completeReasoning(item, events);
        break;
      case 'function_call':
      case 'custom_tool_call': {
        const part = this.#partAt('arguments', () => callPart(item), events);
        this.#add(part, 'arguments', rest(textOf(item['arguments'] ?? item['input']), part.told), events);
        break;
      }
      default:
        this.#tellWhole(imagePart(item) ?? noted({ type: 'opaque', origin: 'responses', value: item }), events);
    }
    return [...events, ...this.stop()];
  }

  stop(): TurnEvent[] {
    const events: TurnEvent[] = [];
    for (const part of this.#parts.values()) {
      if (!part.stopped) events.push({ type: 'partStop', choice: 0, index: part.index });
      part.stopped = true;
    }
    return events;
  }

  #completeContent(content: Fields, index: number, events: TurnEvent[]): void {
    const refusal = content['type'] === 'refusal';
    const text = textOf(refusal ? content['refusal'] : content['text']);
    if (!refusal && content['type'] !== 'output_text') {
      const extras = { responses: { [IN_CONTENT]: true } };
      this.#tellWhole({ type: 'opaque', origin: 'responses', value: content, extras }, events);
      return;
    }
    const part = this.#partAt(`content ${index}`, () => ({ type: refusal ? 'refusal' : 'text', text: '' }), events);
    this.#add(part, 'text', rest(text, part.told), events);
    for (const annotation of listOf(content['annotations']).slice(part.citations)) this.#cite(part, annotation, events);
  }

  /** Summaries and plain reasoning. Encrypted content and the signature belong to the last part. */
  #completeReasoning(item: Fields, events: TurnEvent[]): void {
    for (const [member, type] of [
      ['summary', 'response.reasoning_summary_text.delta'],
      ['content', 'response.reasoning_text.delta'],
    ] as const) {
      listOf(item[member]).forEach((entry, index) => {
        const text = textOf(fieldsOf(entry)['text']);
        const place = `${member} ${index}`;
        if (text === '' && !this.#parts.has(place)) return;
        const part = this.#partAt(place, () => this.#emptyPart(type), events);
        this.#add(part, 'text', rest(text, part.told), events);
      });
    }
    const encrypted = textOf(item['encrypted_content']);
    const signature = textOf(item['signature']);
    if (encrypted === '' && signature === '') return;
    const bound = { ...(signature !== '' && { signature }), ...(encrypted !== '' && { encrypted }) };
    const last = [...this.#parts.values()].at(-1);
    if (last === undefined) this.#tellWhole({ ...this.#emptyPart(''), ...bound } as Part, events);
    else events.push(this.#delta(last, bound));
  }

  #emptyPart(event: string): Part {
    if (event === 'response.output_text.delta') return { type: 'text', text: '' };
    if (event === 'response.refusal.delta') return { type: 'refusal', text: '' };
    const { format } = this.#item;
    const origin = format === undefined || format === null ? this.#numbering.origin : originOf(format);
    return reasoningPart('', origin, this.#id, event === 'response.reasoning_summary_text.delta');
  }

  #partAt(place: string, make: () => Part, events: TurnEvent[]): OpenPart {
    const known = this.#parts.get(place);
    if (known !== undefined) return known;
    const part = make();
    const open = { index: this.#numbering.nextPart(part), told: '', citations: 0, stopped: false };
    this.#parts.set(place, open);
    events.push({ type: 'partStart', choice: 0, index: open.index, part });
    return open;
  }

  #tellWhole(part: Part, events: TurnEvent[]): void {
    const index = this.#numbering.nextPart(part);
    events.push({ type: 'partStart', choice: 0, index, part }, { type: 'partStop', choice: 0, index });
  }

  #add(part: OpenPart, member: 'text' | 'arguments', piece: string, events: TurnEvent[]): void {
    if (piece === '' || part.stopped) return;
    part.told += piece;
    events.push(this.#delta(part, { [member]: piece }));
  }

  #cite(part: OpenPart, annotation: unknown, events: TurnEvent[]): void {
    if (part.stopped) return;
    part.citations += 1;
    events.push(this.#delta(part, { citation: decodeAnnotation(annotation) }));
  }

  #delta(part: OpenPart, delta: PartDelta): TurnEvent {
    return { type: 'partDelta', choice: 0, index: part.index, delta };
  }
}

/** The finished text minus the deltas received; empty if the deltas were a different text. */
function rest(text: string, told: string): string {
  return text.startsWith(told) ? text.slice(told.length) : '';
}

function callPart(item: Fields): Part {
  const id = textOrUndefined(item['id']);
  return {
    type: 'toolCall',
    // Results refer to the call id, not to the item id (`fc_...`).
    id: textOf(item['call_id']),
    name: textOf(item['name']),
    arguments: '',
    ...(item['type'] === 'custom_tool_call' && { custom: true }),
    ...(id !== undefined && { extras: { responses: { id } } }),
  };
}
