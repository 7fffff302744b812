/**
 * The responses API of the official `openai` package, unmodified, against the gateway in front of upstreams of three
 * formats. What the SDK's types promise is asked of every answer.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import type { ResponseInput, ResponseStreamEvent, Tool } from 'openai/resources/responses/responses';
import { until } from '../../src/testing/clock/clock.ts';
import { rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { ANSWER_SCHEMA, type Json, PNG, startBench, USAGE, USAGE_COST } from '../../src/testing/gateway/sdk.ts';
import { answerOf, errorOf, streamOf, type Told } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer, responsesData, responsesEvents } from '../../src/testing/upstream/responses-answers.ts';

const UPSTREAMS = ['chat', 'messages', 'responses', 'openai'] as const;
type Upstream = (typeof UPSTREAMS)[number];

const { gateway } = await startBench({
  providers: {
    chat: { kind: 'openrouter' },
    messages: { kind: 'messages' },
    responses: { kind: 'responses' },
    openai: { kind: 'openai' },
  },
});
const openai = new OpenAI({ baseURL: `${gateway.url}/v1`, apiKey: INFERENCE_KEY, maxRetries: 0 });

function cell(feature: string, run: (upstream: Upstream) => Promise<void>): void {
  for (const upstream of UPSTREAMS) test(`openai responses | ${feature} | ${upstream} upstream`, () => run(upstream));
}

/** Sets the upstream's answers; yields a reader of the bodies that it got since. */
function script(upstream: Upstream, stream: boolean, ...turns: Told[]): () => Json[] {
  const before = gateway.upstream.requests(upstream).length;
  const isOwn = upstream === 'responses' || upstream === 'openai';
  gateway.upstream.script(
    upstream,
    turns.map((told) => (isOwn ? responsesAnswer(stream, told) : answerOf(upstream, stream, told))),
  );
  return () =>
    gateway.upstream
      .requests(upstream)
      .slice(before)
      .map(({ json }) => json);
}

const TOOLS: Tool[] = ['weather', 'time'].map((name) => ({
  type: 'function',
  name,
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  strict: false,
}));

const CALLS = [
  { id: 'call_1', name: 'weather', arguments: '{"city":"東京","n":12345678901234567890}' },
  { id: 'call_2', name: 'time', arguments: '{}' },
];

/** What the type `Response` promises. */
function assertResponse(response: OpenAI.Responses.Response): void {
  assert.match(response.id, /^resp_/);
  assert.equal(response.object, 'response');
  assert.ok(Number.isInteger(response.created_at) && response.created_at > 0);
  for (const member of ['error', 'incomplete_details', 'instructions', 'metadata', 'temperature', 'top_p', 'tools']) {
    assert.ok(member in response, `no ${member}`);
  }
  assert.equal(typeof response.parallel_tool_calls, 'boolean');
}

cell('whole', async (upstream) => {
  const sent = script(upstream, false, { text: 'Bonjour, 北京 🌤', usage: USAGE });
  const request = { model: `test/${upstream}`, input: 'hi', instructions: 'Be brief.', metadata: { team: 'a' } };
  const response = await openai.responses.create(request);
  assertResponse(response);
  assert.equal(response.output_text, 'Bonjour, 北京 🌤');
  assert.deepEqual([response.status, response.model], ['completed', `test/${upstream}`]);
  assert.deepEqual(response.metadata, { team: 'a' });
  const { usage } = response as Json;
  assert.deepEqual([usage.input_tokens, usage.output_tokens, usage.total_tokens], [20, 7, 27]);
  assert.deepEqual([usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens], [5, 2]);
  assert.ok(Math.abs(usage.cost - USAGE_COST) < 1e-12);
  const [body] = sent();
  assert.match(JSON.stringify(body), /Be brief\./);
  if (upstream === 'responses' || upstream === 'openai')
    assert.deepEqual([body.store, body.metadata], [false, undefined]);
});

cell('stream helper', async (upstream) => {
  script(upstream, true, { text: 'Bonjour, 北京 🌤', usage: USAGE });
  const types: string[] = [];
  const stream = openai.responses
    .stream({ model: `test/${upstream}`, input: 'hi' })
    .on('event', (event: ResponseStreamEvent) => void types.push(event.type));
  const response = await stream.finalResponse();
  assertResponse(response);
  assert.equal(response.output_text, 'Bonjour, 北京 🌤');
  assert.deepEqual(types.slice(0, 4), [
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.content_part.added',
  ]);
  assert.deepEqual(types.slice(-4), [
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ]);
});

for (const stream of [false, true]) {
  cell(`parallel calls, their results on the next turn, ${stream ? 'streamed' : 'whole'}`, async (upstream) => {
    const sent = script(upstream, stream, { calls: CALLS }, { text: 'done' });
    const input: ResponseInput = [{ role: 'user', content: 'weather and time?' }];
    const ask = () => {
      const request = { model: `test/${upstream}`, input, tools: TOOLS };
      return stream ? openai.responses.stream(request).finalResponse() : openai.responses.create(request);
    };
    const first = await ask();
    const calls = (first.output as Json[]).filter((item) => item.type === 'function_call');
    assert.deepEqual(
      calls.map(({ call_id, name }) => [call_id, name]),
      CALLS.map(({ id, name }) => [id, name]),
    );
    // A service of the messages format holds arguments as an object, whose large numbers the script's writer rounds.
    if (upstream !== 'messages') assert.equal(calls[0]!.arguments, CALLS[0]!.arguments);
    input.push(...(first.output as ResponseInput));
    for (const { call_id } of calls) input.push({ type: 'function_call_output', call_id, output: `result ${call_id}` });
    const second = await ask();
    assert.equal(second.output_text, 'done');
    const body = JSON.stringify(sent()[1]);
    for (const said of ['weather and time?', 'result call_1', 'result call_2', '東京']) assert.ok(body.includes(said));
  });

  cell(`reasoning comes back to its origin, ${stream ? 'streamed' : 'whole'}`, async (upstream) => {
    const thinking = { text: 'Let me think', signature: 'c2lnbmVk' };
    const sent = script(upstream, stream, { thinking, text: 'So' }, { text: 'done' });
    const input: ResponseInput = [{ role: 'user', content: 'hi' }];
    const ask = () => {
      const reasoning = { effort: 'low', summary: 'auto' } as const;
      const request = { model: `test/${upstream}`, input, reasoning, max_output_tokens: 4000 };
      return stream ? openai.responses.stream(request).finalResponse() : openai.responses.create(request);
    };
    const first = await ask();
    const [item] = first.output;
    assert.ok(item?.type === 'reasoning');
    const told = [...item.summary, ...(item.content ?? [])].map(({ text }) => text).join('');
    assert.equal(told, 'Let me think');
    input.push(...(first.output as ResponseInput), { role: 'user', content: 'go on' });
    await ask();
    const body = JSON.stringify(sent()[1]);
    for (const said of ['Let me think', 'c2lnbmVk']) assert.ok(body.includes(said), `${said} in ${body}`);
    if (upstream === 'openai') assert.doesNotMatch(body, /"(format|signature)"/);
  });
}

cell('images', async (upstream) => {
  const sent = script(upstream, false, { text: 'a dot' });
  const content = [
    { type: 'input_text' as const, text: 'what is it?' },
    { type: 'input_image' as const, image_url: `data:image/png;base64,${PNG}`, detail: 'auto' as const },
  ];
  await openai.responses.create({ model: `test/${upstream}`, input: [{ role: 'user', content }] });
  assert.ok(JSON.stringify(sent()[0]).includes(PNG));
});

cell('structured output', async (upstream) => {
  const sent = script(upstream, false, { text: '{"city":"Bonn","degrees":7}' });
  const format = { type: 'json_schema' as const, name: 'answer', schema: ANSWER_SCHEMA, strict: true };
  const response = await openai.responses.parse({ model: `test/${upstream}`, input: 'hi', text: { format } });
  assert.deepEqual(response.output_parsed, { city: 'Bonn', degrees: 7 });
  assert.ok(JSON.stringify(sent()[0]).includes('"degrees"'));
});

cell('truncated by the token limit', async (upstream) => {
  script(upstream, true, { text: 'Half', finish: 'length' });
  const response = await openai.responses.stream({ model: `test/${upstream}`, input: 'hi' }).finalResponse();
  assert.deepEqual([response.status, response.incomplete_details], ['incomplete', { reason: 'max_output_tokens' }]);
});

cell('a rate limit', async (upstream) => {
  const answer = errorOf(upstream === 'messages' ? 'messages' : 'chat', 429, 'slow down', { 'retry-after': '7' });
  gateway.upstream.script(upstream, [answer]);
  const error = await openai.responses.create({ model: `test/${upstream}`, input: 'hi' }).catch((thrown) => thrown);
  assert.ok(error instanceof OpenAI.RateLimitError);
  assert.equal(error.headers?.get('retry-after'), '7');
  // The rate limit puts the endpoint into cooldown, which ends before the next test.
  gateway.clock.jump(60_000);
});

cell('a stream that breaks off', async (upstream) => {
  const isOwn = upstream === 'responses' || upstream === 'openai';
  const told = { text: 'Half an answer' };
  const events = isOwn ? responsesEvents(told) : (answerOf(upstream, true, told).chunks as string[]);
  gateway.upstream.script(upstream, [streamOf(events.slice(0, isOwn ? 6 : 5))]);
  const seen: ResponseStreamEvent[] = [];
  const stream = await openai.responses.create({ model: `test/${upstream}`, input: 'hi', stream: true });
  for await (const event of stream) seen.push(event);
  const last = seen.at(-1)!;
  assert.ok(last.type === 'response.failed');
  assert.deepEqual([last.response.status, last.response.error?.code], ['failed', 'server_error']);
  const text = seen.map((event) => (event.type === 'response.output_text.delta' ? event.delta : '')).join('');
  assert.ok(text !== '' && 'Half an answer'.startsWith(text));
});

test('openai responses | a failure in the upstream’s stream is reported as one', async () => {
  const failed = { type: 'response.failed', response: { error: { code: 'rate_limit_exceeded', message: 'too fast' } } };
  gateway.upstream.script('responses', [
    streamOf([...responsesEvents({ text: 'Half an answer' }).slice(0, 6), responsesData(failed)]),
  ]);
  const stream = openai.responses.stream({ model: 'test/responses', input: 'hi' });
  const response = await stream.finalResponse();
  assert.deepEqual([response.status, response.error?.code], ['failed', 'rate_limit_exceeded']);
});

cell('abort', async (upstream) => {
  const isOwn = upstream === 'responses' || upstream === 'openai';
  const told = { text: 'Half an answer' };
  const events = isOwn ? responsesEvents(told) : (answerOf(upstream, true, told).chunks as string[]);
  const count = gateway.upstream.requests(upstream).length + 1;
  gateway.upstream.script(upstream, [streamOf(events.slice(0, 6), { end: 'stall' })]);
  const stream = await openai.responses.create({ model: `test/${upstream}`, input: 'hi', stream: true });
  for await (const event of stream) if (event.type === 'response.output_text.delta') break;
  const asked = await gateway.upstream.request(upstream, count);
  await until(() => asked.closedEarlyAt !== undefined, 'the upstream call to be closed');
});

test('openai responses | a reference to an item that the gateway does not keep is refused by its place', async () => {
  const input = [{ type: 'item_reference' as const, id: 'rs_1' }];
  const error = await openai.responses.create({ model: 'test/chat', input }).catch((thrown) => thrown);
  assert.ok(error instanceof OpenAI.NotFoundError);
  assert.ok(error.message.includes('input[0]'), error.message);
});

test('openai responses | an answer is found by the id of its response', async () => {
  script('chat', false, { text: 'hello' });
  const { id } = await openai.responses.create({ model: 'test/chat', input: 'hi' });
  const row = await rowOf(gateway, id);
  assert.equal(row['id'], id.replace('resp_', 'gen-'));
});
