/** Requests in the responses format, written by hand: how items decode and encode, and which requests are refused. */
import assert from 'node:assert/strict';
import test from 'node:test';
import { GatewayError } from '../../base/errors.ts';
import { readDocument } from '../../base/json.ts';
import { applyEdits } from '../../base/json-edits.ts';
import { chat } from '../chat/index.ts';
import type { Conversation, FilePart } from '../conversation/conversation.ts';
import type { EncodeTarget } from '../conversation/format.ts';
import { Losses, Uncarried } from '../conversation/losses.ts';
import { messages } from '../messages/index.ts';
import { responses } from './index.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies are read freely
type Json = any;

const TARGET: EncodeTarget = {
  model: 'up',
  stream: false,
  maxOutputTokens: null,
  origin: 'openai-responses-v1',
  user: 'hash',
  dialect: {},
};

function encoded(conversation: Conversation, target: Partial<EncodeTarget> = {}): { body: Json; losses: string[] } {
  const losses = new Losses();
  const body = responses.encode(conversation, { ...TARGET, ...target }, losses) as Json;
  return { body, losses: losses.dropped.map(({ what }) => what) };
}

const decoded = (body: Json) => responses.decode(body);
const user = (text: string) => ({ role: 'user' as const, parts: [{ type: 'text' as const, text }] });

test('adjacent model items become one message, and adjacent results another', () => {
  const { messages: list } = decoded({
    instructions: 'Be brief.',
    input: [
      { role: 'user', content: 'hi' },
      { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'hm' }], encrypted_content: 'e' },
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'a', annotations: [] }],
      },
      { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'f', arguments: '{"a":1}' },
      { type: 'custom_tool_call', call_id: 'c2', name: 'g', input: 'free' },
      { type: 'function_call_output', call_id: 'c1', output: 'one' },
      { type: 'custom_tool_call_output', call_id: 'c2', output: [{ type: 'input_text', text: 'two' }] },
      { role: 'user', content: [{ type: 'input_text', text: 'on' }] },
    ],
  });
  assert.deepEqual(
    list.map(({ role, parts }) => [role, parts.map(({ type }) => type)]),
    [
      ['system', ['text']],
      ['user', ['text']],
      ['assistant', ['reasoning', 'text', 'toolCall', 'toolCall']],
      ['tool', ['toolResult', 'toolResult']],
      ['user', ['text']],
    ],
  );
  const [thought, , first, second] = list[2]!.parts;
  assert.deepEqual(thought, {
    type: 'reasoning',
    text: 'hm',
    origin: 'openai-responses-v1',
    id: 'rs_1',
    summary: true,
    encrypted: 'e',
  });
  assert.deepEqual(first, {
    type: 'toolCall',
    id: 'c1',
    name: 'f',
    arguments: '{"a":1}',
    extras: { responses: { id: 'fc_1' } },
  });
  assert.deepEqual(second, { type: 'toolCall', id: 'c2', name: 'g', arguments: 'free', custom: true });
});

test('decoding and encoding preserves instructions, phases, custom calls and vendor items', () => {
  const input = [
    { role: 'user', content: 'hi' },
    { type: 'web_search_call', id: 'ws_1', status: 'completed', action: { type: 'search', query: 'q' } },
    {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'a', annotations: [] }],
      id: 'msg_1',
      phase: 'commentary',
    },
    {
      type: 'message',
      role: 'assistant',
      content: [{ type: 'output_text', text: 'b', annotations: [] }],
      id: 'msg_2',
      phase: 'final_answer',
    },
    { type: 'custom_tool_call', call_id: 'c2', name: 'g', input: 'free' },
    { type: 'custom_tool_call_output', call_id: 'c2', output: 'two' },
    { type: 'shell_call', id: 'sh_1', call_id: 'c3', action: { commands: ['ls'] }, status: 'completed' },
    { type: 'shell_call_output', call_id: 'c3', output: [] },
  ];
  const { body } = encoded(decoded({ instructions: 'Be brief.', input }));
  assert.equal(body.instructions, 'Be brief.');
  assert.deepEqual(body.input, input);
});

test('media of every kind decode from data, URL and file id', () => {
  const content = [
    { type: 'input_image', image_url: 'https://example.com/a.png', detail: 'low' },
    { type: 'input_image', image_url: 'data:image/png;base64,aGk=' },
    { type: 'input_image', file_id: 'file_1' },
    { type: 'input_file', file_data: 'data:application/pdf;base64,aGk=', filename: 'a.pdf' },
    { type: 'input_file', file_url: 'https://example.com/a.pdf' },
    { type: 'input_file', file_id: 'file_2' },
    { type: 'input_audio', input_audio: { data: 'aGk=', format: 'wav' } },
    { type: 'input_video', video_url: 'https://example.com/a.mp4', processing: 'static' },
  ];
  const conversation = decoded({ input: [{ role: 'user', content }] });
  assert.deepEqual(
    conversation.messages[0]!.parts.map((part) => [part.type, 'source' in part ? part.source?.kind : '']),
    [
      ['image', 'url'],
      ['image', 'bytes'],
      ['image', 'file'],
      ['file', 'bytes'],
      ['file', 'url'],
      ['file', 'file'],
      ['audio', 'bytes'],
      ['video', 'url'],
    ],
  );
  assert.deepEqual(encoded(conversation).body.input, [{ role: 'user', content }]);
});

test('custom tools and tool choices translate to chat and back', () => {
  const body = {
    input: 'hi',
    tools: [
      { type: 'function', name: 'f', parameters: { type: 'object', properties: {} }, strict: true },
      { type: 'custom', name: 'g', format: { type: 'grammar', syntax: 'lark', definition: 'start: "a"' } },
    ],
    tool_choice: { type: 'allowed_tools', mode: 'required', tools: [{ type: 'function', name: 'f' }] },
  };
  const conversation = decoded(body);
  const sent = chat.encode(conversation, TARGET, new Losses()) as Json;
  assert.deepEqual(sent.tools[1], {
    type: 'custom',
    custom: { name: 'g', format: { type: 'grammar', grammar: { syntax: 'lark', definition: 'start: "a"' } } },
  });
  assert.deepEqual(sent.tool_choice, {
    type: 'allowed_tools',
    allowed_tools: { mode: 'required', tools: [{ type: 'function', function: { name: 'f' } }] },
  });
  const back = encoded(chat.decode({ messages: [{ role: 'user', content: 'hi' }], ...sent })).body;
  assert.deepEqual([back.tools, back.tool_choice], [body.tools, body.tool_choice]);
  for (const choice of ['auto', 'none', 'required', { type: 'function', name: 'f' }]) {
    assert.deepEqual(encoded(decoded({ ...body, tool_choice: choice })).body.tool_choice, choice);
  }
});

test('structured output, verbosity, effort and summary are encoded in the fields of this format', () => {
  const format = { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true };
  const { body } = encoded(
    decoded({ input: 'hi', text: { format, verbosity: 'low' }, reasoning: { effort: 'high', summary: 'detailed' } }),
  );
  assert.deepEqual(body.text, { format, verbosity: 'low' });
  assert.deepEqual(body.reasoning, { effort: 'high', summary: 'detailed' });
  assert.deepEqual(body.include, ['reasoning.encrypted_content']);
  const budget = encoded({ messages: [user('hi')], settings: {}, reasoning: { budgetTokens: 16_000 } }).body;
  assert.deepEqual(budget.reasoning, { effort: 'medium', summary: 'auto' });
  const hidden = encoded({ messages: [user('hi')], settings: {}, reasoning: { effort: 'low', exclude: true } }).body;
  assert.deepEqual(hidden.reasoning, { effort: 'low' });
  assert.deepEqual(encoded({ messages: [user('hi')], settings: {}, reasoning: { enabled: false } }).body.reasoning, {
    effort: 'none',
  });
});

test('each format requests log probabilities with its own field', () => {
  const { body } = encoded({ messages: [user('hi')], settings: { logprobs: true, topLogprobs: 3 } });
  assert.deepEqual([body.include, body.top_logprobs], [['message.output_text.logprobs'], 3]);
  const sent = chat.encode(decoded({ input: 'hi', ...body }), TARGET, new Losses()) as Json;
  assert.deepEqual([sent.logprobs, sent.top_logprobs], [true, 3]);
});

test('missing parameters are reported, missing features refuse the endpoint', () => {
  const settings = { seed: 1, topA: 0.2, minP: 0.1, repetitionPenalty: 1.1, logitBias: { '1': 1 }, prediction: {} };
  const { losses } = encoded({ messages: [user('hi')], settings });
  assert.deepEqual(losses, ['top_a', 'min_p', 'repetition_penalty', 'seed', 'logit_bias', 'prediction']);
  const plain = { messages: [user('hi')], settings: {} };
  for (const [feature, more] of [
    ['n', { choices: 2 }],
    ['modalities', { modalities: ['audio'] }],
    ['stop', { settings: { stop: ['x'] } }],
    ['response_format', { output: { type: 'grammar', grammar: 'g' } }],
    ['messages content', { messages: [{ role: 'user', parts: [{ type: 'opaque', origin: 'messages', value: {} }] }] }],
  ] as [string, Partial<Conversation>][]) {
    assert.throws(
      () => encoded({ ...plain, ...more }),
      (error) => error instanceof Uncarried && error.feature === feature,
    );
  }
});

test('reasoning goes only to its origin, encrypted where required, and never without the item after it', () => {
  const thought = { type: 'reasoning' as const, text: 'hm', summary: true, id: 'rs_1', origin: TARGET.origin };
  const said = { type: 'text' as const, text: 'so' };
  const of = (...parts: Json[]): Conversation => ({
    messages: [user('hi'), { role: 'assistant', parts }],
    settings: {},
  });
  const types = (conversation: Conversation, strict: boolean) =>
    encoded(conversation, { dialect: { responses: { encryptedReasoningOnly: strict } } }).body.input.map(
      (item: Json) => item.type ?? item.role,
    );
  assert.deepEqual(types(of(thought, said), false), ['user', 'reasoning', 'message']);
  assert.deepEqual(types(of(thought, said), true), ['user', 'message']);
  const encrypted = { ...thought, encrypted: 'e' };
  assert.deepEqual(types(of(encrypted, said), true), ['user', 'reasoning', 'message']);
  assert.deepEqual(types(of(said, encrypted), true), ['user', 'message']);
  assert.deepEqual(types(of({ ...encrypted, origin: 'anthropic-claude-v1' }, said), false), ['user', 'message']);
  const two = encoded(of(thought, { ...encrypted, text: 'and' }, said)).body.input[1];
  assert.deepEqual([two.summary.length, two.encrypted_content], [2, 'e']);
});

test('messages documents, chat web search and developer messages translate to this format', () => {
  const document = { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' } };
  const asked = messages.decode({ max_tokens: 9, messages: [{ role: 'user', content: [document] }] });
  assert.deepEqual(encoded(asked).body.input[0].content, [
    { type: 'input_file', file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'document.pdf' },
  ]);
  const type = 'application/vnd.openxmlformats-officedocument.wordprocessingml.document';
  const word: FilePart = { type: 'file', source: { kind: 'bytes', mediaType: type, data: 'UEsDBA==' } };
  const named = encoded({ messages: [{ role: 'user', parts: [word] }], settings: {} }).body.input[0].content[0];
  assert.equal(named.filename, 'document.docx');
  const location = { type: 'approximate', approximate: { city: 'Bonn' } };
  const searched = chat.decode({
    messages: [{ role: 'developer', content: 'd' }],
    web_search_options: { search_context_size: 'low', user_location: location },
  });
  const { body } = encoded(searched);
  assert.deepEqual(body.input, [{ role: 'developer', content: 'd' }]);
  assert.deepEqual(body.tools, [
    { type: 'web_search', search_context_size: 'low', user_location: { type: 'approximate', city: 'Bonn' } },
  ]);
});

test('a stored prompt template goes only to the format that knows it', () => {
  const conversation = decoded({ prompt: { id: 'pmpt_1', variables: { a: 'b' } }, input: 'hi' });
  const { body } = encoded(conversation);
  assert.deepEqual(
    [body.prompt, body.input],
    [{ id: 'pmpt_1', variables: { a: 'b' } }, [{ role: 'user', content: 'hi' }]],
  );
  assert.throws(() => chat.encode(conversation, TARGET, new Losses()), Uncarried);
});

test('each invalid request is refused with the path of its field', () => {
  const item = (value: Json) => ({ input: [value] });
  const cases: [string, Json][] = [
    ['previous_response_id', { input: 'hi', previous_response_id: 'resp_1' }],
    ['conversation', { input: 'hi', conversation: 'c' }],
    ['store', { input: 'hi', store: true }],
    ['background', { input: 'hi', background: true }],
    ['input', {}],
    ['input', { input: [] }],
    ['input[0]', item({ type: 'item_reference', id: 'x' })],
    ['input[0].role', item({ role: 'critic', content: 'x' })],
    ['input[0].content', item({ role: 'user' })],
    ['input[0].content[0].type', item({ role: 'user', content: [{}] })],
    ['input[0].content[0].image_url', item({ role: 'user', content: [{ type: 'input_image' }] })],
    [
      'input[0].content[0].image_url',
      item({ role: 'user', content: [{ type: 'input_image', image_url: 'file:///etc/x' }] }),
    ],
    ['input[0].content[0].input_audio.data', item({ role: 'user', content: [{ type: 'input_audio' }] })],
    ['input[0].call_id', item({ type: 'function_call_output', output: 'x' })],
    ['input[0].output', item({ type: 'function_call_output', call_id: 'c' })],
    ['input[0].name', item({ type: 'function_call', call_id: 'c', name: '', arguments: '{}' })],
    ['input[0].arguments', item({ type: 'function_call', call_id: 'c', name: 'f', arguments: {} })],
    ['tools[0].name', { input: 'hi', tools: [{ type: 'function', parameters: {} }] }],
    ['tools[0].type', { input: 'hi', tools: [{ type: 'svc:no_such_tool' }] }],
    ['tool_choice', { input: 'hi', tool_choice: 'any' }],
    ['tool_choice.name', { input: 'hi', tool_choice: { type: 'function' } }],
    ['text.format.name', { input: 'hi', text: { format: { type: 'json_schema', schema: {} } } }],
    ['text.format.schema', { input: 'hi', text: { format: { type: 'json_schema', name: 'n' } } }],
    ['reasoning.max_tokens', { input: 'hi', reasoning: { effort: 'low', max_tokens: 9 } }],
  ];
  for (const [path, body] of cases) {
    assert.throws(
      () => responses.check(body),
      (error) => error instanceof GatewayError && error.status === 400 && error.details.path === path,
      path,
    );
  }
});

test('relay changes the members of the gateway and nothing else', () => {
  const text =
    '{"model":"m","input":[{"role":"user","content":"é\\u00e9"}],"seed":1.0,"provider":{},"user":"alice",' +
    '"reasoning":{"max_tokens":2000},"service_tier":"fast","max_output_tokens":4000,"stream":true}';
  const document = readDocument(Buffer.from(text));
  const target = { ...TARGET, stream: true, capOutputTokens: 100 };
  const sent = applyEdits(document, responses.relay.edits(document, target)).toString();
  assert.ok(sent.includes('"input":[{"role":"user","content":"é\\u00e9"}],"seed":1.0'));
  const { input: _, ...body } = JSON.parse(sent);
  assert.deepEqual(body, {
    model: 'up',
    seed: 1,
    user: 'hash',
    reasoning: { effort: 'high' },
    service_tier: 'priority',
    max_output_tokens: 100,
    stream: true,
    store: false,
  });
});
