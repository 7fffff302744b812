/**
 * Sends a request to a whole gateway in the chat or messages format and reads the reply as a strict client would, reduced to what
 * both formats have, so that one test covers every pair of formats.
 */
import assert from 'node:assert/strict';
import { readChatStream, readWholeChat } from '../clients/chat-client.ts';
import { type Block, readMessageStream } from '../clients/messages-client.ts';
import { until } from '../clock/clock.ts';
import type { Format } from '../upstream/answers.ts';
import type { Gateway } from './gateway.ts';

export const FORMATS: readonly Format[] = ['chat', 'messages'];

/** Every pair of the client's format and the upstream's. */
export const FORMAT_PAIRS = FORMATS.flatMap((served) =>
  FORMATS.map((spoken) => ({ served, spoken, name: `${spoken} to ${served}` })),
);

type Json = Record<string, unknown>;

export interface Reply {
  status: number;
  headers: Headers;
  text: string;
  /** The parsed body; undefined if it is not JSON. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  json: any;
}

export interface ReplyContent {
  text: string;
  reasoning: string;
  calls: { id: string; name: string; arguments: unknown }[];
  /** In the words of the client's format. */
  finish: string | null;
  /** Status of an error in a chat stream, type of one in a messages stream. */
  error: unknown;
  usage: Json;
}

/** Calls the format's operation with a minimal request, overridden by `body`. */
export async function ask(
  gateway: Gateway,
  format: Format,
  model: string,
  body: Json = {},
  headers: Record<string, string> = {},
): Promise<Reply> {
  const response = await gateway.post(PATHS[format], requestOf(format, model, body), headers);
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined };
}

export const PATHS: Readonly<Record<Format, string>> = { chat: '/chat/completions', messages: '/messages' };

export function requestOf(format: Format, model: string, body: Json = {}): Json {
  return {
    model,
    ...(format === 'messages' && { max_tokens: 4000 }),
    messages: [{ role: 'user', content: 'hi' }],
    ...body,
  };
}

/** Reads a streamed reply; a violation of the format throws. `usage` is where a chat client asked for it. */
export function readStreamed(
  format: Format,
  text: string,
  usage: 'chunk' | 'finish' | 'none' = 'finish',
): ReplyContent {
  const events = withoutComments(text);
  if (format === 'messages') {
    const message = readMessageStream(events);
    return {
      ...readBlocks(message.content),
      ...endOf(message.stop.stop_reason, message.error?.['type'], message.usage),
    };
  }
  const answer = readChatStream(events, events.includes('"error":{') ? 'none' : usage);
  const choice = answer.choices[0] ?? { text: '', reasoning: '', calls: [], finish: null };
  const calls = choice.calls.map((call) => ({
    id: String(call.id),
    name: call.name,
    arguments: parsed(call.arguments),
  }));
  const { text: content, reasoning, finish } = choice;
  return { text: content, reasoning, calls, ...endOf(finish, answer.error?.['code'], answer.usage ?? {}) };
}

export function readWhole(format: Format, text: string): ReplyContent {
  if (format === 'messages') {
    const message = JSON.parse(text);
    assert.equal(message.type, 'message');
    return { ...readBlocks(message.content), ...endOf(message.stop_reason, undefined, message.usage) };
  }
  const answer = readWholeChat(text);
  const choice = answer.choices[0]!;
  const calls = choice.calls.map((call) => ({
    id: String(call.id),
    name: call.name,
    arguments: parsed(call.arguments),
  }));
  return {
    text: choice.text,
    reasoning: choice.reasoning,
    calls,
    ...endOf(choice.finish, undefined, answer.usage ?? {}),
  };
}

function endOf(finish: unknown, error: unknown, usage: Json): { finish: string | null; error: unknown; usage: Json } {
  return { finish: (finish ?? null) as string | null, error, usage };
}

function readBlocks(blocks: readonly Block[]) {
  const read = { text: '', reasoning: '', calls: [] as ReplyContent['calls'] };
  for (const block of blocks) {
    if (block.type === 'text') read.text += block['text'];
    if (block.type === 'thinking') read.reasoning += block['thinking'];
    if (block.type === 'tool_use')
      read.calls.push({ id: String(block['id']), name: String(block['name']), arguments: block['input'] });
  }
  return read;
}

/** The finish reason in each format, by the unified one. */
export const FINISHES: Readonly<Record<Format, Record<string, string>>> = {
  chat: { stop: 'stop', length: 'length', tool_calls: 'tool_calls', content_filter: 'content_filter' },
  messages: { stop: 'end_turn', length: 'max_tokens', tool_calls: 'tool_use', content_filter: 'refusal' },
};

/** The row of a generation, once it is written. */
export async function rowOf(gateway: Gateway, id: string): Promise<Json> {
  let row: Json | undefined;
  let asking = false;
  const look = async () => {
    const reply = await gateway.get(`/generation?id=${id}`);
    if (reply.status === 200) row = ((await reply.json()) as { data: Json }).data;
    asking = false;
  };
  return until(() => {
    if (!asking && row === undefined) {
      asking = true;
      void look();
    }
    return row;
  }, `the row of ${id}`);
}

/** Clients skip comments, which are separate events. */
export function withoutComments(text: string): string {
  return text
    .split('\n\n')
    .filter((event) => !/^:[^\n]*$/.test(event))
    .join('\n\n');
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
