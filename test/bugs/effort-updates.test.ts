/** Messages and input items that change the reasoning effort of a conversation, through a whole gateway. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: {},
      router: { kind: 'openrouter' },
      messages: { kind: 'messages' },
      responses: { kind: 'responses' },
    },
  },
);

const user = (content: string) => ({ role: 'user', content });
const update = (effort: string, more: object = {}) => ({
  role: 'system',
  content: '',
  configuration_update: { reasoning: { effort } },
  ...more,
});

/** What the upstream got. */
async function sent(route: string, provider: string, body: object): Promise<Json> {
  const told = { text: 'ok' };
  const answer =
    provider === 'responses'
      ? responsesAnswer(false, told)
      : answerOf(provider === 'messages' ? 'messages' : 'chat', false, told);
  gateway.upstream.script(provider, answer);
  const reply = await gateway.post(route, { model: `test/${provider}`, ...body });
  const text = await reply.text();
  assert.equal(reply.status, 200, text);
  return gateway.upstream.requests(provider).at(-1)!.json;
}

test('chat: the last update sets the effort of the request, and messages with nothing else are left out', async () => {
  const messages = [
    update('low'),
    user('x'),
    { role: 'assistant', content: 'y' },
    update('high', { role: 'developer', content: 'Think.' }),
    user('z'),
  ];
  const rest = [user('x'), { role: 'assistant', content: 'y' }, { role: 'system', content: 'Think.' }, user('z')];
  for (const before of [{}, { reasoning_effort: 'low' }, { reasoning: { max_tokens: 2000 } }, { reasoning: null }]) {
    const body = await sent('/chat/completions', 'chat', { messages, max_tokens: 4000, ...before });
    assert.deepEqual([body.reasoning_effort, body.reasoning], ['high', undefined], JSON.stringify(before));
    assert.deepEqual(body.messages, rest);
  }
  const routed = await sent('/chat/completions', 'router', { messages, reasoning: { exclude: true } });
  assert.deepEqual(routed.reasoning, { exclude: true, effort: 'high' });
  const native = await sent('/chat/completions', 'messages', { messages, max_tokens: 4000 });
  assert.deepEqual(native.thinking, { type: 'enabled', budget_tokens: 3200 });
});

test('chat: an update that is null changes nothing, and numbers in the other messages stay as they are', async () => {
  const none = [{ role: 'system', content: 'Be brief.', configuration_update: null }, user('x')];
  assert.equal((await sent('/chat/completions', 'chat', { messages: none })).reasoning_effort, undefined);
  const body = `{"model": "test/chat", "messages": [{"role": "system", "content": "",
    "configuration_update": {"reasoning": {"effort": "low"}}}, {"role": "user", "content": "x", "n": 9007199254740993}]}`;
  gateway.upstream.script('chat', answerOf('chat', false, { text: 'ok' }));
  assert.equal((await gateway.post('/chat/completions', body)).status, 200);
  assert.match(gateway.upstream.requests('chat').at(-1)!.body.toString(), /9007199254740993/);
});

test('chat: an update without a known effort, or in a message of another role, is refused with its path', async () => {
  const cases: [object, string][] = [
    [update('extreme'), 'messages[0].configuration_update.reasoning.effort'],
    [{ role: 'system', content: '', configuration_update: {} }, 'messages[0].configuration_update.reasoning'],
    [update('low', { role: 'user', content: 'x' }), 'messages[0].configuration_update'],
  ];
  for (const [message, path] of cases) {
    const reply = await gateway.post('/chat/completions', { model: 'test/chat', messages: [message, user('x')] });
    const text = await reply.text();
    assert.equal(reply.status, 400, text);
    assert.ok(text.includes(path), text);
  }
});

test('responses: the last update sets the effort at services of other formats; those of the format get the items', async () => {
  const items = ['low', 'high'].map((effort) => ({ type: 'configuration_update', reasoning: { effort } }));
  const input = [user('x'), items[0], { role: 'assistant', content: 'y' }, items[1], user('z')];
  const asked = { input, max_output_tokens: 4000, reasoning: { max_tokens: 2000, summary: 'auto' } };
  const body = await sent('/responses', 'chat', asked);
  assert.equal(body.reasoning_effort, 'high');
  assert.deepEqual(body.messages, [user('x'), { role: 'assistant', content: 'y' }, user('z')]);
  const native = await sent('/responses', 'messages', asked);
  assert.deepEqual(native.thinking, { type: 'enabled', budget_tokens: 3200 });
  assert.deepEqual((await sent('/responses', 'responses', { input })).input, input);
});
