/** The whole of an answer as a client of each format puts it together, alike for a stream and for an answer in one piece. */

import { readChatStream } from './chat-client.ts';
import { readMessageStream } from './messages-client.ts';
import { readResponseStream } from './responses-client.ts';
import { BODY_FORMATS, type BodyFormat } from './served-answer.ts';

/** The formats whose bodies differ only in their members; tests of Gemini clients are their own. */
export { BODY_FORMATS as CLIENT_FORMATS, type BodyFormat as ClientFormat };

// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
type Json = any;

export interface WholeAnswer {
  /** What the client sends back in its next request: messages of chat and messages, items of responses. */
  history: Json[];
  finish: string;
  usage: Json;
}

export const PATH_OF = { chat: '/chat/completions', messages: '/messages', responses: '/responses' } as const;

export function wholeAnswer(format: BodyFormat, stream: boolean, text: string): WholeAnswer {
  if (format === 'chat') return stream ? fromChunks(text) : fromCompletion(JSON.parse(text));
  if (format === 'messages') return stream ? fromMessageStream(text) : fromMessage(JSON.parse(text));
  const response: Json = stream ? readResponseStream(text).response : JSON.parse(text);
  return { history: response.output, finish: response.status, usage: response.usage };
}

function fromCompletion(reply: Json): WholeAnswer {
  const [{ message, finish_reason: finish }] = reply.choices;
  return { history: [message], finish, usage: reply.usage };
}

function fromChunks(text: string): WholeAnswer {
  const message: Json = { role: 'assistant', content: null, refusal: null };
  let finish = '';
  let usage: Json;
  for (const chunk of readChatStream(text, 'finish').chunks as Json[]) {
    usage = chunk.usage ?? usage;
    for (const { delta, finish_reason: reason } of chunk.choices) {
      finish = reason ?? finish;
      addDelta(message, delta);
    }
  }
  // A complete answer has an empty text unless it has calls.
  if (message.content === null && message.tool_calls === undefined) message.content = '';
  return { history: [message], finish, usage };
}

function addDelta(message: Json, delta: Json): void {
  if (delta.content) message.content = (message.content ?? '') + delta.content;
  if (delta.reasoning) message.reasoning = (message.reasoning ?? '') + delta.reasoning;
  for (const list of ['annotations', 'images'] as const) {
    if (delta[list]) message[list] = [...(message[list] ?? []), ...delta[list]];
  }
  for (const detail of delta.reasoning_details ?? []) addDetail(message, detail);
  for (const { index, ...call } of delta.tool_calls ?? []) {
    message.tool_calls ??= [];
    if (call.id !== undefined)
      message.tool_calls[index] = { id: call.id, index, type: call.type, function: call.function };
    else message.tool_calls[index].function.arguments += call.function.arguments;
  }
}

/** Pieces of one text have the same index. */
function addDetail(message: Json, detail: Json): void {
  message.reasoning_details ??= [];
  const last = message.reasoning_details.at(-1);
  const joins = detail.type === 'reasoning.text' && last?.type === detail.type && last.index === detail.index;
  if (!joins) {
    message.reasoning_details.push({ ...detail });
    return;
  }
  last.text += detail.text;
  if (detail.signature !== undefined) last.signature = detail.signature;
}

function fromMessage(reply: Json): WholeAnswer {
  const { content, stop_reason: finish, usage } = reply;
  return { history: [{ role: 'assistant', content }], finish, usage };
}

function fromMessageStream(text: string): WholeAnswer {
  const read = readMessageStream(text);
  return {
    history: [{ role: 'assistant', content: read.content }],
    finish: String(read.stop.stop_reason),
    usage: read.usage,
  };
}
