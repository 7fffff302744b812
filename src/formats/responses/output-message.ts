/** A message item of a reply: texts, refusals and unknown content parts. */
import type { Citation, OpaquePart, Part, PartDelta, RefusalPart, TextPart } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, textOrUndefined } from '../conversation/fields.ts';
import { encodeAnnotation, IN_CONTENT } from './decode-content.ts';
import { MESSAGE } from './decode-item.ts';
import type { Item, OutputPart, OutputSlot } from './output-item.ts';

export class MessageItem implements Item {
  readonly outputIndex: number;
  done: Fields | undefined;
  readonly #slot: OutputSlot;
  /** Members of the upstream's own message item. */
  readonly #about: Fields;
  readonly #contents: (MessagePart | { whole: Fields })[] = [];

  constructor(part: Part, slot: OutputSlot) {
    this.#slot = slot;
    this.#about = aboutOf(part);
    this.outputIndex = slot.outputIndex;
  }

  get idle(): boolean {
    return this.#contents.every((content) => 'whole' in content || content.stopped);
  }

  takes(part: Part): boolean {
    return JSON.stringify(aboutOf(part)) === JSON.stringify(this.#about);
  }

  begin(part: TextPart | RefusalPart | Part): OutputPart {
    this.closing();
    const begun = new MessagePart(part.type === 'refusal', this.#contents.length, this.#slot, this.#id);
    this.#contents.push(begun);
    begun.open();
    return begun;
  }

  /** Adds a content part that belongs to a message; false for parts that are items. */
  takesContent(part: OpaquePart): boolean {
    if (part.extras?.responses?.[IN_CONTENT] !== true) return false;
    this.closing();
    const where = { item_id: this.#id, output_index: this.outputIndex, content_index: this.#contents.length };
    this.#contents.push({ whole: fieldsOf(part.value) });
    this.#slot.tell('response.content_part.added', { ...where, part: part.value });
    this.#slot.tell('response.content_part.done', { ...where, part: part.value });
    return true;
  }

  /** Adds log probabilities to the latest text. */
  takeLogprobs(entries: readonly unknown[]): boolean {
    const text = this.#contents.findLast((content) => content instanceof MessagePart && !content.refusal);
    if (!(text instanceof MessagePart) || this.done !== undefined) return false;
    text.logprobs.push(...entries);
    return true;
  }

  added(): Fields {
    return { ...this.#item('in_progress'), content: [] };
  }

  opened(): void {}

  closing(): void {
    for (const content of this.#contents) if (content instanceof MessagePart) content.close();
  }

  render(status: 'completed' | 'incomplete'): Fields {
    return this.#item(status);
  }

  get #id(): string {
    return textOrUndefined(this.#about['id']) ?? this.#slot.id;
  }

  #item(status: string): Fields {
    const content = this.#contents.map((one) => ('whole' in one ? one.whole : one.render()));
    return { ...this.#about, id: this.#id, type: 'message', status, role: 'assistant', content };
  }
}

function aboutOf(part: Part): Fields {
  const { status: _, ...about } = fieldsOf(part.extras?.responses?.[MESSAGE]);
  return about;
}

/** One text or refusal of a message. */
class MessagePart implements OutputPart {
  readonly refusal: boolean;
  readonly logprobs: unknown[] = [];
  stopped = false;
  readonly #where: Fields;
  readonly #slot: OutputSlot;
  readonly #annotations: unknown[] = [];
  /** They cite the whole text, whose end is not known yet. Some services send them ahead of it. */
  readonly #waiting: Citation[] = [];
  #text = '';
  #closed = false;

  constructor(refusal: boolean, contentIndex: number, slot: OutputSlot, itemId: string) {
    this.refusal = refusal;
    this.#slot = slot;
    this.#where = { item_id: itemId, output_index: slot.outputIndex, content_index: contentIndex };
  }

  open(): void {
    this.#slot.tell('response.content_part.added', { ...this.#where, part: this.render() });
  }

  add({ text, citation }: PartDelta): void {
    if (text) {
      this.#text += text;
      if (this.refusal) this.#slot.tell('response.refusal.delta', { ...this.#where, delta: text });
      else this.#slot.tell('response.output_text.delta', { ...this.#where, delta: text, logprobs: [] });
    }
    if (citation === undefined || this.refusal) return;
    if (citation.end === undefined && citation.native?.origin !== 'responses') this.#waiting.push(citation);
    else this.#annotate(citation);
  }

  #annotate(citation: Citation): void {
    const annotation = encodeAnnotation(citation, this.#text.length);
    if (annotation === undefined) return;
    this.#annotations.push(annotation);
    const at = { ...this.#where, annotation_index: this.#annotations.length - 1 };
    this.#slot.tell('response.output_text.annotation.added', { ...at, annotation });
  }

  stop(): void {
    this.stopped = true;
    for (const citation of this.#waiting.splice(0)) this.#annotate(citation);
  }

  /** Deferred until now because log probabilities may arrive after the text. */
  close(): void {
    if (this.#closed || !this.stopped) return;
    this.#closed = true;
    if (this.refusal) this.#slot.tell('response.refusal.done', { ...this.#where, refusal: this.#text });
    else {
      this.#slot.tell('response.output_text.done', { ...this.#where, text: this.#text, logprobs: [...this.logprobs] });
    }
    this.#slot.tell('response.content_part.done', { ...this.#where, part: this.render() });
  }

  render(): Fields {
    if (this.refusal) return { type: 'refusal', refusal: this.#text };
    return {
      type: 'output_text',
      text: this.#text,
      annotations: [...this.#annotations],
      logprobs: [...this.logprobs],
    };
  }
}
