/**
 * A relayed stream. Deltas pass through byte for byte; only the response objects around them get our members. The
 * terminal event is held until the cost is known. Missing sequence numbers are added.
 */
import type { GatewayError } from '../../base/errors.ts';
import { scanMembers, stringifyJson } from '../../base/json.ts';
import { type Edit, patchMembers } from '../../base/json-edits.ts';
import type { TurnEvent } from '../conversation/conversation.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf } from '../conversation/fields.ts';
import type { Closing, RelayStream, Stamp } from '../conversation/format.ts';
import { eventType } from './decoder.ts';
import { DONE, errorEvent, frame } from './encoder.ts';
import { patchResponse } from './patch-response.ts';
import { RelayedCalls } from './relay-calls.ts';
import { isLimit, type ResponseState, responseOf } from './response.ts';

/**
 * Limit for kept finished items, in UTF-16 units. They only complete a terminal event, so dropping them is acceptable.
 */
const LARGEST_KEPT = 8 * 1024 * 1024;

export class ResponsesRelayStream implements RelayStream {
  readonly #stamp: Stamp;
  /** Sequence number of the last event sent. */
  #last = -1;
  #opened = false;
  #terminal: { type: string; data: string; value: Fields } | undefined;
  /** Finished items, for a failure or a terminal event without output. */
  #items: { value: Fields }[] = [];
  #kept = 0;
  /** Unfinished items by output index, to close them when the stream breaks off. */
  readonly #calls = new RelayedCalls();
  readonly #unfinished = new Map<unknown, OpenItem>();

  constructor(stamp: Stamp) {
    this.#stamp = stamp;
  }

  event(name: string, told: string, given: unknown, events: readonly TurnEvent[]): string {
    if (!isFields(given) || this.#terminal !== undefined) return '';
    let data = told;
    let value = given;
    const type = eventType(name, value);
    switch (type) {
      case undefined:
        // Clients of this format dispatch on the event type and fail on an event without one.
        return '';
      case 'response.created':
        this.#opened = true;
        return this.#forward(type, this.#patched(data, value), value);
      case 'response.in_progress':
      case 'response.queued':
        return this.#open() + this.#forward(type, this.#patched(data, value), value);
      case 'response.completed':
      case 'response.incomplete':
        this.#terminal = { type, data, value };
        return '';
      case 'response.failed':
      case 'error':
        return '';
      case 'response.output_item.added':
        ({ data, value } = this.#calls.item(data, value, events));
        this.#unfinished.set(value['output_index'], new OpenItem(fieldsOf(value['item'])));
        break;
      case 'response.output_item.done':
        ({ data, value } = this.#calls.item(data, value, events));
        this.#unfinished.delete(value['output_index']);
        this.#keep(value, data.length);
        break;
      default:
        if (typeof value['delta'] === 'string')
          this.#unfinished.get(value['output_index'])?.add(type, value, value['delta']);
    }
    if (events.some((event) => event.type === 'failure')) return '';
    return this.#open() + this.#forward(type, data, value);
  }

  end(closing: Closing): string {
    const held = this.#terminal;
    if (held === undefined) return '';
    const { type, value } = held;
    const data = this.#patched(this.#withOutput(held.data, value), value, closing);
    return this.#open() + this.#forward(type, data, value) + DONE;
  }

  /** Before anything was sent, the failure is a single `error` event. */
  failure(error: GatewayError, closing: Closing): string {
    if (!this.#opened) {
      this.#last += 1;
      const { type, ...members } = errorEvent(error, this.#last);
      return frame(type, members) + DONE;
    }
    const closed = this.#closeItems();
    const output = this.#items.map(({ value }) => value['item']);
    const limit = isLimit(error, output);
    const state: ResponseState = limit
      ? { status: 'incomplete', reason: 'max_output_tokens', output, created: this.#stamp.created }
      : { status: 'failed', error, output, created: this.#stamp.created };
    const response = responseOf(this.#stamp, state, closing);
    this.#last += 1;
    const end = frame(limit ? 'response.incomplete' : 'response.failed', { response, sequence_number: this.#last });
    return closed + end + DONE;
  }

  /** Closes the items that were still open when the stream broke off. */
  #closeItems(): string {
    let text = '';
    for (const [index, open] of this.#unfinished) {
      const item = open.broken();
      if (item === undefined) continue;
      const value = { type: 'response.output_item.done', output_index: index, item };
      this.#items.push({ value });
      this.#last += 1;
      text += frame(value.type, { ...value, sequence_number: this.#last });
    }
    return text;
  }

  /** The opening events, for an upstream that omitted them. */
  #open(): string {
    if (this.#opened) return '';
    this.#opened = true;
    const response = responseOf(this.#stamp, { status: 'in_progress', output: [], created: this.#stamp.created });
    let text = '';
    for (const type of ['response.created', 'response.in_progress']) {
      this.#last += 1;
      text += frame(type, { response, sequence_number: this.#last });
    }
    return text;
  }

  /**
   * Forwards an event unchanged, except for a sequence number that does not increase. Multi-line data needs a `data:`
   * per line.
   */
  #forward(type: string, data: string, value: Fields): string {
    const number = value['sequence_number'];
    const edits: Edit[] = value['type'] === type ? [] : [{ key: 'type', json: JSON.stringify(type) }];
    if (typeof number === 'number' && number > this.#last) this.#last = number;
    else {
      this.#last += 1;
      edits.push({ key: 'sequence_number', json: String(this.#last) });
    }
    let text = edits.length === 0 ? data : patchMembers(data, scanMembers(data), edits);
    if (text.includes('\n')) text = text.replaceAll('\n', '\ndata: ');
    return `event: ${type}\ndata: ${text}\n\n`;
  }

  #keep(value: Fields, size: number): void {
    this.#kept += size;
    if (this.#kept > LARGEST_KEPT) this.#items = [];
    else this.#items.push({ value });
  }

  /** The event with our members in its response object. */
  #patched(data: string, value: Fields, closing?: Closing): string {
    const members = scanMembers(data);
    const inner = members.findLast(({ key }) => key === 'response');
    if (inner === undefined || !isFields(value['response'])) return data;
    const text = data.slice(inner.valueStart, inner.valueEnd);
    const json = patchResponse(text, value['response'], this.#stamp, closing);
    return patchMembers(data, members, [{ key: 'response', json }]);
  }

  /** The terminal event, with the streamed items as its output if it has none. */
  #withOutput(data: string, value: Fields): string {
    const response = fieldsOf(value['response']);
    const own = listOf(response['output']);
    const renamed = this.#calls.output(own);
    if (renamed === undefined && (this.#items.length === 0 || own.length > 0)) return data;
    const output = own.length > 0 ? renamed : this.#items.map(({ value: told }) => told['item']);
    const json = stringifyJson({ ...response, output });
    return patchMembers(data, scanMembers(data), [{ key: 'response', json }]);
  }
}

/** An unfinished item with the deltas received so far. */
class OpenItem {
  readonly #item: Fields;
  /** Keyed by delta type and part index. */
  readonly #told = new Map<string, { type: string; text: string }>();
  #size = 0;

  constructor(item: Fields) {
    this.#item = item;
  }

  add(type: string, event: Fields, delta: string): void {
    const key = `${type} ${event['summary_index'] ?? event['content_index']}`;
    const known = this.#told.get(key);
    this.#size += delta.length;
    if (this.#size > LARGEST_KEPT) return;
    if (known !== undefined) known.text += delta;
    else this.#told.set(key, { type, text: delta });
  }

  /** Undefined for calls: clients run a call as soon as it is done, whatever its status. */
  broken(): Fields | undefined {
    const item = this.#item;
    const texts = (type: string, make: (text: string) => Fields) =>
      [...this.#told.values()].filter((one) => one.type === type).map(({ text }) => make(text));
    if (textOf(item['type']).endsWith('_call')) return undefined;
    switch (item['type']) {
      case 'message': {
        const said = texts('response.output_text.delta', (text) => ({ type: 'output_text', text, annotations: [] }));
        const refused = texts('response.refusal.delta', (refusal) => ({ type: 'refusal', refusal }));
        return { ...item, status: 'incomplete', content: [...said, ...refused] };
      }
      case 'reasoning': {
        const summary = texts('response.reasoning_summary_text.delta', (text) => ({ type: 'summary_text', text }));
        const content = texts('response.reasoning_text.delta', (text) => ({ type: 'reasoning_text', text }));
        return { ...item, summary, ...(content.length > 0 && { content }) };
      }
      default:
        return { ...item, status: 'failed' };
    }
  }
}
