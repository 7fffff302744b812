/**
 * What a client that checks every member gets: each chunk, event and whole answer passes the schemas that the public client
 * is made of, whatever services write as null or leave out.
 */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { ChatResult$inboundSchema } from '@openrouter/sdk/models/chatresult.js';
import { type ChatStreamChunk, ChatStreamChunk$inboundSchema } from '@openrouter/sdk/models/chatstreamchunk.js';
import { OpenResponsesResult$inboundSchema } from '@openrouter/sdk/models/openresponsesresult.js';
import { StreamEvents$inboundSchema } from '@openrouter/sdk/models/streamevents.js';
import type { FormatId } from '../../src/formats/conversation/conversation.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { playThrough } from '../../src/testing/laws/pipeline.ts';
import { corpusMissing, type Recording, recordings } from '../../src/testing/recordings/corpus.ts';

interface Schema {
  safeParse(value: unknown): { success: boolean; data?: unknown; error?: { message: string } | undefined };
}

const SCHEMAS: Record<'chat' | 'responses', { whole: Schema; event: Schema }> = {
  chat: { whole: ChatResult$inboundSchema, event: ChatStreamChunk$inboundSchema },
  responses: { whole: OpenResponsesResult$inboundSchema, event: StreamEvents$inboundSchema },
};

/** Recorded answers, with the format that they are in and a kind of provider that speaks it. */
const RECORDED: readonly [Recording[], FormatId, string?][] = [
  [recordings(['chat'], /^(?!cohere$)/), 'chat'],
  [recordings(['messages']), 'messages'],
  [recordings(['responses']), 'responses'],
  [recordings(['generate'], /^(google|vertex)$/), 'gemini', 'google'],
  [recordings(['converse', 'converse-stream'], /^bedrock$/), 'converse', 'bedrock'],
  [recordings(['chat'], /^cohere$/), 'cohere', 'cohere'],
];
/** The client knows no custom tools in the chat format, OpenAI's own does. */
const BEYOND_THE_CLIENT = /custom-tool/;

/** Events with a whole response. The client reads an event that lacks a member as one of a type that it does not know. */
const WITH_RESPONSE = /^response\.(created|in_progress|completed|incomplete|failed)$/;

function assertPasses(schema: Schema, value: unknown, where: string): void {
  const { success, data, error } = schema.safeParse(value);
  assert.ok(success, `${where}: ${error?.message}\n${JSON.stringify(value)}`);
  const { type } = value as { type?: unknown };
  if (typeof type === 'string' && WITH_RESPONSE.test(type)) {
    assert.equal((data as { type: unknown }).type, type, `${where}: ${JSON.stringify(value)}`);
  }
}

function eventsOf(text: string): unknown[] {
  const data = text.split('\n').filter((line) => line.startsWith('data: ') && line !== 'data: [DONE]');
  return data.map((line) => JSON.parse(line.slice('data: '.length)));
}

describe('recorded traffic in the eyes of the public client', { skip: corpusMissing }, () => {
  for (const served of ['chat', 'responses'] as const) {
    test(`every recorded answer passes its schemas as ${served}, streamed and whole`, async (t) => {
      let checked = 0;
      for (const [all, spoken, kind] of RECORDED) {
        for (const { id, provider, status, headers, bytes, stream } of all) {
          if (status !== 200 || BEYOND_THE_CLIENT.test(id)) continue;
          for (const streamed of stream ? [true] : [true, false]) {
            const request = { served, kind: kind ?? provider, spoken, stream: streamed };
            const answer = await playThrough(request, { status, headers, pieces: [bytes], ending: 'close' });
            if (answer.status !== 200) continue;
            const { whole, event } = SCHEMAS[served];
            if (streamed) for (const value of eventsOf(answer.text)) assertPasses(event, value, id);
            else assertPasses(whole, JSON.parse(answer.text), id);
            checked += 1;
          }
        }
      }
      t.diagnostic(`${checked} answers`);
      assert.ok(checked > 150, `only ${checked} answers`);
    });
  }
});

/** The client's type is of both ways to answer. */
function chunksOf(answer: unknown): AsyncIterable<ChatStreamChunk> {
  return answer as AsyncIterable<ChatStreamChunk>;
}

/** Each has a null, or lacks a member, where some service does so. */
const CHUNKS: readonly Record<string, unknown>[] = [
  { choices: [{ index: 0, delta: { role: 'assistant', content: '', tool_calls: null }, finish_reason: null }] },
  { choices: [{ index: 0, delta: { role: null, content: 'a "usage":null b' }, finish_reason: null }] },
  {
    choices: [
      { index: 0, delta: { content: 'c', audio: null, images: null, annotations: null, reasoning_details: null } },
    ],
  },
  {
    choices: [
      {
        index: 0,
        delta: { tool_calls: [{ index: 0, id: 'call_1', type: 'function', function: { name: 'f', arguments: null } }] },
        finish_reason: null,
      },
    ],
  },
  {
    choices: [
      {
        index: 0,
        delta: { tool_calls: [{ index: 0, id: null, type: null, function: { name: null, arguments: '{"x":1}' } }] },
        finish_reason: null,
      },
    ],
  },
  { choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] },
];

test('null members of a service, in every observed position, break no response for the public client', async (t) => {
  const gateway = await startGateway(t, { providers: { a: {} } });
  const head = { id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', system_fingerprint: null };
  const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
  const whole = {
    ...{ ...head, object: 'chat.completion' },
    choices: [
      { index: 0, message: { role: 'assistant', content: 'hi', tool_calls: null, audio: null }, finish_reason: 'stop' },
    ],
    usage,
  };
  const chunks = [
    ...CHUNKS.map((chunk, at) => ({ ...head, ...chunk, usage: null, ...(at === 1 && { obfuscation: 'zz' }) })),
    // Behind the choices.
    { id: 'x', object: head.object, created: 1, model: 'm', choices: [], system_fingerprint: null, usage },
  ];
  gateway.upstream.script('a', [
    {
      headers: { 'content-type': 'text/event-stream' },
      chunks: [...chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`), 'data: [DONE]\n\n'],
    },
    { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(whole)] },
  ]);
  const client = new OpenRouter({ serverURL: gateway.api, apiKey: INFERENCE_KEY });
  const asked = { model: 'test/a', messages: [{ role: 'user' as const, content: 'hi' }] };
  let content = '';
  const called: string[] = [];
  let total = 0;
  for await (const chunk of chunksOf(await client.chat.send({ chatRequest: { ...asked, stream: true } }))) {
    const delta = chunk.choices[0]?.delta;
    content += delta?.content ?? '';
    for (const call of delta?.toolCalls ?? []) called.push(call.function?.name ?? '', call.function?.arguments ?? '');
    total = chunk.usage?.totalTokens ?? total;
  }
  assert.equal(content, 'a "usage":null bc');
  assert.equal(called.join(''), 'f{"x":1}');
  assert.equal(total, 5);
  const answer = await client.chat.send({ chatRequest: { ...asked, stream: false } });
  assert.equal('choices' in answer && answer.choices[0]?.message.content, 'hi');
});

test('log probabilities whose service leaves out bytes, or has none of a token, are complete in other formats', async (t) => {
  const gateway = await startGateway(t, { providers: { chat: {}, responses: { kind: 'responses' } } });
  const sse = (events: readonly object[]) => events.map((event) => `data: ${JSON.stringify(event)}\n\n`);
  const headers = { 'content-type': 'text/event-stream' };
  const top = { token: 'hé', logprob: -1 };
  const place = { item_id: 'm', output_index: 0, content_index: 0 };
  const part = { type: 'output_text', text: 'hé', annotations: [] };
  const item = { id: 'm', type: 'message', role: 'assistant', status: 'completed', content: [part] };
  const response = { id: 'r', object: 'response', created_at: 1, model: 'm', output: [item] };
  const events = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, content: [] } },
    { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
    { type: 'response.output_text.delta', ...place, delta: 'hé', logprobs: [{ ...top, top_logprobs: [top] }] },
    { type: 'response.output_text.done', ...place, text: 'hé' },
    { type: 'response.content_part.done', ...place, part },
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response: { ...response, status: 'completed' } },
  ];
  gateway.upstream.script('responses', { headers, chunks: sse(events) });
  const messages = [{ role: 'user', content: 'x' }];
  const asked = { model: 'test/responses', stream: true, logprobs: true, top_logprobs: 1, messages };
  const chunks = eventsOf(await (await gateway.post('/chat/completions', asked)).text()) as ChatStreamChunk[];
  for (const chunk of chunks) assertPasses(ChatStreamChunk$inboundSchema, chunk, 'chat');
  const whole = { ...top, bytes: [104, 195, 169] };
  assert.deepEqual(
    chunks.flatMap(({ choices }) => choices[0]?.logprobs ?? []),
    [{ content: [{ ...whole, top_logprobs: [whole] }], refusal: null }],
  );
  const logprobs = { content: [{ token: '\ufffd', logprob: -2, bytes: null }], refusal: null };
  const choice = { index: 0, message: { role: 'assistant', content: 'x' }, logprobs, finish_reason: 'stop' };
  gateway.upstream.script('chat', {
    headers: { 'content-type': 'application/json' },
    chunks: [JSON.stringify({ id: 'c', object: 'chat.completion', created: 1, model: 'm', choices: [choice] })],
  });
  const include = ['message.output_text.logprobs'];
  const reply = await gateway.post('/responses', { model: 'test/chat', input: 'x', include });
  const { output } = (await reply.json()) as { output: { content: { logprobs: unknown }[] }[] };
  assert.deepEqual(output[0]!.content[0]!.logprobs, [{ token: '\ufffd', logprob: -2, bytes: [], top_logprobs: [] }]);
});

test('the first curl of the README, streamed and by the public client', async (t) => {
  const gateway = await startGateway(t);
  const client = new OpenRouter({ serverURL: gateway.api, apiKey: INFERENCE_KEY });
  let content = '';
  const messages = [{ role: 'user' as const, content: 'Hello, Gatehouse' }];
  for await (const chunk of chunksOf(
    await client.chat.send({ chatRequest: { model: 'simulated/echo', messages, stream: true } }),
  )) {
    content += chunk.choices[0]?.delta.content ?? '';
  }
  assert.equal(content, 'Hello, Gatehouse');
});
