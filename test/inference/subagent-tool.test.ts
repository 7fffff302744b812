/** `svc:subagent` through a whole gateway: requests with tools within a request, under all rules of its caller. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import { startGuarded } from '../guardrails/guarded.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const { gateway, control } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: { chat: { kind: 'chat' }, worker: { kind: 'chat' }, wise: { kind: 'chat' } },
  },
);

/** Of each turn, at 3 and 15 USD for a million tokens. */
const USAGE = { input: 10, output: 5 };
const TURN_USD = 0.000105;
const TASK = { task_name: 'clock', task_description: 'Tell the time in Tokyo.' };
const call = (name: string, input: Json) => ({ id: 'call_1', name, arguments: JSON.stringify(input) });
const CLOCK = [{ type: 'svc:datetime', parameters: { timezone: 'Asia/Tokyo' } }];

interface Asked {
  parameters?: Json;
  format?: ClientFormat;
  stream?: boolean;
  worker?: readonly Told[];
  wise?: readonly Told[];
  key?: string;
  more?: Json;
}

async function ask(asked: Asked = {}) {
  const { format = 'chat', stream = false, parameters = {}, more } = asked;
  const script = (model: string, streamed: boolean, turns: readonly Told[]) =>
    gateway.upstream.script(
      model,
      turns.map((told) => answerOf('chat', streamed, { usage: USAGE, ...told })),
    );
  script('chat', stream, [{ calls: [call('subagent', TASK)] }, { text: 'It is late.' }]);
  script('worker', false, asked.worker ?? [{ calls: [call('datetime', {})] }, { text: 'It is 23:00.' }]);
  script('wise', false, asked.wise ?? [{ text: 'Look at the clock.' }]);
  const models = ['chat', 'worker', 'wise'] as const;
  const before = Object.fromEntries(models.map((each) => [each, gateway.upstream.requests(each).length]));
  const turns = [{ role: 'user', content: 'How late is it?' }];
  const reply = await gateway.post(
    PATH_OF[format],
    {
      model: 'test/chat',
      stream,
      ...(format === 'messages' && { max_tokens: 1000 }),
      ...(format === 'responses' ? { input: turns } : { messages: turns }),
      tools: [{ type: 'svc:subagent', parameters: { model: 'test/worker', tools: CLOCK, ...parameters } }],
      ...more,
    },
    asked.key ? { authorization: `Bearer ${asked.key}` } : {},
  );
  const text = await reply.text();
  const sent = (model: (typeof models)[number]): Json[] =>
    gateway.upstream
      .requests(model)
      .slice(before[model])
      .map(({ json }) => json);
  return { status: reply.status, text, sent, read: () => wholeAnswer(format, stream, text) };
}

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
    test(`a subagent works with its own tools, and its cost is counted once | ${format}${stream ? ', streamed' : ''}`, async () => {
      const key = await control.keyIn(undefined, 'books');
      const { status, text, sent, read } = await ask({ format, stream, key: key.token });
      assert.equal(status, 200, text);
      assert.match(sent('worker')[1].messages.at(-1).content, /Asia\/Tokyo/);
      assert.equal(sent('chat')[1].messages.at(-1).content, 'It is 23:00.');
      const { usage, history } = read();
      near(usage.cost, 4 * TURN_USD);
      near(usage.cost_details.server_tool_cost, 2 * TURN_USD);
      const rows = await rowsOf(key.hash, 2);
      assert.deepEqual(rows.map(({ model }) => model).sort(), ['test/chat', 'test/worker']);
      for (const row of rows) near(row.total_cost, 2 * TURN_USD);
      const shown = JSON.stringify(history);
      assert.ok(shown.includes('It is 23:00.') && shown.includes('It is late.'), shown);
      if (format !== 'responses') return;
      const { type, status: state, outcome, model, task_name, task_description } = history[0];
      assert.deepEqual([type, state, outcome, model], ['svc:subagent', 'completed', 'It is 23:00.', 'test/worker']);
      assert.deepEqual({ task_name, task_description }, TASK);
    });
  }
}

test('a subagent may ask an advisor, whose cost is in the answer too', async () => {
  const advisor = { type: 'svc:advisor', parameters: { model: 'test/wise' } };
  const advice = call('advisor', { prompt: 'How?' });
  const asked = await ask({
    parameters: { tools: [advisor], max_tool_calls: 1 },
    worker: [{ calls: [advice] }, { text: 'Late.' }],
  });
  assert.equal(asked.status, 200, asked.text);
  assert.equal(asked.sent('worker')[1].tool_choice, 'none');
  near(asked.read().usage.cost, 5 * TURN_USD);
});

test('what is not valid is refused with its path, and nothing is asked', async () => {
  const own = { type: 'function', function: { name: 'f' } };
  for (const [parameters, path] of [
    [{ tools: 'all' }, 'tools'],
    [{ tools: [own] }, 'tools[0].type'],
    [{ tools: [...CLOCK, { type: 'svc:subagent' }] }, 'tools[1].type'],
    [{ tools: [{ type: 'svc:datetime', parameters: { timezone: 'Mars' } }] }, 'tools[0].parameters.timezone'],
    [{ tools: Array.from({ length: 17 }, () => CLOCK[0]) }, 'tools'],
    [{ max_tool_calls: 26 }, 'max_tool_calls'],
    [{ inherit_functions: 'yes' }, 'inherit_functions'],
    [{ inherit_functions: true }, 'inherit_functions'],
    [{ inherited_function_names: ['f'] }, 'inherited_function_names'],
    [{ inherited_function_names: ['f', ' '] }, 'inherited_function_names[1]'],
    [{ model: 'test/none' }, 'model'],
  ] as const) {
    const { status, text, sent } = await ask({ parameters });
    assert.equal(status, 400, text);
    assert.ok(text.includes(`tools[0].parameters.${path}`), text);
    assert.deepEqual([sent('chat').length, sent('worker').length], [0, 0]);
  }
});

test('a tool that the workspace has disabled is refused within a subagent too', async () => {
  const prescribe = (disabled_server_tools: string[]) =>
    control.call('PATCH', '/workspaces/default', { disabled_server_tools });
  const set = await prescribe(['svc:datetime']);
  assert.equal(set.status, 200, JSON.stringify(set.body));
  const { status, text } = await ask();
  assert.equal(status, 403, text);
  assert.ok(text.includes('tools[0].parameters.tools[0].type'), text);
  assert.equal((await prescribe([])).status, 200);
});

test('what a subagent costs on an own account is shown in the answer', async () => {
  const made = await control.call('POST', '/byok', { provider: 'worker', key: 'sk-own', name: 'own' });
  assert.equal(made.status, 201, JSON.stringify(made.body));
  const { status, text, read } = await ask();
  assert.equal(status, 200, text);
  const { usage } = read();
  near(usage.cost, 2 * TURN_USD);
  near(usage.cost_details.upstream_inference_cost, 2 * TURN_USD);
  assert.equal((await control.call('DELETE', `/byok/${made.body.data.id}`)).status, 200);
});
