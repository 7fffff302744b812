/** Responses of a chat upstream, for tests where only the answering endpoint matters. */
import type { Answer, Chunk } from './upstream.ts';

const HEAD = { id: 'up-1', created: 1_750_000_000, model: 'm' };

/** One event of a stream. */
export function chatChunk(delta: object, finish: string | null = null): string {
  return event({ ...HEAD, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] });
}

export function chatUsage(prompt = 10, completion = 2, details: object = {}): string {
  const usage = { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion, ...details };
  return event({ ...HEAD, object: 'chat.completion.chunk', choices: [], usage });
}

export const CHAT_END = 'data: [DONE]\n\n';

function event(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

/** A stream that says `text`; `before` comes ahead of it, such as a gate. */
export function chatStream(text: string, before: readonly Chunk[] = [], usage = chatUsage()): Answer {
  return {
    headers: { 'content-type': 'text/event-stream' },
    chunks: [...before, chatChunk({ role: 'assistant', content: text }), chatChunk({}, 'stop'), usage, CHAT_END],
  };
}

/** A whole answer; `more` is merged over the message. */
export function chatWhole(text: string, more: object = {}, rest: object = {}): Answer {
  return {
    headers: { 'content-type': 'application/json' },
    chunks: [
      JSON.stringify({
        ...HEAD,
        object: 'chat.completion',
        choices: [{ index: 0, message: { role: 'assistant', content: text, ...more }, finish_reason: 'stop' }],
        usage: { prompt_tokens: 10, completion_tokens: 2, total_tokens: 12 },
        ...rest,
      }),
    ],
  };
}

export const chatFailure = (status: number, message = 'no', headers: Record<string, string> = {}): Answer => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  chunks: [JSON.stringify({ error: { message } })],
});

/** What of a stream a client shows. */
export function shownText(stream: string): string {
  const events = stream.split('\n\n').filter((line) => line.startsWith('data: {'));
  return events.map((line) => JSON.parse(line.slice(6)).choices?.[0]?.delta?.content ?? '').join('');
}
