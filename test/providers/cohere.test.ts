/** Cohere through a whole gateway and real sockets: its plans, citations, both counts, and how it fails. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { loadConfig } from '../../src/base/config.ts';
import { KINDS, providersFrom } from '../../src/providers/index.ts';
import {
  BODY_FORMATS,
  type BodyFormat,
  readServedStream,
  readServedWhole,
} from '../../src/testing/clients/served-answer.ts';
import { startGateway, UPSTREAM_KEY } from '../../src/testing/gateway/gateway.ts';
import { streamOf, wholeOf } from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { cohere: { kind: 'cohere', model: { upstream_id: 'command-a-03-2025' } }, spare: {} } },
);

const PATHS = { chat: '/chat/completions', messages: '/messages', responses: '/responses' };
const FUNCTION = { name: 'dice', parameters: { type: 'object', properties: {} } };
const TOOLS: Record<string, Json> = {
  chat: [{ type: 'function', function: FUNCTION }],
  messages: [{ name: 'dice', input_schema: FUNCTION.parameters }],
  responses: [{ type: 'function', ...FUNCTION }],
};
const PLAN = 'I will roll the dice.';
const CALL = {
  id: 'dice_1',
  type: 'function',
  function: { name: 'dice', arguments: '{"sides": 12345678901234567890}' },
};
const USAGE = {
  billed_units: { input_tokens: 57, output_tokens: 20 },
  tokens: { input_tokens: 1490, output_tokens: 94 },
  cached_tokens: 112,
};
const REPLY = {
  id: 'c1',
  message: { role: 'assistant', tool_plan: PLAN, tool_calls: [CALL] },
  finish_reason: 'TOOL_CALL',
  usage: USAGE,
};

const data = (type: string, delta: Json, more = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...more, delta })}\n\n`;
const { id, function: called } = CALL;
const EVENTS = [
  data(
    'message-start',
    { message: { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] } },
    { id: 'c1' },
  ),
  data('tool-plan-delta', { message: { tool_plan: PLAN.slice(0, 9) } }),
  data('tool-plan-delta', { message: { tool_plan: PLAN.slice(9) } }),
  data(
    'tool-call-start',
    { message: { tool_calls: { id, type: 'function', function: { name: 'dice', arguments: '' } } } },
    { index: 0 },
  ),
  data(
    'tool-call-delta',
    { message: { tool_calls: { function: { arguments: called.arguments.slice(0, 15) } } } },
    { index: 0 },
  ),
  data(
    'tool-call-delta',
    { message: { tool_calls: { function: { arguments: called.arguments.slice(15) } } } },
    { index: 0 },
  ),
  `event: tool-call-end\ndata: {"type":"tool-call-end","index":0}\n\n`,
  data('message-end', { finish_reason: 'TOOL_CALL', usage: USAGE }),
  'data: [DONE]\n\n',
];

async function ask(served: BodyFormat, stream: boolean, more: object = {}) {
  const prompt =
    served === 'responses' ? { input: 'roll' } : { max_tokens: 500, messages: [{ role: 'user', content: 'roll' }] };
  const body = { model: 'test/cohere', stream, ...prompt, ...more };
  const response = await gateway.post(PATHS[served], body);
  return { status: response.status, text: await response.text(), generation: response.headers.get('x-generation-id') };
}

test('plan, call and counts reach every format of client, and the cost is that of the billed units', async () => {
  for (const served of BODY_FORMATS) {
    for (const stream of [false, true]) {
      gateway.upstream.script('cohere', stream ? streamOf(EVENTS) : wholeOf(REPLY));
      const { status, text, generation } = await ask(served, stream, { tools: TOOLS[served] });
      assert.equal(status, 200, text);
      const seen = stream ? readServedStream(served, text, 'finish') : readServedWhole(served, text);
      const [choice] = seen.choices;
      assert.equal(choice!.reasoning, PLAN);
      assert.deepEqual(
        choice!.calls.map(({ id, name }) => [id, name]),
        [['dice_1', 'dice']],
      );
      assert.match(choice!.calls[0]!.arguments, /12345678901234567890/);
      assert.deepEqual(seen.usage, { input: 1490, cacheRead: 112, cacheWrite: 0, output: 94, reasoning: 0 });
      assert.equal(seen.cost, (57 * 3000 + 20 * 15_000) / 1e9);
      const row = (await (await gateway.get(`/generation?id=${generation}`)).json()) as Json;
      assert.equal(row.data.total_cost, seen.cost);
      const request = gateway.upstream.requests('cohere').at(-1)!;
      assert.deepEqual([request.path, request.headers['authorization']], ['/chat', `Bearer ${UPSTREAM_KEY}`]);
      assert.equal((request.json as Json).stream, stream);
    }
  }
});

test('the plan returns to the service with the results, from clients of every format', async () => {
  gateway.upstream.script('cohere', wholeOf(REPLY));
  const chat = JSON.parse((await ask('chat', false, { tools: TOOLS['chat'] })).text).choices[0].message;
  const chatHistory = [{ role: 'user', content: 'roll' }, chat, { role: 'tool', tool_call_id: 'dice_1', content: '6' }];
  await ask('chat', false, { tools: TOOLS['chat'], messages: chatHistory });
  const assistant = { role: 'assistant', tool_plan: PLAN, tool_calls: [CALL] };
  const result = { role: 'tool', tool_call_id: 'dice_1', content: [{ type: 'text', text: '6' }] };
  assert.deepEqual((gateway.upstream.requests('cohere').at(-1)!.json as Json).messages.slice(1), [assistant, result]);
  const { content } = JSON.parse((await ask('messages', false, { tools: TOOLS['messages'] })).text);
  const results = [{ type: 'tool_result', tool_use_id: 'dice_1', content: '6' }];
  const history = [
    { role: 'user', content: 'roll' },
    { role: 'assistant', content },
    { role: 'user', content: results },
  ];
  await ask('messages', false, { tools: TOOLS['messages'], messages: history });
  const [, back, last] = (gateway.upstream.requests('cohere').at(-1)!.json as Json).messages;
  assert.ok(JSON.stringify(back).includes(PLAN));
  assert.deepEqual(last, result);
});

test('a stream that breaks off or ends in an error is an error to the client, never a clean end', async () => {
  const failing = data('message-end', { finish_reason: 'ERROR', error: 'it broke' });
  for (const served of BODY_FORMATS) {
    for (const chunks of [EVENTS.slice(0, 3), EVENTS.slice(0, 6), [...EVENTS.slice(0, 3), failing]]) {
      gateway.upstream.script('cohere', streamOf(chunks));
      const seen = readServedStream(served, (await ask(served, true, { tools: TOOLS[served] })).text, 'finish');
      assert.ok(seen.error !== null);
      assert.equal(seen.choices[0]!.reasoning, PLAN);
    }
  }
});

test('a busy service and a trial key at its end give way to the next model, a wrong request does not', async () => {
  const content = { role: 'assistant', content: 'spare' };
  const spare = {
    id: 's',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message: content, finish_reason: 'stop' }],
  };
  gateway.upstream.script('spare', wholeOf(spare));
  for (const [status, message] of [
    [429, 'You are using a Trial key'],
    [503, 'busy'],
    [401, 'invalid api token'],
  ] as const) {
    gateway.upstream.script('cohere', wholeOf({ id: 'x', message }, { status }));
    const { text } = await ask('chat', false, { models: ['test/spare'] });
    assert.equal(JSON.parse(text).choices[0].message.content, 'spare', message);
    // The cooldown of the endpoint or its credential ends; until then the spare model would go first.
    gateway.clock.jump(3_600_000);
  }
  gateway.upstream.script('cohere', wholeOf({ message: 'invalid request: temperature' }, { status: 400 }));
  assert.equal((await ask('chat', false, { models: ['test/spare'] })).status, 400);
});

test('either variable of the vendor switches the provider on', () => {
  for (const name of ['COHERE_API_KEY', 'CO_API_KEY']) {
    const config = loadConfig({ env: { [name]: 'co-key' }, cwd: '/', kinds: KINDS, readFile: () => '{}' });
    const [provider] = providersFrom(config);
    assert.deepEqual([provider!.id, provider!.credentials], ['cohere', ['co-key']]);
    assert.equal(provider!.baseUrl, 'https://api.cohere.com/v2');
  }
});
