/** Faults in front of Bedrock that users of other gateways met, each asked of a whole gateway in the converse format. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ask, type FORMATS, readWhole, rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { converse: { kind: 'converse' } } },
);

const USAGE = { inputTokens: 9, outputTokens: 1, totalTokens: 10 };
const TOOL = { type: 'function', function: { name: 'c', parameters: { type: 'object', properties: {} } } };
const CALL = (id: string) => ({ id, type: 'function', function: { name: 'c', arguments: '{}' } });

const answer = (content: unknown[], stopReason = 'end_turn', usage: Json = USAGE) =>
  wholeOf({ output: { message: { role: 'assistant', content } }, stopReason, usage });

async function sent(served: (typeof FORMATS)[number], body: object): Promise<Json> {
  gateway.upstream.script('converse', answer([{ text: 'ok' }]));
  const { status, text } = await ask(gateway, served, 'test/converse', { ...body });
  assert.equal(status, 200, text);
  return gateway.upstream.requests('converse').at(-1)!.json;
}

test('30 | results of parallel calls and the text after them are one user turn', async () => {
  const { messages } = await sent('chat', {
    messages: [
      { role: 'user', content: '2 calcs' },
      { role: 'assistant', content: '', tool_calls: [CALL('t1'), CALL('t2')] },
      { role: 'tool', tool_call_id: 't1', content: '1' },
      { role: 'tool', tool_call_id: 't2', content: '2' },
      { role: 'user', content: 'and now?' },
    ],
    tools: [TOOL],
  });
  assert.deepEqual(messages, [
    { role: 'user', content: [{ text: '2 calcs' }] },
    {
      role: 'assistant',
      content: ['t1', 't2'].map((toolUseId) => ({ toolUse: { toolUseId, name: 'c', input: {} } })),
    },
    {
      role: 'user',
      content: [
        { toolResult: { toolUseId: 't1', content: [{ text: '1' }] } },
        { toolResult: { toolUseId: 't2', content: [{ text: '2' }] } },
        { text: 'and now?' },
      ],
    },
  ]);
});

test('38, 39 | consecutive messages of one role are merged, and empty texts are dropped', async () => {
  const { system, messages } = await sent('chat', {
    messages: [
      { role: 'system', content: '' },
      { role: 'user', content: 'a' },
      { role: 'user', content: [{ type: 'text', text: 'b' }] },
      { role: 'assistant', content: 'c' },
      { role: 'assistant', content: 'd' },
      {
        role: 'user',
        content: [
          { type: 'text', text: '' },
          { type: 'text', text: 'e' },
        ],
      },
    ],
  });
  assert.equal(system, undefined);
  assert.deepEqual(messages, [
    { role: 'user', content: [{ text: 'a' }, { text: 'b' }] },
    { role: 'assistant', content: [{ text: 'c' }, { text: 'd' }] },
    { role: 'user', content: [{ text: 'e' }] },
  ]);
});

test('28 | ids of other vendors are mapped to valid, distinct, matching and stable ids', async () => {
  const ids = ['functions.c:0', 'functions.c.0', 'c'.repeat(300)];
  const turn = () =>
    sent('chat', {
      messages: [
        { role: 'user', content: 'run' },
        { role: 'assistant', content: null, tool_calls: ids.map(CALL) },
        ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'r' })),
      ],
      tools: [TOOL],
    });
  const { messages } = await turn();
  const calls: string[] = messages[1].content.map((block: Json) => block.toolUse.toolUseId);
  assert.equal(new Set(calls).size, 3);
  for (const id of calls) assert.match(id, /^[a-zA-Z0-9_-]{1,64}$/);
  assert.deepEqual(
    messages[2].content.map((block: Json) => block.toolResult.toolUseId),
    calls,
  );
  assert.deepEqual((await turn()).messages, messages);
});

test('44 | a cache point follows each marked block', async () => {
  const mark = { cache_control: { type: 'ephemeral' } };
  const { system, messages, toolConfig } = await sent('chat', {
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'big', ...mark }] },
      { role: 'user', content: [{ type: 'text', text: 'x', ...mark }] },
    ],
    tools: [{ ...TOOL, ...mark }],
  });
  const point = { cachePoint: { type: 'default' } };
  assert.deepEqual(system, [{ text: 'big' }, point]);
  assert.deepEqual(messages[0].content, [{ text: 'x' }, point]);
  assert.deepEqual(toolConfig.tools[1], point);
});

test('27, 34 | digits of a call stay as they are, and finish tool_calls without any call becomes stop', async () => {
  const input = '{"id":7203685477580700123}';
  const text = JSON.stringify({ toolUse: { toolUseId: 't1', name: 'c', input: 0 } }).replace(
    '"input":0',
    `"input":${input}`,
  );
  const reply = answer([], 'tool_use');
  const raw = { ...reply, chunks: [String(reply.chunks![0]).replace('"content":[]', `"content":[${text}]`)] };
  gateway.upstream.script('converse', [raw, answer([{ text: 'none' }], 'tool_use')]);
  const request = { messages: [{ role: 'user', content: 'x' }], tools: [TOOL] };
  const called = await ask(gateway, 'chat', 'test/converse', { ...request });
  assert.equal(called.json.choices[0].message.tool_calls[0].function.arguments, input);
  const { json } = await ask(gateway, 'chat', 'test/converse', { ...request });
  assert.equal(json.choices[0].finish_reason, 'stop');
  assert.equal(json.choices[0].native_finish_reason, 'tool_use');
});

test('52 | cache reads and writes count as input once, each at its own price', async () => {
  const usage = {
    inputTokens: 4,
    cacheReadInputTokens: 100,
    cacheWriteInputTokens: 10_000,
    outputTokens: 500,
    totalTokens: 10_604,
  };
  gateway.upstream.script('converse', answer([{ text: 'ok' }], 'end_turn', usage));
  const { json, headers, text } = await ask(gateway, 'chat', 'test/converse', {});
  assert.equal(readWhole('chat', text).text, 'ok');
  assert.equal(json.usage.prompt_tokens, 10_104);
  assert.equal(json.usage.prompt_tokens_details.cached_tokens, 100);
  assert.equal(json.usage.prompt_tokens_details.cache_write_tokens, 10_000);
  const cost = 0.045042;
  assert.equal(json.usage.cost, cost);
  assert.equal((await rowOf(gateway, headers.get('x-generation-id')!)).total_cost, cost);
});

test('71 | a redirect costs nothing', async () => {
  gateway.upstream.script('converse', { status: 302, headers: { location: 'https://other.example/x' }, chunks: [] });
  const { status, headers } = await ask(gateway, 'chat', 'test/converse', {});
  assert.equal(status, 502);
  assert.equal((await rowOf(gateway, headers.get('x-generation-id')!)).total_cost, 0);
});
