/**
 * The content of a recorded response in the responses format, read from its bytes, whole or truncated. It shares no code with
 * `src/formats`.
 */
import { Reading, type RecordedCall } from './recorded-answer.ts';

// biome-ignore lint/suspicious/noExplicitAny: a reader of foreign JSON
type Json = any;

const DELTAS: Record<string, 'text' | 'refusal' | 'reasoning'> = {
  'response.output_text.delta': 'text',
  'response.refusal.delta': 'refusal',
  'response.reasoning_text.delta': 'reasoning',
  'response.reasoning_summary_text.delta': 'reasoning',
};

export class ResponsesReading extends Reading {
  private started = false;
  /** What was sent so far, by output, part and index. */
  private readonly told = new Map<string, string>();
  private readonly open = new Map<number, RecordedCall>();
  private readonly done = new Set<number>();

  read(data: string): void {
    if (data.trim() === '' || data.trim() === '[DONE]') return;
    let event: Json;
    try {
      event = JSON.parse(data);
    } catch {
      event = null;
    }
    if (typeof event !== 'object' || event === null) {
      this.fail();
      return;
    }
    const member = DELTAS[event.type];
    if (member !== undefined) {
      const place = event.type.includes('summary')
        ? `summary ${event.summary_index}`
        : `content ${event.content_index}`;
      this.tell(member, `${event.output_index} ${place}`, event.delta);
      return;
    }
    switch (event.type) {
      case 'response.created':
        if (this.started) this.fail();
        this.started = true;
        return;
      case 'response.output_item.added':
        this.add(event.output_index, event.item);
        return;
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta': {
        const call = this.open.get(event.output_index);
        if (call) call.arguments += event.delta;
        return;
      }
      case 'response.output_text.annotation.added':
        this.other = true;
        return;
      case 'response.output_item.done':
        this.complete(event.output_index, event.item);
        return;
      case 'response.completed':
      case 'response.incomplete':
        this.finish(event.response);
        return;
      case 'response.failed':
      case 'error':
        this.fail();
    }
  }

  readWhole(value: Json): void {
    if (value.status === 'failed' || !Array.isArray(value.output)) this.fail();
    else this.finish(value);
  }

  private finish(response: Json): void {
    this.choice(0).finish = response.status;
    if (response.status === 'incomplete') {
      this.choice(0).finish = response.incomplete_details?.reason === 'content_filter' ? 'content_filter' : 'length';
    }
    (response.output ?? []).forEach((item: Json, index: number) => {
      if (!this.done.has(index)) this.complete(index, item);
    });
    this.finished = true;
    this.over = true;
    const { usage } = response;
    if (typeof usage?.input_tokens !== 'number') return;
    this.usage = {
      input: usage.input_tokens,
      cacheRead: usage.input_tokens_details?.cached_tokens ?? 0,
      cacheWrite: usage.input_tokens_details?.cache_write_tokens ?? 0,
      output: usage.output_tokens,
      reasoning: usage.output_tokens_details?.reasoning_tokens ?? 0,
    };
    this.counted = this.letters();
  }

  private tell(member: 'text' | 'refusal' | 'reasoning', key: string, piece: string): void {
    this.told.set(key, (this.told.get(key) ?? '') + piece);
    this.choice(0)[member] += piece;
  }

  private add(index: number, item: Json): void {
    if (item.type !== 'function_call' && item.type !== 'custom_tool_call') return;
    const custom = item.type === 'custom_tool_call';
    const call = { id: item.call_id, name: item.name, arguments: '', custom };
    this.open.set(index, call);
    this.choice(0).calls.push(call);
  }

  /** What did not come in deltas. A finished text that contradicts them is ignored. */
  private complete(index: number, item: Json): void {
    if (this.done.has(index)) return;
    this.done.add(index);
    const rest = (member: 'text' | 'refusal' | 'reasoning', key: string, whole = '') => {
      const told = this.told.get(key) ?? '';
      if (whole.startsWith(told)) this.tell(member, key, whole.slice(told.length));
    };
    if (item.type === 'message') {
      (item.content ?? []).forEach((part: Json, at: number) => {
        if (part.type === 'output_text') rest('text', `${index} content ${at}`, part.text);
        else if (part.type === 'refusal') rest('refusal', `${index} content ${at}`, part.refusal);
        if (part.annotations?.length) this.other = true;
      });
    } else if (item.type === 'reasoning') {
      for (const place of ['summary', 'content']) {
        (item[place] ?? []).forEach(
          (part: Json, at: number) => void rest('reasoning', `${index} ${place} ${at}`, part.text),
        );
      }
      if (item.encrypted_content) this.other = true;
    } else if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      if (!this.open.has(index)) this.add(index, item);
      const call = this.open.get(index)!;
      const whole = item.arguments ?? item.input ?? '';
      if (whole.startsWith(call.arguments)) call.arguments = whole;
    } else this.other = true;
  }
}
