/** Call ids of a conversation that moves from one service to another, in every pair of formats. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { FormatId } from '../../formats/conversation/conversation.ts';
import { CLIENT_FORMATS, type ClientFormat } from '../../testing/clients/served-answer.ts';
import { playThrough } from '../../testing/laws/pipeline.ts';

// biome-ignore lint/suspicious/noExplicitAny: requests of every format are read freely
type Json = any;

const LONG = `chatcmpl-tool-${'0123456789abcdef'.repeat(5)}`;
const OTHER = `${LONG}0`;
const SHORT = 'call_1';

/** A history of one turn with a call for each id and its results, in the client's format. */
const HISTORY: Record<ClientFormat, (ids: readonly string[]) => Json[]> = {
  chat: (ids) => [
    { role: 'user', content: 'weather?' },
    {
      role: 'assistant',
      content: null,
      tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'get', arguments: '{}' } })),
    },
    ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: `of ${id}` })),
  ],
  messages: (ids) => [
    { role: 'user', content: 'weather?' },
    { role: 'assistant', content: ids.map((id) => ({ type: 'tool_use', id, name: 'get', input: {} })) },
    { role: 'user', content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: `of ${id}` })) },
  ],
  responses: (ids) => [
    { role: 'user', content: 'weather?' },
    ...ids.map((id) => ({ type: 'function_call', call_id: id, name: 'get', arguments: '{}' })),
    ...ids.map((id) => ({ type: 'function_call_output', call_id: id, output: `of ${id}` })),
  ],
  gemini: (ids) => [
    { role: 'user', parts: [{ text: 'weather?' }] },
    { role: 'model', parts: ids.map((id) => ({ functionCall: { id, name: 'get', args: {} } })) },
    {
      role: 'user',
      parts: ids.map((id) => ({ functionResponse: { id, name: 'get', response: { output: `of ${id}` } } })),
    },
  ],
};

const TOOLS: Record<ClientFormat, Json[]> = {
  chat: [{ type: 'function', function: { name: 'get', parameters: { type: 'object', properties: {} } } }],
  messages: [{ name: 'get', input_schema: { type: 'object', properties: {} } }],
  responses: [{ type: 'function', name: 'get', parameters: { type: 'object', properties: {} } }],
  gemini: [{ functionDeclarations: [{ name: 'get' }] }],
};

/** The ids of calls and results, in order, in a request to an upstream. */
const READ: Partial<Record<FormatId, (body: Json) => { calls: string[]; results: string[] }>> = {
  chat: ({ messages }) => ({
    calls: messages.flatMap((message: Json) => (message.tool_calls ?? []).map(({ id }: Json) => id)),
    results: messages.filter(({ role }: Json) => role === 'tool').map((message: Json) => message.tool_call_id),
  }),
  messages: ({ messages }) => ({
    calls: blocksOf(messages, 'tool_use').map(({ id }) => id),
    results: blocksOf(messages, 'tool_result').map(({ tool_use_id: id }) => id),
  }),
  responses: ({ input }) => ({
    calls: input.filter(({ type }: Json) => type === 'function_call').map((item: Json) => item.call_id),
    results: input.filter(({ type }: Json) => type === 'function_call_output').map((item: Json) => item.call_id),
  }),
  converse: ({ messages }) => ({
    calls: membersOf(messages, 'toolUse').map(({ toolUseId }) => toolUseId),
    results: membersOf(messages, 'toolResult').map(({ toolUseId }) => toolUseId),
  }),
};

function blocksOf(messages: Json[], type: string): Json[] {
  return messages.flatMap(({ content }) =>
    Array.isArray(content) ? content.filter((block) => block.type === type) : [],
  );
}

function membersOf(messages: Json[], name: string): Json[] {
  return messages.flatMap(({ content }) => content.flatMap((block: Json) => (block[name] ? [block[name]] : [])));
}

async function sentIds(served: ClientFormat, spoken: FormatId, ids: readonly string[], kind: string = spoken) {
  const asked = { served, kind, spoken, stream: false, more: { tools: TOOLS[served] } };
  const messages = JSON.stringify(HISTORY[served](ids));
  const { sent } = await playThrough({ ...asked, messages }, { pieces: [Buffer.from('{}')] });
  return READ[spoken]!(JSON.parse(sent));
}

const FORMATS = CLIENT_FORMATS;
/** The ids that each format accepts, from its vendor's error messages and documentation. */
const TAKES: [FormatId, RegExp][] = [
  ['chat', /^.{1,40}$/],
  ['responses', /^.{1,64}$/],
  ['messages', /^[a-zA-Z0-9_-]+$/],
  ['converse', /^[a-zA-Z0-9_-]{1,64}$/],
];

for (const served of FORMATS) {
  for (const [spoken, takes] of TAKES) {
    test(`${served} to ${spoken}: every call id fits the format, and results keep their calls`, async () => {
      const ids = [LONG, SHORT, OTHER, 'functions.get:0', 'a|b c', `x${'é'.repeat(70)}`];
      const { calls, results } = await sentIds(served, spoken, ids);
      assert.deepEqual(results, calls);
      assert.equal(new Set(calls).size, ids.length);
      for (const id of calls) assert.match(id, takes);
      assert.equal(calls[1], SHORT);
      // An id is rewritten only if it must be.
      ids.forEach((id, index) => {
        if (takes.test(id)) assert.equal(calls[index], id);
      });
      // A longer history begins like a shorter one, so cached prefixes remain valid.
      assert.deepEqual((await sentIds(served, spoken, ids.slice(0, 3))).calls, calls.slice(0, 3));
    });
  }
}

test('Mistral gets ids of nine letters or digits, from clients of all formats', async () => {
  for (const served of FORMATS) {
    const { calls, results } = await sentIds(served, 'chat', [LONG, SHORT, 'Abc123xyz'], 'mistral');
    assert.deepEqual(results, calls);
    for (const id of calls) assert.match(id, /^[A-Za-z0-9]{9}$/);
    assert.equal(calls[2], 'Abc123xyz');
  }
});

test('an id with an embedded thought signature reaches every service but OpenAI unchanged', async () => {
  const signed = `call_1__thought__${'A'.repeat(300)}`;
  for (const spoken of ['chat', 'responses'] as const) {
    assert.deepEqual((await sentIds(spoken, spoken, [signed])).calls, [signed]);
  }
  const [id] = (await sentIds('chat', 'chat', [signed], 'openai')).calls;
  assert.ok(id!.length <= 40);
});

test('item ids from another service that are too long are left out of a request in the responses format', async () => {
  const long = 'x'.repeat(400);
  const items = [
    { role: 'user', content: 'hi' },
    {
      type: 'message',
      id: long,
      role: 'assistant',
      content: [{ type: 'output_text', text: 'I look.', annotations: [] }],
    },
    { type: 'function_call', id: long, call_id: SHORT, name: 'get', arguments: '{}' },
    { type: 'function_call_output', call_id: SHORT, output: 'sun' },
    { type: 'function_call', id: 'fc_1', call_id: 'call_2', name: 'get', arguments: '{}' },
    { type: 'function_call_output', call_id: 'call_2', output: 'rain' },
  ];
  const asked = { served: 'responses', kind: 'responses', spoken: 'responses', stream: false } as const;
  const { sent } = await playThrough({ ...asked, messages: JSON.stringify(items) }, { pieces: [Buffer.from('{}')] });
  const { input } = JSON.parse(sent);
  assert.deepEqual(
    input.map(({ id }: Json) => id),
    [undefined, undefined, undefined, undefined, 'fc_1', undefined],
  );
  assert.equal(input[1].content[0].text, 'I look.');
});
