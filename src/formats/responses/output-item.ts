/** Output items that hold one part: calls, images and items known as a whole. */
import { isObjectText } from '../conversation/call-input.ts';
import type { ImagePart, PartDelta, ToolCallPart } from '../conversation/conversation.ts';
import { type Fields, textOrUndefined } from '../conversation/fields.ts';
import { writtenOperation } from '../conversation/patch-call.ts';
import type { Tell } from './output.ts';
import { readObject, shellAction } from './own-calls.ts';

export interface OutputSlot {
  outputIndex: number;
  id: string;
  tell: Tell;
}

/** A part being written into an item. */
export interface OutputPart {
  readonly stopped: boolean;
  add(delta: PartDelta): void;
  stop(): void;
}

export interface Item {
  readonly outputIndex: number;
  /** The finished item, once it was sent. */
  done: Fields | undefined;
  /** Whether none of its parts is still growing. */
  readonly idle: boolean;
  /** The item as first announced. */
  added(): Fields;
  /** Sends the events that follow `output_item.added`. */
  opened(): void;
  /** Sends the events that precede `output_item.done`. */
  closing(): void;
  render(status: 'completed' | 'incomplete'): Fields;
}

export class CallItem implements Item, OutputPart {
  readonly outputIndex: number;
  readonly callId: string;
  done: Fields | undefined;
  stopped = false;
  readonly #part: ToolCallPart;
  readonly #slot: OutputSlot;
  /** The upstream sent no arguments. */
  #invented = false;
  #written = '';
  #late = '';

  constructor(part: ToolCallPart, slot: OutputSlot) {
    this.#part = part;
    this.#slot = slot;
    this.outputIndex = slot.outputIndex;
    this.callId = part.id;
  }

  get idle(): boolean {
    return this.stopped;
  }

  /** The signature that arrived while the call was streamed. */
  get signature(): ToolCallPart['signature'] {
    const bound = this.#part.signature;
    return bound === undefined || this.#late === '' ? undefined : { value: this.#late, origin: bound.origin };
  }

  /** Whether nothing of the arguments can be missing: a limit may be reached right after them. */
  get complete(): boolean {
    return this.#part.custom !== true && !this.#invented && isObjectText(this.#written);
  }

  added(): Fields {
    return this.#item('', 'in_progress');
  }

  opened(): void {}

  add({ arguments: piece, signature }: PartDelta): void {
    if (signature) this.#late += signature;
    if (!piece) return;
    this.#written += piece;
    if (this.#part.native !== undefined) return;
    const type = this.#part.custom ? 'response.custom_tool_call_input.delta' : 'response.function_call_arguments.delta';
    this.#slot.tell(type, { ...this.#where(), delta: piece });
  }

  stop(): void {
    // Arguments are always JSON text, also when the model sent none.
    if (this.#written === '' && !this.#part.custom) {
      this.add({ arguments: '{}' });
      this.#invented = true;
    }
    this.stopped = true;
  }

  closing(): void {
    if (this.#part.native === 'apply_patch') this.#tellDiff();
    if (this.#part.native !== undefined) return;
    if (this.#part.custom) {
      this.#slot.tell('response.custom_tool_call_input.done', { ...this.#where(), input: this.#written });
    } else {
      const { name } = this.#part;
      this.#slot.tell('response.function_call_arguments.done', { ...this.#where(), name, arguments: this.#written });
    }
  }

  /** In one piece: a diff within JSON that is still being written may end in half an escape. */
  #tellDiff(): void {
    const { diff } = writtenOperation(this.#written);
    if (typeof diff !== 'string') return;
    this.#slot.tell('response.apply_patch_call_operation_diff.delta', { ...this.#where(), delta: diff });
    this.#slot.tell('response.apply_patch_call_operation_diff.done', { ...this.#where(), diff });
  }

  render(status: 'completed' | 'incomplete'): Fields {
    return this.#item(this.#written, status);
  }

  #where(): Fields {
    return { item_id: this.#id, output_index: this.outputIndex };
  }

  get #id(): string {
    return textOrUndefined(this.#part.extras?.responses?.['id']) ?? this.#slot.id;
  }

  #item(written: string, status: string): Fields {
    const part = this.#part;
    const { id: _id, status: _status, ...native } = part.extras?.responses ?? {};
    if (part.native === 'local_shell') {
      const action = shellAction(written);
      return { id: this.#id, type: 'local_shell_call', status, call_id: part.id, action, ...native };
    }
    if (part.native === 'apply_patch') {
      const operation = writtenOperation(written);
      // The item has no other words for a call that was cut off, and a client must not apply it.
      const progress = status === 'completed' ? status : 'in_progress';
      return { id: this.#id, type: 'apply_patch_call', status: progress, call_id: part.id, operation, ...native };
    }
    if (part.native === 'tool_search') {
      const search = { execution: 'client', arguments: readObject(written) };
      return { id: this.#id, type: 'tool_search_call', status, call_id: part.id, ...search, ...native };
    }
    return {
      id: this.#id,
      type: part.custom ? 'custom_tool_call' : 'function_call',
      status,
      call_id: part.id,
      name: part.name,
      ...(part.custom ? { input: written } : { arguments: written }),
      ...native,
    };
  }
}

/** A generated image. One given only by URL keeps the URL, since the gateway does not fetch it. */
export class ImageItem implements Item {
  readonly outputIndex: number;
  readonly idle = true;
  done: Fields | undefined;
  readonly #part: ImagePart;
  readonly #slot: OutputSlot;

  constructor(part: ImagePart, slot: OutputSlot) {
    this.#part = part;
    this.#slot = slot;
    this.outputIndex = slot.outputIndex;
  }

  added(): Fields {
    return { ...this.#item('in_progress'), result: null };
  }

  opened(): void {
    for (const step of ['in_progress', 'generating']) this.#step(step);
  }

  closing(): void {
    this.#step('completed');
  }

  render(): Fields {
    return this.#item('completed');
  }

  #step(name: string): void {
    const { id } = this.#item('');
    this.#slot.tell(`response.image_generation_call.${name}`, { item_id: id, output_index: this.outputIndex });
  }

  #item(status: string): Fields {
    const { source } = this.#part;
    const native = this.#part.extras?.responses;
    return {
      id: this.#slot.id,
      type: 'image_generation_call',
      ...(source.kind === 'bytes' && { output_format: source.mediaType.replace('image/', '') }),
      ...native,
      status,
      result: source.kind === 'bytes' ? source.data : source.kind === 'url' ? source.url : null,
    };
  }
}

/** An item whose content is known from the start. */
export class WholeItem implements Item {
  readonly outputIndex: number;
  readonly idle = true;
  done: Fields | undefined;
  readonly #value: Fields;

  constructor(value: Fields, slot: OutputSlot) {
    this.#value = value;
    this.outputIndex = slot.outputIndex;
  }

  added(): Fields {
    return this.#value;
  }

  opened(): void {}

  closing(): void {}

  render(): Fields {
    return this.#value;
  }
}

/** An item in progress, whose value is replaced when it is complete. */
export class GrowingItem implements Item, OutputPart {
  readonly outputIndex: number;
  done: Fields | undefined;
  stopped = false;
  #value: Fields;
  readonly #slot: OutputSlot;

  constructor(value: Fields, slot: OutputSlot) {
    this.#value = value;
    this.#slot = slot;
    this.outputIndex = slot.outputIndex;
  }

  get idle(): boolean {
    return this.stopped;
  }

  added(): Fields {
    return this.#value;
  }

  opened(): void {}

  add({ value, report }: PartDelta): void {
    if (value !== undefined) this.#value = value as Fields;
    if (report === undefined) return;
    const { outputIndex: output_index, tell } = this.#slot;
    tell(`response.${report.event}`, { item_id: this.#value['id'], output_index, ...report.members });
  }

  stop(): void {
    this.stopped = true;
  }

  closing(): void {}

  render(status: 'completed' | 'incomplete'): Fields {
    const broken = status === 'incomplete' && this.#value['status'] === 'in_progress';
    return broken ? { ...this.#value, status } : this.#value;
  }
}
