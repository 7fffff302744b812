/** `svc:advisor` through a whole gateway: a request within a request, under all rules of its caller. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { answerOf, errorOf, type Told } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';
import { startGuarded } from '../guardrails/guarded.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const { gateway, control, guarded } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: { kind: 'chat' },
      wise: { kind: 'chat' },
      dear: { kind: 'chat', model: { pricing: { prompt: '1', completion: '1' } } },
    },
  },
);

/** Of the model, at 3 and 15 USD for a million tokens: 105 micro-USD for each turn. */
const USAGE = { input: 10, output: 5 };
const TURN_USD = 0.000105;
const ADVICE_USD = 0.0015 + 0.003;
const ADVICE = answerOf('chat', false, { text: 'Use a queue.', usage: { input: 500, output: 200 } });

const asks = (input: Json = { prompt: 'Queue or stack?' }, name = 'advisor') => ({
  id: 'call_1',
  name,
  arguments: JSON.stringify(input),
});

interface Asked {
  parameters?: Json;
  format?: ClientFormat;
  stream?: boolean;
  answers?: readonly Told[];
  advice?: Answer;
  key?: string;
  more?: Json;
}

function bodyOf({ parameters = { model: 'test/wise' }, format = 'chat', stream = false, more }: Asked): Json {
  const turns = [{ role: 'user', content: 'How do I order jobs?' }];
  return {
    model: 'test/chat',
    stream,
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: turns } : { messages: turns }),
    tools: [{ type: 'svc:advisor', parameters }],
    ...more,
  };
}

async function ask(asked: Asked = {}) {
  const { format = 'chat', stream = false, answers = [{ calls: [asks()] }, { text: 'A queue.' }] } = asked;
  gateway.upstream.script(
    'chat',
    answers.map((told) => answerOf('chat', stream, { usage: USAGE, ...told })),
  );
  gateway.upstream.script('wise', [asked.advice ?? ADVICE]);
  const before = { chat: gateway.upstream.requests('chat').length, wise: gateway.upstream.requests('wise').length };
  const token = asked.key ?? (await control.keyIn(undefined, 'asks')).token;
  const reply = await gateway.post(PATH_OF[format], bodyOf(asked), { authorization: `Bearer ${token}` });
  const text = await reply.text();
  const sentTo = (to: 'chat' | 'wise'): Json[] =>
    gateway.upstream
      .requests(to)
      .slice(before[to])
      .map(({ json }) => json);
  const sent = sentTo('chat');
  return {
    status: reply.status,
    text,
    advised: sentTo('wise'),
    result: sent[1]?.messages.at(-1).content as string | undefined,
    sent,
    read: () => wholeAnswer(format, stream, text),
  };
}

/** Rows of a key, once there are so many. */
async function rowsOf(hash: string, count: number): Promise<Json[]> {
  for (;;) {
    const reply = await gateway.get(`/generations?api_key_id=${hash}`, MANAGEMENT_KEY);
    const { data } = (await reply.json()) as Json;
    if (data.length >= count) return data;
  }
}

const near = (one: number, other: number) => assert.ok(Math.abs(one - other) < 1e-9, `${one} is not ${other}`);

for (const format of CLIENT_FORMATS) {
  for (const stream of [false, true]) {
    test(`an advisor is asked, and its cost is counted once | ${format}${stream ? ', streamed' : ''}`, async () => {
      const key = await control.keyIn(undefined, 'books');
      const { status, text, advised, result, read } = await ask({ format, stream, key: key.token });
      assert.equal(status, 200, text);
      assert.equal(result, 'Use a queue.');
      assert.equal(advised[0].tools, undefined);
      assert.deepEqual(advised[0].messages.at(-1), { role: 'user', content: 'Queue or stack?' });
      const { usage, history } = read();
      const shown = JSON.stringify(history);
      assert.ok(shown.includes('Use a queue.') && shown.includes('A queue.'), shown);
      near(usage.cost_details.server_tool_cost, ADVICE_USD);
      near(usage.cost, 2 * TURN_USD + ADVICE_USD);
      const rows = await rowsOf(key.hash, 2);
      assert.equal(rows.length, 2);
      near(rows.find(({ model }) => model === 'test/wise').total_cost, ADVICE_USD);
      near(rows.find(({ model }) => model === 'test/chat').total_cost, 2 * TURN_USD);
      const full = await Promise.all(
        rows.map(
          async ({ id }) => ((await (await gateway.get(`/generation?id=${id}`, MANAGEMENT_KEY)).json()) as Json).data,
        ),
      );
      assert.equal(new Set(full.map(({ request_id: id }) => id)).size, 1);
      if (format === 'responses') {
        const { type, status: state, advice, prompt, model } = history[0];
        assert.deepEqual(
          [type, state, advice, prompt],
          ['svc:advisor', 'completed', 'Use a queue.', 'Queue or stack?'],
        );
        assert.equal(model, 'test/wise');
      }
      if (format === 'messages') {
        assert.equal(history[0].content[1].type, 'advisor_tool_result');
        assert.deepEqual(history[0].content[1].content, { type: 'advisor_result', text: 'Use a queue.' });
      }
    });
  }
}

test('the settings are those of its request, and the whole conversation goes with them on demand', async () => {
  const parameters = {
    model: 'test/wise',
    name: 'data structures',
    instructions: 'Be brief.',
    forward_transcript: true,
    reasoning: { effort: 'low' },
    max_completion_tokens: 77,
    temperature: 0.5,
  };
  const answers = [{ text: 'I shall ask.', calls: [asks(undefined, 'advisor_data_structures')] }, { text: 'ok' }];
  const { advised, text } = await ask({ parameters, answers, more: { user: 'u-1', provider: { ignore: ['other'] } } });
  assert.equal(advised.length, 1, text);
  const [{ messages, temperature, max_completion_tokens: most, max_tokens: older }] = advised;
  assert.deepEqual([messages[0].content, temperature, most ?? older], ['Be brief.', 0.5, 77]);
  const { content } = messages[1];
  const order = ['How do I order jobs?', 'I shall ask.', 'Queue or stack?'].map((each) => content.lastIndexOf(each));
  assert.ok(
    order.every((at) => at >= 0),
    content,
  );
  assert.deepEqual(
    order,
    order.toSorted((one, other) => one - other),
  );
});

test('without a model in the settings the call may choose one, and the answering model is the default', async () => {
  const chosen = await ask({ parameters: {}, answers: [{ calls: [asks({ prompt: 'x', model: 'test/wise' })] }, {}] });
  assert.equal(chosen.advised.length, 1);
  const own = await ask({ parameters: {}, answers: [{ calls: [asks()] }, { text: 'My own advice.' }, { text: 'ok' }] });
  assert.deepEqual([own.status, own.sent.length, own.advised.length], [200, 3, 0]);
  for (const model of ['test/none', 'test/wise:online']) {
    const unknown = await ask({ parameters: {}, answers: [{ calls: [asks({ prompt: 'x', model })] }, { text: 'ok' }] });
    assert.deepEqual([unknown.status, unknown.advised.length], [200, 0]);
    assert.match(unknown.result!, /not a known model/);
  }
});

test('settings that are not valid are refused with their path', async () => {
  for (const [parameters, path] of [
    [{ model: 'test/none' }, 'model'],
    [{ model: 'test/wise:online' }, 'model'],
    [{ model: '' }, 'model'],
    [{ instructions: 7 }, 'instructions'],
    [{ name: 'a/b' }, 'name'],
    [{ name: 7 }, 'name'],
    [{ stream: true }, 'stream'],
    [{ forward_transcript: 'yes' }, 'forward_transcript'],
    [{ temperature: 3 }, 'temperature'],
    [{ max_completion_tokens: 0 }, 'max_completion_tokens'],
    [{ reasoning: { effort: 'huge' } }, 'reasoning.effort'],
    [{ reasoning: { effort: 'low', max_tokens: 5 } }, 'reasoning.max_tokens'],
    [{ reasoning: 'low' }, 'reasoning'],
  ] as const) {
    const { status, text } = await ask({ parameters });
    assert.equal(status, 400, text);
    assert.ok(text.includes(`tools[0].parameters.${path}`), text);
  }
  const tools = [undefined, 'one', 'one'].map((name) => ({ type: 'svc:advisor', parameters: name ? { name } : {} }));
  const { status, text } = await ask({ more: { tools } });
  assert.equal(status, 400, text);
  assert.match(text, /tools\[2\]\.parameters\.name/);
  assert.equal((await ask({ more: { tools: tools.slice(0, 2) }, answers: [{ text: 'ok' }] })).status, 200);
});

test('an advisor that fails or says nothing is an error for the model, and costs nothing', async () => {
  for (const [advice, message] of [
    [errorOf('chat', 400, 'no such thing'), /error/],
    [answerOf('chat', false, { text: '', usage: { input: 0, output: 0 } }), /error/],
  ] as const) {
    const { status, text, result, read } = await ask({ advice, format: 'responses' });
    assert.equal(status, 200, text);
    assert.match(result!, message);
    const { history, usage } = read();
    assert.equal(history[0].status, 'incomplete');
    assert.ok(history[0].error);
    near(usage.cost, 2 * TURN_USD);
  }
});

test('a guardrail that forbids the model of the advisor forbids to ask it', async () => {
  const { token } = await guarded({ allowed_models: ['test/chat'] });
  const { status, text, result, advised } = await ask({ key: token });
  assert.equal(status, 200, text);
  assert.equal(advised.length, 0);
  assert.match(result!, /error/);
});

test('a budget that does not cover the advisor: it is not asked', async () => {
  const { token } = await control.keyIn(undefined, 'poor', { limit: 0.1 });
  const before = gateway.upstream.requests('dear').length;
  const { status, text, result } = await ask({
    key: token,
    parameters: { model: 'test/dear' },
    more: { max_tokens: 100 },
  });
  const advised = gateway.upstream.requests('dear').slice(before);
  assert.equal(status, 200, text);
  assert.equal(advised.length, 0);
  assert.match(result!, /USD/);
});

test('limits on requests count the outer one only', async () => {
  const { token } = await control.keyIn(undefined, 'slow', { rate_limits: { requests_per_day: 1 } });
  const { status, text, advised } = await ask({ key: token });
  assert.equal(status, 200, text);
  assert.equal(advised.length, 1);
  assert.equal((await ask({ key: token })).status, 429);
});

test('limits on tokens count those of the advisor', async () => {
  for (const [input, status] of [
    [500, 200],
    [2990, 429],
  ] as const) {
    const { token } = await control.keyIn(undefined, 'few', { rate_limits: { tokens_per_day: 3000 } });
    const advice = answerOf('chat', false, { text: 'Use a queue.', usage: { input, output: 5 } });
    const asked = await ask({ key: token, advice, more: { max_tokens: 100 } });
    assert.equal(asked.advised.length, 1);
    assert.equal(asked.status, status, asked.text);
  }
});

test('a condition on the cost counts the advisor', async () => {
  for (const [most, choice] of [
    [0.002, 'none'],
    [0.1, undefined],
  ] as const) {
    const stop_server_tools_when = [{ type: 'max_cost', max_cost_in_dollars: most }];
    const { sent, text } = await ask({ more: { stop_server_tools_when } });
    assert.equal(sent.length, 2, text);
    assert.equal(sent[1].tool_choice, choice);
  }
});

test('a client that leaves ends the advisor too, and both have their row', async () => {
  const key = await control.keyIn(undefined, 'leaves');
  gateway.upstream.script('chat', [answerOf('chat', true, { calls: [asks()], usage: USAGE })]);
  gateway.upstream.script('wise', [{ end: 'stall-before-headers' }]);
  const asked = gateway.upstream.requests('wise').length;
  const leaving = new AbortController();
  const pending = fetch(`${gateway.api}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(bodyOf({ stream: true })),
    signal: leaving.signal,
  }).then((reply) => reply.text());
  await gateway.upstream.request('wise', asked + 1);
  leaving.abort();
  await assert.rejects(pending);
  const rows = await rowsOf(key.hash, 2);
  assert.deepEqual(rows.map(({ model, cancelled }) => [model, cancelled]).sort(), [
    ['test/chat', true],
    ['test/wise', true],
  ]);
});
