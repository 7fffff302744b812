/**
 * A strict client of the chat format, written from the public API reference, and a lenient reader of recorded responses. Both
 * reduce a response to the same outcome. They share no code with `src/formats`.
 */
import assert from 'node:assert/strict';
import type { RecordedEvent } from '../recordings/corpus.ts';

type Json = Record<string, unknown>;

export interface SeenCall {
  id: string | null;
  name: string;
  arguments: string;
  /** Its arguments are free text. */
  custom?: true;
  /** As the service numbers it. */
  index?: unknown;
}

export interface SeenChoice {
  text: string;
  reasoning: string;
  refusal: string;
  calls: SeenCall[];
  annotations: unknown[];
  logprobs: number;
  finish: string | null;
}

export interface SeenAnswer {
  choices: SeenChoice[];
  usage: Json | null;
  error: Json | null;
  /** Every text in unknown members of messages and deltas. */
  strange: string[];
}

const FINISHES = ['stop', 'length', 'tool_calls', 'function_call', 'content_filter', 'error'];

function blankChoice(): SeenChoice {
  return { text: '', reasoning: '', refusal: '', calls: [], annotations: [], logprobs: 0, finish: null };
}

/** Reads a whole answer; what breaks the format throws. */
export function readWholeChat(text: string): SeenAnswer & { reply: Json } {
  const reply = JSON.parse(text);
  assert.equal(reply.object, 'chat.completion');
  assert.ok(typeof reply.id === 'string' && typeof reply.model === 'string' && typeof reply.provider === 'string');
  assert.ok(Number.isInteger(reply.created) && reply.created > 0);
  const seen: SeenAnswer = { choices: [], usage: reply.usage ?? null, error: null, strange: [] };
  reply.choices.forEach((choice: Json, index: number) => {
    assert.equal(choice['index'], index);
    assert.ok(FINISHES.includes(String(choice['finish_reason'])), `finish_reason ${choice['finish_reason']}`);
    assert.ok('native_finish_reason' in choice);
    const message = choice['message'] as Json;
    assert.equal(message['role'], 'assistant');
    const into = blankChoice();
    strictFields(into, message);
    for (const call of (message['tool_calls'] ?? []) as Json[]) into.calls.push(strictCall(call));
    readFunctionCall(into, message);
    into.finish = String(choice['finish_reason']);
    into.logprobs = logprobCount(choice);
    seen.choices.push(into);
  });
  if (seen.usage !== null) strictUsage(seen.usage);
  return { ...seen, reply };
}

/** The older single call, which has no id. */
function readFunctionCall(into: SeenChoice, message: Json): void {
  const call = message['function_call'] as Json | undefined;
  if (call) into.calls.push({ id: null, name: String(call['name']), arguments: String(call['arguments']) });
}

function strictCall(call: Json): SeenCall {
  assert.ok(typeof call['id'] === 'string' && call['id'] !== '');
  if (call['type'] === 'custom') {
    const custom = call['custom'] as Json;
    return { id: call['id'], name: String(custom['name']), arguments: String(custom['input']) };
  }
  assert.equal(call['type'], 'function');
  const body = call['function'] as Json;
  JSON.parse(String(body['arguments']));
  return { id: call['id'], name: String(body['name']), arguments: String(body['arguments']) };
}

function strictFields(into: SeenChoice, fields: Json): void {
  const { content, reasoning, refusal, annotations } = fields;
  for (const value of [content, reasoning, refusal]) {
    assert.ok(
      value === undefined || value === null || typeof value === 'string',
      `${JSON.stringify(value)} is no text`,
    );
  }
  into.text += content ?? '';
  into.reasoning += reasoning ?? '';
  into.refusal += refusal ?? '';
  into.annotations.push(...((annotations ?? []) as unknown[]));
}

function strictUsage(usage: Json): void {
  const { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total } = usage;
  assert.equal(total, Number(prompt) + Number(completion), 'the total is not the sum');
}

function logprobCount(choice: Json): number {
  return ((choice['logprobs'] as { content?: unknown[] } | null | undefined)?.content ?? []).length;
}

/**
 * Reads the text of a stream; what breaks the format throws: framing, ids that change, a second finish or usage, content
 * after a finish, anything after `[DONE]`, a call that begins without id and name.
 */
export function readChatStream(text: string, usage: 'chunk' | 'finish' | 'none'): SeenAnswer & { chunks: Json[] } {
  assert.ok(text.endsWith('\n\n'), 'the last event is not complete');
  const data = text
    .slice(0, -2)
    .split('\n\n')
    .map((event) => {
      assert.match(event, /^data: [^\r\n]+$/);
      return event.slice(6);
    });
  const seen: SeenAnswer = { choices: [], usage: null, error: null, strange: [] };
  const chunks: Json[] = [];
  let done = false;
  for (const item of data) {
    assert.ok(!done, 'something stands behind [DONE]');
    if (item === '[DONE]') {
      done = true;
      continue;
    }
    const chunk = JSON.parse(item);
    chunks.push(chunk);
    readStrictChunk(seen, chunk, chunks[0]!, usage);
  }
  if (seen.error !== null) {
    assert.ok(!done, '[DONE] behind an error');
    assert.ok((chunks.at(-1) as Json)['error'], 'something stands behind the error');
    return { ...seen, chunks };
  }
  assert.ok(done, 'no [DONE]');
  for (const choice of seen.choices) {
    assert.ok(choice.finish !== null, 'no finish');
    for (const call of choice.calls) if (call.custom !== true) JSON.parse(call.arguments);
  }
  assert.equal(seen.usage !== null, usage !== 'none', 'usage is not told as asked');
  return { ...seen, chunks };
}

function readStrictChunk(seen: SeenAnswer, chunk: Json, first: Json, usage: 'chunk' | 'finish' | 'none'): void {
  assert.equal(chunk['object'], 'chat.completion.chunk');
  assert.ok(typeof chunk['id'] === 'string' && chunk['id'] !== '');
  for (const key of ['id', 'model', 'provider']) assert.equal(chunk[key], first[key], `${key} changes`);
  assert.ok(Number.isInteger(chunk['created']) && Number(chunk['created']) > 0);
  const choices = chunk['choices'] as Json[];
  assert.ok(Array.isArray(choices));
  if (chunk['error']) {
    const { code, message, metadata } = chunk['error'] as Json;
    assert.ok(Number.isInteger(code) && typeof message === 'string');
    assert.equal(typeof (metadata as Json)['error_type'], 'string');
    assert.deepEqual(
      choices.map((choice) => [choice['index'], choice['delta'], choice['finish_reason']]),
      [[0, { content: '' }, 'error']],
    );
    seen.error = chunk['error'] as Json;
    return;
  }
  for (const choice of choices) {
    assert.ok(Number.isInteger(choice['index']), 'a choice without index');
    const index = choice['index'] as number;
    while (seen.choices.length <= index) seen.choices.push(blankChoice());
    readStrictDelta(seen.choices[index]!, choice, seen.strange);
  }
  if (chunk['usage'] === undefined || chunk['usage'] === null) return;
  assert.equal(seen.usage, null, 'usage is told twice');
  if (usage === 'chunk') assert.deepEqual(choices, [], 'usage stands beside choices');
  else assert.ok(choices.length === 1 && choices[0]!['finish_reason'], 'usage stands on no finish chunk');
  assert.ok(
    seen.choices.every((choice) => choice.finish !== null),
    'usage stands before a finish',
  );
  seen.usage = chunk['usage'] as Json;
  strictUsage(seen.usage);
}

function readStrictDelta(into: SeenChoice, choice: Json, strange: string[]): void {
  const delta = choice['delta'] as Json;
  assert.ok(typeof delta === 'object' && delta !== null, 'a choice without delta');
  const before = JSON.stringify(into);
  strictFields(into, delta);
  for (const call of (delta['tool_calls'] ?? []) as Json[]) {
    const index = call['index'] as number;
    const body = (call['function'] ?? call['custom'] ?? {}) as Json;
    assert.ok(Number.isInteger(index) && index <= into.calls.length, `tool index ${index}`);
    if (index === into.calls.length) {
      assert.ok(call['id'] && call['type'] && body['name'], 'a call begins without id, type or name');
      const custom = call['type'] === 'custom';
      assert.equal(custom, 'custom' in call, 'the type of a call is not that of its members');
      into.calls.push({
        id: String(call['id']),
        name: String(body['name']),
        arguments: '',
        ...(custom && { custom: true }),
      });
    } else if (call['id']) assert.equal(call['id'], into.calls[index]!.id);
    into.calls[index]!.arguments += body['arguments'] ?? body['input'] ?? '';
  }
  into.logprobs += logprobCount(choice);
  for (const [key, value] of Object.entries(delta)) if (!KNOWN.includes(key)) gatherTexts(value, strange);
  if (into.finish !== null) assert.equal(JSON.stringify(into), before, 'content behind the finish');
  if (choice['finish_reason'] === null || choice['finish_reason'] === undefined) return;
  assert.equal(into.finish, null, 'a second finish');
  assert.ok(FINISHES.includes(String(choice['finish_reason'])), `finish_reason ${choice['finish_reason']}`);
  into.finish = String(choice['finish_reason']);
}

// What services send, read without insisting on anything.

const KNOWN = [
  'role',
  'content',
  'reasoning',
  'reasoning_content',
  'reasoning_details',
  'refusal',
  'tool_calls',
  'function_call',
  'annotations',
  'index',
];

export function readRecordedChat(recording: {
  text: string;
  events: readonly RecordedEvent[];
  stream: boolean;
}): SeenAnswer {
  const seen: SeenAnswer = { choices: [], usage: null, error: null, strange: [] };
  const values = recording.stream
    ? recording.events.filter((event) => event.data !== '[DONE]').map((event) => JSON.parse(event.data) as Json)
    : [JSON.parse(recording.text) as Json];
  for (const value of values) {
    for (const choice of (value['choices'] ?? []) as Json[]) {
      const index = (choice['index'] ?? 0) as number;
      while (seen.choices.length <= index) seen.choices.push(blankChoice());
      const into = seen.choices[index]!;
      const message = ((recording.stream ? choice['delta'] : choice['message']) ?? {}) as Json;
      readLeniently(into, message, !recording.stream);
      into.logprobs += logprobCount(choice);
      if (choice['finish_reason']) into.finish = String(choice['finish_reason']);
      for (const [key, strange] of Object.entries(message)) {
        if (!KNOWN.includes(key)) gatherTexts(strange, seen.strange);
      }
    }
    const usage = (value['usage'] ?? (value['x_groq'] as Json | undefined)?.['usage']) as Json | null | undefined;
    if (usage) seen.usage = usage;
    if (value['error']) seen.error = value['error'] as Json;
  }
  return seen;
}

function readLeniently(into: SeenChoice, message: Json, whole: boolean): void {
  const { content } = message;
  if (typeof content === 'string') into.text += content;
  for (const part of Array.isArray(content) ? (content as Json[]) : []) {
    if (part['type'] === 'text') into.text += part['text'];
    if (part['type'] === 'thinking') for (const inner of part['thinking'] as Json[]) into.reasoning += inner['text'];
  }
  const details = ((message['reasoning_details'] ?? []) as Json[]).map(
    (detail) => detail['text'] ?? detail['summary'] ?? '',
  );
  into.reasoning += message['reasoning'] ?? message['reasoning_content'] ?? details.join('');
  into.refusal += message['refusal'] ?? '';
  into.annotations.push(...((message['annotations'] ?? []) as unknown[]));
  for (const call of (message['tool_calls'] ?? []) as Json[]) {
    const body = (call['function'] ?? call['custom'] ?? {}) as Json;
    const written = String(body['arguments'] ?? body['input'] ?? '');
    const known = whole
      ? undefined
      : into.calls.findLast((one) => (call['id'] ? one.id === call['id'] : one.index === call['index']));
    if (known) known.arguments += written;
    else
      into.calls.push({
        id: (call['id'] as string) ?? null,
        name: String(body['name']),
        arguments: written,
        index: call['index'],
      });
  }
  if (whole) readFunctionCall(into, message);
}

function gatherTexts(value: unknown, into: string[]): void {
  if (typeof value === 'string') into.push(value);
  else if (typeof value === 'object' && value !== null)
    for (const inner of Object.values(value)) gatherTexts(inner, into);
}
