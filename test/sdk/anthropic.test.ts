/**
 * The official `@anthropic-ai/sdk` package, unmodified, against the gateway in front of upstreams of both formats. Every
 * cell of the table SDK x feature x upstream is a test. What the SDK's types promise is asked of every answer.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { jsonSchemaOutputFormat } from '@anthropic-ai/sdk/helpers/json-schema';
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
import { answerOf, errorEvent, errorOf, type Format, streamOf, wholeOf } from '../../src/testing/upstream/answers.ts';

const { gateway, cell: cellOf, script } = await startBench();
const anthropic = clientFor({});
const cell = (feature: string, run: Parameters<typeof cellOf>[2]) => cellOf('anthropic', feature, run);

function clientFor(options: object): Anthropic {
  return new Anthropic({ baseURL: gateway.url, apiKey: INFERENCE_KEY, authToken: null, maxRetries: 0, ...options });
}

const TOOLS: Anthropic.Tool[] = [
  { name: 'weather', input_schema: { type: 'object', properties: { city: { type: 'string' } } } },
  { name: 'time', input_schema: { type: 'object', properties: {} } },
];

/** What the type `Message` promises; an answer that comes whole has a stop reason. */
function assertMessage(message: Anthropic.Message, whole = true): void {
  assert.match(message.id, /^gen-/);
  assert.deepEqual([message.type, message.role], ['message', 'assistant']);
  assert.equal(typeof message.model, 'string');
  if (whole) assert.equal(typeof message.stop_reason, 'string');
  for (const key of ['stop_reason', 'stop_sequence', 'stop_details', 'container'])
    assert.ok(key in message, `no ${key}`);
  assertUsage(message.usage);
  for (const block of message.content) assertBlock(block);
}

function assertUsage(usage: Anthropic.Usage): void {
  assert.ok(Number.isInteger(usage.input_tokens) && Number.isInteger(usage.output_tokens), JSON.stringify(usage));
  for (const key of [
    'cache_creation_input_tokens',
    'cache_read_input_tokens',
    'cache_creation',
    'server_tool_use',
    'service_tier',
  ]) {
    assert.ok(key in usage, `usage has no ${key}`);
  }
}

function assertBlock(block: Anthropic.ContentBlock): void {
  if (block.type === 'text') {
    assert.equal(typeof block.text, 'string');
    assert.ok(block.citations === null || Array.isArray(block.citations), 'no citations');
  } else if (block.type === 'thinking') {
    assert.ok(typeof block.thinking === 'string' && typeof block.signature === 'string');
  } else if (block.type === 'tool_use') {
    assert.ok(block.id && block.name && typeof block.input === 'object' && block.input !== null);
    // A relayed block is the upstream's own, and older services name no caller.
    assert.ok(block.caller === undefined || typeof block.caller.type === 'string');
  }
}

/** The raw events of a stream, each asked for what its type promises. */
async function readEvents(stream: AsyncIterable<Anthropic.RawMessageStreamEvent>) {
  const seen = { text: '', events: [] as Json[], stop: null as string | null, usage: {} as Json };
  for await (const event of stream) {
    seen.events.push(event);
    if (event.type === 'message_start') assertMessage(event.message, false);
    if (event.type === 'content_block_start') assertBlock(event.content_block);
    if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') seen.text += event.delta.text;
    if (event.type === 'message_delta') {
      for (const key of ['stop_reason', 'stop_sequence', 'stop_details', 'container'])
        assert.ok(key in event.delta, `no ${key}`);
      assert.ok(Number.isInteger(event.usage.output_tokens));
      for (const key of ['input_tokens', 'cache_creation_input_tokens', 'cache_read_input_tokens', 'server_tool_use']) {
        assert.ok(key in event.usage, `usage has no ${key}`);
      }
      seen.stop = event.delta.stop_reason;
      seen.usage = event.usage;
    }
  }
  assert.deepEqual([seen.events[0].type, seen.events.at(-1).type], ['message_start', 'message_stop']);
  return seen;
}

function request(format: Format) {
  return { model: `test/${format}`, max_tokens: 4000, messages: HELLO as Anthropic.MessageParam[] };
}

cell('non-stream', async (format) => {
  script(format, false, { text: 'Bonjour, 北京 🌤' });
  const message = await anthropic.messages.create(request(format));
  assertMessage(message);
  assert.deepEqual(message.content, [{ type: 'text', text: 'Bonjour, 北京 🌤', citations: [] }]);
  assert.deepEqual([message.stop_reason, message.stop_sequence], ['end_turn', null]);
});

cell('stream', async (format) => {
  script(format, true, { text: 'Bonjour, 北京 🌤' });
  const seen = await readEvents(await anthropic.messages.create({ ...request(format), stream: true }));
  assert.deepEqual([seen.text, seen.stop], ['Bonjour, 北京 🌤', 'end_turn']);
});

cell('stream helper', async (format) => {
  script(format, true, { text: 'one two three', usage: { input: 10, output: 4 } });
  const stream = anthropic.messages.stream(request(format));
  const deltas: string[] = [];
  stream.on('text', (delta) => deltas.push(delta));
  const message = await stream.finalMessage();
  assertMessage(message);
  assert.equal(deltas.join(''), 'one two three');
  assert.equal(await stream.finalText(), 'one two three');
  assert.deepEqual([message.stop_reason, message.usage.output_tokens], ['end_turn', 4]);
});

cell('tools', async (format) => {
  const call = { id: 'toolu_1', name: 'weather', arguments: '{"city":"Köln"}' };
  const sent = script(format, false, { text: 'Let me look.', calls: [call] }, { text: 'Rain.' });
  const asking = { ...request(format), tools: TOOLS, tool_choice: { type: 'any' as const } };
  const first = await anthropic.messages.create(asking);
  assertMessage(first);
  assert.equal(first.stop_reason, 'tool_use');
  const [text, use] = first.content;
  assert.ok(text?.type === 'text' && text.text === 'Let me look.');
  assert.ok(use?.type === 'tool_use');
  assert.deepEqual([use.id, use.name, use.input], ['toolu_1', 'weather', { city: 'Köln' }]);
  const second = await anthropic.messages.create({
    ...asking,
    messages: [
      ...HELLO,
      { role: 'assistant', content: first.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: use.id, content: 'rain, 9 °C' }] },
    ],
  });
  assert.ok(second.content[0]?.type === 'text' && second.content[0].text === 'Rain.');
  const [asked, answered] = sent();
  if (format === 'chat') {
    assert.equal(asked.tool_choice, 'required');
    assert.equal(asked.tools[0].function.parameters.properties.city.type, 'string');
    assert.equal(answered.messages[1].content, 'Let me look.');
    assert.deepEqual(answered.messages[1].tool_calls, [
      { id: 'toolu_1', type: 'function', function: { name: 'weather', arguments: '{"city":"Köln"}' } },
    ]);
    assert.deepEqual(answered.messages[2], { role: 'tool', tool_call_id: 'toolu_1', content: 'rain, 9 °C' });
  } else {
    assert.deepEqual(asked.tools, TOOLS);
    assert.deepEqual(answered.messages[1].content[1].input, { city: 'Köln' });
    assert.equal(answered.messages[2].content[0].content, 'rain, 9 °C');
  }
});

cell('parallel tools, streamed', async (format) => {
  const calls = [
    { id: 'toolu_a', name: 'weather', arguments: '{"city":"Rome","days":[1,2,3]}' },
    { id: 'toolu_b', name: 'weather', arguments: '{"city":"Oslo"}' },
    { id: 'toolu_c', name: 'time', arguments: '{}' },
  ];
  const sent = script(format, true, { calls }, { text: 'done' });
  const first = await anthropic.messages.stream({ ...request(format), tools: TOOLS }).finalMessage();
  assertMessage(first);
  assert.equal(first.stop_reason, 'tool_use');
  assert.deepEqual(
    first.content.map((block) => block.type === 'tool_use' && [block.id, block.name, block.input]),
    calls.map((call) => [call.id, call.name, JSON.parse(call.arguments)]),
  );
  const results = calls.map((call) => ({
    type: 'tool_result' as const,
    tool_use_id: call.id,
    content: [{ type: 'text' as const, text: `of ${call.id}` }],
  }));
  const second = anthropic.messages.stream({
    ...request(format),
    tools: TOOLS,
    messages: [...HELLO, { role: 'assistant', content: first.content }, { role: 'user', content: results }],
  });
  assert.equal(await second.finalText(), 'done');
  const { messages } = sent()[1];
  if (format === 'messages') assert.deepEqual(messages[2].content, results);
  else {
    assert.deepEqual(
      messages.slice(2).map((one: Json) => [one.role, one.tool_call_id]),
      calls.map((call) => ['tool', call.id]),
    );
    assert.ok(JSON.stringify(messages[3]).includes('of toolu_b'));
  }
});

cell('images', async (format) => {
  const sent = script(format, false, { text: 'a dot' });
  const content: Anthropic.ContentBlockParam[] = [
    { type: 'text', text: 'what?' },
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
    { type: 'image', source: { type: 'url', url: 'https://images.example/x.jpg' } },
  ];
  await anthropic.messages.create({ ...request(format), messages: [{ role: 'user', content }] });
  const received = sent()[0].messages[0].content;
  if (format === 'messages') assert.deepEqual(received, content);
  else {
    assert.deepEqual(
      received.slice(1).map((part: Json) => part.image_url.url),
      [`data:image/png;base64,${PNG}`, 'https://images.example/x.jpg'],
    );
  }
});

for (const streamed of [false, true]) {
  cell(`reasoning, ${streamed ? 'streamed' : 'whole'}`, async (format) => {
    const thinking = { text: ' line one\n\n  zwei é ', signature: 'c2lnbmF0dXJlIG9mIGl0' };
    const call = { id: 'toolu_1', name: 'weather', arguments: '{"city":"Rome"}' };
    const sent = script(format, streamed, { thinking, text: 'I will look.', calls: [call] }, { text: 'ok' });
    const asking = { ...request(format), tools: TOOLS, thinking: { type: 'enabled' as const, budget_tokens: 2000 } };
    const send = (body: Anthropic.MessageCreateParamsNonStreaming) =>
      streamed ? anthropic.messages.stream(body).finalMessage() : anthropic.messages.create(body);
    const first = await send(asking);
    assertMessage(first);
    assert.deepEqual(
      first.content.map((block) => block.type),
      ['thinking', 'text', 'tool_use'],
    );
    const block = first.content[0]!;
    assert.ok(block.type === 'thinking');
    assert.equal(block.thinking, thinking.text);
    assert.equal(block.signature, thinking.signature);
    await send({
      ...asking,
      messages: [
        ...HELLO,
        { role: 'assistant', content: first.content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'sun' }] },
      ],
    });
    const [asked, replayed] = sent();
    if (format === 'messages') {
      assert.deepEqual(asked.thinking, { type: 'enabled', budget_tokens: 2000 });
      assert.deepEqual(replayed.messages[1].content[0], {
        type: 'thinking',
        thinking: thinking.text,
        signature: thinking.signature,
      });
    } else {
      assert.equal(asked.reasoning.max_tokens, 2000);
      const details = replayed.messages[1].reasoning_details;
      assert.deepEqual(
        details.map((detail: Json) => [detail.type, detail.text, detail.signature, detail.format]),
        [['reasoning.text', thinking.text, thinking.signature, 'anthropic-claude-v1']],
      );
    }
  });
}

const FORMAT = jsonSchemaOutputFormat(ANSWER_SCHEMA);

cell('structured output', async (format) => {
  const sent = script(format, false, { text: '{"city":"Rome","degrees":21.5}' });
  const message = await anthropic.messages.parse({ ...request(format), output_config: { format: FORMAT } });
  assert.deepEqual(message.parsed_output, { city: 'Rome', degrees: 21.5 });
  const body = sent()[0];
  if (format === 'messages') assert.deepEqual(body.output_config.format.schema, FORMAT.schema);
  else {
    assert.equal(body.response_format.type, 'json_schema');
    assert.deepEqual(body.response_format.json_schema.schema, FORMAT.schema);
  }
});

cell('structured output, streamed', async (format) => {
  script(format, true, { text: '{"city":"Rome","degrees":21.5}' });
  const stream = anthropic.messages.stream({ ...request(format), output_config: { format: FORMAT } });
  assert.deepEqual((await stream.finalMessage()).parsed_output, { city: 'Rome', degrees: 21.5 });
});

const REFUSED = [
  [400, Anthropic.BadRequestError, 400, 'invalid_request_error'],
  [401, Anthropic.InternalServerError, 502, 'api_error'],
  [403, Anthropic.InternalServerError, 502, 'api_error'],
  [404, Anthropic.NotFoundError, 404, 'not_found_error'],
  [429, Anthropic.RateLimitError, 429, 'rate_limit_error'],
  [500, Anthropic.InternalServerError, 502, 'api_error'],
  [529, Anthropic.InternalServerError, 529, 'overloaded_error'],
] as const;

for (const streamed of [false, true]) {
  cell(`errors of the upstream, ${streamed ? 'streamed' : 'whole'}`, async (format) => {
    for (const [status, kind, shown, type] of REFUSED) {
      gateway.upstream.script(
        format,
        errorOf(format, status, `failure ${status}`, status === 429 ? { 'retry-after': '7' } : {}),
      );
      const failed = anthropic.messages.create({ ...request(format), stream: streamed });
      const error: Json = await (failed as Promise<unknown>).then(
        () => assert.fail('no error'),
        (thrown) => thrown,
      );
      assert.ok(error instanceof kind, `${status}: ${error}`);
      assert.equal(error.status, shown);
      assert.equal(error.type, type);
      assert.deepEqual([(error.error as Json).type, (error.error as Json).error.type], ['error', type]);
      assert.match(error.headers?.get('x-generation-id') ?? '', /^gen-/);
      if (status === 429) assert.equal(error.headers?.get('retry-after'), '7');
    }
  });
}

test('anthropic | errors of our own | 400, 401, 403, 404', async () => {
  const create = (client: Anthropic, body: object) =>
    client.messages.create({ ...request('messages'), ...body }).then(
      () => assert.fail('no error'),
      (thrown) => thrown,
    );
  const wrong = await create(anthropic, { temperature: 'warm' });
  assert.ok(wrong instanceof Anthropic.BadRequestError && wrong.type === 'invalid_request_error');
  assert.match(wrong.message, /temperature/);
  assert.ok((await create(anthropic, { model: 'test/none' })) instanceof Anthropic.BadRequestError);
  const unknown = await create(clientFor({ apiKey: 'sk-svc-unknown' }), {});
  assert.ok(unknown instanceof Anthropic.AuthenticationError && unknown.type === 'authentication_error');
  const management = await create(clientFor({ apiKey: MANAGEMENT_KEY }), {});
  assert.ok(management instanceof Anthropic.PermissionDeniedError && management.type === 'permission_error');
  const missing = await create(clientFor({ baseURL: `${gateway.url}/nowhere` }), {});
  assert.ok(missing instanceof Anthropic.NotFoundError);
});

cell('retry after 429', async (format, t) => {
  const before = gateway.upstream.requests(format).length;
  gateway.upstream.script(format, [
    errorOf(format, 429, 'slow down', { 'retry-after': '1' }),
    answerOf(format, false, { text: 'at last' }),
  ]);
  // Without `Retry-After` the library would wait half as long.
  const waits = skipWaits(t, 1000);
  const message = await clientFor({ maxRetries: 2 }).messages.create(request(format));
  assert.ok(message.content[0]?.type === 'text' && message.content[0].text === 'at last');
  assert.equal(waits(), 1, 'the library waits for the time in Retry-After');
  assert.equal(gateway.upstream.requests(format).length - before, 2);
});

for (const cut of ['an error event', 'an overload', 'a reset', 'a clean close'] as const) {
  cell(`mid-stream ${cut}`, async (format) => {
    const events = answerOf(format, true, { text: 'Half an answer' }).chunks!.slice(0, 5) as string[];
    if (cut === 'an error event') events.push(errorEvent(format, 'it broke'));
    if (cut === 'an overload') {
      const body =
        format === 'chat'
          ? { error: { code: 529, message: 'overloaded' } }
          : { type: 'error', error: { type: 'overloaded_error', message: 'Overloaded' } };
      events.push(`${format === 'chat' ? '' : 'event: error\n'}data: ${JSON.stringify(body)}\n\n`);
    }
    for (const helper of [false, true]) {
      gateway.upstream.script(format, [streamOf(events, { end: cut === 'a reset' ? 'reset' : 'close' })]);
      let text = '';
      await assert.rejects(
        async () => {
          if (helper) await anthropic.messages.stream(request(format)).finalMessage();
          const stream = await anthropic.messages.create({ ...request(format), stream: true });
          for await (const event of stream) {
            if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text;
          }
        },
        (error) =>
          error instanceof Anthropic.APIError &&
          error.type === (cut === 'an overload' ? 'overloaded_error' : 'api_error'),
      );
      if (!helper) assert.ok(text !== '' && 'Half an answer'.startsWith(text), text);
    }
  });
}

for (const streamed of [true, false]) {
  cell(`abort, ${streamed ? 'streamed' : 'whole'}`, async (format) => {
    const events = answerOf(format, true, { text: 'Half an answer' }).chunks!.slice(0, 5) as string[];
    const count = gateway.upstream.requests(format).length + 1;
    gateway.upstream.script(format, [streamed ? streamOf(events, { end: 'stall' }) : { end: 'stall-before-headers' }]);
    const controller = new AbortController();
    const options = { signal: controller.signal };
    if (streamed) {
      const stream = await anthropic.messages.create({ ...request(format), stream: true }, options);
      for await (const event of stream) if (event.type === 'content_block_delta') break;
    } else {
      const pending = anthropic.messages.create(request(format), options);
      await gateway.upstream.request(format, count);
      controller.abort();
      await assert.rejects(pending, Anthropic.APIUserAbortError);
    }
    const asked = await gateway.upstream.request(format, count);
    await until(() => asked.closedEarlyAt !== undefined, 'the upstream call to be closed');
  });
}

cell('usage', async (format) => {
  const usage = USAGE;
  const check = (seen: Json) => {
    assert.deepEqual(
      [seen.input_tokens, seen.cache_read_input_tokens, seen.cache_creation_input_tokens, seen.output_tokens],
      [12, 5, 3, 7],
    );
    assert.equal(seen.output_tokens_details.thinking_tokens, 2);
    assert.ok(Math.abs(seen.cost - USAGE_COST) < 1e-12, `${seen.cost} is not ${USAGE_COST}`);
  };
  script(format, false, { text: 'x', usage });
  const message = await anthropic.messages.create(request(format));
  assertUsage(message.usage);
  check(message.usage);
  script(format, true, { text: 'x', usage });
  check((await readEvents(await anthropic.messages.create({ ...request(format), stream: true }))).usage);
  script(format, true, { text: 'x', usage });
  const final = await anthropic.messages.stream(request(format)).finalMessage();
  assertUsage(final.usage);
  assert.deepEqual([final.usage.input_tokens, final.usage.output_tokens], [12, 7]);
});

cell('withResponse', async (format) => {
  for (const streamed of [false, true]) {
    script(format, streamed, { text: 'x' });
    const {
      data,
      response,
      request_id: requestId,
    } = await anthropic.messages.create({ ...request(format), stream: streamed }).withResponse();
    assert.equal(response.status, 200);
    const id = response.headers.get('x-generation-id');
    assert.match(id ?? '', /^gen-/);
    assert.equal(requestId, response.headers.get('request-id'));
    assert.match(response.headers.get('content-type') ?? '', streamed ? /^text\/event-stream/ : /^application\/json/);
    if ('id' in data) assert.equal(data.id, id);
    else assert.equal((await readEvents(data)).events[0].message.id, id);
  }
});

test('anthropic | the key as x-api-key and as a bearer token', async () => {
  for (const options of [
    { apiKey: INFERENCE_KEY, authToken: null },
    { apiKey: null, authToken: INFERENCE_KEY },
  ]) {
    for (const format of ['chat', 'messages'] as const) {
      const sent = script(format, false, { text: 'x' });
      assertMessage(await clientFor(options).messages.create(request(format)));
      assert.equal(sent().length, 1);
      const { headers } = gateway.upstream.requests(format).at(-1)!;
      assert.ok(!JSON.stringify(headers).includes(INFERENCE_KEY), 'the key of the caller went upstream');
    }
  }
});

test('anthropic | base URLs | the root and /api', async () => {
  for (const root of ['', '/', '/api', '/api/']) {
    script('messages', false, { text: 'x' });
    assertMessage(await clientFor({ baseURL: gateway.url + root }).messages.create(request('messages')));
  }
});

test('anthropic | models.list', async () => {
  const ids: string[] = [];
  for await (const model of anthropic.models.list()) ids.push(model.id);
  const isRouter = (id: string) => id.startsWith('svc/');
  assert.deepEqual(ids.filter((id) => !isRouter(id)).sort(), ['test/chat', 'test/messages']);
  assert.ok(ids.some(isRouter));
});

cell('beta headers', async (format) => {
  for (const streamed of [false, true]) {
    const sent = script(format, streamed, { text: 'x' });
    const body = { ...request(format), betas: ['context-1m-2025-08-07', 'interleaved-thinking-2025-05-14'] };
    if (streamed) assert.equal(await anthropic.beta.messages.stream(body).finalText(), 'x');
    else assert.equal((await anthropic.beta.messages.create(body)).stop_reason, 'end_turn');
    assert.ok(!('betas' in sent()[0]));
    const { headers } = gateway.upstream.requests(format).at(-1)!;
    const shown = format === 'messages' ? 'context-1m-2025-08-07,interleaved-thinking-2025-05-14' : undefined;
    assert.equal(headers['anthropic-beta'], shown);
  }
});

cell('system, stop sequences, metadata', async (format) => {
  const sent = script(format, false, { text: 'x', finish: 'length' });
  const message = await anthropic.messages.create({
    ...request(format),
    max_tokens: 50,
    system: [{ type: 'text', text: 'be short', cache_control: { type: 'ephemeral' } }],
    stop_sequences: ['END'],
    metadata: { user_id: 'alice' },
  });
  assert.equal(message.stop_reason, 'max_tokens');
  assert.ok(!JSON.stringify(sent()[0]).includes('alice'));
  assert.deepEqual(format === 'chat' ? sent()[0].stop : sent()[0].stop_sequences, ['END']);
});

test('anthropic | an answer as bare as a small server gives it still keeps the promises of the types', async () => {
  gateway.upstream.script('messages', [
    wholeOf({
      content: [
        { type: 'text', text: 'bare' },
        { type: 'tool_use', id: 't1', name: 'f', input: {} },
      ],
      stop_reason: 'tool_use',
      usage: { input_tokens: 1, output_tokens: 2 },
    }),
    streamOf([
      'event: message_start\ndata: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":1}}}\n\n',
      'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n',
      'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"bare"}}\n\n',
      'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
      'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}\n\n',
      'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ]),
  ]);
  assertMessage(await anthropic.messages.create(request('messages')));
  const seen = await readEvents(await anthropic.messages.create({ ...request('messages'), stream: true }));
  assert.equal(seen.text, 'bare');
});
