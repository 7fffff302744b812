/**
 * Services that refuse a tool turn without thinking while the model thinks: histories of other models and of clients that
 * keep no thinking go up so that they are taken, and the model continues thinking.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const MODELS = { deepseek: 'deepseek-v4-pro', moonshot: 'kimi-k2.6', zai: 'glm-5' } as const;
type Name = keyof typeof MODELS;
const NAMES = Object.keys(MODELS) as Name[];

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      ...Object.fromEntries(NAMES.map((name) => [name, { kind: name, model: { upstream_id: MODELS[name] } }])),
      plain: { kind: 'moonshot', model: { upstream_id: 'moonshot-v1-128k' } },
    },
  },
);

const CALL = { id: 'call_1', type: 'function', function: { name: 'look', arguments: '{}' } };
const HISTORIES = {
  '/chat/completions': (reasoning: object) => ({
    messages: [
      { role: 'user', content: 'look' },
      { role: 'assistant', content: null, tool_calls: [CALL], ...reasoning },
      { role: 'tool', tool_call_id: 'call_1', content: 'seen' },
      { role: 'assistant', content: 'I have seen it.', ...reasoning },
      { role: 'user', content: 'and?' },
      { role: 'assistant', content: 'That was all.' },
      { role: 'user', content: 'again' },
    ],
  }),
  '/messages': () => ({
    max_tokens: 1000,
    messages: [
      { role: 'user', content: 'look' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'of another vendor', signature: 'c2ln' },
          { type: 'tool_use', id: 'call_1', name: 'look', input: {} },
        ],
      },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'seen' }] },
    ],
  }),
  '/responses': () => ({
    input: [
      { role: 'user', content: 'look' },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'seen' },
    ],
  }),
};
type Route = keyof typeof HISTORIES;

async function sent(name: string, route: Route, more: object = {}, reasoning: object = {}): Promise<Json> {
  gateway.upstream.script(name, [answerOf('chat', false, { text: 'ok' })]);
  const reply = await gateway.post(route, { model: `test/${name}`, ...HISTORIES[route](reasoning), ...more });
  assert.equal(reply.status, 200, await reply.clone().text());
  return gateway.upstream.requests(name).at(-1)!.json;
}

/** What each message of the assistant has as thinking. */
const thinkingOf = ({ messages }: Json): unknown[] =>
  messages.filter(({ role }: Json) => role === 'assistant').map((message: Json) => message.reasoning_content);

test('a tool turn without thinking of the vendor gets a blank one, asked for or not', async () => {
  for (const name of NAMES) {
    for (const more of [{}, { reasoning: { effort: 'high' } }]) {
      const body = await sent(name, '/chat/completions', more);
      assert.deepEqual(thinkingOf(body), [' ', ' ', undefined], name);
      assert.notEqual(body.thinking?.type, 'disabled');
      const [call] = thinkingOf(await sent(name, '/responses', more));
      assert.equal(call, ' ', name);
    }
    const [foreign] = thinkingOf(await sent(name, '/messages', { thinking: { type: 'adaptive' } }));
    assert.equal(foreign, ' ', name);
  }
});

test('thinking that the client sends back stays', async () => {
  for (const name of NAMES) {
    for (const member of ['reasoning', 'reasoning_content']) {
      const body = await sent(name, '/chat/completions', {}, { [member]: 'hm' });
      assert.deepEqual(thinkingOf(body), ['hm', 'hm', undefined], `${name} ${member}`);
    }
  }
});

test('where the model does not think nothing is added', async () => {
  for (const name of NAMES) {
    const body = await sent(name, '/chat/completions', { reasoning: { effort: 'none' } });
    assert.deepEqual([body.thinking.type, thinkingOf(body)[0]], ['disabled', undefined], name);
  }
  assert.equal(thinkingOf(await sent('plain', '/chat/completions'))[0], undefined);
});

test('a longer history begins with the bytes of a shorter one', async () => {
  const { messages } = HISTORIES['/chat/completions']({});
  for (const name of NAMES) {
    const longer = JSON.stringify((await sent(name, '/chat/completions')).messages);
    const shorter = JSON.stringify(
      (await sent(name, '/chat/completions', { messages: messages.slice(0, 3) })).messages,
    );
    assert.ok(longer.startsWith(shorter.slice(0, -1)), name);
  }
});
