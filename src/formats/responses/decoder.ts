/** Decodes the event stream of an upstream that speaks the responses format. */

import { decodeInBand } from '../chat/failure.ts';
import type { Part, ReasoningOrigin, TurnEvent } from '../conversation/conversation.ts';
import type { FailureKind, UpstreamFailure } from '../conversation/failure.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import { inventedCallId, timeOf } from './decode-reply.ts';
import { failureFromError, failureOfResponse } from './failure.ts';
import { decodeFinish } from './finish.ts';
import { ItemDecoder, type Numbering } from './item.ts';
import { decodeUsage } from './usage.ts';

/** The event type: the `type` member, else the frame's name. Undefined if neither is usable. */
export function eventType(name: string, { type }: Fields): string | undefined {
  if (typeof type === 'string' && type !== '') return type;
  return name === 'error' || name.startsWith('response.') ? name : undefined;
}

/** Identifies output items by their index, because some upstreams change an item's id in the middle of a stream. */
export class ResponsesDecoder implements TurnDecoder, Numbering {
  calls = 0;
  #started = false;
  #over = false;
  #parts = 0;
  #id = '';
  readonly origin: ReasoningOrigin;
  readonly #items = new Map<number, ItemDecoder>();

  constructor(origin: ReasoningOrigin = 'openai-responses-v1') {
    this.origin = origin;
  }

  nextPart(part: Part): number {
    if (part.type === 'toolCall') {
      if (part.id === '') part.id = inventedCallId(this.#id, this.calls);
      this.calls += 1;
    }
    return this.#parts++;
  }

  read(name: string, data: string, value: unknown): TurnEvent[] {
    if (this.#over || data === '' || data === '[DONE]') return [];
    if (!isFields(value)) return this.#broken('malformed', 'a stream event is not a JSON object');
    const type = eventType(name, value);
    switch (type) {
      case undefined:
        return this.#readUntyped(value);
      case 'response.created':
        return this.#readHead(fieldsOf(value['response']));
      case 'response.completed':
      case 'response.incomplete':
        return this.#readEnd(fieldsOf(value['response']));
      case 'response.failed':
        return this.#fail(failureOfResponse({ status: 'failed', ...fieldsOf(value['response']) })!);
      case 'error':
        return this.#fail(failureFromError(isFields(value['error']) ? value['error'] : value));
      default:
        return this.#readItemEvent(type, value);
    }
  }

  /** An object without an event type: either an error in another format, or ignored. */
  #readUntyped(value: Fields): TurnEvent[] {
    const failure = decodeInBand('', value);
    return failure === undefined
      ? []
      : this.#fail(isFields(value['error']) ? failureFromError(value['error']) : failure);
  }

  /** Some services report a failed response as completed. */
  #readEnd(response: Fields): TurnEvent[] {
    const failure = failureOfResponse(response);
    return failure === undefined ? this.#finish(response) : this.#fail(failure);
  }

  /** The event with the finish is the last one. */
  toldFinish(): boolean {
    return false;
  }

  close(): TurnEvent[] {
    return this.#over ? [] : this.#broken('cut', 'the stream ended without its terminal event');
  }

  #readHead(response: Fields): TurnEvent[] {
    if (this.#started)
      return this.#broken('malformed', 'the provider restarted its answer in the middle of the stream');
    this.#started = true;
    this.#id = textOf(response['id']);
    return [
      {
        type: 'start',
        id: textOrUndefined(response['id']),
        model: textOrUndefined(response['model']),
        created: timeOf(response['created_at']),
        serviceTier: textOrUndefined(response['service_tier']),
      },
    ];
  }

  #readItemEvent(type: string, value: Fields): TurnEvent[] {
    const index = value['output_index'];
    if (typeof index !== 'number') return [];
    if (type === 'response.output_item.added') {
      const item = new ItemDecoder(fieldsOf(value['item']), this);
      this.#items.set(index, item);
      return item.begin();
    }
    if (type === 'response.output_item.done') return this.#completeItem(index, fieldsOf(value['item']));
    return this.#items.get(index)?.read(type, value) ?? [];
  }

  #completeItem(index: number, item: Fields): TurnEvent[] {
    const known = this.#items.get(index);
    const decoder = known ?? new ItemDecoder(item, this);
    this.#items.set(index, decoder);
    return [...(known === undefined ? decoder.begin() : []), ...decoder.complete(item)];
  }

  #finish(response: Fields): TurnEvent[] {
    const events: TurnEvent[] = [];
    // Items that were never streamed appear only in the final response.
    listOf(response['output']).forEach((item, index) => {
      if (this.#items.get(index)?.completed !== true) events.push(...this.#completeItem(index, fieldsOf(item)));
    });
    for (const item of this.#items.values()) events.push(...item.stop());
    const usage = decodeUsage(response);
    if (usage !== undefined) events.push({ type: 'usage', usage });
    this.#over = true;
    events.push(
      { type: 'finish', choice: 0, finish: decodeFinish(response, this.calls > 0, this.#parts > 0) },
      { type: 'end' },
    );
    return events;
  }

  #broken(kind: FailureKind, message: string): TurnEvent[] {
    return this.#fail({ kind, status: null, message, code: null });
  }

  #fail(failure: UpstreamFailure): TurnEvent[] {
    this.#over = true;
    return [{ type: 'failure', failure }];
  }
}
