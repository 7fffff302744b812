/** Encodes one part of a streamed answer as one or more blocks, and holds its deltas until they can be sent. */
import { stringifyJson } from '../../base/json.ts';
import type { Part, PartDelta } from '../conversation/conversation.ts';
import { type Fields, isFields, textOf } from '../conversation/fields.ts';
import { encodeCitation } from './citations.ts';
import { callBlock, callSignature, encodeBlocks } from './encode-reply.ts';
import { sealOf } from './sealed.ts';

/** Blocks whose input is sent in deltas. */
const STREAMED_INPUT = ['tool_use', 'server_tool_use', 'mcp_tool_use'];

/** One server-sent event. */
export function frame(name: string, value: unknown): string {
  return `event: ${name}\ndata: ${stringifyJson(value)}\n\n`;
}

export class StreamedPart {
  readonly index: number;
  readonly part: Part;
  stopped = false;
  readonly #held: PartDelta[] = [];
  /** Whether the block was started on the wire. */
  #opened = false;
  /** Index of the block while it is open. */
  #block = 0;
  #blocks = 0;
  #signature = '';
  #encrypted = '';

  constructor(index: number, part: Part) {
    this.index = index;
    this.part = part;
  }

  /** Holds a delta until the part is the current one; adjacent pieces of the same text are merged. */
  hold(delta: PartDelta): void {
    const last = this.#held.at(-1);
    for (const key of ['text', 'arguments'] as const) {
      const piece = delta[key];
      if (piece === undefined || last?.[key] === undefined) continue;
      if (Object.keys(delta).length === 1 && Object.keys(last).length === 1) {
        this.#held[this.#held.length - 1] = { [key]: last[key] + piece };
        return;
      }
    }
    this.#held.push(delta);
  }

  /** Number of blocks started since the last call. */
  takeBlocks(): number {
    const blocks = this.#blocks;
    this.#blocks = 0;
    return blocks;
  }

  /** Makes the part the current one: sends its start, then what was held. `next` is the index of the next block. */
  begin(next: number): string {
    const { part } = this;
    let text = '';
    switch (part.type) {
      case 'text':
        text += this.#writeText(part.text, next);
        for (const citation of part.citations ?? []) text += this.write({ citation }, next);
        break;
      case 'refusal':
        text += this.#writeText(part.text, next);
        break;
      case 'reasoning':
        text += this.write({ text: part.text, signature: part.signature, encrypted: part.encrypted }, next);
        break;
      case 'toolCall': {
        const signature = callSignature(part, part.signature?.value);
        if (signature !== undefined) text += this.#whole(signature, next);
        text += this.#start(callBlock(part), next);
        if (part.custom) text += this.#delta({ type: 'input_json_delta', partial_json: '{"input":"' });
        text += this.write({ arguments: part.arguments }, next);
        break;
      }
      default:
        for (const block of encodeBlocks(part)) text += this.#whole(block, next);
    }
    for (const delta of this.#held) text += this.write(delta, next);
    this.#held.length = 0;
    return text;
  }

  /** Writes a delta of the current part. */
  write(delta: PartDelta, next: number): string {
    switch (this.part.type) {
      case 'text':
        return (
          (delta.text ? this.#writeText(delta.text, next) : '') +
          (delta.citation ? this.#writeCitation(encodeCitation(delta.citation), next) : '')
        );
      case 'refusal':
        return delta.text ? this.#writeText(delta.text, next) : '';
      case 'reasoning':
        return this.#writeReasoning(delta, next);
      case 'toolCall': {
        if (delta.signature) this.#signature += delta.signature;
        if (!delta.arguments) return '';
        const piece = this.part.custom ? JSON.stringify(delta.arguments).slice(1, -1) : delta.arguments;
        return this.#delta({ type: 'input_json_delta', partial_json: piece });
      }
      default:
        return '';
    }
  }

  /** Ends the part's block and adds the blocks that are only known now. */
  close(next: number): string {
    const { part } = this;
    if (part.type === 'reasoning') return this.#closeReasoning(next);
    if (part.type !== 'toolCall') return this.#stop();
    const tail = part.custom ? this.#delta({ type: 'input_json_delta', partial_json: '"}' }) : '';
    const stop = tail + this.#stop();
    const late = callSignature(part, this.#signature);
    return late === undefined ? stop : stop + this.#whole(late, next);
  }

  #writeText(text: string, next: number): string {
    if (text === '') return '';
    // An empty text block has no use and is rejected when sent back, so the start waits for text.
    const start = this.#opened ? '' : this.#start({ type: 'text', text: '', citations: [] }, next);
    return start + this.#delta({ type: 'text_delta', text });
  }

  #writeCitation(citation: unknown, next: number): string {
    if (citation === undefined) return '';
    const start = this.#opened ? '' : this.#start({ type: 'text', text: '', citations: [] }, next);
    return start + this.#delta({ type: 'citations_delta', citation });
  }

  #writeReasoning(delta: PartDelta, next: number): string {
    let text = '';
    if (delta.encrypted) this.#encrypted += delta.encrypted;
    if (delta.text) {
      if (!this.#opened) text += this.#start({ type: 'thinking', thinking: '', signature: '' }, next);
      text += this.#delta({ type: 'thinking_delta', thinking: delta.text });
    }
    if (delta.signature) this.#signature += delta.signature;
    return text;
  }

  #closeReasoning(next: number): string {
    if (this.part.type !== 'reasoning') return '';
    const signature = this.#signature;
    const encrypted = this.#encrypted;
    const told = { ...this.part, text: '', signature: signature || undefined, encrypted: encrypted || undefined };
    if (!this.#opened) return encodeBlocks(told).reduce((text, block) => text + this.#whole(block, next), '');
    const sealed = sealOf(told);
    const sign = sealed ?? signature;
    let text = sign === '' ? '' : this.#delta({ type: 'signature_delta', signature: sign });
    text += this.#stop();
    if (encrypted !== '' && sealed === undefined)
      text += this.#whole({ type: 'redacted_thinking', data: encrypted }, next);
    return text;
  }

  /** A complete block, written as the vendor streams it: members that the vendor streams are sent in a delta. */
  #whole(block: Fields, next: number): string {
    const { input, content } = block;
    if (STREAMED_INPUT.includes(textOf(block['type'])) && isFields(input) && Object.keys(input).length > 0) {
      return (
        this.#start({ ...block, input: {} }, next) +
        this.#delta({ type: 'input_json_delta', partial_json: stringifyJson(input) }) +
        this.#stop()
      );
    }
    if (block['type'] === 'compaction' && typeof content === 'string') {
      const { type: _, ...members } = block;
      return (
        this.#start({ type: 'compaction', content: null }, next) +
        this.#delta({ type: 'compaction_delta', ...members }) +
        this.#stop()
      );
    }
    return this.#start(block, next) + this.#stop();
  }

  #start(block: Fields, next: number): string {
    this.#block = next + this.#blocks;
    this.#blocks += 1;
    this.#opened = true;
    return frame('content_block_start', { type: 'content_block_start', index: this.#block, content_block: block });
  }

  #delta(delta: Fields): string {
    return frame('content_block_delta', { type: 'content_block_delta', index: this.#block, delta });
  }

  #stop(): string {
    if (!this.#opened) return '';
    this.#opened = false;
    return frame('content_block_stop', { type: 'content_block_stop', index: this.#block });
  }
}
