/** `debug: {echo_upstream_body: true}` of a chat stream: the bodies sent upstream, and timings. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import type { ChatStreamChunk } from '@openrouter/sdk/models';
import OpenAI from 'openai';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import { chatFailure, chatStream, chatWhole, shownText } from '../../src/testing/upstream/chat-upstream.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { one: {}, two: {}, native: { kind: 'messages' } } },
);
const { upstream } = gateway;

const BODY = { messages: [{ role: 'user', content: 'Grüße' }], debug: { echo_upstream_body: true } };

interface Chunk {
  id: string;
  model: string;
  provider: string;
  choices: unknown[];
  debug?: {
    echo_upstream_body?: Record<string, unknown>;
    timings?: { event: string; start_ms: number; epoch_ms: number };
  };
}

async function stream(body: object | string): Promise<{ text: string; chunks: Chunk[] }> {
  const response = await gateway.post('/chat/completions', body);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const lines = text.split('\n\n').filter((line) => line.startsWith('data: {'));
  return { text, chunks: lines.map((line) => JSON.parse(line.slice(6))) };
}

const debugOf = (chunks: Chunk[]) => chunks.flatMap(({ debug }) => debug ?? []);
const eventsOf = (chunks: Chunk[]) => debugOf(chunks).flatMap(({ timings }) => timings?.event ?? []);

test('the first chunk of a stream echoes the body as the upstream got it, and timings show its stages', async () => {
  upstream.script('one', [chatStream('hello')]);
  const before = gateway.clock.now();
  const { text, chunks } = await stream({ ...BODY, model: 'test/one', stream: true });
  const [first] = chunks;
  assert.deepEqual(first?.choices, []);
  assert.equal(first?.model, 'test/one');
  assert.equal(first?.provider, 'Provider one');
  assert.equal(first?.id, chunks.at(-1)?.id);
  assert.deepEqual(first?.debug?.echo_upstream_body, upstream.requests('one').at(-1)?.json);
  assert.deepEqual(eventsOf(chunks), [
    'adapter_request',
    'upstream_headers_received',
    'first_token_received',
    'upstream_body_ended',
  ]);
  let last = 0;
  for (const { timings } of debugOf(chunks)) {
    assert.ok(timings!.start_ms >= last && timings!.epoch_ms >= before, JSON.stringify(timings));
    assert.ok(Number.isInteger(timings!.start_ms) && Number.isInteger(timings!.epoch_ms));
    last = timings!.start_ms;
  }
  assert.equal(shownText(text), 'hello');
});

test('the echo of a translated request is in the format of the upstream', async () => {
  upstream.script('native', [
    {
      headers: { 'content-type': 'text/event-stream' },
      chunks: [
        `event: message_start\ndata: ${JSON.stringify({ type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'x', content: [], usage: { input_tokens: 3, output_tokens: 1 } } })}\n\n`,
        `event: content_block_start\ndata: ${JSON.stringify({ type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } })}\n\n`,
        `event: content_block_delta\ndata: ${JSON.stringify({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } })}\n\n`,
        `event: content_block_stop\ndata: ${JSON.stringify({ type: 'content_block_stop', index: 0 })}\n\n`,
        `event: message_delta\ndata: ${JSON.stringify({ type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } })}\n\n`,
        'event: message_stop\ndata: {"type":"message_stop"}\n\n',
      ],
    },
  ]);
  const { chunks } = await stream({ ...BODY, model: 'test/native', stream: true });
  assert.deepEqual(chunks[0]?.debug?.echo_upstream_body, upstream.requests('native').at(-1)?.json);
  assert.equal(chunks[0]?.debug?.echo_upstream_body?.['model'], 'upstream-native');
});

test('every attempted provider is echoed before anything of the answer', async () => {
  upstream.script('one', [chatFailure(500)]);
  upstream.script('two', [chatStream('from two')]);
  const { chunks } = await stream({ ...BODY, model: 'test/one', models: ['test/two'], stream: true });
  const echoes = debugOf(chunks).flatMap(({ echo_upstream_body }) => (echo_upstream_body ? [echo_upstream_body] : []));
  assert.deepEqual(
    echoes.map((echo) => echo['model']),
    ['upstream-one', 'upstream-two'],
  );
  const firstContent = chunks.findIndex(({ choices }) => choices.length > 0);
  const lastEcho = chunks.findLastIndex(({ debug }) => debug?.echo_upstream_body !== undefined);
  assert.ok(lastEcho < firstContent);
});

test('a stream that fails everywhere is a plain error with its status, debug or not', async () => {
  upstream.script('one', [chatFailure(500)]);
  const response = await gateway.post('/chat/completions', { ...BODY, model: 'test/one', stream: true });
  assert.equal(response.status, 502);
  assert.ok(!(await response.text()).includes('echo_upstream_body'));
});

test('without streaming, and where it is off, nothing is echoed', async () => {
  upstream.script('one', [chatWhole('hello')]);
  const whole = await gateway.post('/chat/completions', { ...BODY, model: 'test/one' });
  const reply = (await whole.json()) as Record<string, unknown>;
  assert.equal(whole.status, 200, JSON.stringify(reply));
  assert.equal(reply['debug'], undefined);
  upstream.script('one', [chatStream('hello')]);
  const off = { ...BODY, debug: { echo_upstream_body: false }, model: 'test/one', stream: true };
  assert.deepEqual(debugOf((await stream(off)).chunks), []);
});

test('a body with line breaks and long numbers is echoed as it was sent, on one line', async () => {
  upstream.script('one', [chatStream('hello')]);
  const spread = `{\n"model": "test/one",\r\n"stream": true,\n"seed": 9007199254740993,\n
    "debug": {"echo_upstream_body": true},\n"messages": [{"role": "user", "content": "a\\nb"}]\n}`;
  const { text } = await stream(spread);
  assert.match(
    text.split('\n\n')[0]!,
    /^data: \{[^\n\r]*"seed": 9007199254740993,[^\n\r]*"content": "a\\nb"[^\n\r]*\}$/,
  );
});

test('no credential is in an echo, not even one that the client wrote into its prompt', async () => {
  upstream.script('one', [chatStream('hello')]);
  const content = `is ${UPSTREAM_KEY} a good key?`;
  const { text } = await stream({ ...BODY, model: 'test/one', stream: true, messages: [{ role: 'user', content }] });
  for (const secret of [UPSTREAM_KEY, INFERENCE_KEY, MANAGEMENT_KEY]) assert.ok(!text.includes(secret));
  assert.match(text, /is \[redacted\] a good key/);
});

test('a body over a megabyte is echoed as its size only', async () => {
  upstream.script('one', [chatStream('hello')]);
  const messages = [{ role: 'user', content: 'x'.repeat(1024 * 1024) }];
  const { chunks } = await stream({ ...BODY, model: 'test/one', stream: true, messages });
  assert.match(String(chunks[0]?.debug?.echo_upstream_body?.['omitted']), /has 10\d{5} bytes/);
});

test('@openrouter/sdk and openai read a stream with debug chunks', async () => {
  upstream.script('one', [{ ...chatStream('hello'), repeat: true }]);
  const client = new OpenRouter({ serverURL: gateway.api, apiKey: INFERENCE_KEY, retryConfig: { strategy: 'none' } });
  const chatRequest = { model: 'test/one', messages: BODY.messages as never, debug: { echoUpstreamBody: true } };
  const stream = await client.chat.send({ chatRequest: { ...chatRequest, stream: true } });
  let text = '';
  for await (const chunk of stream as AsyncIterable<ChatStreamChunk>) text += chunk.choices[0]?.delta.content ?? '';
  assert.equal(text, 'hello');
  const openai = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const seen = await openai.chat.completions
    .stream({ model: 'test/one', messages: [{ role: 'user', content: 'hi' }], ...{ debug: BODY.debug } })
    .finalContent();
  assert.equal(seen, 'hello');
});

test('a request that wants to see its way is not answered from the response cache', async () => {
  upstream.script('one', [{ ...chatStream('hello'), repeat: true }]);
  for (let count = 0; count < 2; count += 1) {
    const body = { ...BODY, model: 'test/one', stream: true };
    const response = await gateway.post('/chat/completions', body, { 'x-svc-cache': 'true' });
    assert.match(await response.text(), /upstream_headers_received/);
    assert.equal(response.headers.get('x-svc-cache-status'), null);
  }
});
