/**
 * Responses of services in the chat and messages formats, as bytes for the scripted upstream, streamed or whole. Written
 * from the services' own documentation; shares no code with `src/formats`.
 */
import type { Answer, Chunk } from './upstream.ts';

export type Format = 'chat' | 'messages';

type Json = Record<string, unknown>;

export interface Told {
  thinking?: { text: string; signature?: string };
  text?: string;
  /** `namespace` exists in the responses format only. */
  calls?: { id: string; name: string; namespace?: string; arguments: string }[];
  finish?: 'stop' | 'length' | 'tool_calls' | 'content_filter';
  /** `input` counts what came from no cache, `output` the reasoning too. */
  usage?: { input: number; cacheRead?: number; cacheWrite?: number; output: number; reasoning?: number };
}

const EVENT_STREAM = { 'content-type': 'text/event-stream' };
const USAGE = { input: 10, output: 5 };

/** The answer of a service; a text comes in pieces of three characters, the arguments of calls interleaved where the format can. */
export function answerOf(format: Format, stream: boolean, told: Told): Answer {
  if (format === 'chat') return stream ? streamOf(chatEvents(told)) : wholeOf(chatReply(told));
  return stream ? streamOf(messagesEvents(told)) : wholeOf(messagesReply(told));
}

export function streamOf(chunks: readonly Chunk[], more: Partial<Answer> = {}): Answer {
  return { headers: EVENT_STREAM, chunks, ...more };
}

export function wholeOf(value: unknown, more: Partial<Answer> = {}): Answer {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return { headers: { 'content-type': 'application/json' }, chunks: [text], ...more };
}

/** An error as the vendors of the format put it. */
export function errorOf(format: Format, status: number, message: string, headers: Record<string, string> = {}): Answer {
  const type = MESSAGES_ERRORS[status] ?? 'api_error';
  const body =
    format === 'chat'
      ? { error: { message, type: 'some_error', param: null, code: null } }
      : { type: 'error', error: { type, message }, request_id: 'req_upstream' };
  return wholeOf(body, { status, headers: { 'content-type': 'application/json', ...headers } });
}

const MESSAGES_ERRORS: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

/** An error event as the format's vendors send it when a stream fails. */
export function errorEvent(format: Format, message: string): string {
  return format === 'chat'
    ? chatData({ error: { message, type: 'server_error', code: 'server_error' } })
    : messagesData({ type: 'error', error: { type: 'api_error', message } });
}

// Chat completions.

const CHAT_HEAD = { id: 'chatcmpl-up', object: 'chat.completion.chunk', created: 1_760_000_000, model: 'up-model' };

export function chatData(value: Json): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** One chunk with one choice; `more` goes over the choice. */
export function chatChunk(delta: Json, more: Json = {}): string {
  return chatData({ ...CHAT_HEAD, choices: [{ index: 0, delta, finish_reason: null, ...more }] });
}

export function chatFinish(reason = 'stop'): string {
  return chatChunk({}, { finish_reason: reason });
}

export function chatUsageChunk(usage: Told['usage']): string {
  return chatData({ ...CHAT_HEAD, choices: [], usage: chatUsage(usage) });
}

export const CHAT_DONE = 'data: [DONE]\n\n';

export function chatEvents({ thinking, text = '', calls = [], finish, usage }: Told): string[] {
  const events = [chatChunk({ role: 'assistant', content: '' })];
  for (const piece of piecesOf(thinking?.text ?? '')) {
    events.push(chatChunk({ reasoning: piece, reasoning_details: [detail({ text: piece })] }));
  }
  if (thinking?.signature !== undefined) {
    events.push(chatChunk({ reasoning_details: [detail({ signature: thinking.signature })] }));
  }
  for (const piece of piecesOf(text)) events.push(chatChunk({ content: piece }));
  calls.forEach((call, index) => {
    const opened = { index, id: call.id, type: 'function', function: { name: call.name, arguments: '' } };
    events.push(chatChunk({ tool_calls: [opened] }));
  });
  const pieces = calls.map((call) => piecesOf(call.arguments));
  for (let at = 0; pieces.some((list) => at < list.length); at++) {
    pieces.forEach((list, index) => {
      if (at < list.length) events.push(chatChunk({ tool_calls: [{ index, function: { arguments: list[at] } }] }));
    });
  }
  events.push(chatFinish(finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')), chatUsageChunk(usage), CHAT_DONE);
  return events;
}

export function chatReply({ thinking, text, calls = [], finish, usage }: Told): Json {
  const message = {
    role: 'assistant',
    content: text ?? null,
    refusal: null,
    ...(thinking && { reasoning: thinking.text, reasoning_details: [detail(thinking)] }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call) => ({
        id: call.id,
        type: 'function',
        function: { name: call.name, arguments: call.arguments },
      })),
    }),
  };
  return {
    id: 'chatcmpl-up',
    object: 'chat.completion',
    created: 1_760_000_000,
    model: 'up-model',
    choices: [
      { index: 0, message, logprobs: null, finish_reason: finish ?? (calls.length > 0 ? 'tool_calls' : 'stop') },
    ],
    usage: chatUsage(usage),
  };
}

function detail(members: Json): Json {
  return { type: 'reasoning.text', ...members, format: 'anthropic-claude-v1', index: 0 };
}

function chatUsage({ input, cacheRead = 0, cacheWrite = 0, output, reasoning = 0 }: Told['usage'] & {} = USAGE): Json {
  const prompt = input + cacheRead + cacheWrite;
  return {
    prompt_tokens: prompt,
    completion_tokens: output,
    total_tokens: prompt + output,
    prompt_tokens_details: { cached_tokens: cacheRead, ...(cacheWrite > 0 && { cache_write_tokens: cacheWrite }) },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}

// Messages.

export function messagesData(value: Json): string {
  return `event: ${value['type']}\ndata: ${JSON.stringify(value)}\n\n`;
}

export function messagesStart(usage: Json = { input_tokens: 10, output_tokens: 1 }): string {
  return messagesData({
    type: 'message_start',
    message: {
      id: 'msg_up',
      type: 'message',
      role: 'assistant',
      model: 'up-model',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage,
    },
  });
}

/** The events of one block; `deltas` as the format has them. */
export function messagesBlock(index: number, block: Json, deltas: readonly Json[] = []): string[] {
  return [
    messagesData({ type: 'content_block_start', index, content_block: block }),
    ...deltas.map((delta) => messagesData({ type: 'content_block_delta', index, delta })),
    messagesData({ type: 'content_block_stop', index }),
  ];
}

export function messagesText(index: number, text: string): string[] {
  const deltas = piecesOf(text).map((piece) => ({ type: 'text_delta', text: piece }));
  return messagesBlock(index, { type: 'text', text: '' }, deltas);
}

export function messagesEnd(stopReason: string, usage: Json, more: Json = {}): string[] {
  const delta = { stop_reason: stopReason, stop_sequence: null, ...more };
  return [messagesData({ type: 'message_delta', delta, usage }), messagesData({ type: 'message_stop' })];
}

const STOP_REASONS = { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' };

export function messagesEvents({ thinking, text, calls = [], finish, usage }: Told): string[] {
  const counts = messagesUsage(usage);
  const events = [
    messagesStart({ ...counts, output_tokens: 1, output_tokens_details: null }),
    messagesData({ type: 'ping' }),
  ];
  let index = 0;
  if (thinking !== undefined) {
    const deltas: Json[] = piecesOf(thinking.text).map((piece) => ({ type: 'thinking_delta', thinking: piece }));
    if (thinking.signature !== undefined) deltas.push({ type: 'signature_delta', signature: thinking.signature });
    events.push(...messagesBlock(index++, { type: 'thinking', thinking: '', signature: '' }, deltas));
  }
  if (text !== undefined) events.push(...messagesText(index++, text));
  for (const call of calls) {
    const deltas = ['', ...piecesOf(call.arguments)].map((piece) => ({
      type: 'input_json_delta',
      partial_json: piece,
    }));
    events.push(...messagesBlock(index++, { type: 'tool_use', id: call.id, name: call.name, input: {} }, deltas));
  }
  return [...events, ...messagesEnd(STOP_REASONS[finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')], counts)];
}

export function messagesReply({ thinking, text, calls = [], finish, usage }: Told): Json {
  return {
    id: 'msg_up',
    type: 'message',
    role: 'assistant',
    model: 'up-model',
    content: [
      ...(thinking ? [{ type: 'thinking', thinking: thinking.text, signature: thinking.signature ?? '' }] : []),
      ...(text === undefined ? [] : [{ type: 'text', text }]),
      ...calls.map((call) => ({ type: 'tool_use', id: call.id, name: call.name, input: JSON.parse(call.arguments) })),
    ],
    stop_reason: STOP_REASONS[finish ?? (calls.length > 0 ? 'tool_calls' : 'stop')],
    stop_sequence: null,
    usage: messagesUsage(usage),
  };
}

function messagesUsage({
  input,
  cacheRead = 0,
  cacheWrite = 0,
  output,
  reasoning = 0,
}: Told['usage'] & {} = USAGE): Json {
  return {
    input_tokens: input,
    cache_read_input_tokens: cacheRead,
    cache_creation_input_tokens: cacheWrite,
    output_tokens: output,
    ...(reasoning > 0 && { output_tokens_details: { thinking_tokens: reasoning } }),
  };
}

function piecesOf(text: string): string[] {
  return text.match(/[\s\S]{1,3}/gu) ?? [];
}
