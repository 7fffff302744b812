/** Requests in the cohere format, compared with the vendor documentation. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { stringifyJson } from '../../base/json.ts';
import { type Abilities, arbitraryConversation, arbitraryRound } from '../../testing/laws/arbitrary.ts';
import { samples } from '../../testing/laws/samples.ts';
import { decodedChat, decodedMessages, type Json, sent } from '../../testing/laws/spoken-requests.ts';
import { cohere } from './index.ts';

const PNG = 'iVBORw0KGgoAAAANSUhEUg==';
const HI = [{ role: 'user', content: 'hi' }];
const TOOL = { type: 'function', function: { name: 'f', description: 'd', parameters: { type: 'object' } } };

function asked(body: Json, more = {}) {
  return sent(cohere, decodedChat(body), { origin: 'unknown', ...more });
}

test('a plain request has text blocks and parameters with the names of the service', () => {
  const { body, dropped } = asked({
    messages: [{ role: 'system', content: 'be brief' }, ...HI],
    max_tokens: 100,
    temperature: 0.5,
    top_p: 0.9,
    top_k: 7,
    seed: 1,
    stop: ['END'],
    frequency_penalty: 0.1,
    presence_penalty: -1,
    logit_bias: { 1: 1 },
    logprobs: true,
  });
  assert.deepEqual(body, {
    model: 'model',
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'be brief' }] },
      { role: 'user', content: [{ type: 'text', text: 'hi' }] },
    ],
    stream: false,
    max_tokens: 100,
    temperature: 0.5,
    p: 0.9,
    k: 7,
    frequency_penalty: 0.1,
    presence_penalty: 0,
    seed: 1,
    logprobs: true,
    stop_sequences: ['END'],
  });
  assert.deepEqual(dropped, ['presence_penalty', 'logit_bias']);
});

test('calls keep every digit, results follow one by one, and a plan returns to its own member', () => {
  const call = (id: string) => ({
    id,
    type: 'function',
    function: { name: 'f', arguments: '{"n": 12345678901234567890}' },
  });
  const plan = { type: 'reasoning.text', text: 'I will call f.', id: 'tool_plan', format: 'unknown', index: 0 };
  const { body } = asked({
    messages: [
      ...HI,
      { role: 'assistant', content: null, reasoning_details: [plan], tool_calls: [call('a'), call('b')] },
      { role: 'tool', tool_call_id: 'a', content: 'one' },
      { role: 'tool', tool_call_id: 'b', content: '' },
    ],
    tools: [TOOL],
  });
  assert.deepEqual(body.messages.slice(1), [
    { role: 'assistant', tool_plan: 'I will call f.', tool_calls: [call('a'), call('b')] },
    { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'one' }] },
    { role: 'tool', tool_call_id: 'b', content: '' },
  ]);
  assert.deepEqual(body.tools, [TOOL]);
});

test('plain thinking is sent back, signed thinking of other origins is not', () => {
  const conversation = decodedMessages({
    messages: [
      ...HI,
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'mine', signature: '' },
          { type: 'thinking', thinking: 'x', signature: 'c2ln' },
          { type: 'text', text: 'so' },
        ],
      },
      ...HI,
    ],
  });
  const { body, dropped } = sent(cohere, conversation, { origin: 'unknown' });
  assert.deepEqual(body.messages[1].content, [
    { type: 'thinking', thinking: 'mine' },
    { type: 'text', text: 'so' },
  ]);
  assert.deepEqual(dropped, ['reasoning']);
});

test('text documents are outside the messages, images inside', () => {
  const conversation = decodedMessages({
    messages: [
      {
        role: 'user',
        content: [
          {
            type: 'document',
            title: 'a.txt',
            source: { type: 'text', media_type: 'text/plain', data: 'facts' },
            citations: { enabled: false },
          },
          { type: 'document', source: { type: 'base64', media_type: 'text/csv', data: 'YSxi' } },
          { type: 'image', source: { type: 'base64', media_type: 'image/jpeg', data: PNG } },
          { type: 'text', text: 'look' },
        ],
      },
    ],
  });
  const { body } = sent(cohere, conversation);
  assert.deepEqual(body.documents, [
    { id: 'doc:0', data: { title: 'a.txt', text: 'facts' } },
    { id: 'doc:1', data: { text: 'a,b' } },
  ]);
  assert.deepEqual(body.citation_options, { mode: 'OFF' });
  assert.deepEqual(body.messages[0].content, [
    { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
    { type: 'text', text: 'look' },
  ]);
});

test('a forced tool is sent alone, and strictness applies to all tools or none', () => {
  const other = { type: 'function', function: { name: 'g', parameters: { type: 'object' }, strict: true } };
  const body = (more: Json) => asked({ messages: HI, tools: [TOOL, other], ...more });
  const forced = body({ tool_choice: { type: 'function', function: { name: 'g' } } }).body;
  assert.deepEqual(
    [forced.tools.length, forced.tools[0].function.name, forced.tool_choice, forced.strict_tools],
    [1, 'g', 'REQUIRED', true],
  );
  assert.equal(body({ tool_choice: 'required' }).body.tool_choice, 'REQUIRED');
  assert.equal(body({ tool_choice: 'none' }).body.tool_choice, 'NONE');
  assert.equal(body({ tool_choice: 'auto' }).body.tool_choice, undefined);
  assert.deepEqual(body({ parallel_tool_calls: false }).dropped, ['parallel_tool_calls', 'tools[].function.strict']);
});

test('output format and thinking have their own objects', () => {
  const body = (more: Json) => asked({ messages: HI, ...more }).body;
  assert.deepEqual(body({ response_format: { type: 'json_object' } }).response_format, { type: 'json_object' });
  const schema = { type: 'object', properties: {} };
  assert.deepEqual(
    body({ response_format: { type: 'json_schema', json_schema: { name: 'a', schema } } }).response_format,
    { type: 'json_object', json_schema: schema },
  );
  assert.deepEqual(body({ reasoning: { effort: 'none' } }).thinking, { type: 'disabled' });
  assert.deepEqual(body({ reasoning: { max_tokens: 3000 } }).thinking, { type: 'enabled', token_budget: 3000 });
  assert.deepEqual(body({ reasoning: { effort: 'high' }, max_tokens: 10_000 }).thinking, {
    type: 'enabled',
    token_budget: 8000,
  });
  assert.equal(body({}).thinking, undefined);
});

test('native members pass through, others are reported', () => {
  const own = { safety_mode: 'NONE', citation_options: { mode: 'FAST' }, documents: [{ data: { text: 'x' } }] };
  const { body, dropped } = asked({ messages: HI, ...own, future_member: 1 });
  for (const [name, value] of Object.entries(own)) assert.deepEqual(body[name], value);
  assert.deepEqual(dropped, ['future_member']);
});

test('unsupported content excludes the endpoint and is named', () => {
  const user = (part: Json) => ({ messages: [{ role: 'user', content: [{ type: 'text', text: 'x' }, part] }] });
  const refused: [Json, string][] = [
    [user({ type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERi0=' } }), 'file'],
    [user({ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }), 'audio'],
    [{ messages: HI, response_format: { type: 'json_object' }, tools: [TOOL] }, 'response_format'],
    [{ messages: HI, tools: [TOOL], tool_choice: { type: 'function', function: { name: 'x' } } }, 'tool_choice'],
    [{ messages: HI, n: 2 }, 'n'],
    [{ messages: HI, stop: ['1', '2', '3', '4', '5', '6'] }, 'stop'],
    [{ messages: [{ role: 'user', content: '' }] }, 'messages'],
  ];
  for (const [body, feature] of refused) {
    assert.throws(() => asked(body), { name: 'Uncarried', feature }, JSON.stringify(body));
  }
});

const ABILITIES: Abilities = {
  format: 'cohere',
  instructions: ['system'],
  userParts: ['text', 'image'],
  reasoning: ['plain', 'signed'],
  origins: ['anthropic-claude-v1'],
  sortedParts: false,
  refusals: true,
  resultImages: false,
  resultErrors: true,
  groupedResults: true,
  names: true,
  cacheMarks: true,
  settings: ['maxOutputTokens', 'temperature', 'topP', 'topK', 'seed'],
  outputs: [],
  reasoningSettings: ['effort', 'budget'],
  severalChoices: false,
  strict: true,
};

test('an added turn keeps the earlier encoding as its prefix, and calls keep their arguments', () => {
  fc.assert(
    fc.property(arbitraryConversation(ABILITIES), arbitraryRound(ABILITIES, 9), (conversation, round) => {
      // An empty conversation cannot be encoded.
      if (!conversation.messages.some(({ parts }) => parts.length > 0)) return;
      const before = sent(cohere, conversation).body;
      const after = sent(cohere, { ...conversation, messages: [...conversation.messages, ...round] }).body;
      assert.equal(stringifyJson(before.tools), stringifyJson(after.tools));
      before.messages.forEach((message: Json, index: number) => {
        assert.equal(stringifyJson(after.messages[index]), stringifyJson(message));
      });
      const calls = conversation.messages.flatMap(({ parts }) =>
        parts.flatMap((part) => (part.type === 'toolCall' ? part.arguments : [])),
      );
      const out = before.messages.flatMap(({ tool_calls: list = [] }: Json) =>
        list.map((call: Json) => call.function.arguments),
      );
      assert.deepEqual(out, calls);
    }),
    { numRuns: samples(200) },
  );
});
