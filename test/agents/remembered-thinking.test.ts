/**
 * Chat clients send a call back without the thinking that its vendor signed. The gateway remembers it, so that the model
 * continues thinking after its tool results; each key has a memory of its own.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of requests and answers
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      messages: { kind: 'anthropic', model: { upstream_id: 'claude-sonnet-4-5' } },
      responses: { kind: 'responses' },
      gemini: { kind: 'gemini', model: { upstream_id: 'gemini-3-pro' } },
    },
  },
);

const CALLS = [
  { id: 'toolu_1', name: 'look', arguments: '{"at":1}' },
  { id: 'toolu_2', name: 'look', arguments: '{"at":2}' },
];
const TOLD: Told = { thinking: { text: 'I should look.', signature: 'c2lnbmF0dXJl' }, text: 'I look.', calls: CALLS };
const TOOLS = [{ type: 'function', function: { name: 'look', parameters: { type: 'object', properties: {} } } }];
const USER = { role: 'user', content: 'look' };

async function post(name: string, messages: Json[], more: object = {}, key = INFERENCE_KEY): Promise<Json> {
  const body = {
    model: `test/${name}`,
    tools: TOOLS,
    max_tokens: 4_000,
    reasoning: { effort: 'low' },
    messages,
    ...more,
  };
  const reply = await gateway.post('/chat/completions', body, { authorization: `Bearer ${key}` });
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  return text;
}

const lastSent = (name: string): Json => gateway.upstream.requests(name).at(-1)!.json;

/** The turn as a client sends it back that knows calls alone, and the results. */
const without = (ids: readonly string[]): Json[] => [
  USER,
  {
    role: 'assistant',
    content: 'I look.',
    tool_calls: CALLS.map(({ name, arguments: args }, at) => ({
      id: ids[at],
      type: 'function',
      function: { name, arguments: args },
    })),
  },
  ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: 'seen' })),
];

for (const stream of [false, true]) {
  test(`signed thinking goes back in front of its calls, and thinking stays on | streamed: ${stream}`, async () => {
    for (const more of [{}, { reasoning: { effort: 'low', exclude: true } }]) {
      gateway.upstream.script('messages', [
        answerOf('messages', stream, TOLD),
        answerOf('messages', false, { text: 'ok' }),
      ]);
      await post('messages', [USER], { stream, ...more });
      await post('messages', without(['toolu_1', 'toolu_2']), more);
      const { thinking, messages } = lastSent('messages');
      assert.equal(thinking.type, 'enabled');
      assert.deepEqual(messages[1].content[0], {
        type: 'thinking',
        thinking: 'I should look.',
        signature: 'c2lnbmF0dXJl',
      });
      assert.deepEqual(
        messages[1].content.map(({ type }: Json) => type),
        ['thinking', 'text', 'tool_use', 'tool_use'],
      );
    }
  });

  test(`encrypted reasoning goes back in front of its calls | streamed: ${stream}`, async () => {
    gateway.upstream.script('responses', [responsesAnswer(stream, TOLD), responsesAnswer(false, { text: 'ok' })]);
    await post('responses', [USER], { stream });
    await post('responses', without(['toolu_1', 'toolu_2']));
    const reasoning = lastSent('responses').input.find(({ type }: Json) => type === 'reasoning');
    assert.equal(reasoning.encrypted_content, 'c2lnbmF0dXJl');
  });
}

test('a signature of a call goes back to its call', async () => {
  const parts = CALLS.map(({ name, arguments: args }, at) => ({
    functionCall: { name, args: JSON.parse(args) },
    thoughtSignature: `c2ln${at}`,
  }));
  const chunk = {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
  };
  const answer = { headers: { 'content-type': 'application/json' }, chunks: [JSON.stringify(chunk)] };
  gateway.upstream.script('gemini', [answer, answer]);
  const { choices } = JSON.parse(await post('gemini', [USER]));
  await post('gemini', without(choices[0].message.tool_calls.map(({ id }: Json) => id)));
  const sent = lastSent('gemini').contents.find(({ role }: Json) => role === 'model').parts;
  assert.deepEqual(
    sent.flatMap((part: Json) => (part.functionCall ? part.thoughtSignature : [])),
    ['c2ln0', 'c2ln1'],
  );
});

test('a key never gets the thinking of another key, and it expires after an hour', async () => {
  const created = await gateway.post('/keys', { name: 'another' }, { authorization: `Bearer ${MANAGEMENT_KEY}` });
  const { key } = (await created.json()) as Json;
  gateway.upstream.script('messages', answerOf('messages', false, TOLD));
  await post('messages', [USER]);
  await post('messages', without(['toolu_1', 'toolu_2']), {}, key);
  assert.deepEqual(
    [lastSent('messages').thinking, lastSent('messages').messages[1].content[0].type],
    [undefined, 'text'],
  );
  gateway.clock.jump(61 * 60_000);
  await post('messages', without(['toolu_1', 'toolu_2']));
  assert.equal(lastSent('messages').messages[1].content[0].type, 'text');
});

test('thinking that the client sends itself is what counts', async () => {
  gateway.upstream.script('messages', answerOf('messages', false, TOLD));
  await post('messages', [USER]);
  const history = without(['toolu_1', 'toolu_2']);
  history[1].reasoning_details = [
    { type: 'reasoning.text', text: 'My own.', signature: 'b3du', format: 'anthropic-claude-v1', index: 0 },
  ];
  await post('messages', history);
  assert.equal(lastSent('messages').messages[1].content[0].thinking, 'My own.');
});
