/**
 * What a client of each format reads in an answer of the gateway's, by strict readers, in the shape in which recordings
 * are read (recorded-answer.ts); and how the two are compared. Every difference that a format makes is here.
 */
import assert from 'node:assert/strict';
import {
  billedMessages,
  type Counts,
  exactText,
  parsedExactly,
  type RecordedAnswer,
  type RecordedCall,
  type RecordedChoice,
} from '../recordings/recorded-answer.ts';
import { readChatStream, readWholeChat, type SeenAnswer } from './chat-client.ts';
import { contentCounts, type ReadContent, readContentStream, readWholeContent } from './gemini-client.ts';
import { readMessageStream } from './messages-client.ts';
import { type ReadResponse, readResponseStream, readWholeResponse } from './responses-client.ts';

/** Every format that clients speak. */
export const CLIENT_FORMATS = ['chat', 'messages', 'responses', 'gemini'] as const;
export type ClientFormat = (typeof CLIENT_FORMATS)[number];
/** Those that name the model in the body: a test asks for the same thing in each of them. */
export const BODY_FORMATS = ['chat', 'messages', 'responses'] as const;
export type BodyFormat = (typeof BODY_FORMATS)[number];

export interface ServedCall {
  id: string | null;
  name: string;
  arguments: string;
}

export interface ServedChoice {
  text: string;
  reasoning: string;
  refusal: string;
  calls: ServedCall[];
  finish: string | null;
}

export interface ServedAnswer {
  id: unknown;
  choices: ServedChoice[];
  usage: Counts | null;
  /** USD. */
  cost: unknown;
  error: Record<string, unknown> | null;
}

// biome-ignore lint/suspicious/noExplicitAny: a reader of JSON that strict readers have passed
type Json = any;

/** Reads the text of an event stream; what breaks the format throws, as does an end without end marker or error. */
export function readServedStream(format: ClientFormat, text: string, usage: 'chunk' | 'finish' | 'none'): ServedAnswer {
  if (format === 'chat') {
    const seen = readChatStream(text, usage);
    return fromChat(seen, seen.chunks[0]?.['id']);
  }
  if (format === 'responses') return fromResponse(readResponseStream(text));
  if (format === 'gemini') return fromContent(readContentStream(text));
  const message = readMessageStream(text);
  const calls = message.content
    .filter((block) => block.type === 'tool_use')
    .map((block) => ({
      id: String(block['id']),
      name: String(block['name']),
      arguments: message.inputs.get(block) ?? exactText(block['input']),
    }));
  const choice = fromBlocks(message.content, calls, message.stop.stop_reason);
  const told = message.last === undefined ? null : billedMessages(message.usage);
  const error = message.error ?? null;
  return { id: message.start['id'], choices: [choice], usage: told, cost: message.usage['cost'], error };
}

export function readServedWhole(format: ClientFormat, text: string): ServedAnswer {
  if (format === 'chat') {
    const seen = readWholeChat(text);
    return fromChat(seen, seen.reply['id']);
  }
  if (format === 'responses') return fromResponse(readWholeResponse(text));
  if (format === 'gemini') return fromContent(readWholeContent(text));
  const reply = JSON.parse(text);
  assert.equal(reply.type, 'message');
  assert.equal(reply.role, 'assistant');
  assert.ok('stop_sequence' in reply, 'no stop_sequence');
  const exact = parsedExactly(text);
  const calls = reply.content.flatMap((block: Json, at: number) =>
    block.type === 'tool_use'
      ? [{ id: block.id, name: block.name, arguments: exactText(exact.content[at].input) }]
      : [],
  );
  const choice = fromBlocks(reply.content, calls, reply.stop_reason);
  return {
    id: reply.id,
    choices: [choice],
    usage: billedMessages(reply.usage),
    cost: reply.usage.cost,
    error: null,
  };
}

function fromResponse({ choice, response, error }: ReadResponse): ServedAnswer {
  const usage = response['usage'] as Json;
  const counts = usage && {
    input: usage.input_tokens,
    cacheRead: usage.input_tokens_details.cached_tokens,
    cacheWrite: usage.input_tokens_details.cache_write_tokens ?? 0,
    output: usage.output_tokens,
    reasoning: usage.output_tokens_details.reasoning_tokens,
  };
  return { id: response['id'], choices: [choice], usage: counts ?? null, cost: usage?.cost, error: error ?? null };
}

function fromContent({ id, candidates, usage, error }: ReadContent): ServedAnswer {
  const choices = candidates.map(({ parts: _, inputs: __, calls, ...candidate }) => ({
    ...candidate,
    refusal: '',
    // Calls may have no id in this format.
    calls: calls.map((call, index) => ({ ...call, id: call.id ?? `unnamed ${index}` })),
  }));
  // A prompt that was blocked has no candidate.
  const blocked = choices.length === 0 && error === null ? [{ ...NOTHING, finish: 'SAFETY' }] : choices;
  return { id, choices: blocked, usage: contentCounts(usage), cost: usage?.cost, error };
}

function fromChat(seen: SeenAnswer, id: unknown): ServedAnswer {
  const usage = seen.usage as Json;
  const counts = usage && {
    input: usage.prompt_tokens,
    cacheRead: usage.prompt_tokens_details?.cached_tokens ?? 0,
    cacheWrite: usage.prompt_tokens_details?.cache_write_tokens ?? 0,
    output: usage.completion_tokens,
    reasoning: usage.completion_tokens_details?.reasoning_tokens ?? 0,
  };
  return { id, choices: seen.choices, usage: counts, cost: usage?.cost, error: seen.error };
}

function fromBlocks(blocks: readonly Json[], calls: ServedCall[], finish: unknown): ServedChoice {
  const joined = (type: string, key: string) =>
    blocks
      .filter((block) => block.type === type)
      .map((block) => block[key])
      .join('');
  return {
    text: joined('text', 'text'),
    reasoning: joined('thinking', 'thinking'),
    refusal: '',
    calls,
    finish: (finish as string | null) ?? null,
  };
}

/** Fails unless the client has everything that the service said, no more, and the end that it named. */
export function assertServed(
  format: ClientFormat,
  served: ServedAnswer,
  recorded: RecordedAnswer,
  where: string,
): void {
  assert.equal(served.error, null, where);
  assertContent(format, served, recorded, where);
  recorded.choices.slice(0, served.choices.length).forEach((choice, at) => {
    const finish = served.choices[at]!.finish!;
    const words = FINISHES[format][finishOf(choice)]!;
    assert.ok(words.includes(finish), `${where}: ${choice.finish} became ${finish}`);
  });
}

/** Fails unless the client has the content, whatever the end was; of a broken answer the calls may lack what was held. */
export function assertContent(
  format: ClientFormat,
  served: ServedAnswer,
  recorded: RecordedAnswer,
  where: string,
): void {
  const broken = !recorded.complete;
  const holdsSeveral = format === 'chat' || format === 'gemini';
  const choices = holdsSeveral ? recorded.choices : recorded.choices.slice(0, 1);
  if (!broken) assert.equal(served.choices.length, choices.length, `${where}: choices`);
  choices.forEach((want, at) => {
    const got = served.choices[at] ?? NOTHING;
    const hasRefusals = format === 'chat' || format === 'responses';
    const inText = !hasRefusals ? want.text + want.refusal : want.text;
    assert.equal(got.text, inText, `${where}: text`);
    assert.equal(got.reasoning, want.reasoning, `${where}: reasoning`);
    if (hasRefusals) assert.equal(got.refusal, want.refusal, `${where}: refusal`);
    // Where one block follows the other, calls that came side by side wait for their turn, which a break takes away.
    const inTurn = broken && format === 'messages' ? want.calls.slice(0, Math.max(1, got.calls.length)) : want.calls;
    // A call is told once it is complete.
    const told = broken && format === 'gemini' ? want.calls.slice(0, got.calls.length) : inTurn;
    assert.deepEqual(
      got.calls.map(({ name }) => name),
      told.map(({ name }) => name),
      `${where}: calls`,
    );
    told.forEach((call, index) => {
      assertCall(got.calls[index]!, call, broken, `${where}: call ${index}`);
    });
    assert.equal(new Set(got.calls.map(({ id }) => id)).size, got.calls.length, `${where}: ids repeat`);
  });
}

const NOTHING: ServedChoice = { text: '', reasoning: '', refusal: '', calls: [], finish: null };

function assertCall(got: ServedCall, want: RecordedCall, broken: boolean, where: string): void {
  if (want.id !== null) assert.equal(got.id, want.id, where);
  if (broken) {
    // An input that came whole with the start of its block is sent at the block's end.
    const told = got.arguments === '{}' || got.arguments.startsWith(want.arguments) || isSame(got, want);
    const waits = got.arguments === '' && want.arguments.endsWith('}');
    assert.ok(want.custom || told || waits, `${where}: ${got.arguments} instead of ${want.arguments}`);
  } else if (want.custom && got.arguments !== want.arguments) {
    // Free text is wrapped in a JSON object where only JSON is allowed.
    assert.deepEqual(JSON.parse(got.arguments), { input: want.arguments }, where);
  } else if (!want.custom && got.arguments !== want.arguments) {
    assert.equal(exactly(got.arguments, where), exactly(want.arguments || '{}', where), where);
  }
}

/** Of a call that was complete before the break. */
function isSame(got: ServedCall, want: RecordedCall): boolean {
  try {
    return exactText(parsedExactly(got.arguments)) === exactText(parsedExactly(want.arguments));
  } catch {
    return false;
  }
}

/** The same JSON without spaces; digits as written. */
function exactly(text: string, where: string): string {
  try {
    return exactText(parsedExactly(text));
  } catch {
    assert.fail(`${where}: no JSON: ${text}`);
  }
}

type End = 'stop' | 'length' | 'calls' | 'refusal';

const FINISHES: Record<ClientFormat, Record<End, string[]>> = {
  chat: {
    stop: ['stop'],
    length: ['length'],
    calls: ['tool_calls', 'function_call'],
    refusal: ['content_filter', 'stop'],
  },
  messages: {
    stop: ['end_turn', 'stop_sequence', 'pause_turn', 'compaction'],
    length: ['max_tokens', 'model_context_window_exceeded'],
    calls: ['tool_use'],
    refusal: ['refusal'],
  },
  // The format has one word for every end of a whole answer; what it is shows in the output.
  responses: {
    stop: ['completed'],
    length: ['max_output_tokens'],
    calls: ['completed'],
    refusal: ['content_filter', 'completed'],
  },
  gemini: {
    // A service's new word is passed on.
    stop: ['STOP', 'FAKE_NEW_FINISH_REASON', 'FAKE_ENUM'],
    length: ['MAX_TOKENS'],
    calls: ['STOP'],
    refusal: ['SAFETY', 'RECITATION', 'PROHIBITED_CONTENT', 'STOP'],
  },
};

const ENDS: Record<string, End> = {
  length: 'length',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  content_filter: 'refusal',
  refusal: 'refusal',
};

/** Calls end as calls whatever the service calls it; words that it alone knows mean what fits what came. */
function finishOf({ finish, calls, refusal }: RecordedChoice): End {
  return ENDS[finish ?? ''] ?? (calls.length > 0 ? 'calls' : refusal === '' ? 'stop' : 'refusal');
}
