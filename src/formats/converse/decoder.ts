/**
 * Decodes a streamed reply event by event. `name` is the event type from the AWS event-stream framing; an exception
 * arrives as `:exception:` plus its type. The stream has no end marker: after `messageStop`, only `metadata` with the
 * counts follows.
 */
import { parseInput } from '../conversation/call-input.ts';
import type { Part, TurnEvent } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import { decodeCitation } from './citations.ts';
import { completeCall, decodeBlock, isClientCall, SIGNER } from './decode-blocks.ts';
import { failureFromException } from './failure.ts';
import { decodeFinish } from './finish.ts';
import { decodeUsage } from './usage.ts';

/** Prefix that the framing gives to exceptions. */
export const EXCEPTION = ':exception:';

/** A block between its first event and its stop. */
interface OpenBlock {
  /** Part index; -1 before anything of it was emitted. */
  part: number;
  kind: 'text' | 'reasoning' | 'call' | 'gathered';
  /** For calls: whether input text arrived. */
  said: boolean;
  /** For blocks emitted as a whole: the block so far, its input text, and the pieces of its encrypted reasoning. */
  whole: Fields;
  input: string;
  redacted: string[];
}

export class ConverseDecoder implements TurnDecoder {
  #over = false;
  #started = false;
  #stopped = false;
  #counted = false;
  #parts = 0;
  #calls = false;
  readonly #open = new Map<unknown, OpenBlock>();
  readonly #closed = new Set<unknown>();

  read(name: string, data: string, value: unknown): TurnEvent[] {
    if (this.#over || data === '') return [];
    if (name.startsWith(EXCEPTION)) {
      this.#over = true;
      return [{ type: 'failure', failure: failureFromException(name.slice(EXCEPTION.length), value ?? data, null) }];
    }
    if (!isFields(value)) return this.#fail('malformed', 'an event of the stream is not a JSON object');
    switch (name) {
      case 'contentBlockDelta':
        return this.#readDelta(value['contentBlockIndex'], fieldsOf(value['delta']));
      case 'contentBlockStart':
        return this.#readStart(value['contentBlockIndex'], fieldsOf(value['start']));
      case 'contentBlockStop':
        return this.#readStop(value['contentBlockIndex']);
      case 'messageStart':
        return this.#readMessage();
      case 'messageStop':
        return this.#readMessageStop(value);
      case 'metadata':
        return this.#readMetadata(value);
      default:
        // An event type of a later API version.
        return [];
    }
  }

  close(): TurnEvent[] {
    if (this.#over) return [];
    if (this.#stopped) return this.#end();
    return this.#fail('cut', 'the stream ended without its end marker');
  }

  toldFinish(): boolean {
    return !this.#over && this.#stopped;
  }

  #readMessage(): TurnEvent[] {
    // A repeated start is harmless. A start after content would splice two replies.
    if (this.#parts > 0 || this.#open.size > 0 || this.#stopped) {
      return this.#fail('malformed', 'the provider restarted its message in the middle of the stream');
    }
    return this.#start();
  }

  /** Some streams begin with their first block. */
  #start(): TurnEvent[] {
    if (this.#started) return [];
    this.#started = true;
    return [{ type: 'start' }];
  }

  #readStart(index: unknown, start: Fields): TurnEvent[] {
    const wrong = this.#misplaced(index);
    if (wrong !== undefined) return wrong;
    if (this.#open.has(index)) return this.#fail('malformed', 'a content block was started twice');
    const { toolUse } = start;
    const events = this.#start();
    if (isFields(toolUse) && isClientCall(toolUse)) {
      const block = this.#opened(index, 'call');
      const part = decodeBlock({ toolUse });
      if (part.type !== 'toolCall' || !completeCall(part, this.#parts)) {
        return this.#fail('malformed', 'a tool call has no name');
      }
      // The input follows as text in the deltas.
      part.arguments = '';
      this.#calls = true;
      return [...events, this.#tellStart(block, part)];
    }
    // An empty start announces a text, which begins with its first delta.
    if (Object.keys(start).length > 0) this.#opened(index, 'gathered').whole = structuredClone(start);
    return events;
  }

  #readDelta(index: unknown, delta: Fields): TurnEvent[] {
    const wrong = this.#misplaced(index);
    if (wrong !== undefined) return wrong;
    const events = this.#start();
    const known = this.#open.get(index);
    const block = known ?? this.#opened(index, kindOf(delta));
    if (block.kind === 'gathered') {
      gather(block, delta);
      return events;
    }
    if (block.kind === 'call') {
      const piece = textOf(fieldsOf(delta['toolUse'])['input']);
      if (piece === '') return events;
      block.said = true;
      return [...events, ...tell(block, { arguments: piece })];
    }
    return [...events, ...(block.kind === 'text' ? this.#readText(block, delta) : this.#readReasoning(block, delta))];
  }

  #readText(block: OpenBlock, delta: Fields): TurnEvent[] {
    const events: TurnEvent[] = [];
    if (block.part === -1) events.push(this.#tellStart(block, { type: 'text', text: '' }));
    const text = textOf(delta['text']);
    if (text !== '') events.push(...tell(block, { text }));
    if (isFields(delta['citation'])) events.push(...tell(block, { citation: decodeCitation(delta['citation']) }));
    return events;
  }

  #readReasoning(block: OpenBlock, delta: Fields): TurnEvent[] {
    const { text, signature, redactedContent } = fieldsOf(delta['reasoningContent']);
    const events: TurnEvent[] = [];
    if (typeof redactedContent === 'string') {
      block.redacted.push(redactedContent);
      return events;
    }
    if (block.part === -1) events.push(this.#tellStart(block, { type: 'reasoning', text: '', origin: SIGNER }));
    if (typeof text === 'string' && text !== '') events.push(...tell(block, { text }));
    if (typeof signature === 'string' && signature !== '') events.push(...tell(block, { signature }));
    return events;
  }

  #readStop(index: unknown): TurnEvent[] {
    const block = this.#open.get(index);
    if (block === undefined) return [];
    this.#open.delete(index);
    this.#closed.add(index);
    return this.#closeBlock(block);
  }

  #closeBlock(block: OpenBlock): TurnEvent[] {
    const events: TurnEvent[] = [];
    if (block.kind === 'gathered') {
      events.push(this.#tellStart(block, decodeBlock(wholeOf(block))));
    } else if (block.redacted.length > 0) {
      // Plain reasoning followed by encrypted reasoning becomes two parts.
      if (block.part !== -1) events.push({ type: 'partStop', choice: 0, index: block.part });
      events.push(
        this.#tellStart(block, { type: 'reasoning', text: '', encrypted: joined(block.redacted), origin: SIGNER }),
      );
    } else if (block.kind === 'call' && !block.said) {
      events.push(...tell(block, { arguments: '{}' }));
    }
    if (block.part !== -1) events.push({ type: 'partStop', choice: 0, index: block.part });
    return events;
  }

  #readMessageStop(value: Fields): TurnEvent[] {
    if (this.#stopped) return [];
    const events = this.#start();
    for (const block of this.#open.values()) events.push(...this.#closeBlock(block));
    this.#open.clear();
    this.#stopped = true;
    const finish = decodeFinish(
      value['stopReason'],
      value['additionalModelResponseFields'],
      this.#calls,
      this.#parts > 0,
    );
    events.push({ type: 'finish', choice: 0, finish });
    return this.#counted ? [...events, ...this.#end()] : events;
  }

  #readMetadata(value: Fields): TurnEvent[] {
    const usage = decodeUsage(value['usage']);
    const events: TurnEvent[] = usage === undefined ? [] : [{ type: 'usage', usage }];
    this.#counted = true;
    return this.#stopped ? [...events, ...this.#end()] : events;
  }

  #end(): TurnEvent[] {
    this.#over = true;
    return [{ type: 'end' }];
  }

  #opened(index: unknown, kind: OpenBlock['kind']): OpenBlock {
    const block: OpenBlock = { part: -1, kind, said: false, whole: {}, input: '', redacted: [] };
    this.#open.set(index, block);
    return block;
  }

  #tellStart(block: OpenBlock, part: Part): TurnEvent {
    block.part = this.#parts++;
    return { type: 'partStart', choice: 0, index: block.part, part };
  }

  #misplaced(index: unknown): TurnEvent[] | undefined {
    if (this.#stopped) return this.#fail('malformed', 'content followed the stop reason');
    if (this.#closed.has(index)) return this.#fail('malformed', 'content arrived for a stopped block');
    return undefined;
  }

  #fail(kind: UpstreamFailure['kind'], message: string): TurnEvent[] {
    this.#over = true;
    return [{ type: 'failure', failure: { kind, status: null, message } }];
  }
}

type Delta = Extract<TurnEvent, { type: 'partDelta' }>['delta'];

function tell(block: OpenBlock, delta: Delta): TurnEvent[] {
  return [{ type: 'partDelta', choice: 0, index: block.part, delta }];
}

/** The kind of a block that has no start event. */
function kindOf(delta: Fields): OpenBlock['kind'] {
  if ('text' in delta || 'citation' in delta) return 'text';
  return 'reasoningContent' in delta ? 'reasoning' : 'gathered';
}

/** Adds a delta to a block that is emitted as a whole. */
function gather(block: OpenBlock, delta: Fields): void {
  for (const [kind, piece] of Object.entries(delta)) {
    const known = fieldsOf(block.whole[kind]);
    if (Array.isArray(piece)) block.whole[kind] = { ...known, content: [...listOf(known['content']), ...piece] };
    else if (kind === 'toolUse') block.input += textOf(fieldsOf(piece)['input']);
    else block.whole[kind] = isFields(piece) ? { ...known, ...piece } : piece;
  }
}

function wholeOf({ whole, input }: OpenBlock): Fields {
  if (!isFields(whole['toolUse'])) return whole;
  return { ...whole, toolUse: { ...whole['toolUse'], input: input === '' ? {} : parseInput(input) } };
}

/** Joins encrypted reasoning, whose pieces are separately base64-encoded, into one base64 text. */
function joined(pieces: readonly string[]): string {
  if (pieces.length === 1) return pieces[0]!;
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece, 'base64'))).toString('base64');
}
