/** A streamed answer of an upstream that speaks the responses form (wire/responses.md), event by event. */
import type { Part, TurnEvent } from '../conversation/conversation.ts';
import type { FailureKind } from '../conversation/failure.ts';
import { type Fields, fieldsOf, isFields, listOf, textOf, textOrUndefined } from '../conversation/fields.ts';
import type { TurnDecoder } from '../conversation/format.ts';
import { ItemDecoder, type Numbering } from './item.ts';
import { decodeUsage } from './usage.ts';

const KIND_BY_CODE: Record<string, FailureKind> = {
  context_length_exceeded: 'context_length',
  insufficient_quota: 'quota',
  invalid_prompt: 'invalid_request',
  rate_limit_exceeded: 'rate_limit',
  server_is_overloaded: 'overloaded',
};

/** Output items are told apart by their place in the output: their ids may change in the middle of a stream. */
export class ResponsesDecoder implements TurnDecoder, Numbering {
  calls = 0;
  private started = false;
  private over = false;
  private parts = 0;
  private readonly items = new Map<number, ItemDecoder>();

  nextPart(part: Part): number {
    if (part.type === 'toolCall') this.calls += 1;
    return this.parts++;
  }

  read(_name: string, data: string, value: unknown): TurnEvent[] {
    if (this.over || data === '' || data === '[DONE]') return [];
    if (!isFields(value)) return this.fail('malformed', 'an event of the stream is not a JSON object', null);
    switch (value['type']) {
      case 'response.created':
        return this.readHead(fieldsOf(value['response']));
      case 'response.completed':
      case 'response.incomplete':
        return this.finish(fieldsOf(value['response']));
      case 'response.failed':
        return this.readError(fieldsOf(fieldsOf(value['response'])['error']));
      case 'error':
        return this.readError(isFields(value['error']) ? value['error'] : value);
      default:
        return this.readItemEvent(value);
    }
  }

  close(): TurnEvent[] {
    return this.over ? [] : this.fail('cut', 'the stream ended without its terminal event', null);
  }

  private readHead(response: Fields): TurnEvent[] {
    if (this.started)
      return this.fail('malformed', 'the provider restarted its answer in the middle of the stream', null);
    this.started = true;
    return [
      {
        type: 'start',
        id: textOrUndefined(response['id']),
        model: textOrUndefined(response['model']),
        created: typeof response['created_at'] === 'number' ? response['created_at'] : undefined,
        serviceTier: textOrUndefined(response['service_tier']),
      },
    ];
  }

  private readItemEvent(value: Fields): TurnEvent[] {
    const index = value['output_index'];
    if (typeof index !== 'number') return [];
    if (value['type'] === 'response.output_item.added') {
      const item = new ItemDecoder(fieldsOf(value['item']), this);
      this.items.set(index, item);
      return item.begin();
    }
    if (value['type'] === 'response.output_item.done') return this.completeItem(index, fieldsOf(value['item']));
    return this.items.get(index)?.read(value) ?? [];
  }

  private completeItem(index: number, item: Fields): TurnEvent[] {
    const known = this.items.get(index);
    const decoder = known ?? new ItemDecoder(item, this);
    this.items.set(index, decoder);
    return [...(known === undefined ? decoder.begin() : []), ...decoder.complete(item)];
  }

  private finish(response: Fields): TurnEvent[] {
    const events: TurnEvent[] = [];
    // What was never told on its own stands in the final answer.
    listOf(response['output']).forEach((item, index) => {
      if (this.items.get(index)?.completed !== true) events.push(...this.completeItem(index, fieldsOf(item)));
    });
    for (const item of this.items.values()) events.push(...item.stop());
    const usage = decodeUsage(response['usage']);
    if (usage !== undefined) events.push({ type: 'usage', usage });
    this.over = true;
    const status = textOrUndefined(response['status']) ?? null;
    const reason = textOrUndefined(fieldsOf(response['incomplete_details'])['reason']);
    const cut = reason === 'content_filter' ? ('content_filter' as const) : ('length' as const);
    const complete = this.calls > 0 ? ('tool_calls' as const) : ('stop' as const);
    const unified = status === 'incomplete' ? cut : complete;
    events.push({ type: 'finish', choice: 0, finish: { unified, native: reason ?? status } }, { type: 'end' });
    return events;
  }

  private readError(error: Fields): TurnEvent[] {
    const code = textOrUndefined(error['code']) ?? textOrUndefined(error['type']);
    const kind = KIND_BY_CODE[code ?? ''] ?? 'server';
    return this.fail(kind, textOf(error['message']) || 'the provider failed', code ?? null, error);
  }

  private fail(kind: FailureKind, message: string, code: string | null, raw?: unknown): TurnEvent[] {
    this.over = true;
    return [{ type: 'failure', failure: { kind, status: null, message, code, ...(raw !== undefined && { raw }) } }];
  }
}
