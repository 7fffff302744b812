/** A reasoning item of a reply: summaries, plain reasoning, and content that only its origin can read. */
import type { PartDelta, ReasoningPart } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import type { Item, OutputPart, OutputSlot } from './output-item.ts';

export class ReasoningItem implements Item {
  readonly outputIndex: number;
  done: Fields | undefined;
  readonly slot: OutputSlot;
  readonly id: string;
  signature = '';
  encrypted = '';
  readonly #first: ReasoningPart;
  readonly #texts: ReasoningText[] = [];

  constructor(part: ReasoningPart, slot: OutputSlot) {
    this.#first = part;
    this.slot = slot;
    this.id = part.id ?? slot.id;
    this.outputIndex = slot.outputIndex;
  }

  get idle(): boolean {
    return this.#texts.every((text) => text.stopped);
  }

  /** Parts with one id share an item until one brings encrypted content or a signature, which an item has only once. */
  takes(part: ReasoningPart): boolean {
    const open = this.signature === '' && this.encrypted === '';
    return open && part.id !== undefined && part.id === this.#first.id && part.origin === this.#first.origin;
  }

  begin(part: ReasoningPart): OutputPart {
    const text = new ReasoningText(this, part.summary === true);
    this.#texts.push(text);
    return text;
  }

  /** The index of a text among those of its kind. */
  indexFor(summary: boolean): number {
    return this.#texts.filter((text) => text.summary === summary && text.told).length;
  }

  added(): Fields {
    return { id: this.id, type: 'reasoning', status: 'in_progress', summary: [], format: this.#first.origin };
  }

  opened(): void {}

  closing(): void {}

  render(status: 'completed' | 'incomplete'): Fields {
    const summary: Fields[] = [];
    const content: Fields[] = [];
    for (const text of this.#texts) if (text.told) (text.summary ? summary : content).push(text.render());
    return {
      id: this.id,
      type: 'reasoning',
      status,
      summary,
      ...(content.length > 0 && { content }),
      ...(this.encrypted !== '' && { encrypted_content: this.encrypted }),
      format: this.#first.origin,
      ...(this.signature !== '' && { signature: this.signature }),
      ...this.#first.extras?.responses,
    };
  }
}

class ReasoningText implements OutputPart {
  readonly summary: boolean;
  stopped = false;
  /** Whether any of it was sent; only such texts have an index. */
  told = false;
  readonly #item: ReasoningItem;
  #where: Fields = {};
  #text = '';

  constructor(item: ReasoningItem, summary: boolean) {
    this.#item = item;
    this.summary = summary;
  }

  add({ text, signature, encrypted }: PartDelta): void {
    if (signature) this.#item.signature += signature;
    if (encrypted) this.#item.encrypted += encrypted;
    if (!text) return;
    if (!this.told) this.#open();
    this.#text += text;
    this.#tell(this.summary ? 'reasoning_summary_text.delta' : 'reasoning_text.delta', { delta: text });
  }

  stop(): void {
    this.stopped = true;
    if (!this.told) return;
    const text = this.#text;
    this.#tell(this.summary ? 'reasoning_summary_text.done' : 'reasoning_text.done', { text });
    this.#tell(this.summary ? 'reasoning_summary_part.done' : 'content_part.done', { part: this.render() });
  }

  render(): Fields {
    return { type: this.summary ? 'summary_text' : 'reasoning_text', text: this.#text };
  }

  #open(): void {
    const index = this.#item.indexFor(this.summary);
    const item = { item_id: this.#item.id, output_index: this.#item.outputIndex };
    this.#where = this.summary ? { ...item, summary_index: index } : { ...item, content_index: index };
    this.told = true;
    this.#tell(this.summary ? 'reasoning_summary_part.added' : 'content_part.added', { part: this.render() });
  }

  #tell(type: string, members: Fields): void {
    this.#item.slot.tell(`response.${type}`, { ...this.#where, ...members });
  }
}
