/**
 * Builds the output items of a reply part by part, and alone decides which parts share an item. A stream sends the
 * events as items grow; a complete reply only reads the result.
 */
import type { FinishReason, OpaquePart, Part, PartDelta, ToolCallPart } from '../conversation/conversation.ts';
import type { Fields } from '../conversation/fields.ts';
import { completeTokens } from '../conversation/logprobs.ts';
import { sealBlock } from '../conversation/sealed-block.ts';
import { endedCall } from '../conversation/served-call.ts';
import { CallItem, GrowingItem, ImageItem, type Item, type OutputPart, WholeItem } from './output-item.ts';
import { MessageItem } from './output-message.ts';
import { ReasoningItem } from './output-reasoning.ts';
import { servedItem } from './served-calls.ts';

/** Receives events. The receiver adds the members that every event has (`type`, `sequence_number`). */
export type Tell = (type: string, members: Fields) => void;

export class Output {
  readonly #tell: Tell;
  readonly #stem: string;
  readonly #items: Item[] = [];
  readonly #parts = new Map<number, OutputPart>();
  /** Parts whose item is chosen only when they show something. */
  readonly #waiting = new Map<number, Part>();
  /** A call that has ended. Its item stays open until it is known whether a limit cut it off. */
  #endedCall: CallItem | undefined;
  /** How the reply ended; known before the last items close. */
  #finish: FinishReason = 'stop';

  /** @param generation id of the reply, from which item ids are derived */
  constructor(generation: string, tell: Tell) {
    this.#tell = tell;
    this.#stem = generation.replace(/^gen-/, '').replace(/[^A-Za-z0-9]/g, '');
  }

  start(index: number, part: Part): void {
    switch (part.type) {
      case 'text':
      case 'refusal':
      case 'reasoning': {
        this.#waiting.set(index, part);
        const { text } = part;
        if (text !== '') this.add(index, { text });
        if (part.type === 'text') for (const citation of part.citations ?? []) this.add(index, { citation });
        if (part.type !== 'reasoning') break;
        if (part.signature) this.add(index, { signature: part.signature });
        if (part.encrypted) this.add(index, { encrypted: part.encrypted });
        break;
      }
      case 'toolCall': {
        const { signature } = part;
        if (signature !== undefined && signature.value !== '') {
          this.#whole(this.#signatureItem(part.id, signature.value, signature.origin));
        }
        const item = this.#open(new CallItem(part, this.#slot(prefixOf(part))));
        this.#parts.set(index, item);
        if (part.arguments !== '') item.add({ arguments: part.arguments });
        break;
      }
      case 'image':
        this.#close(this.#open(new ImageItem(part, this.#slot('ig'))));
        break;
      case 'opaque':
        this.#startOpaque(index, part);
        break;
      default:
      // This format's replies have no audio or video.
    }
  }

  add(index: number, delta: PartDelta): void {
    this.#closeCall();
    const known = this.#parts.get(index) ?? this.#begin(index, delta);
    known?.add(delta);
  }

  stop(index: number): void {
    this.#waiting.delete(index);
    const part = this.#parts.get(index);
    if (part === undefined || part.stopped) return;
    part.stop();
    if (part instanceof GrowingItem) this.#close(part);
    if (!(part instanceof CallItem)) return;
    this.#closeCall();
    this.#endedCall = part;
  }

  /** How the reply ended: nothing else follows the call that has just ended. */
  finish(finish: FinishReason): void {
    if (finish !== 'length') this.#closeCall();
    this.#finish = finish;
    this.#closeCall();
  }

  logprobs(content: readonly unknown[]): void {
    for (const item of this.#items.toReversed()) {
      if (item instanceof MessageItem && item.takeLogprobs(completeTokens(content, []))) return;
    }
  }

  /** Ends every item and returns the whole output. */
  end(): Fields[] {
    this.#closeCall();
    for (const part of this.#parts.values()) if (!part.stopped) part.stop();
    this.#closeOpen();
    return this.#items.map((item) => item.done!);
  }

  /**
   * The output when the reply breaks off: texts end as incomplete. An unfinished call stays open and is left out,
   * because clients run a call once they see its `done` event, whatever its status (openai/codex does).
   */
  broken(): Fields[] {
    this.#closeCall();
    this.#finish = 'error';
    for (const part of this.#parts.values()) if (!(part instanceof CallItem) && !part.stopped) part.stop();
    this.#closeOpen();
    return this.#items.flatMap((item): Fields[] => (item.done === undefined ? [] : [item.done]));
  }

  /** The item for the part: the previous one if they belong together, else a new one. */
  #begin(index: number, delta: PartDelta): OutputPart | undefined {
    const part = this.#waiting.get(index);
    if (part === undefined || !shows(delta)) return undefined;
    const last = this.#items.at(-1);
    let begun: OutputPart;
    if (part.type === 'reasoning') {
      const joins = last instanceof ReasoningItem && last.done === undefined && last.takes(part);
      const item = joins ? last : this.#open(new ReasoningItem(part, this.#slot('rs')));
      begun = item.begin(part);
    } else {
      const joins = last instanceof MessageItem && last.done === undefined && last.takes(part);
      const item = joins ? last : this.#open(new MessageItem(part, this.#slot('msg')));
      begun = item.begin(part);
    }
    this.#waiting.delete(index);
    this.#parts.set(index, begun);
    return begun;
  }

  /**
   * Items of this format pass unchanged; one in progress is open until its part ends. Of blocks of other formats, the
   * client sees the call that the upstream has made, and sends the block itself back: sealed, in a reasoning item.
   */
  #startOpaque(index: number, part: OpaquePart): void {
    if (part.origin === 'responses') {
      const last = this.#items.at(-1);
      if (last instanceof MessageItem && last.done === undefined && last.takesContent(part)) return;
      const value = part.value as Fields;
      if (value['status'] === 'in_progress') this.#parts.set(index, this.#open(new GrowingItem(value, this.#slot(''))));
      else this.#whole(value);
      return;
    }
    const call = endedCall(part);
    if (call !== undefined) this.#whole(servedItem(call));
    if (part.value === undefined) return;
    this.#whole({
      type: 'reasoning',
      id: this.#nextId('rs'),
      summary: [],
      encrypted_content: sealBlock(part),
      format: 'unknown',
    });
  }

  /** Data that an upstream attached to a call (Gemini's thought signature), as a reasoning item under the call's id. */
  #signatureItem(callId: string, value: string, origin: string): Fields {
    return { type: 'reasoning', id: callId, summary: [], encrypted_content: value, format: origin };
  }

  #whole(value: Fields): void {
    this.#close(this.#open(new WholeItem(value, this.#slot(''))));
  }

  #slot(prefix: string) {
    const outputIndex = this.#items.length;
    return { outputIndex, id: this.#nextId(prefix), tell: this.#tell };
  }

  #nextId(prefix: string): string {
    return `${prefix}_${this.#stem}_${this.#items.length}`;
  }

  #open<T extends Item>(item: T): T {
    this.#closeCall();
    this.#closeOpen();
    this.#items.push(item);
    this.#tell('response.output_item.added', { output_index: item.outputIndex, item: item.added() });
    item.opened();
    return item;
  }

  #closeCall(): void {
    const call = this.#endedCall;
    if (call === undefined) return;
    this.#endedCall = undefined;
    this.#close(call);
    const { signature } = call;
    if (signature !== undefined) this.#whole(this.#signatureItem(call.callId, signature.value, signature.origin));
  }

  /** Closes items whose parts have all ended, before another item starts. */
  #closeOpen(): void {
    for (const item of this.#items) if (item.done === undefined && item.idle) this.#close(item);
  }

  #close(item: Item): void {
    item.closing();
    const last = this.#finish === 'length' && item === this.#items.at(-1);
    const cut = this.#finish === 'error' || (last && !(item instanceof CallItem && item.complete));
    item.done = item.render(cut ? 'incomplete' : 'completed');
    this.#tell('response.output_item.done', { output_index: item.outputIndex, item: item.done });
  }
}

const OWN_PREFIXES = { local_shell: 'lsh', tool_search: 'tsc', apply_patch: 'apc' } as const;

function prefixOf({ custom, native }: ToolCallPart): string {
  if (native !== undefined) return OWN_PREFIXES[native];
  return custom ? 'ctc' : 'fc';
}

function shows(delta: PartDelta): boolean {
  return Boolean(delta.text || delta.citation || delta.signature || delta.encrypted);
}
