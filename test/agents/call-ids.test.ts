/**
 * Servers that give one id to several calls, of one turn or of all (xorbitsai/inference#4237): each call has an id of its
 * own at the client, and each result belongs to its call at the upstream.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import type { FormatId } from '../../src/formats/conversation/registry.ts';
import { SPOKEN_FORMATS } from '../../src/formats/index.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import {
  answerOf,
  CHAT_DONE,
  chatChunk,
  chatFinish,
  chatUsageChunk,
  streamOf,
  wholeOf,
} from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of requests and answers
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: Object.fromEntries(
      SPOKEN_FORMATS.map((kind) => [
        kind,
        { kind, ...(kind === 'converse' && { model: { upstream_id: 'anthropic.claude-sonnet-4-5-v1:0' } }) },
      ]),
    ),
  },
);

const TOLD = {
  calls: [
    { id: 'twin', name: 'look', arguments: '{"at":1}' },
    { id: 'twin', name: 'look', arguments: '{"at":2}' },
  ],
};
const ITEMS = TOLD.calls.map((call, index) => ({
  type: 'function_call',
  id: `fc_${index}`,
  call_id: call.id,
  name: call.name,
  arguments: call.arguments,
  status: 'completed',
}));
const RESPONSE = {
  id: 'resp_up',
  object: 'response',
  created_at: 1_760_000_000,
  status: 'completed',
  model: 'm',
  output: ITEMS,
  usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 },
};
const event = (value: Json): string => `event: ${value.type}\ndata: ${JSON.stringify(value)}\n\n`;
const RESPONSE_EVENTS = [
  event({ type: 'response.created', response: { ...RESPONSE, status: 'in_progress', output: [] } }),
  ...ITEMS.flatMap((item, output_index) => [
    event({
      type: 'response.output_item.added',
      output_index,
      item: { ...item, arguments: '', status: 'in_progress' },
    }),
    event({ type: 'response.function_call_arguments.delta', output_index, item_id: item.id, delta: item.arguments }),
    event({ type: 'response.output_item.done', output_index, item }),
  ]),
  event({ type: 'response.completed', response: RESPONSE }),
];
const GEMINI = {
  candidates: [
    {
      content: {
        role: 'model',
        parts: TOLD.calls.map(({ id, name, arguments: args }) => ({
          functionCall: { id, name, args: JSON.parse(args) },
        })),
      },
      finishReason: 'STOP',
    },
  ],
  usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
};
const WHOLE: Record<FormatId, Answer> = {
  chat: answerOf('chat', false, TOLD),
  messages: answerOf('messages', false, TOLD),
  responses: wholeOf(RESPONSE),
  gemini: wholeOf(GEMINI),
  converse: wholeOf({
    output: {
      message: {
        role: 'assistant',
        content: TOLD.calls.map(({ id, name, arguments: input }) => ({
          toolUse: { toolUseId: id, name, input: JSON.parse(input) },
        })),
      },
    },
    stopReason: 'tool_use',
    usage: { inputTokens: 1, outputTokens: 1, totalTokens: 2 },
  }),
  cohere: wholeOf({
    id: 'c',
    finish_reason: 'TOOL_CALL',
    message: {
      role: 'assistant',
      tool_calls: TOLD.calls.map(({ id, ...call }) => ({ id, type: 'function', function: call })),
    },
    usage: { tokens: { input_tokens: 1, output_tokens: 1 } },
  }),
};
const CHAT_END = [chatFinish('tool_calls'), chatUsageChunk({ input: 1, output: 1 }), CHAT_DONE];
const twin = (index: object, at: number) => ({
  ...index,
  id: 'twin',
  type: 'function',
  function: { name: 'look', arguments: `{"at":${at}}` },
});
const STREAMS: [FormatId, string, Answer][] = [
  ['chat', 'with an index each', answerOf('chat', true, TOLD)],
  [
    'chat',
    'without indexes',
    streamOf([chatChunk({ role: 'assistant', tool_calls: [twin({}, 1), twin({}, 2)] }), ...CHAT_END]),
  ],
  [
    'chat',
    'with one index, in two chunks',
    streamOf([
      chatChunk({ role: 'assistant', tool_calls: [twin({ index: 0 }, 1)] }),
      chatChunk({ tool_calls: [twin({ index: 0 }, 2)] }),
      ...CHAT_END,
    ]),
  ],
  ['messages', '', answerOf('messages', true, TOLD)],
  ['responses', '', streamOf(RESPONSE_EVENTS)],
  ['gemini', '', streamOf([`data: ${JSON.stringify(GEMINI)}\r\n\r\n`])],
];

const NAMES = { chat: '/chat/completions', messages: '/messages', responses: '/responses' } as const;
type Served = keyof typeof NAMES;
const SERVED = Object.keys(NAMES) as Served[];
const SCHEMA = { type: 'object', properties: { at: { type: 'integer' } } };
const BODIES: Record<Served, (history: Json[]) => Json> = {
  chat: (history) => ({
    messages: [{ role: 'user', content: 'look' }, ...history],
    tools: [{ type: 'function', function: { name: 'look', parameters: SCHEMA } }],
  }),
  messages: (history) => ({
    max_tokens: 1000,
    messages: [{ role: 'user', content: 'look' }, ...history],
    tools: [{ name: 'look', input_schema: SCHEMA }],
  }),
  responses: (history) => ({
    input: [{ role: 'user', content: 'look' }, ...history],
    tools: [{ type: 'function', name: 'look', parameters: SCHEMA }],
  }),
};

/** Ids and arguments of the calls of an answer, whole or streamed. */
function callsOf(served: Served, text: string): [id: string, at: number][] {
  const events: Json[] = text
    .split('\n')
    .flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []));
  const streamed = events.length > 0;
  const whole = streamed ? undefined : JSON.parse(text);
  const gathered = new Map<unknown, { id: string; text: string }>();
  const add = (key: unknown, id: string | undefined, piece = '') => {
    const known = gathered.get(key) ?? { id: id ?? '', text: '' };
    gathered.set(key, { id: known.id, text: known.text + piece });
  };
  if (served === 'chat') {
    const lists: Json[] = streamed ? events.map(({ choices }) => choices[0]?.delta) : [whole.choices[0].message];
    for (const { tool_calls: calls = [] } of lists.filter(Boolean))
      for (const [at, call] of calls.entries()) add(streamed ? call.index : at, call.id, call.function?.arguments);
  } else if (served === 'messages') {
    for (const { index, content_block: block, delta } of events) {
      if (block?.type === 'tool_use') add(index, block.id);
      if (delta?.type === 'input_json_delta') add(index, undefined, delta.partial_json);
    }
    for (const [at, block] of (whole?.content ?? []).entries())
      if (block.type === 'tool_use') add(at, block.id, JSON.stringify(block.input));
  } else {
    const done = events.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item);
    const begun = events.filter(({ type }) => type === 'response.output_item.added').map(({ item }) => item.call_id);
    if (streamed) {
      const ids = done.map(({ call_id }) => call_id);
      assert.deepEqual(begun, ids);
      const { output } = events.findLast(({ type }) => type === 'response.completed').response;
      assert.deepEqual(
        output.map(({ call_id }: Json) => call_id),
        ids,
      );
    }
    for (const [at, item] of (whole?.output ?? done).entries()) add(at, item.call_id, item.arguments);
  }
  return [...gathered.values()].map(({ id, text: args }) => [id, JSON.parse(args).at]);
}

async function ask(served: Served, kind: FormatId, history: Json[], stream: boolean): Promise<string> {
  const reply = await gateway.post(NAMES[served], { model: `test/${kind}`, stream, ...BODIES[served](history) });
  const text = await reply.text();
  assert.equal(reply.status, 200, `${kind} to ${served}: ${text}`);
  return text;
}

test('two calls of an answer with one id have two at the client, whole and streamed', async () => {
  const all = [...SPOKEN_FORMATS.map((kind) => [kind, 'whole', WHOLE[kind]] as const), ...STREAMS];
  for (const [kind, how, answer] of all) {
    for (const served of SERVED) {
      gateway.upstream.script(kind, [answer]);
      const calls = callsOf(served, await ask(served, kind, [], how !== 'whole'));
      const about = `${kind} ${how} to ${served}: ${JSON.stringify(calls)}`;
      assert.deepEqual(
        calls.map(([, at]) => at),
        [1, 2],
        about,
      );
      assert.equal(new Set(calls.map(([id]) => id)).size, 2, about);
      assert.equal(calls[0]![0], 'twin', about);
    }
  }
});

/** A history of the calls `at` with one id, each turn followed by its results. */
const HISTORY: Record<Served, (turns: number[][]) => Json[]> = {
  chat: (turns) =>
    turns.flatMap((turn) => [
      {
        role: 'assistant',
        content: null,
        tool_calls: turn.map((at) => ({
          id: 'twin',
          type: 'function',
          function: { name: 'look', arguments: `{"at":${at}}` },
        })),
      },
      ...turn.map((at) => ({ role: 'tool', tool_call_id: 'twin', content: `seen ${at}` })),
    ]),
  messages: (turns) =>
    turns.flatMap((turn) => [
      { role: 'assistant', content: turn.map((at) => ({ type: 'tool_use', id: 'twin', name: 'look', input: { at } })) },
      {
        role: 'user',
        content: turn.map((at) => ({ type: 'tool_result', tool_use_id: 'twin', content: `seen ${at}` })),
      },
    ]),
  responses: (turns) =>
    turns.flatMap((turn) => [
      ...turn.map((at) => ({ type: 'function_call', call_id: 'twin', name: 'look', arguments: `{"at":${at}}` })),
      ...turn.map((at) => ({ type: 'function_call_output', call_id: 'twin', output: `seen ${at}` })),
    ]),
};

test('a call of a later turn has another id than the earlier ones', async () => {
  for (const kind of ['chat', 'messages', 'responses'] as const) {
    for (const served of SERVED) {
      gateway.upstream.script(kind, [WHOLE[kind]]);
      const calls = callsOf(served, await ask(served, kind, HISTORY[served]([[7]]), false));
      const ids = calls.map(([id]) => id);
      assert.equal(new Set(['twin', ...ids]).size, 3, `${kind} to ${served}: ${ids}`);
    }
  }
});

/** The calls and results that an upstream got: their ids, and what they say. */
function pairsOf(kind: FormatId, body: Json): { calls: [string, number][]; results: [string, number][] } {
  const calls: [string, number][] = [];
  const results: [string, number][] = [];
  const seen = (value: unknown): number => Number(/seen (\d)/.exec(JSON.stringify(value))?.[1]);
  const visit = (value: Json): void => {
    if (Array.isArray(value)) for (const one of value) visit(one);
    else if (typeof value === 'object' && value !== null) {
      if (value.type === 'tool_use') calls.push([value.id, value.input.at]);
      else if (value.type === 'tool_result') results.push([value.tool_use_id, seen(value)]);
      else if (value.type === 'function_call') calls.push([value.call_id, JSON.parse(value.arguments).at]);
      else if (value.type === 'function_call_output') results.push([value.call_id, seen(value)]);
      else if (value.functionCall) calls.push([value.functionCall.id, value.functionCall.args.at]);
      else if (value.functionResponse) results.push([value.functionResponse.id, seen(value)]);
      else if (value.toolUse) calls.push([value.toolUse.toolUseId, value.toolUse.input.at]);
      else if (value.toolResult) results.push([value.toolResult.toolUseId, seen(value)]);
      else if (value.role === 'tool') results.push([value.tool_call_id, seen(value)]);
      else if (value.type === 'function' && value.id) calls.push([value.id, JSON.parse(value.function.arguments).at]);
      else for (const one of Object.values(value)) visit(one);
    }
  };
  visit(kind === 'gemini' ? body.contents : kind === 'responses' ? body.input : body.messages);
  return { calls, results };
}

test('results of calls with one id go to the upstream in order, each with the id of its own call', async () => {
  for (const kind of SPOKEN_FORMATS) {
    for (const served of SERVED.filter((one) => one !== kind)) {
      gateway.upstream.script(kind, [WHOLE[kind]]);
      await ask(served, kind, HISTORY[served]([[1, 2], [3], [4, 5]]), false);
      const { calls, results } = pairsOf(kind, gateway.upstream.requests(kind).at(-1)!.json);
      const about = `${served} to ${kind}: ${JSON.stringify({ calls, results })}`;
      assert.deepEqual(
        calls.map(([, at]) => at),
        [1, 2, 3, 4, 5],
        about,
      );
      assert.equal(new Set(calls.map(([id]) => id)).size, 5, about);
      assert.deepEqual(new Map(results), new Map(calls), about);
    }
  }
});
