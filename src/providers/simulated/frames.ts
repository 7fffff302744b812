/** Replies as bytes of the chat format: one JSON body, or stream events generated one at a time. */
import type { Answer, ChatRequest } from './answer.ts';
import type { Script } from './script.ts';

/** Common members of the body and of every event. */
export interface Envelope {
  id: string;
  created: number;
  model: string;
}

/** The next step of a stream: bytes, or a fault. */
export type Frame = { bytes: string | Buffer } | { fault: 'cut' | 'end' | 'stall' };

const DEFAULT_CHUNK_SIZE = 16;

export function wholeBody(envelope: Envelope, request: ChatRequest, answer: Answer): string {
  const message = {
    role: 'assistant',
    content: wholeText(answer) || (answer.toolCalls.length > 0 || answer.refusal !== '' ? null : ''),
    refusal: answer.refusal === '' ? null : answer.refusal,
    ...(answer.reasoning !== '' && { reasoning_content: answer.reasoning }),
    ...(answer.toolCalls.length > 0 && { tool_calls: answer.toolCalls.map(toolCall) }),
  };
  return JSON.stringify({
    ...envelope,
    object: 'chat.completion',
    choices: Array.from({ length: request.choices }, (_, index) => ({
      index,
      message,
      logprobs: null,
      finish_reason: answer.finishReason,
    })),
    ...(answer.usage !== null && { usage: answer.usage }),
    system_fingerprint: null,
  });
}

/** Stream events, with the script's faults inserted. */
export function* frames(envelope: Envelope, request: ChatRequest, answer: Answer, script: Script): Generator<Frame> {
  let count = 0;
  for (const bytes of events(envelope, request, answer, script.chunk_size ?? DEFAULT_CHUNK_SIZE)) {
    if (count === script.stall_after) yield { fault: 'stall' };
    if (count === script.cut_after) yield { fault: 'cut' };
    if (count === script.end_after) yield { fault: 'end' };
    if (count === script.error_event?.after) {
      yield { bytes: event(script.error_event.body ?? errorBody('the simulated model failed', 'server_error', 500)) };
      yield { fault: 'end' };
    }
    if (count === script.malformed_after) yield { bytes: 'data: {"choices":[{"index":0,"delta":{"content":"\n\n' };
    yield { bytes };
    count += 1;
  }
}

export function errorBody(message: string, type: string, code: string | number | null): unknown {
  return { error: { message, type, param: null, code } };
}

function* events(envelope: Envelope, request: ChatRequest, answer: Answer, chunkSize: number): Generator<string> {
  const base = { ...envelope, object: 'chat.completion.chunk', system_fingerprint: null };
  // If usage was requested, every chunk has the member, but only the last has a value.
  const usage = request.includeUsage ? { usage: null } : {};
  for (let index = 0; index < request.choices; index++) {
    const chunk = (delta: unknown, finish: string | null = null) =>
      event({ ...base, choices: [{ index, delta, logprobs: null, finish_reason: finish }], ...usage });
    yield chunk({ role: 'assistant', content: '', refusal: null });
    for (const reasoning_content of pieces(answer.reasoning, chunkSize)) yield chunk({ reasoning_content });
    for (let round = 0; round < answer.repeat; round++) {
      for (const content of pieces(answer.text, chunkSize)) yield chunk({ content });
    }
    for (const content of pieces(answer.rest, chunkSize)) yield chunk({ content });
    for (const refusal of pieces(answer.refusal, chunkSize)) yield chunk({ refusal });
    for (const [at, call] of answer.toolCalls.entries()) {
      yield chunk({ tool_calls: [{ index: at, ...toolCall({ ...call, arguments: '' }) }] });
      for (const piece of pieces(call.arguments, chunkSize)) {
        yield chunk({ tool_calls: [{ index: at, function: { arguments: piece } }] });
      }
    }
    yield chunk({}, answer.finishReason);
  }
  if (request.includeUsage && answer.usage !== null) yield event({ ...base, choices: [], usage: answer.usage });
  yield 'data: [DONE]\n\n';
}

function event(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function toolCall({ id, name, arguments: json }: Answer['toolCalls'][number]) {
  return { id, type: 'function', function: { name, arguments: json } };
}

function wholeText({ text, repeat, rest }: Answer): string {
  return text.repeat(repeat) + rest;
}

/** Splits the text into pieces of `size` UTF-16 units, never within a surrogate pair. */
function* pieces(text: string, size: number): Generator<string> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + size, text.length);
    const unit = text.charCodeAt(end - 1);
    if (end < text.length && unit >= 0xd800 && unit < 0xdc00) end += 1;
    yield text.slice(start, end);
    start = end;
  }
}
