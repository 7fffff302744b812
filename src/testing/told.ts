/**
 * Asking a whole gateway in either form and reading the answer as a strict client would, reduced to what both forms tell,
 * so that a test can say one thing of every way through the gateway.
 */
import assert from 'node:assert/strict';
import type { Form } from './answers.ts';
import { readChatStream, readWholeChat } from './chat-client.ts';
import { until } from './clock.ts';
import type { Gateway } from './gateway.ts';
import { type Block, readMessageStream } from './messages-client.ts';

export const FORMS: readonly Form[] = ['chat', 'messages'];

/** Every way through the gateway: the form of the client and that of the upstream. */
export const WAYS = FORMS.flatMap((served) =>
  FORMS.map((spoken) => ({ served, spoken, name: `${spoken} to ${served}` })),
);

type Json = Record<string, unknown>;

export interface Answered {
  status: number;
  headers: Headers;
  text: string;
  /** The body parsed; undefined when it is none. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  json: any;
}

export interface Reading {
  text: string;
  reasoning: string;
  calls: { id: string; name: string; arguments: unknown }[];
  /** In the client's own words. */
  finish: string | null;
  /** Status of an error in a chat stream, type of one in a messages stream. */
  error: unknown;
  usage: Json;
}

/** A POST of the form's operation; `body` goes over a smallest request. */
export async function ask(
  gateway: Gateway,
  form: Form,
  model: string,
  body: Json = {},
  headers: Record<string, string> = {},
): Promise<Answered> {
  const response = await gateway.post(PATHS[form], requestOf(form, model, body), headers);
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  return { status: response.status, headers: response.headers, text, json: isJson ? JSON.parse(text) : undefined };
}

export const PATHS: Readonly<Record<Form, string>> = { chat: '/chat/completions', messages: '/messages' };

export function requestOf(form: Form, model: string, body: Json = {}): Json {
  return {
    model,
    ...(form === 'messages' && { max_tokens: 4000 }),
    messages: [{ role: 'user', content: 'hi' }],
    ...body,
  };
}

/** Reads a streamed answer; what breaks the form throws. `usage` as asked for in chat. */
export function readStreamed(form: Form, text: string, usage: 'chunk' | 'finish' | 'none' = 'finish'): Reading {
  const told = withoutComments(text);
  if (form === 'messages') {
    const message = readMessageStream(told);
    return {
      ...readBlocks(message.content),
      ...endOf(message.stop.stop_reason, message.error?.['type'], message.usage),
    };
  }
  const answer = readChatStream(told, told.includes('"error":{') ? 'none' : usage);
  const choice = answer.choices[0] ?? { text: '', reasoning: '', calls: [], finish: null };
  const calls = choice.calls.map((call) => ({
    id: String(call.id),
    name: call.name,
    arguments: parsed(call.arguments),
  }));
  const { text: content, reasoning, finish } = choice;
  return { text: content, reasoning, calls, ...endOf(finish, answer.error?.['code'], answer.usage ?? {}) };
}

export function readWhole(form: Form, text: string): Reading {
  if (form === 'messages') {
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
  const read = { text: '', reasoning: '', calls: [] as Reading['calls'] };
  for (const block of blocks) {
    if (block.type === 'text') read.text += block['text'];
    if (block.type === 'thinking') read.reasoning += block['thinking'];
    if (block.type === 'tool_use')
      read.calls.push({ id: String(block['id']), name: String(block['name']), arguments: block['input'] });
  }
  return read;
}

/** What the client said of a finish, for a unified one. */
export const FINISHES: Readonly<Record<Form, Record<string, string>>> = {
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
    if (!asking) {
      asking = true;
      void look();
    }
    return row;
  }, `the row of ${id}`);
}

/** Comments are events of their own; a client skips them. */
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
