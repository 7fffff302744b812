/**
 * What the vendor's own models refuse, with the whole request, and clients of other formats send all the same. Met by users of
 * other gateways: BerriAI/litellm#15097, #20813, #33981, #35808, open-webui/open-webui#17922, anomalyco/opencode#31259 and
 * #1295, openclaw/openclaw#69460, ericc-ch/copilot-api#261, windoze95/cantinarr#497.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { ask } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, wholeOf } from '../../src/testing/upstream/answers.ts';

const model = (upstream_id: string) => ({ kind: 'anthropic', model: { upstream_id } });
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      haiku3: model('claude-3-5-haiku-20241022'),
      sonnet: model('claude-sonnet-4-5'),
      sonnet46: model('claude-sonnet-4-6'),
      opus: model('claude-opus-4-7'),
      fable: model('claude-fable-5'),
      bedrock: { kind: 'converse', model: { upstream_id: 'anthropic.claude-opus-4-7-v1:0' } },
      bedrock45: { kind: 'converse', model: { upstream_id: 'anthropic.claude-sonnet-4-5-20250929-v1:0' } },
    },
  },
);

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const told = { text: '{}' };
const CONVERSE = wholeOf({
  output: { message: { role: 'assistant', content: [told] } },
  stopReason: 'end_turn',
  usage: { inputTokens: 9, outputTokens: 1, totalTokens: 10 },
});
const USER = { role: 'user', content: 'x' };

/** What the upstream got for a request that must succeed. */
async function sent(provider: string, body: object, served: 'chat' | 'messages' = 'chat'): Promise<Json> {
  gateway.upstream.script(provider, provider.startsWith('bedrock') ? CONVERSE : answerOf('messages', false, told));
  const { status, text } = await ask(gateway, served, `test/${provider}`, { ...body });
  assert.equal(status, 200, text);
  return gateway.upstream.requests(provider).at(-1)!.json;
}

test('a model that chooses its own thinking gets an effort, never a budget, and shows what it thinks', async () => {
  for (const [reasoning, thinking, effort] of [
    [{ effort: 'high' }, { type: 'adaptive', display: 'summarized' }, 'high'],
    [{ effort: 'xhigh' }, { type: 'adaptive', display: 'summarized' }, 'xhigh'],
    [{ max_tokens: 3000 }, { type: 'adaptive', display: 'summarized' }, 'medium'],
    [{ enabled: true }, { type: 'adaptive', display: 'summarized' }, 'medium'],
    [{ effort: 'low', exclude: true }, { type: 'adaptive', display: 'omitted' }, 'low'],
    [{ effort: 'none' }, { type: 'disabled' }, undefined],
  ] as const) {
    const body = { reasoning, max_tokens: 6000 };
    const opus = await sent('opus', body);
    assert.deepEqual([opus.thinking, opus.output_config?.effort], [thinking, effort], JSON.stringify(reasoning));
    const cloud = (await sent('bedrock', body)).additionalModelRequestFields;
    assert.deepEqual([cloud.thinking, cloud.output_config?.effort], [thinking, effort], JSON.stringify(reasoning));
  }
  const older = await sent('sonnet', { reasoning: { effort: 'high' }, max_tokens: 6000 });
  assert.deepEqual(older.thinking, { type: 'enabled', budget_tokens: 4800 });
});

test('a model that always thinks is asked for little where none is wanted, and one that knows budgets only gets one', async () => {
  const fable = await sent('fable', { reasoning: { effort: 'none' } });
  assert.deepEqual(
    [fable.thinking, fable.output_config],
    [{ type: 'adaptive', display: 'omitted' }, { effort: 'low' }],
  );
  // A client of the messages format that leaves it to the model, and an endpoint that is asked in another one.
  for (const [effort, budget] of [
    [undefined, 3000],
    ['high', 4800],
  ] as const) {
    const adaptive = { thinking: { type: 'adaptive' }, ...(effort && { output_config: { effort } }) };
    const cloud = await sent('bedrock45', { ...adaptive, max_tokens: 6000 }, 'messages');
    assert.deepEqual(cloud.additionalModelRequestFields.thinking, { type: 'enabled', budget_tokens: budget });
    assert.equal(cloud.additionalModelRequestFields.output_config, undefined);
  }
});

test('sampling parameters follow what the model accepts: both, one of them, or neither', async () => {
  const body = { temperature: 0.2, top_p: 0.5, top_k: 7 };
  const sampling = ({ temperature, top_p, top_k }: Json) => ({ temperature, top_p, top_k });
  assert.deepEqual(sampling(await sent('haiku3', body)), body);
  assert.deepEqual(sampling(await sent('sonnet', body)), { ...body, top_p: undefined });
  assert.deepEqual(sampling(await sent('sonnet', { top_p: 0.5 })), {
    temperature: undefined,
    top_p: 0.5,
    top_k: undefined,
  });
  assert.deepEqual(sampling(await sent('opus', body)), { temperature: undefined, top_p: undefined, top_k: undefined });
  const { inferenceConfig, additionalModelRequestFields } = await sent('bedrock45', body);
  assert.deepEqual([inferenceConfig.temperature, inferenceConfig.topP], [0.2, undefined]);
  assert.deepEqual(additionalModelRequestFields, { top_k: 7 });
  const cloud = await sent('bedrock', body);
  assert.deepEqual([cloud.inferenceConfig?.temperature, cloud.inferenceConfig?.topP], [undefined, undefined]);
  assert.equal(cloud.additionalModelRequestFields, undefined);
});

test('texts of white space only leave no block, at any position', async () => {
  const call = { id: 't1', type: 'function', function: { name: 'f', arguments: '{}' } };
  const body = await sent('sonnet', {
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }],
    messages: [
      { role: 'system', content: ' \n' },
      { role: 'user', content: [' ', 'x'].map((text) => ({ type: 'text', text })) },
      { role: 'assistant', content: '\n\n', tool_calls: [call] },
      { role: 'tool', tool_call_id: 't1', content: ' ' },
    ],
  });
  assert.equal(body.system, undefined);
  assert.deepEqual(body.messages, [
    { role: 'user', content: [{ type: 'text', text: 'x' }] },
    { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'f', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1' }] },
  ]);
});

test('a prefilled answer ends without white space and continues without thinking, if the model accepts prefill at all', async () => {
  const messages = [USER, { role: 'assistant', content: 'Sure: \n' }];
  const body = await sent('sonnet', { messages, reasoning: { effort: 'high' } });
  assert.deepEqual(body.messages.at(-1), { role: 'assistant', content: [{ type: 'text', text: 'Sure:' }] });
  assert.equal(body.thinking, undefined);
  const cloud = await sent('bedrock45', { messages, reasoning: { effort: 'high' } });
  assert.deepEqual(cloud.messages.at(-1), { role: 'assistant', content: [{ text: 'Sure:' }] });
  assert.equal(cloud.additionalModelRequestFields, undefined);
  for (const provider of ['sonnet46', 'opus', 'bedrock']) {
    const { status, json } = await ask(gateway, 'chat', `test/${provider}`, { messages });
    assert.equal(status, 400);
    assert.match(json.error.message, /messages: this model cannot continue an assistant message/);
  }
  // Another model of the list may accept prefill.
  gateway.upstream.script('sonnet', answerOf('messages', false, { text: 'yes' }));
  const { json } = await ask(gateway, 'chat', 'test/opus', { messages, models: ['test/sonnet'] });
  assert.equal(json.model, 'test/sonnet');
});

test('a model is held to the part of a schema that it can be held to, and gives the answer by a tool where it cannot', async () => {
  const asked = (schema: object, strict = true) => ({
    response_format: { type: 'json_schema', json_schema: { name: 'a', strict, schema } },
  });
  const limited = { type: 'object', properties: { n: { type: 'integer', minimum: 1 } }, required: ['n'] };
  const held = {
    type: 'object',
    properties: { n: { type: 'integer', description: '{minimum: 1}' } },
    required: ['n'],
    additionalProperties: false,
  };
  const body = await sent('sonnet', asked(limited));
  assert.deepEqual(body.output_config.format, { type: 'json_schema', schema: held });
  const cloud = await sent('bedrock45', asked(limited));
  assert.deepEqual(JSON.parse(cloud.outputConfig.textFormat.structure.jsonSchema.schema), held);
  const map = { type: 'object', additionalProperties: { type: 'number' } };
  const byTool = await sent('sonnet', asked(map));
  assert.equal(byTool.output_config, undefined);
  assert.deepEqual(
    byTool.tools.map(({ name, input_schema, strict }: Json) => ({ name, input_schema, strict })),
    [{ name: 'a', input_schema: map, strict: undefined }],
  );
});

test('a strict tool is strict where its schema can be kept, and a plain one elsewhere', async () => {
  const tool = (name: string, parameters?: object) => ({
    type: 'function',
    function: { name, strict: true, ...(parameters && { parameters }) },
  });
  const limited = { type: 'object', properties: { n: { type: 'integer', maximum: 5 } }, additionalProperties: false };
  const map = { type: 'object', additionalProperties: { type: 'string' } };
  const tools = [tool('limited', limited), tool('map', map), tool('none')];
  const closed = (properties: object) => ({ type: 'object', properties, additionalProperties: false });
  const { tools: native } = await sent('sonnet', { tools });
  assert.deepEqual(native, [
    {
      name: 'limited',
      input_schema: closed({ n: { type: 'integer', description: '{maximum: 5}' } }),
      strict: true,
    },
    { name: 'map', input_schema: map },
    { name: 'none', input_schema: closed({}), strict: true },
  ]);
  const cloud = await sent('bedrock45', { tools });
  assert.deepEqual(
    cloud.toolConfig.tools.map(({ toolSpec }: Json) => [toolSpec.name, toolSpec.strict, toolSpec.inputSchema.json]),
    native.map(({ name, strict, input_schema }: Json) => [name, strict, input_schema]),
  );
  const older = await sent('haiku3', { tools: [tool('limited', limited)] });
  assert.deepEqual(older.tools, [{ name: 'limited', input_schema: limited }]);
});

test('a tool schema with alternatives at its top level is sent as one object', async () => {
  const alternatives = [{ properties: { a: { type: 'string' } } }, { properties: { b: { type: 'number' } } }];
  const tools = [
    { type: 'function', function: { name: 'f', parameters: { type: 'object', anyOf: alternatives } } },
    { type: 'function', function: { name: 'g', parameters: { oneOf: alternatives }, strict: true } },
  ];
  const properties = { a: { type: 'string' }, b: { type: 'number' } };
  const native = await sent('sonnet', { tools });
  assert.deepEqual(native.tools, [
    { name: 'f', input_schema: { type: 'object', properties } },
    { name: 'g', input_schema: { type: 'object', properties, additionalProperties: false }, strict: true },
  ]);
  const cloud = await sent('bedrock45', { tools });
  assert.deepEqual(
    cloud.toolConfig.tools.map(({ toolSpec }: Json) => toolSpec.inputSchema.json),
    native.tools.map((tool: Json) => tool.input_schema),
  );
});

test('the name of a tool that an earlier model made up is one that the service takes', async () => {
  const call = { id: 'c1', type: 'function', function: { name: 'default_api.get/time', arguments: '{}' } };
  const messages = [
    USER,
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c1', content: 'noon' },
  ];
  const native = await sent('sonnet', { messages });
  assert.equal(native.messages[1].content[0].name, 'default_api_get_time');
  assert.equal(native.tools[0].name, 'default_api_get_time');
  const cloud = await sent('bedrock45', { messages });
  assert.equal(cloud.messages[1].content[0].toolUse.name, 'default_api_get_time');
  assert.equal(cloud.toolConfig.tools[0].toolSpec.name, 'default_api_get_time');
});
