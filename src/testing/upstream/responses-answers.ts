/**
 * What a service that speaks the responses format answers, as bytes for the scripted upstream. Written from the vendor's
 * documentation; shares no code with `src/formats`.
 */
import { streamOf, type Told, wholeOf } from './answers.ts';
import type { Answer } from './upstream.ts';

type Json = Record<string, unknown>;

const RESPONSE = { id: 'resp_up', object: 'response', created_at: 1_760_000_000, model: 'up-model' };

export function responsesAnswer(stream: boolean, told: Told): Answer {
  return stream ? streamOf(responsesEvents(told)) : wholeOf(responsesReply(told));
}

export function responsesData(value: Json): string {
  return `event: ${value['type']}\ndata: ${JSON.stringify(value)}\n\n`;
}

/** The items of a whole answer; thinking is a summary with its encrypted format. */
export function responsesItems({ thinking, text, calls = [] }: Told): Json[] {
  const items: Json[] = [];
  if (thinking !== undefined) {
    const summary = [{ type: 'summary_text', text: thinking.text }];
    const encrypted = thinking.signature === undefined ? {} : { encrypted_content: thinking.signature };
    items.push({ id: 'rs_up', type: 'reasoning', summary, ...encrypted });
  }
  if (text !== undefined) {
    const content = [{ type: 'output_text', text, annotations: [], logprobs: [] }];
    items.push({ id: 'msg_up', type: 'message', status: 'completed', role: 'assistant', content });
  }
  for (const call of calls) {
    const { id, name, namespace, arguments: written } = call;
    const named = { name, ...(namespace !== undefined && { namespace }) };
    const item = {
      id: `fc_${id}`,
      type: 'function_call',
      status: 'completed',
      call_id: id,
      ...named,
      arguments: written,
    };
    items.push(item);
  }
  return items;
}

export function responsesReply(told: Told): Json {
  const cut = told.finish === 'length';
  return {
    ...RESPONSE,
    status: cut ? 'incomplete' : 'completed',
    incomplete_details: cut ? { reason: 'max_output_tokens' } : null,
    error: null,
    output: responsesItems(told),
    parallel_tool_calls: true,
    tool_choice: 'auto',
    tools: [],
    usage: usageOf(told.usage),
  };
}

export function responsesEvents(told: Told): string[] {
  const events: Json[] = [];
  const opening = { ...RESPONSE, status: 'in_progress', output: [] };
  events.push({ type: 'response.created', response: opening }, { type: 'response.in_progress', response: opening });
  responsesItems(told).forEach((item, index) => void events.push(...itemEvents(item, index)));
  const response = responsesReply(told);
  events.push({ type: `response.${response['status']}`, response });
  return events.map((event, at) => responsesData({ ...event, sequence_number: at }));
}

// biome-ignore lint/suspicious/noExplicitAny: items are read freely
function itemEvents(item: any, index: number): Json[] {
  const place = { item_id: item.id, output_index: index };
  const events: Json[] = [];
  if (item.type === 'message') {
    const part = { type: 'output_text', text: '', annotations: [], logprobs: [] };
    const at = { ...place, content_index: 0 };
    events.push({ type: 'response.output_item.added', output_index: index, item: { ...item, content: [] } });
    events.push({ type: 'response.content_part.added', ...at, part });
    const { text } = item.content[0];
    for (const delta of piecesOf(text)) events.push({ type: 'response.output_text.delta', ...at, delta, logprobs: [] });
    events.push({ type: 'response.output_text.done', ...at, text, logprobs: [] });
    events.push({ type: 'response.content_part.done', ...at, part: item.content[0] });
  } else if (item.type === 'reasoning') {
    const at = { ...place, summary_index: 0 };
    const { encrypted_content: _, ...shown } = item;
    events.push({ type: 'response.output_item.added', output_index: index, item: { ...shown, summary: [] } });
    events.push({ type: 'response.reasoning_summary_part.added', ...at, part: { type: 'summary_text', text: '' } });
    const { text } = item.summary[0];
    for (const delta of piecesOf(text)) events.push({ type: 'response.reasoning_summary_text.delta', ...at, delta });
    events.push({ type: 'response.reasoning_summary_text.done', ...at, text });
    events.push({ type: 'response.reasoning_summary_part.done', ...at, part: item.summary[0] });
  } else {
    events.push({ type: 'response.output_item.added', output_index: index, item: { ...item, arguments: '' } });
    for (const delta of piecesOf(item.arguments)) {
      events.push({ type: 'response.function_call_arguments.delta', ...place, delta });
    }
    events.push({ type: 'response.function_call_arguments.done', ...place, arguments: item.arguments });
  }
  events.push({ type: 'response.output_item.done', output_index: index, item });
  return events;
}

function usageOf(usage: Told['usage'] = { input: 10, output: 5 }): Json {
  const { input, cacheRead = 0, cacheWrite = 0, output, reasoning = 0 } = usage;
  const read = input + cacheRead + cacheWrite;
  return {
    input_tokens: read,
    input_tokens_details: { cached_tokens: cacheRead, ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }) },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: read + output,
  };
}

function piecesOf(text: string): string[] {
  return text.match(/[\s\S]{1,3}/gu) ?? [];
}
