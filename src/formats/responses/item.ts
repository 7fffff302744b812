/** One output item of a streamed response: its parts as they come, and what only the finished item tells. */
import type { Citation, Part, PartDelta, ReasoningOrigin, TurnEvent } from '../conversation/conversation.ts';
import { countOf, type Fields, fieldsOf, listOf, restOf, textOf, textOrUndefined } from '../conversation/fields.ts';

/** Gives every part of the answer its number. */
export interface Numbering {
  nextPart(part: Part): number;
}

interface OpenPart {
  index: number;
  /** What was told of its text, input or arguments. */
  told: string;
  citations: number;
  stopped: boolean;
}

const ORIGIN: ReasoningOrigin = 'openai-responses-v1';

const TEXT_EVENTS = new Set([
  'response.output_text.delta',
  'response.refusal.delta',
  'response.reasoning_text.delta',
  'response.reasoning_summary_text.delta',
]);

const ARGUMENT_EVENTS = new Set(['response.function_call_arguments.delta', 'response.custom_tool_call_input.delta']);

export class ItemDecoder {
  completed = false;
  private readonly type: string;
  private readonly id: string | undefined;
  private readonly numbering: Numbering;
  private readonly item: Fields;
  /** By place: `content 0`, `summary 1`, `arguments`. */
  private readonly parts = new Map<string, OpenPart>();

  constructor(item: Fields, numbering: Numbering) {
    this.item = item;
    this.type = textOf(item['type']);
    this.id = textOrUndefined(item['id']);
    this.numbering = numbering;
  }

  /** A call is told from its start; the parts of messages and reasoning have events of their own. */
  begin(): TurnEvent[] {
    if (this.type !== 'function_call' && this.type !== 'custom_tool_call') return [];
    const events: TurnEvent[] = [];
    this.partAt('arguments', () => callPart(this.item), events);
    return events;
  }

  read(event: Fields): TurnEvent[] {
    const type = textOf(event['type']);
    const events: TurnEvent[] = [];
    if (TEXT_EVENTS.has(type)) {
      const summary = type === 'response.reasoning_summary_text.delta';
      const place = summary ? `summary ${event['summary_index']}` : `content ${event['content_index']}`;
      const part = this.partAt(place, () => emptyPart(type, this.id), events);
      this.add(part, 'text', textOf(event['delta']), events);
      const logprobs = listOf(event['logprobs']);
      if (logprobs.length > 0) events.push({ type: 'logprobs', choice: 0, logprobs: { content: logprobs } });
    } else if (ARGUMENT_EVENTS.has(type)) {
      const part = this.parts.get('arguments');
      if (part !== undefined) this.add(part, 'arguments', textOf(event['delta']), events);
    } else if (type === 'response.output_text.annotation.added') {
      const place = `content ${event['content_index']}`;
      const part = this.partAt(place, () => ({ type: 'text', text: '' }), events);
      this.cite(part, event['annotation'], events);
    }
    return events;
  }

  /** The finished item: whatever of it was not told yet, and the ends of its parts. */
  complete(item: Fields): TurnEvent[] {
    if (this.completed) return [];
    this.completed = true;
    const events: TurnEvent[] = [];
    switch (this.type) {
      case 'message':
        listOf(item['content']).forEach((entry, index) => void this.completeContent(fieldsOf(entry), index, events));
        break;
      case 'reasoning':
        this.completeReasoning(item, events);
        break;
      case 'function_call':
      case 'custom_tool_call': {
        const part = this.partAt('arguments', () => callPart(item), events);
        this.add(part, 'arguments', rest(textOf(item['arguments'] ?? item['input']), part.told), events);
        break;
      }
      default:
        this.tellWhole(imagePart(item) ?? { type: 'opaque', origin: 'responses', value: item }, events);
    }
    return [...events, ...this.stop()];
  }

  stop(): TurnEvent[] {
    const events: TurnEvent[] = [];
    for (const part of this.parts.values()) {
      if (!part.stopped) events.push({ type: 'partStop', choice: 0, index: part.index });
      part.stopped = true;
    }
    return events;
  }

  private completeContent(content: Fields, index: number, events: TurnEvent[]): void {
    const refusal = content['type'] === 'refusal';
    const text = textOf(refusal ? content['refusal'] : content['text']);
    if (!refusal && content['type'] !== 'output_text') {
      this.tellWhole({ type: 'opaque', origin: 'responses', value: content }, events);
      return;
    }
    const part = this.partAt(`content ${index}`, () => ({ type: refusal ? 'refusal' : 'text', text: '' }), events);
    this.add(part, 'text', rest(text, part.told), events);
    for (const annotation of listOf(content['annotations']).slice(part.citations)) this.cite(part, annotation, events);
  }

  /** Summaries and thinking as they stand; what is encrypted is a part of its own, bound to them by the item's id. */
  private completeReasoning(item: Fields, events: TurnEvent[]): void {
    for (const [member, type] of [
      ['summary', 'response.reasoning_summary_text.delta'],
      ['content', 'response.reasoning_text.delta'],
    ] as const) {
      listOf(item[member]).forEach((entry, index) => {
        const text = textOf(fieldsOf(entry)['text']);
        const place = `${member} ${index}`;
        if (text === '' && !this.parts.has(place)) return;
        const part = this.partAt(place, () => emptyPart(type, this.id), events);
        this.add(part, 'text', rest(text, part.told), events);
      });
    }
    const encrypted = textOf(item['encrypted_content']);
    if (encrypted !== '') this.tellWhole({ ...emptyPart('', this.id), encrypted } as Part, events);
  }

  private partAt(place: string, make: () => Part, events: TurnEvent[]): OpenPart {
    const known = this.parts.get(place);
    if (known !== undefined) return known;
    const part = make();
    const open = { index: this.numbering.nextPart(part), told: '', citations: 0, stopped: false };
    this.parts.set(place, open);
    events.push({ type: 'partStart', choice: 0, index: open.index, part });
    return open;
  }

  private tellWhole(part: Part, events: TurnEvent[]): void {
    const index = this.numbering.nextPart(part);
    events.push({ type: 'partStart', choice: 0, index, part }, { type: 'partStop', choice: 0, index });
  }

  private add(part: OpenPart, member: 'text' | 'arguments', piece: string, events: TurnEvent[]): void {
    if (piece === '' || part.stopped) return;
    part.told += piece;
    events.push(this.delta(part, { [member]: piece }));
  }

  private cite(part: OpenPart, annotation: unknown, events: TurnEvent[]): void {
    if (part.stopped) return;
    part.citations += 1;
    events.push(this.delta(part, { citation: decodeAnnotation(annotation) }));
  }

  private delta(part: OpenPart, delta: PartDelta): TurnEvent {
    return { type: 'partDelta', choice: 0, index: part.index, delta };
  }
}

/** What the finished text has beyond the pieces that came; nothing when it is another text. */
function rest(text: string, told: string): string {
  return text.startsWith(told) ? text.slice(told.length) : '';
}

function emptyPart(event: string, id: string | undefined): Part {
  if (event === 'response.output_text.delta') return { type: 'text', text: '' };
  if (event === 'response.refusal.delta') return { type: 'refusal', text: '' };
  const summary = event === 'response.reasoning_summary_text.delta';
  return { type: 'reasoning', text: '', origin: ORIGIN, ...(id !== undefined && { id }), ...(summary && { summary }) };
}

function callPart(item: Fields): Part {
  const id = textOrUndefined(item['id']);
  return {
    type: 'toolCall',
    // Results name the call, not the item (`fc_...`).
    id: textOf(item['call_id']),
    name: textOf(item['name']),
    arguments: '',
    ...(item['type'] === 'custom_tool_call' && { custom: true }),
    ...(id !== undefined && { extras: { responses: { id } } }),
  };
}

/** A generated picture; the rest of its item rides along. */
function imagePart(item: Fields): Part | undefined {
  if (item['type'] !== 'image_generation_call' || typeof item['result'] !== 'string' || item['result'] === '')
    return undefined;
  const format = textOrUndefined(item['output_format']) ?? 'png';
  return {
    type: 'image',
    source: { kind: 'bytes', mediaType: `image/${format}`, data: item['result'] },
    extras: { responses: restOf(item, ['result']) ?? {} },
  };
}

function decodeAnnotation(value: unknown): Citation {
  const annotation = fieldsOf(value);
  const citation: Citation = { native: { origin: 'responses', value } };
  if (annotation['type'] !== 'url_citation') return citation;
  if (typeof annotation['url'] === 'string') citation.url = annotation['url'];
  if (typeof annotation['title'] === 'string') citation.title = annotation['title'];
  citation.start = countOf(annotation['start_index']);
  citation.end = countOf(annotation['end_index']);
  return citation;
}
