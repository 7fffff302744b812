/** Requests in the converse format, compared with the vendor documentation. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stringifyJson } from '../../base/json.ts';
import { decodedChat, decodedMessages, type Json, sent } from '../../testing/laws/spoken-requests.ts';
import { converse } from './index.ts';

const CLAUDE = 'us.anthropic.claude-sonnet-4-5-20250929-v1:0';
const NOVA = 'amazon.nova-pro-v1:0';
const PNG = 'iVBORw0KGgoAAAANSUhEUg==';
const PDF = 'JVBERi0xLjQKJcfs';

const PDF_PART = { type: 'file', file: { file_data: `data:application/pdf;base64,${PDF}` } };

function asked(body: Json, model = CLAUDE, more = {}) {
  return sent(converse, decodedChat(body), { model, ...more });
}

test('a plain request has text blocks, its parameters in inferenceConfig and no model', () => {
  const request = {
    messages: [
      { role: 'system', content: 'be brief' },
      { role: 'user', content: 'hi' },
    ],
    max_tokens: 100,
    temperature: 0.5,
    top_p: 0.9,
    stop: ['END'],
  };
  const plain = { system: [{ text: 'be brief' }], messages: [{ role: 'user', content: [{ text: 'hi' }] }] };
  assert.deepEqual(asked(request, NOVA).body, {
    ...plain,
    inferenceConfig: { maxTokens: 100, temperature: 0.5, topP: 0.9, stopSequences: ['END'] },
  });
  const { body, dropped } = asked(request);
  assert.deepEqual(body, {
    ...plain,
    // This model rejects temperature and top_p together.
    inferenceConfig: { maxTokens: 100, temperature: 0.5, stopSequences: ['END'] },
    additionalModelResponseFieldPaths: ['/stop_sequence'],
  });
  assert.deepEqual(dropped, ['top_p']);
});

test('the model is in the path, percent-encoded once', () => {
  const path = converse.path as (model: string, stream: boolean) => string;
  assert.equal(path(CLAUDE, true), '/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream');
  const arn = 'arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.amazon.nova-pro-v1:0';
  const encoded = 'arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Ainference-profile%2Feu.amazon.nova-pro-v1%3A0';
  assert.equal(path(arn, false), `/model/${encoded}/converse`);
});

test('results of parallel calls and the following text are one user message without empty texts', () => {
  const call = (id: string) => ({
    id,
    type: 'function',
    function: { name: 'c', arguments: '{"n":12345678901234567890}' },
  });
  const { text, body } = asked({
    messages: [
      { role: 'user', content: '2 calcs' },
      { role: 'assistant', content: '', tool_calls: [call('t1'), call('t2')] },
      { role: 'tool', tool_call_id: 't1', content: '1' },
      { role: 'tool', tool_call_id: 't2', content: '2' },
      { role: 'user', content: 'and now?' },
    ],
    tools: [{ type: 'function', function: { name: 'c', description: '', parameters: { type: 'object' } } }],
  });
  assert.deepEqual(
    body.messages.map(({ role }: Json) => role),
    ['user', 'assistant', 'user'],
  );
  assert.deepEqual(body.messages[2].content, [
    { toolResult: { toolUseId: 't1', content: [{ text: '1' }] } },
    { toolResult: { toolUseId: 't2', content: [{ text: '2' }] } },
    { text: 'and now?' },
  ]);
  assert.equal(body.messages[1].content.length, 2);
  assert.equal(text.split('"input":{"n":12345678901234567890}').length, 3);
  // The service rejects an empty description.
  assert.deepEqual(body.toolConfig, {
    tools: [{ toolSpec: { name: 'c', inputSchema: { json: { type: 'object' } } } }],
  });
});

test('consecutive messages of one role are merged in order', () => {
  const { body } = asked({
    messages: [
      { role: 'user', content: 'a' },
      { role: 'user', content: [{ type: 'text', text: 'b' }] },
      { role: 'assistant', content: 'c' },
      { role: 'assistant', content: 'd' },
      { role: 'system', content: 'now in French' },
      { role: 'user', content: 'e' },
    ],
  });
  assert.deepEqual(body.messages, [
    { role: 'user', content: [{ text: 'a' }, { text: 'b' }] },
    { role: 'assistant', content: [{ text: 'c' }, { text: 'd' }] },
    { role: 'user', content: [{ text: 'now in French' }, { text: 'e' }] },
  ]);
});

const MARKED = {
  messages: [
    { role: 'system', content: [{ type: 'text', text: 'big', cache_control: { type: 'ephemeral', ttl: '1h' } }] },
    { role: 'user', content: 'x' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 't1', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 't1', content: [{ type: 'text', text: 'r', cache_control: { type: 'ephemeral' } }] },
  ],
  tools: [{ type: 'function', function: { name: 'f', parameters: {} }, cache_control: { type: 'ephemeral' } }],
};

test('a cache point follows each marked block, tools and tool results included', () => {
  const { body } = asked(MARKED);
  const point = { cachePoint: { type: 'default' } };
  assert.deepEqual(body.system, [{ text: 'big' }, { cachePoint: { type: 'default', ttl: '1h' } }]);
  assert.deepEqual(body.messages[2].content, [{ toolResult: { toolUseId: 't1', content: [{ text: 'r' }] } }, point]);
  assert.deepEqual(body.toolConfig.tools[1], point);
});

test('cache points never exceed what the model accepts', () => {
  const text = (at: number) => ({ type: 'text', text: `t${at}`, cache_control: { type: 'ephemeral' } });
  const many = asked({ messages: [{ role: 'user', content: [0, 1, 2, 3, 4, 5].map(text) }] });
  assert.equal(many.text.split('cachePoint').length - 1, 4);
  const nova = asked(MARKED, NOVA);
  assert.equal(nova.body.toolConfig.tools.length, 1);
  assert.deepEqual(nova.body.system[1], { cachePoint: { type: 'default' } });
  const llama = asked(MARKED, 'meta.llama3-3-70b-instruct-v1:0');
  assert.ok(!llama.text.includes('cachePoint'));
  assert.ok(llama.dropped.includes('cache_control'));
});

test('image and document types come from their bytes, and document names are valid', () => {
  const { body } = asked({
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'compare' },
          { type: 'image_url', image_url: { url: `data:image/jpeg;base64,${PNG}` } },
          {
            type: 'file',
            file: { filename: 'Q3  report_(final).v2.pdf', file_data: `data:application/octet-stream;base64,${PDF}` },
          },
          { type: 'file', file: { filename: '報告.pdf', file_data: `data:application/pdf;base64,${PDF}` } },
          {
            type: 'file',
            file: { filename: 'q3 Report_(final).v2.pdf', file_data: `data:application/pdf;base64,${PDF}` },
          },
          { type: 'file', file: { filename: 'table.csv', file_data: 'data:text/plain;base64,YSxi' } },
        ],
      },
    ],
  });
  assert.deepEqual(body.messages[0].content.slice(1), [
    { image: { format: 'png', source: { bytes: PNG } } },
    { document: { format: 'pdf', name: 'Q3 report-(final)-v2', source: { bytes: PDF } } },
    { document: { format: 'pdf', name: 'document', source: { bytes: PDF } } },
    { document: { format: 'pdf', name: 'q3 Report-(final)-v2 2', source: { bytes: PDF } } },
    { document: { format: 'csv', name: 'table', source: { bytes: 'YSxi' } } },
  ]);
});

test('unsupported content excludes the endpoint and is named', () => {
  const user = (part: Json) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, part] }] });
  const hello = { messages: [{ role: 'user', content: 'hi' }] };
  const refused: [Json, string][] = [
    [user({ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }), 'image by URL'],
    [user({ type: 'image_url', image_url: { url: 'data:image/bmp;base64,Qk0AAAAAAAA=' } }), 'image'],
    [
      {
        messages: [
          { role: 'user', content: [{ type: 'file', file: { file_data: `data:application/pdf;base64,${PDF}` } }] },
        ],
      },
      'file',
    ],
    [{ messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, ...Array(6).fill(PDF_PART)] }] }, 'file'],
    [{ ...hello, response_format: { type: 'json_object' } }, 'response_format'],
    [{ ...hello, n: 2 }, 'n'],
    [{ ...hello, modalities: ['text', 'audio'] }, 'modalities'],
    [{ messages: [{ role: 'assistant', content: 'I begin' }] }, 'messages'],
  ];
  for (const [body, feature] of refused) {
    assert.throws(() => asked(body), { name: 'Uncarried', feature }, JSON.stringify(body));
  }
});

test('an S3 object is sent by its URI', () => {
  const { body } = asked({
    messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 's3://bucket/a.png' } }] }],
  });
  assert.deepEqual(body.messages[0].content, [
    { image: { format: 'png', source: { s3Location: { uri: 's3://bucket/a.png' } } } },
  ]);
});

test('each tool choice has its own object, and no tools are sent if none may be called', () => {
  const parameters = { type: 'object', properties: {}, additionalProperties: false };
  const tools = [{ type: 'function', function: { name: 'f', parameters, strict: true } }];
  const choice = (tool_choice: unknown) =>
    asked({ messages: [{ role: 'user', content: 'x' }], tools, tool_choice }).body;
  assert.deepEqual(choice('auto').toolConfig.toolChoice, { auto: {} });
  assert.deepEqual(choice('required').toolConfig.toolChoice, { any: {} });
  assert.deepEqual(choice({ type: 'function', function: { name: 'f' } }).toolConfig.toolChoice, {
    tool: { name: 'f' },
  });
  assert.equal(choice('auto').toolConfig.tools[0].toolSpec.strict, true);
  assert.equal(choice('none').toolConfig, undefined);
});

test('if calls are forbidden, earlier calls become text', () => {
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } };
  const { body, dropped } = asked({
    messages: [
      { role: 'user', content: 'x' },
      { role: 'assistant', content: 'I look.', tool_calls: [call] },
      { role: 'tool', tool_call_id: 'a', content: 'sun' },
      { role: 'user', content: 'and?' },
    ],
    tool_choice: 'none',
    tools: [{ type: 'function', function: { name: 'f' } }],
  });
  assert.equal(body.toolConfig, undefined);
  assert.deepEqual(body.messages, [
    { role: 'user', content: [{ text: 'x' }] },
    { role: 'assistant', content: [{ text: 'I look.' }, { text: '[Called the tool f with {"x":1}]' }] },
    { role: 'user', content: [{ text: '[Result of the tool f]' }, { text: 'sun' }, { text: 'and?' }] },
  ]);
  assert.ok(dropped.includes('tool_choice'));
});

test('thinking is requested with the members of the model vendor', () => {
  const think = (model: string, reasoning: Json, more = {}) =>
    asked(
      {
        messages: [{ role: 'user', content: 'x' }],
        reasoning,
        max_tokens: 10_000,
        temperature: 0.2,
        top_k: 5,
        ...more,
      },
      model,
    );
  const claude = think(CLAUDE, { effort: 'medium' });
  assert.deepEqual(claude.body.additionalModelRequestFields, { thinking: { type: 'enabled', budget_tokens: 5000 } });
  assert.deepEqual(claude.body.inferenceConfig, { maxTokens: 10_000 });
  assert.deepEqual(claude.dropped, ['temperature', 'top_k']);
  const nova = think('us.amazon.nova-2-lite-v1:0', { effort: 'low' }).body;
  assert.deepEqual(nova.additionalModelRequestFields, {
    reasoningConfig: { type: 'enabled', maxReasoningEffort: 'low' },
    inferenceConfig: { topK: 5 },
  });
  assert.deepEqual(think('openai.gpt-oss-120b-1:0', { effort: 'xhigh' }).body.additionalModelRequestFields, {
    reasoning_effort: 'high',
  });
  const llama = think('meta.llama3-3-70b-instruct-v1:0', { effort: 'high' });
  assert.equal(llama.body.additionalModelRequestFields, undefined);
  assert.ok(llama.dropped.includes('reasoning'));
});

test('signed and encrypted thinking returns unchanged, thinking of other origins is dropped', () => {
  const redacted = Buffer.from('EmwKAhgBEgy3va3pzix'.padEnd(20, 'A')).toString('base64');
  const conversation = decodedMessages({
    messages: [
      { role: 'user', content: 'x' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'hm', signature: 'c2ln' },
          { type: 'redacted_thinking', data: 'EmwKAhgBEgy3va3pzixLafPsn4aFXlsM' },
          { type: 'redacted_thinking', data: redacted },
          { type: 'text', text: 'so' },
        ],
      },
      { role: 'user', content: 'go on' },
    ],
  });
  const { body } = sent(converse, conversation, { model: CLAUDE });
  assert.deepEqual(body.messages[1].content, [
    { reasoningContent: { reasoningText: { text: 'hm', signature: 'c2ln' } } },
    // Anthropic's own text is wrapped once; text from this format is already wrapped.
    { reasoningContent: { redactedContent: Buffer.from('EmwKAhgBEgy3va3pzixLafPsn4aFXlsM').toString('base64') } },
    { reasoningContent: { redactedContent: redacted } },
    { text: 'so' },
  ]);
  const other = sent(converse, conversation, { model: NOVA, origin: 'unknown' });
  assert.deepEqual(other.body.messages[1].content, [{ text: 'so' }]);
  assert.deepEqual(other.dropped, ['reasoning']);
});

test('parallel call limit, schema, tier and native members are encoded', () => {
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, additionalProperties: false };
  const { body, dropped } = asked({
    messages: [{ role: 'user', content: 'x' }],
    tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'object' } } }],
    parallel_tool_calls: false,
    response_format: { type: 'json_schema', json_schema: { name: 'a', schema } },
    service_tier: 'priority',
    guardrailConfig: { guardrailIdentifier: 'g', guardrailVersion: '1' },
    additionalModelRequestFields: { anthropic_beta: ['x'] },
    seed: 1,
  });
  assert.deepEqual(body.additionalModelRequestFields, {
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    anthropic_beta: ['x'],
  });
  assert.deepEqual(body.outputConfig.textFormat, {
    type: 'json_schema',
    structure: { jsonSchema: { schema: JSON.stringify(schema), name: 'a' } },
  });
  assert.deepEqual(body.serviceTier, { type: 'priority' });
  assert.deepEqual(body.guardrailConfig, { guardrailIdentifier: 'g', guardrailVersion: '1' });
  assert.deepEqual(dropped, ['seed']);
});

test('members of a vendor cannot raise the output cap, wherever they are', () => {
  const { body, dropped } = asked(
    {
      messages: [{ role: 'user', content: 'x' }],
      max_tokens: 10,
      additionalModelRequestFields: {
        max_tokens: 9e9,
        inferenceConfig: { maxTokens: 9e9, topK: 4 },
        maxGenLen: 1,
        n: 5,
      },
    },
    NOVA,
  );
  assert.equal(body.inferenceConfig.maxTokens, 10);
  assert.deepEqual(body.additionalModelRequestFields, { inferenceConfig: { topK: 4 } });
  assert.equal(dropped.length, 4);
});

test('beta features requested by header are sent only to Claude', () => {
  const betas = ['context-1m-2025-08-07'];
  const hello = { messages: [{ role: 'user', content: 'x' }] };
  assert.deepEqual(asked(hello, CLAUDE, { betas }).body.additionalModelRequestFields, { anthropic_beta: betas });
  assert.equal(asked(hello, NOVA, { betas }).body.additionalModelRequestFields, undefined);
});

test('the output cap is that of the client, never above the endpoint’s or the gateway’s', () => {
  const cap = (body: Json, more: Json) =>
    asked({ messages: [{ role: 'user', content: 'x' }], ...body }, CLAUDE, more).body.inferenceConfig?.maxTokens;
  assert.equal(cap({}, { maxOutputTokens: 8192 }), 8192);
  assert.equal(cap({}, { maxOutputTokens: null }), undefined);
  assert.equal(cap({ max_tokens: 9000 }, { maxOutputTokens: 8192 }), 8192);
  assert.equal(cap({ max_tokens: 9000 }, { maxOutputTokens: null, capOutputTokens: 2000 }), 2000);
});

test('call ids are valid for the service and distinct', () => {
  const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: 'no json' } });
  const long = 'x'.repeat(80);
  const { body } = asked({
    messages: [
      { role: 'user', content: 'x' },
      { role: 'assistant', tool_calls: [call('a:b'), call(long)] },
      { role: 'tool', tool_call_id: 'a:b', content: 'r' },
      { role: 'tool', tool_call_id: long, content: '' },
    ],
  });
  const ids = body.messages[1].content.map(({ toolUse }: Json) => toolUse.toolUseId);
  for (const id of ids) assert.match(id, /^[a-zA-Z0-9_-]{1,64}$/);
  assert.notEqual(ids[0], ids[1]);
  assert.deepEqual(
    body.messages[2].content.map(({ toolResult }: Json) => toolResult.toolUseId),
    ids,
  );
  assert.deepEqual(body.messages[1].content[0].toolUse.input, { INVALID_JSON: 'no json' });
  // Tools that appear only in the history are declared, because the service rejects calls without tools.
  assert.equal(body.toolConfig.tools[0].toolSpec.name, 'f');
  assert.equal(stringifyJson(body.messages[2].content[1].toolResult.content), '[]');
});
