/** Structured output through a whole gateway: native if the upstream supports it, else through a tool, else refused. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { type BodyFormat, readServedStream, readServedWhole } from '../../src/testing/clients/served-answer.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Format, type Told } from '../../src/testing/upstream/answers.ts';

const schemaless = { model: { id: 'test/old', upstream_id: 'claude-3-5-haiku-20241022' } };
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: { kind: 'chat' },
      messages: { kind: 'messages' },
      old: { kind: 'messages', ...schemaless },
      gemini: { kind: 'gemini' },
      cohere: { kind: 'cohere' },
      openai: { kind: 'openai' },
      vllm: { kind: 'vllm' },
      llamacpp: { kind: 'llamacpp' },
      fireworks: { kind: 'fireworks' },
      deepseek: { kind: 'deepseek' },
      toolsonly: { kind: 'chat', model: { supported_parameters: ['tools'] } },
      neither: { kind: 'chat', model: { supported_parameters: ['seed'] } },
    },
  },
);

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const JSON_OBJECT = { type: 'json_object' };
const JSON_SCHEMA = { type: 'json_schema', json_schema: { name: 'place', schema: SCHEMA, strict: true } };
const GET_TIME = { type: 'function', function: { name: 'get_time', parameters: { type: 'object', properties: {} } } };
const ANSWER = '{"city":"Zürich","n":9007199254740993}';
const USAGE = { input: 12, output: 7 };

const body = (provider: string, response_format: Json, more: Json = {}): Json => ({
  model: `test/${provider}`,
  messages: [{ role: 'user', content: 'Where?' }],
  response_format,
  ...more,
});

async function ask(provider: string, spoken: Format, told: Told, asked: Json, served: BodyFormat = 'chat') {
  gateway.upstream.script(provider, answerOf(spoken, asked.stream === true, { usage: USAGE, ...told }));
  const routes = { chat: '/chat/completions', messages: '/messages', responses: '/responses' };
  const reply = await gateway.post(routes[served], asked);
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  const read = asked.stream ? readServedStream(served, text, 'finish') : readServedWhole(served, text);
  const sent: Json = gateway.upstream.requests(provider).at(-1)!.json;
  return { ...read.choices[0]!, usage: read.usage!, sent };
}

const called = (args: string, name = 'answer'): Told => ({ calls: [{ id: 'call_1', name, arguments: args }] });

for (const stream of [false, true]) {
  const how = stream ? 'streamed' : 'whole';

  test(`an answer in JSON of a vendor without a mode for it is the argument of a tool | ${how}`, async () => {
    const answer = await ask(
      'messages',
      'messages',
      called('{"city":"Zürich"}'),
      body('messages', JSON_OBJECT, { stream }),
    );
    assert.deepEqual(answer.sent.tool_choice, { type: 'any', disable_parallel_tool_use: true });
    assert.deepEqual(
      answer.sent.tools.map((tool: Json) => [tool.name, tool.input_schema.type]),
      [['answer', 'object']],
    );
    assert.deepEqual(JSON.parse(answer.text), { city: 'Zürich' });
    assert.deepEqual([answer.calls, answer.finish], [[], 'stop']);
    assert.deepEqual([answer.usage.input, answer.usage.output], [12, 7]);
  });

  test(`a schema goes to an old model as a tool with that schema, and to a new one as its format | ${how}`, async () => {
    const answer = await ask('old', 'messages', called('{"city":"x"}', 'place'), body('old', JSON_SCHEMA, { stream }));
    const [tool] = answer.sent.tools;
    // The old model cannot be held to a schema.
    assert.deepEqual([tool.name, tool.input_schema, tool.strict], ['place', SCHEMA, undefined]);
    assert.equal('output_config' in answer.sent, false);
    assert.equal(answer.text, '{"city":"x"}');
    const native = await ask(
      'messages',
      'messages',
      { text: '{"city":"x"}' },
      body('messages', JSON_SCHEMA, { stream }),
    );
    assert.deepEqual(native.sent.output_config.format, {
      type: 'json_schema',
      schema: { ...SCHEMA, additionalProperties: false },
    });
    assert.equal('tools' in native.sent, false);
  });

  test(`no digit is lost, and text next to the answer does not spoil it | ${how}`, async () => {
    const told = { text: 'Here you are:', ...called(ANSWER) };
    const answer = await ask('toolsonly', 'chat', told, body('toolsonly', JSON_OBJECT, { stream }));
    assert.equal(answer.text, ANSWER);
    assert.equal(answer.finish, 'stop');
    assert.equal('response_format' in answer.sent, false);
  });

  test(`a schema that is no object's is wrapped for the tool and unwrapped for the client | ${how}`, async () => {
    const schema = { type: 'array', items: { type: 'integer' } };
    const format = { type: 'json_schema', json_schema: { name: 'numbers', schema } };
    const told = called('{ "answer": [1, 9007199254740993] }', 'numbers');
    const answer = await ask('toolsonly', 'chat', told, body('toolsonly', format, { stream }));
    assert.deepEqual(answer.sent.tools[0].function.parameters.properties, { answer: schema });
    assert.equal(answer.text, '[1, 9007199254740993]');
  });

  test(`the client's own tools can be called as well | ${how}`, async () => {
    const asked = body('messages', JSON_OBJECT, { stream, tools: [GET_TIME] });
    const call = await ask('messages', 'messages', { text: 'One moment.', ...called('{}', 'get_time') }, asked);
    assert.deepEqual(
      call.sent.tools.map(({ name }: Json) => name),
      ['get_time', 'answer'],
    );
    assert.equal(call.sent.tool_choice.type, 'any');
    assert.deepEqual(
      call.calls.map(({ name }) => name),
      ['get_time'],
    );
    assert.deepEqual([call.text, call.finish], ['One moment.', 'tool_calls']);
    const answer = await ask('messages', 'messages', called('{"city":"x"}'), asked);
    assert.deepEqual([answer.text, answer.calls, answer.finish], ['{"city":"x"}', [], 'stop']);
  });

  test(`a model that thinks gets an instruction instead of a forced tool, and its thinking reaches the client | ${how}`, async () => {
    const asked = body('messages', JSON_OBJECT, { stream, reasoning: { max_tokens: 2000 }, max_tokens: 4000 });
    const told = { thinking: { text: 'Hm.', signature: 'c2ln' }, ...called('{"city":"x"}') };
    const answer = await ask('messages', 'messages', told, asked);
    assert.equal(answer.sent.thinking.type, 'enabled');
    assert.equal(answer.sent.tool_choice.type, 'auto');
    assert.match(JSON.stringify(answer.sent.system), /tool answer/);
    assert.deepEqual([answer.reasoning, answer.text, answer.finish], ['Hm.', '{"city":"x"}', 'stop']);
  });

  test(`a client of the responses format gets the same | ${how}`, async () => {
    const asked = { model: 'test/messages', input: 'Where?', stream, text: { format: JSON_OBJECT } };
    const answer = await ask('messages', 'messages', called('{"city":"x"}'), asked, 'responses');
    assert.deepEqual([answer.text, answer.calls], ['{"city":"x"}', []]);
  });
}

test('an answer without any argument is an empty object', async () => {
  assert.equal(
    (await ask('messages', 'messages', called(''), body('messages', JSON_OBJECT, { stream: true }))).text,
    '{}',
  );
});

test('a call that must be made leaves no room for a format of the answer', async () => {
  const asked = body('messages', JSON_OBJECT, { tools: [GET_TIME], tool_choice: 'required' });
  const { sent, calls } = await ask('messages', 'messages', called('{}', 'get_time'), asked);
  assert.deepEqual(
    sent.tools.map(({ name }: Json) => name),
    ['get_time'],
  );
  assert.equal(calls.length, 1);
});

/** What goes upstream of a request whose answer does not matter. */
async function sentTo(provider: string, asked: Json): Promise<Json> {
  gateway.upstream.script(provider, { status: 400, chunks: ['{}'] });
  const before = gateway.upstream.requests(provider).length;
  const reply = await gateway.post('/chat/completions', asked);
  const request = gateway.upstream.requests(provider).slice(before)[0];
  return request?.json ?? { refused: ((await reply.json()) as Json).error };
}

test('vendors without structured output next to tools get an answer tool', async () => {
  const asked = { tools: [GET_TIME] };
  const cohere = await sentTo('cohere', body('cohere', JSON_SCHEMA, asked));
  assert.deepEqual(
    cohere.tools.map((tool: Json) => tool.function.name),
    ['get_time', 'place'],
  );
  assert.deepEqual([cohere.tool_choice, cohere.response_format], ['REQUIRED', undefined]);
  const gemini = await sentTo('gemini', body('gemini', JSON_SCHEMA, asked));
  assert.deepEqual(
    gemini.tools[0].functionDeclarations.map(({ name }: Json) => name),
    ['get_time', 'place'],
  );
  assert.equal(gemini.toolConfig.functionCallingConfig.mode, 'ANY');
  assert.equal(gemini.generationConfig?.responseMimeType, undefined);
  // Without tools both have their own.
  assert.equal((await sentTo('cohere', body('cohere', JSON_SCHEMA))).response_format.type, 'json_object');
  assert.equal(
    (await sentTo('gemini', body('gemini', JSON_OBJECT))).generationConfig.responseMimeType,
    'application/json',
  );
});

test('a grammar is sent in each supporting server’s own field, and to no other server', async () => {
  const grammar = 'root ::= "yes" | "no"';
  const format = { type: 'grammar', grammar };
  const vllm = await sentTo('vllm', body('vllm', format));
  assert.deepEqual([vllm.structured_outputs, vllm.response_format], [{ grammar }, undefined]);
  const llamacpp = await sentTo('llamacpp', body('llamacpp', format));
  assert.deepEqual([llamacpp.grammar, llamacpp.response_format], [grammar, undefined]);
  for (const provider of ['fireworks', 'chat'])
    assert.deepEqual((await sentTo(provider, body(provider, format))).response_format, format);
  for (const provider of ['openai', 'messages', 'gemini', 'cohere', 'deepseek']) {
    assert.equal((await sentTo(provider, body(provider, format))).refused?.code, 400, provider);
  }
});

test('python is sent only to servers that may support it', async () => {
  const format = { type: 'python' };
  assert.deepEqual((await sentTo('chat', body('chat', format))).response_format, format);
  for (const provider of ['openai', 'vllm', 'fireworks', 'messages', 'gemini', 'cohere']) {
    assert.equal((await sentTo(provider, body(provider, format))).refused?.code, 400, provider);
  }
});

test('a model that takes neither formats nor tools is no candidate', async () => {
  const { refused } = await sentTo('neither', body('neither', JSON_OBJECT));
  assert.deepEqual([refused.code, JSON.stringify(refused).includes('response_format')], [404, true]);
});

test('two functions of one name are not sent where vendors refuse them', async () => {
  const twice = { tools: [GET_TIME, GET_TIME] };
  await ask('openai', 'chat', { text: 'hi' }, body('openai', undefined, twice));
  for (const provider of ['messages', 'gemini']) {
    const before = gateway.upstream.requests(provider).length;
    const reply = await gateway.post('/chat/completions', body(provider, undefined, twice));
    assert.equal(reply.status, 400);
    assert.match(await reply.text(), /tools: two functions have the name get_time/);
    assert.equal(gateway.upstream.requests(provider).length, before);
  }
});
