/**
 * The official `openai` package, unmodified, against the gateway in front of upstreams of both formats. Every cell of the
 * table SDK x feature x upstream is a test. What the SDK's types promise is asked of every answer.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';
import type { ChatCompletionMessageParam, ChatCompletionTool } from 'openai/resources/chat/completions';
import { until } from '../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import {
  ANSWER_SCHEMA,
  HELLO,
  type Json,
  PNG,
  skipWaits,
  startBench,
  USAGE,
  USAGE_COST,
} from '../../src/testing/gateway/sdk.ts';
import { answerOf, errorEvent, errorOf, streamOf, wholeOf } from '../../src/testing/upstream/answers.ts';

const { gateway, cell: cellOf, script } = await startBench();
const openai = clientFor(`${gateway.url}/v1`);
const cell = (feature: string, run: Parameters<typeof cellOf>[2]) => cellOf('openai', feature, run);

function clientFor(baseURL: string, options: object = {}): OpenAI {
  return new OpenAI({ baseURL, apiKey: INFERENCE_KEY, maxRetries: 0, ...options });
}

const TOOLS: ChatCompletionTool[] = [
  {
    type: 'function',
    function: { name: 'weather', parameters: { type: 'object', properties: { city: { type: 'string' } } } },
  },
  { type: 'function', function: { name: 'time', parameters: { type: 'object', properties: {} } } },
];

/** What the type `ChatCompletion` promises. */
function assertCompletion(completion: OpenAI.ChatCompletion): void {
  assert.match(completion.id, /^gen-/);
  assert.equal(completion.object, 'chat.completion');
  assert.ok(Number.isInteger(completion.created) && completion.created > 0);
  assert.equal(typeof completion.model, 'string');
  for (const [index, choice] of completion.choices.entries()) {
    assert.equal(choice.index, index);
    assert.ok('logprobs' in choice, 'no logprobs');
    assert.ok(['stop', 'length', 'tool_calls', 'content_filter', 'function_call'].includes(choice.finish_reason));
    assert.equal(choice.message.role, 'assistant');
    assert.ok(choice.message.content === null || typeof choice.message.content === 'string');
    assert.ok(choice.message.refusal === null || typeof choice.message.refusal === 'string', 'no refusal');
    for (const call of choice.message.tool_calls ?? []) {
      assert.ok(call.type === 'function' && call.id && call.function.name);
      JSON.parse(call.function.arguments);
    }
  }
}

/** Reads a stream as an application does, asking of each chunk what the type `ChatCompletionChunk` promises. */
async function readStream(stream: AsyncIterable<OpenAI.ChatCompletionChunk>) {
  const seen = { text: '', reasoning: '', finish: [] as string[], usage: [] as Json[], chunks: [] as Json[] };
  for await (const chunk of stream) {
    seen.chunks.push(chunk);
    assert.match(chunk.id, /^gen-/);
    assert.equal(chunk.object, 'chat.completion.chunk');
    assert.ok(Number.isInteger(chunk.created) && typeof chunk.model === 'string' && Array.isArray(chunk.choices));
    if (chunk.usage) seen.usage.push(chunk.usage);
    for (const choice of chunk.choices) {
      assert.ok(Number.isInteger(choice.index) && typeof choice.delta === 'object' && 'finish_reason' in choice);
      seen.text += choice.delta.content ?? '';
      seen.reasoning += (choice.delta as Json).reasoning ?? '';
      if (choice.finish_reason) seen.finish.push(choice.finish_reason);
    }
  }
  return seen;
}

cell('non-stream', async (format) => {
  script(format, false, { text: 'Bonjour, 北京 🌤' });
  const completion = await openai.chat.completions.create({ model: `test/${format}`, messages: HELLO });
  assertCompletion(completion);
  assert.equal(completion.choices[0]!.message.content, 'Bonjour, 北京 🌤');
  assert.equal(completion.choices[0]!.finish_reason, 'stop');
  assert.equal(completion.model, `test/${format}`);
});

cell('stream', async (format) => {
  script(format, true, { text: 'Bonjour, 北京 🌤' });
  const stream = await openai.chat.completions.create({ model: `test/${format}`, messages: HELLO, stream: true });
  const seen = await readStream(stream);
  assert.equal(seen.text, 'Bonjour, 北京 🌤');
  assert.deepEqual(seen.finish, ['stop']);
});

cell('stream helper', async (format) => {
  script(format, true, { text: 'one two three', usage: { input: 10, output: 4 } });
  const stream = openai.chat.completions.stream({
    model: `test/${format}`,
    messages: HELLO,
    stream_options: { include_usage: true },
  });
  const deltas: string[] = [];
  stream.on('content', (delta) => deltas.push(delta));
  const completion = await stream.finalChatCompletion();
  assert.equal(deltas.join(''), 'one two three');
  assert.equal(completion.choices[0]!.message.content, 'one two three');
  assert.equal(completion.choices[0]!.finish_reason, 'stop');
  assert.equal(completion.usage?.completion_tokens, 4);
});

cell('tools', async (format) => {
  const sent = script(
    format,
    false,
    { text: 'Let me look.', calls: [{ id: 'call_1', name: 'weather', arguments: '{"city":"Köln"}' }] },
    { text: 'Rain.' },
  );
  const request = { model: `test/${format}`, tools: TOOLS, tool_choice: 'required' as const };
  const first = await openai.chat.completions.create({ ...request, messages: HELLO });
  assertCompletion(first);
  const { message, finish_reason } = first.choices[0]!;
  assert.equal(finish_reason, 'tool_calls');
  assert.equal(message.content, 'Let me look.');
  const call = message.tool_calls![0]!;
  assert.ok(call.type === 'function');
  assert.deepEqual(
    [call.id, call.function.name, JSON.parse(call.function.arguments)],
    ['call_1', 'weather', { city: 'Köln' }],
  );
  const result: ChatCompletionMessageParam = { role: 'tool', tool_call_id: call.id, content: 'rain, 9 °C' };
  const second = await openai.chat.completions.create({ ...request, messages: [...HELLO, message, result] });
  assert.equal(second.choices[0]!.message.content, 'Rain.');
  const [asked, answered] = sent();
  if (format === 'messages') {
    assert.deepEqual(asked.tool_choice, { type: 'any' });
    assert.equal(asked.tools[0].input_schema.properties.city.type, 'string');
    assert.deepEqual(answered.messages.slice(1), [
      {
        role: 'assistant',
        content: [
          { type: 'text', text: 'Let me look.' },
          { type: 'tool_use', id: 'call_1', name: 'weather', input: { city: 'Köln' } },
        ],
      },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'call_1', content: [{ type: 'text', text: 'rain, 9 °C' }] }],
      },
    ]);
  } else {
    assert.equal(asked.tool_choice, 'required');
    assert.deepEqual(asked.tools, TOOLS);
    assert.equal(answered.messages[1].tool_calls[0].function.arguments, '{"city":"Köln"}');
    assert.deepEqual(answered.messages[2], result);
  }
});

cell('parallel tools, streamed', async (format) => {
  const calls = [
    { id: 'call_a', name: 'weather', arguments: '{"city":"Rome","days":[1,2,3]}' },
    { id: 'call_b', name: 'weather', arguments: '{"city":"Oslo"}' },
    { id: 'call_c', name: 'time', arguments: '{}' },
  ];
  const sent = script(format, true, { calls }, { text: 'done' });
  const request = { model: `test/${format}`, tools: TOOLS, parallel_tool_calls: true };
  const stream = openai.chat.completions.stream({ ...request, messages: HELLO });
  const { message, finish_reason } = (await stream.finalChatCompletion()).choices[0]!;
  assert.equal(finish_reason, 'tool_calls');
  assert.deepEqual(
    message.tool_calls!.map(
      (call) => call.type === 'function' && [call.id, call.function.name, call.function.arguments],
    ),
    calls.map((call) => [call.id, call.name, call.arguments]),
  );
  const results = calls.map((call) => ({ role: 'tool' as const, tool_call_id: call.id, content: `of ${call.id}` }));
  const second = await openai.chat.completions.create({
    ...request,
    messages: [...HELLO, message as ChatCompletionMessageParam, ...results],
    stream: true,
  });
  assert.equal((await readStream(second)).text, 'done');
  const { messages } = sent()[1];
  if (format === 'chat') assert.equal(messages.length, 5);
  else {
    assert.deepEqual(
      messages.map((one: Json) => one.role),
      ['user', 'assistant', 'user'],
    );
    assert.deepEqual(
      messages[2].content.map((block: Json) => [block.type, block.tool_use_id, block.content]),
      calls.map((call) => ['tool_result', call.id, [{ type: 'text', text: `of ${call.id}` }]]),
    );
  }
});

cell('images', async (format) => {
  const sent = script(format, false, { text: 'a dot' });
  await openai.chat.completions.create({
    model: `test/${format}`,
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'what?' },
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}`, detail: 'low' } },
          { type: 'image_url', image_url: { url: 'https://images.example/x.jpg' } },
        ],
      },
    ],
  });
  const { content } = sent()[0].messages[0];
  if (format === 'chat') assert.equal(content[1].image_url.url, `data:image/png;base64,${PNG}`);
  else {
    assert.deepEqual(content.slice(1), [
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
      { type: 'image', source: { type: 'url', url: 'https://images.example/x.jpg' } },
    ]);
  }
});

for (const streamed of [false, true]) {
  cell(`reasoning, ${streamed ? 'streamed' : 'whole'}`, async (format) => {
    const thinking = { text: ' line one\n\n  zwei é ', signature: 'c2lnbmF0dXJlIG9mIGl0' };
    const call = { id: 'toolu_1', name: 'weather', arguments: '{"city":"Rome"}' };
    const sent = script(format, streamed, { thinking, text: 'I will look.', calls: [call] }, { text: 'ok' });
    const request = { model: `test/${format}`, tools: TOOLS, reasoning_effort: 'high' as const };
    let message: Json;
    if (streamed) {
      const stream = await openai.chat.completions.create({ ...request, messages: HELLO, stream: true });
      message = { role: 'assistant', content: '', tool_calls: [], reasoning_details: [] };
      const { chunks, reasoning } = await readStream(stream);
      assert.equal(reasoning, thinking.text);
      for (const { delta } of chunks.flatMap((chunk: Json) => chunk.choices)) {
        message.content += delta.content ?? '';
        message.reasoning_details.push(...(delta.reasoning_details ?? []));
        for (const { index, ...piece } of delta.tool_calls ?? []) {
          if (piece.id) message.tool_calls[index] = { ...piece, function: { ...piece.function } };
          else message.tool_calls[index].function.arguments += piece.function.arguments;
        }
      }
    } else {
      const completion = await openai.chat.completions.create({ ...request, messages: HELLO });
      assertCompletion(completion);
      message = completion.choices[0]!.message;
      assert.equal(message.reasoning, thinking.text);
    }
    const result = { role: 'tool' as const, tool_call_id: 'toolu_1', content: 'sun' };
    await openai.chat.completions.create({ ...request, messages: [...HELLO, message, result], stream: streamed });
    const [asked, replayed] = sent();
    if (format === 'messages') {
      assert.equal(asked.thinking.type === 'adaptive' || asked.thinking.budget_tokens < asked.max_tokens, true);
      assert.deepEqual(replayed.messages[1].content, [
        { type: 'thinking', thinking: thinking.text, signature: thinking.signature },
        { type: 'text', text: 'I will look.' },
        { type: 'tool_use', id: 'toolu_1', name: 'weather', input: { city: 'Rome' } },
      ]);
    } else {
      const details = replayed.messages[1].reasoning_details;
      assert.equal(details.map((detail: Json) => detail.text ?? '').join(''), thinking.text);
      assert.equal(details.map((detail: Json) => detail.signature ?? '').join(''), thinking.signature);
    }
  });
}

cell('structured output', async (format) => {
  const sent = script(format, false, { text: '{"city":"Rome","degrees":21.5}' });
  const completion = await openai.chat.completions.parse({
    model: `test/${format}`,
    messages: HELLO,
    response_format: { type: 'json_schema', json_schema: { name: 'weather', strict: true, schema: ANSWER_SCHEMA } },
  });
  assert.deepEqual(completion.choices[0]!.message.parsed, { city: 'Rome', degrees: 21.5 });
  const body = sent()[0];
  if (format === 'chat') assert.deepEqual(body.response_format.json_schema.schema, ANSWER_SCHEMA);
  else assert.deepEqual(body.output_config.format, { type: 'json_schema', schema: ANSWER_SCHEMA });
});

cell('structured output, streamed', async (format) => {
  script(format, true, { text: '{"city":"Rome","degrees":21.5}' });
  const stream = openai.chat.completions.stream({
    model: `test/${format}`,
    messages: HELLO,
    response_format: { type: 'json_schema', json_schema: { name: 'weather', strict: true, schema: ANSWER_SCHEMA } },
  });
  assert.deepEqual((await stream.finalChatCompletion()).choices[0]!.message.parsed, { city: 'Rome', degrees: 21.5 });
});

const REFUSED = [
  [400, OpenAI.BadRequestError, 400],
  [401, OpenAI.InternalServerError, 502],
  [403, OpenAI.InternalServerError, 502],
  [404, OpenAI.NotFoundError, 404],
  [429, OpenAI.RateLimitError, 429],
  [500, OpenAI.InternalServerError, 502],
  [529, OpenAI.InternalServerError, 529],
] as const;

for (const streamed of [false, true]) {
  cell(`errors of the upstream, ${streamed ? 'streamed' : 'whole'}`, async (format) => {
    for (const [status, kind, shown] of REFUSED) {
      gateway.upstream.script(
        format,
        errorOf(format, status, `failure ${status}`, status === 429 ? { 'retry-after': '7' } : {}),
      );
      const failed = openai.chat.completions.create({ model: `test/${format}`, messages: HELLO, stream: streamed });
      const error = await failed.then(
        () => assert.fail('no error'),
        (thrown) => thrown,
      );
      assert.ok(error instanceof kind, `${status}: ${error}`);
      assert.equal(error.status, shown);
      assert.equal(error.code, shown);
      assert.match(error.message, new RegExp(`^${shown} .`));
      assert.match(error.headers.get('x-generation-id') ?? '', /^gen-/);
      if (status === 429) assert.equal(error.headers.get('retry-after'), '7');
    }
  });
}

test('openai | errors of our own | 400, 401, 403, 404', async () => {
  const create = (client: OpenAI, body: object) =>
    client.chat.completions.create({ model: 'test/chat', messages: HELLO, ...body }).then(
      () => assert.fail('no error'),
      (thrown) => thrown,
    );
  const wrong = await create(openai, { temperature: 'warm' });
  assert.ok(wrong instanceof OpenAI.BadRequestError);
  assert.match(wrong.message, /temperature/);
  assert.ok((await create(openai, { model: 'test/none' })) instanceof OpenAI.BadRequestError);
  const unknown = await create(clientFor(`${gateway.url}/v1`, { apiKey: 'sk-svc-unknown' }), {});
  assert.ok(unknown instanceof OpenAI.AuthenticationError);
  const management = await create(clientFor(`${gateway.url}/v1`, { apiKey: MANAGEMENT_KEY }), {});
  assert.ok(management instanceof OpenAI.PermissionDeniedError);
  const missing = await create(clientFor(`${gateway.url}/v1/nowhere`), {});
  assert.ok(missing instanceof OpenAI.NotFoundError);
});

cell('retry after 429', async (format, t) => {
  const before = gateway.upstream.requests(format).length;
  gateway.upstream.script(format, [
    errorOf(format, 429, 'slow down', { 'retry-after': '1' }),
    answerOf(format, false, { text: 'at last' }),
  ]);
  const client = clientFor(`${gateway.url}/v1`, { maxRetries: 2 });
  // Without `Retry-After` the library would wait half as long.
  const waits = skipWaits(t, 1000);
  const completion = await client.chat.completions.create({ model: `test/${format}`, messages: HELLO });
  assert.equal(completion.choices[0]!.message.content, 'at last');
  assert.equal(waits(), 1, 'the library waits for the time in Retry-After');
  assert.equal(gateway.upstream.requests(format).length - before, 2);
});

const CUTS = ['an error event', 'a reset', 'a clean close'] as const;

for (const cut of CUTS) {
  cell(`mid-stream ${cut}`, async (format) => {
    const events = answerOf(format, true, { text: 'Half an answer' }).chunks!.slice(0, 5) as string[];
    if (cut === 'an error event') events.push(errorEvent(format, 'it broke'));
    gateway.upstream.script(format, [streamOf(events, { end: cut === 'a reset' ? 'reset' : 'close' })]);
    const stream = await openai.chat.completions.create({ model: `test/${format}`, messages: HELLO, stream: true });
    let text = '';
    await assert.rejects(
      async () => {
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
      },
      (error) => error instanceof OpenAI.APIError && error.code === (502 as Json),
    );
    assert.ok(text !== '' && 'Half an answer'.startsWith(text), text);
  });
}

cell('mid-stream error, stream helper', async (format) => {
  const events = answerOf(format, true, { text: 'Half an answer' }).chunks!.slice(0, 5) as string[];
  gateway.upstream.script(format, [streamOf([...events, errorEvent(format, 'it broke')])]);
  const stream = openai.chat.completions.stream({ model: `test/${format}`, messages: HELLO });
  await assert.rejects(stream.finalChatCompletion(), OpenAI.APIError);
});

for (const streamed of [true, false]) {
  cell(`abort, ${streamed ? 'streamed' : 'whole'}`, async (format) => {
    const events = answerOf(format, true, { text: 'Half an answer' }).chunks!.slice(0, 4) as string[];
    const count = gateway.upstream.requests(format).length + 1;
    gateway.upstream.script(format, [streamed ? streamOf(events, { end: 'stall' }) : { end: 'stall-before-headers' }]);
    const controller = new AbortController();
    const options = { signal: controller.signal };
    const request = { model: `test/${format}`, messages: HELLO };
    if (streamed) {
      const stream = await openai.chat.completions.create({ ...request, stream: true }, options);
      for await (const chunk of stream) if (chunk.choices[0]?.delta.content) break;
    } else {
      const pending = openai.chat.completions.create(request, options);
      await gateway.upstream.request(format, count);
      controller.abort();
      await assert.rejects(pending, OpenAI.APIUserAbortError);
    }
    const asked = await gateway.upstream.request(format, count);
    await until(() => asked.closedEarlyAt !== undefined, 'the upstream call to be closed');
  });
}

cell('usage', async (format) => {
  const usage = USAGE;
  const expected = {
    prompt_tokens: 20,
    completion_tokens: 7,
    total_tokens: 27,
    prompt_tokens_details: { cached_tokens: 5, cache_write_tokens: 3 },
    completion_tokens_details: { reasoning_tokens: 2 },
  };
  const check = (seen: Json) => {
    assert.deepEqual([seen.prompt_tokens, seen.completion_tokens, seen.total_tokens], [20, 7, 27]);
    assert.equal(seen.prompt_tokens_details.cached_tokens, expected.prompt_tokens_details.cached_tokens);
    assert.equal(seen.prompt_tokens_details.cache_write_tokens, expected.prompt_tokens_details.cache_write_tokens);
    assert.equal(seen.completion_tokens_details.reasoning_tokens, 2);
    assert.ok(Math.abs(seen.cost - USAGE_COST) < 1e-12, `${seen.cost} is not ${USAGE_COST}`);
  };
  script(format, false, { text: 'x', usage });
  check((await openai.chat.completions.create({ model: `test/${format}`, messages: HELLO })).usage);
  for (const [include, places] of [
    [true, [0]],
    [undefined, [1]],
    [false, []],
  ] as const) {
    script(format, true, { text: 'x', usage });
    const stream = await openai.chat.completions.create({
      model: `test/${format}`,
      messages: HELLO,
      stream: true,
      ...(include !== undefined && { stream_options: { include_usage: include } }),
    });
    const { chunks } = await readStream(stream);
    const telling = chunks.filter((chunk: Json) => chunk.usage);
    assert.deepEqual(
      telling.map((chunk: Json) => chunk.choices.length),
      places,
    );
    for (const chunk of telling) check(chunk.usage);
    if (include) assert.equal(telling[0], chunks.at(-1));
  }
});

cell('withResponse', async (format) => {
  for (const streamed of [false, true]) {
    script(format, streamed, { text: 'x' });
    const { data, response } = await openai.chat.completions
      .create({ model: `test/${format}`, messages: HELLO, stream: streamed })
      .withResponse();
    assert.equal(response.status, 200);
    const id = response.headers.get('x-generation-id');
    assert.match(id ?? '', /^gen-/);
    assert.ok(response.headers.get('x-request-id'));
    assert.match(response.headers.get('content-type') ?? '', streamed ? /^text\/event-stream/ : /^application\/json/);
    if ('id' in data) assert.equal(data.id, id);
    else assert.equal((await readStream(data)).chunks[0].id, id);
  }
});

test('openai | base URLs | /v1 and /api/v1', async () => {
  for (const root of ['/v1', '/v1/', '/api/v1', '/api/v1/']) {
    script('chat', false, { text: 'x' });
    const client = clientFor(gateway.url + root);
    assert.equal((await client.chat.completions.create({ model: 'test/chat', messages: HELLO })).choices.length, 1);
  }
});

test('openai | models.list and models.retrieve', async () => {
  const ids: string[] = [];
  for await (const model of openai.models.list()) {
    ids.push(model.id);
    assert.equal(typeof model.created, 'number');
  }
  const isRouter = (id: string) => id.startsWith('svc/');
  assert.deepEqual(ids.filter((id) => !isRouter(id)).sort(), ['test/chat', 'test/messages']);
  assert.ok(ids.some(isRouter));
});

cell('older max_tokens, stop, n, seed and user', async (format) => {
  const sent = script(format, false, { text: 'x', finish: 'length' });
  const completion = await openai.chat.completions.create({
    model: `test/${format}`,
    messages: [{ role: 'developer', content: 'be short' }, ...HELLO],
    max_completion_tokens: 50,
    stop: ['END'],
    seed: 3,
    user: 'alice',
    metadata: { run: '1' },
  });
  assert.equal(completion.choices[0]!.finish_reason, 'length');
  const text = JSON.stringify(sent()[0]);
  assert.ok(!text.includes('alice'));
  assert.equal(sent()[0].max_tokens, 50);
});

test('openai | an answer as bare as a small server gives it still keeps the promises of the types', async () => {
  gateway.upstream.script('chat', [
    wholeOf({ choices: [{ message: { role: 'assistant', content: 'bare' }, finish_reason: 'stop' }] }),
    streamOf([
      'data: {"choices":[{"delta":{"content":"bare"}}]}\n\n',
      'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\n',
      'data: [DONE]\n\n',
    ]),
  ]);
  assertCompletion(await openai.chat.completions.create({ model: 'test/chat', messages: HELLO }));
  const stream = await openai.chat.completions.create({ model: 'test/chat', messages: HELLO, stream: true });
  assert.equal((await readStream(stream)).text, 'bare');
});
