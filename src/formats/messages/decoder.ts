/** Decodes the stream of an upstream that speaks the messages format, event by event. */
import { argumentsOf, parseInput } from '../conversation/call-input.ts';
import type { Part, TurnEvent } from '../conversation/conversation.ts';
import type { UpstreamFailure } from '../conversation/failure.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import { decodeCitation } from './citations.ts';
import { completeCall, decodeBlock, decodeBlocks } from './decode-blocks.ts';
import { failureFromError } from './failure.ts';
import { decodeFinish } from './finish.ts';
import { ServedCalls } from './served-calls.ts';
import { decodeUsage, mergeUsage } from './usage.ts';

/** A block between its start and its stop. Vendor-specific blocks are collected and emitted complete. */
interface OpenBlock {
  /** Part index; -1 for a collected block, which gets its index at its stop. */
  part: number;
  block: Fields;
  gathered: boolean;
  /** JSON text of the input so far. */
  input: string;
}

export class MessagesDecoder implements TurnDecoder {
  #started = false;
  #over = false;
  #finished = false;
  #id = '';
  #parts = 0;
  #calls = false;
  readonly #open = new Map<unknown, OpenBlock>();
  readonly #served = new ServedCalls();
  #usage: Fields = {};
  #stop: Fields = {};

  read(_name: string, data: string, value: unknown): TurnEvent[] {
    if (this.#over || data === '' || data === '[DONE]') return [];
    if (!isFields(value)) return this.#fail('malformed', 'an event of the stream is not a JSON object');
    switch (value['type']) {
      case 'content_block_delta':
        return this.#readDelta(value['index'], fieldsOf(value['delta']));
      case 'content_block_start':
        return this.#readStart(value['index'], fieldsOf(value['content_block']));
      case 'content_block_stop':
        return this.#readStop(value['index']);
      case 'message_start':
        return this.#readMessage(fieldsOf(value['message']));
      case 'message_delta':
        return this.#readMessageDelta(value);
      case 'message_stop':
        return this.#finish([{ type: 'end' }]);
      case 'error':
        this.#over = true;
        return [{ type: 'failure', failure: failureFromError(value, null) }];
      default:
        // A ping or an event of a later version; an event with `error` is an error whatever its type.
        if (value['error'] === undefined || value['error'] === null) return [];
        this.#over = true;
        return [{ type: 'failure', failure: failureFromError(value, null) }];
    }
  }

  close(): TurnEvent[] {
    if (this.#over) return [];
    // Nothing meaningful follows the stop reason; only the end marker may be missing.
    if (typeof this.#stop['stop_reason'] === 'string') return this.#finish([{ type: 'end' }]);
    return this.#fail('cut', 'the stream ended without its end marker');
  }

  toldFinish(): boolean {
    return !this.#over && typeof this.#stop['stop_reason'] === 'string';
  }

  #readMessage(message: Fields): TurnEvent[] {
    // A repeated start adds nothing; a start after content would merge two answers into one.
    if (this.#started && (this.#parts > 0 || this.#open.size > 0 || this.#finished)) {
      return this.#fail('malformed', 'the provider restarted its message in the middle of the stream');
    }
    const usage = this.#readUsage(message['usage']);
    if (this.#started) return usage;
    this.#started = true;
    this.#id = textOf(message['id']);
    const events: TurnEvent[] = [
      {
        type: 'start',
        id: textOrUndefined(message['id']),
        model: textOrUndefined(message['model']),
        serviceTier: textOrUndefined(fieldsOf(message['usage'])['service_tier']),
      },
    ];
    // A resumed server-side turn arrives complete in its start.
    for (const part of decodeBlocks(message['content'], 'vendor')) {
      if (!completeCall(part, this.#id, this.#parts)) return this.#fail('malformed', 'a tool call has no name');
      this.#tellPart(part, events);
    }
    if (typeof message['stop_reason'] === 'string') this.#stop = message;
    // Usage follows the parts that it counts.
    events.push(...safeguardsOf(message), ...usage);
    return events;
  }

  #readStart(index: unknown, block: Fields): TurnEvent[] {
    if (this.#finished) return this.#fail('malformed', 'the stream has content after the stop reason');
    if (this.#open.has(index)) return this.#fail('malformed', 'the stream started a content block twice');
    const part = decodeBlock(block, 'vendor');
    if (part.type === 'opaque') {
      this.#open.set(index, { part: -1, block: { ...block }, gathered: true, input: '' });
      return [];
    }
    if (!completeCall(part, this.#id, this.#parts)) return this.#fail('malformed', 'a tool call has no name');
    this.#open.set(index, { part: this.#parts, block, gathered: false, input: '' });
    if (part.type === 'toolCall') {
      this.#calls = true;
      // The input in the start is a placeholder, used at the block's stop if no input text was received.
      part.arguments = '';
    }
    return [{ type: 'partStart', choice: 0, index: this.#parts++, part }];
  }

  #readDelta(index: unknown, delta: Fields): TurnEvent[] {
    const open = this.#open.get(index);
    if (open === undefined)
      return this.#fail('malformed', 'the stream has a delta for a content block that is not open');
    if (open.gathered) {
      gather(open, delta);
      return [];
    }
    switch (delta['type']) {
      case 'text_delta':
        return delta['text'] === '' ? [] : tell(open, { text: textOf(delta['text']) });
      case 'input_json_delta': {
        const piece = textOf(delta['partial_json']);
        if (piece === '') return [];
        open.input = 'came';
        return tell(open, { arguments: piece });
      }
      case 'thinking_delta':
        return delta['thinking'] === '' ? [] : tell(open, { text: textOf(delta['thinking']) });
      case 'signature_delta':
        return delta['signature'] === '' ? [] : tell(open, { signature: textOf(delta['signature']) });
      case 'citations_delta':
        return tell(open, { citation: decodeCitation(delta['citation']) });
      default:
        return [];
    }
  }

  #readStop(index: unknown): TurnEvent[] {
    const open = this.#open.get(index);
    if (open === undefined) return [];
    this.#open.delete(index);
    return this.#closeBlock(open);
  }

  #closeBlock(open: OpenBlock): TurnEvent[] {
    const events: TurnEvent[] = [];
    if (open.gathered) {
      if (open.input !== '') open.block['input'] = parseInput(open.input);
      this.#tellPart(this.#served.noted(decodeBlock(open.block, 'vendor')), events);
      return events;
    }
    if (open.block['type'] === 'tool_use' && open.input === '') {
      events.push(...tell(open, { arguments: argumentsOf(open.block['input']) }));
    }
    events.push({ type: 'partStop', choice: 0, index: open.part });
    return events;
  }

  #readMessageDelta(value: Fields): TurnEvent[] {
    const delta = fieldsOf(value['delta']);
    if (typeof delta['stop_reason'] === 'string') this.#stop = delta;
    const events = [...safeguardsOf(value), ...safeguardsOf(delta), ...this.#readUsage(value['usage'])];
    return typeof this.#stop['stop_reason'] === 'string' ? [...events, ...this.#closeAnswer()] : events;
  }

  #readUsage(record: unknown): TurnEvent[] {
    if (!isFields(record)) return [];
    this.#usage = mergeUsage(this.#usage, record);
    const usage = decodeUsage(this.#usage);
    return usage === undefined ? [] : [{ type: 'usage', usage }];
  }

  #tellPart(part: Part, events: TurnEvent[]): void {
    if (part.type === 'toolCall') this.#calls = true;
    events.push({ type: 'partStart', choice: 0, index: this.#parts, part });
    events.push({ type: 'partStop', choice: 0, index: this.#parts++ });
  }

  /** Stops the open blocks and emits the finish, once. */
  #closeAnswer(): TurnEvent[] {
    if (this.#finished) return [];
    this.#finished = true;
    const events: TurnEvent[] = [];
    for (const open of this.#open.values()) events.push(...this.#closeBlock(open));
    this.#open.clear();
    events.push({ type: 'finish', choice: 0, finish: decodeFinish(this.#stop, this.#calls, this.#parts > 0) });
    return events;
  }

  #finish(last: TurnEvent[]): TurnEvent[] {
    this.#over = true;
    return [...this.#closeAnswer(), ...last];
  }

  #fail(kind: UpstreamFailure['kind'], message: string): TurnEvent[] {
    this.#over = true;
    return [{ type: 'failure', failure: { kind, status: null, message } }];
  }
}

function safeguardsOf(holder: Fields): TurnEvent[] {
  const results = holder['safeguard_results'];
  return Array.isArray(results) ? [{ type: 'safeguards', results }] : [];
}

type Delta = Extract<TurnEvent, { type: 'partDelta' }>['delta'];

function tell(open: OpenBlock, delta: Delta): TurnEvent[] {
  return [{ type: 'partDelta', choice: 0, index: open.part, delta }];
}

/** Adds a delta to a collected block: strings are concatenated, lists appended, the input is parsed at the stop. */
function gather(open: OpenBlock, delta: Fields): void {
  const { block } = open;
  if (delta['type'] === 'input_json_delta') open.input += textOf(delta['partial_json']);
  else if (delta['type'] === 'citations_delta') block['citations'] = [...listOf(block['citations']), delta['citation']];
  else {
    for (const [key, value] of Object.entries(delta)) {
      if (key === 'type' || value === null) continue;
      block[key] = typeof value === 'string' ? textOf(block[key]) + value : value;
    }
  }
}
