/** Subagents that may call functions of the client, through a whole gateway and with the SDKs that know them. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI from 'openai';
import { PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import { startGuarded } from '../guardrails/guarded.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const { gateway, control, guarded } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: { kind: 'chat' }, worker: { kind: 'chat' } } },
);

const USAGE = { input: 10, output: 5 };
/** Of each turn, at 3 and 15 USD for a million tokens. */
const TURN_USD = 0.000105;
const TASK = { task_name: 'stock', task_description: 'Count the bolts.' };
const LOOKUP = {
  type: 'function',
  name: 'lookup',
  description: 'Looks a part up.',
  parameters: { type: 'object', properties: { part: { type: 'string' } }, required: ['part'] },
};
const OTHER = { type: 'function', name: 'other', parameters: { type: 'object', properties: {} } };
const QUESTION = { role: 'user', content: 'How many bolts?' };
const PARAMETERS = { model: 'test/worker', inherit_functions: true };

const calling = (...calls: [name: string, input: Json, id?: string][]): Told => ({
  // The same id at both models, as services with plain ids make them.
  calls: calls.map(([name, input, id = 'call_1']) => ({ id, name, arguments: JSON.stringify(input) })),
});
const DELEGATES = calling(['subagent', TASK]);
const asks = (part: string, id?: string) => calling(['lookup', { part }, id]);
const output = (call: Json, text: string) => ({ type: 'function_call_output', call_id: call.call_id, output: text });
const near = (one: number, other: number) => assert.ok(Math.abs(one - other) < 1e-9, `${one} is not ${other}`);

interface Asked {
  chat?: readonly Told[];
  worker?: readonly Told[];
  stream?: boolean;
  parameters?: Json;
  tools?: Json[];
  token?: string;
  more?: Json;
}

function script(chat: readonly Told[], worker: readonly Told[], stream: boolean): void {
  const told = (turns: readonly Told[], streamed: boolean) =>
    turns.map((turn) => answerOf('chat', streamed, { usage: USAGE, ...turn }));
  gateway.upstream.script('chat', told(chat, stream));
  gateway.upstream.script('worker', told(worker, false));
}

async function ask(input: Json[], asked: Asked = {}) {
  const { chat = [], worker = [], stream = false, parameters = {}, token, more } = asked;
  script(chat, worker, stream);
  const before = [gateway.upstream.requests('chat').length, gateway.upstream.requests('worker').length];
  const subagent = { type: 'svc:subagent', parameters: { ...PARAMETERS, ...parameters } };
  const body = { model: 'test/chat', stream, input, tools: asked.tools ?? [subagent, LOOKUP, OTHER], ...more };
  const reply = await gateway.post(PATH_OF.responses, body, token ? { authorization: `Bearer ${token}` } : {});
  const text = await reply.text();
  const sent = (model: 'chat' | 'worker'): Json[] =>
    gateway.upstream
      .requests(model)
      .slice(before[model === 'chat' ? 0 : 1])
      .map(({ json }) => json);
  const read = () => wholeAnswer('responses', stream, text);
  return { status: reply.status, text, sent, read, items: () => read().history as Json[] };
}

/** The history of a question whose subagent waits for one call of `lookup`. */
async function suspended(asked: Asked = {}) {
  const first = await ask([QUESTION], { chat: [DELEGATES], worker: [asks('bolt')], ...asked });
  assert.equal(first.status, 200, first.text);
  return { first, history: [QUESTION, ...first.items()] as Json[], call: first.items().at(-1) };
}

for (const stream of [false, true]) {
  test(`a subagent calls functions of the client, and continues where it was${stream ? ' | streamed' : ''}`, async () => {
    const key = await control.keyIn(undefined, 'books');
    const about = { stream, token: key.token, parameters: { tools: [{ type: 'svc:datetime' }] } };
    const { first, history, call } = await suspended(about);
    const [item] = first.items();
    assert.deepEqual(
      [item.type, item.status, item.task_description, item.model],
      ['svc:subagent', 'in_progress', TASK.task_description, 'test/worker'],
    );
    assert.deepEqual(
      [call.type, call.status, call.name, call.arguments, call.subagent_id],
      ['function_call', 'completed', 'lookup', '{"part":"bolt"}', item.call_id],
    );
    assert.equal(call.subagent_items.length, 1);
    assert.equal(first.read().finish, 'completed');
    near(first.read().usage.cost, 2 * TURN_USD);
    const names = first.sent('worker')[0].tools.map((tool: Json) => tool.function.name);
    assert.deepEqual(names, ['lookup', 'other', 'datetime']);

    // It calls a server tool, and then two functions at once: the model that has delegated the task is not asked.
    const both = calling(['lookup', { part: 'nut' }, 'call_2'], ['other', {}, 'call_3']);
    const second = await ask([...history, output(call, '40')], {
      ...about,
      worker: [calling(['datetime', {}, 'call_9']), both],
    });
    assert.equal(second.status, 200, second.text);
    assert.deepEqual([second.sent('chat').length, second.sent('worker').length], [0, 2]);
    assert.equal(second.sent('worker')[0].messages.at(-1).content, '40');
    const calls = second.items();
    assert.deepEqual(
      calls.map(({ type, name, subagent_id }) => [type, name, subagent_id]),
      [
        ['function_call', 'lookup', item.call_id],
        ['function_call', 'other', item.call_id],
      ],
    );
    assert.equal(calls[1].subagent_items, undefined);
    near(second.read().usage.cost, 2 * TURN_USD);

    const whole = [...history, output(call, '40'), ...calls, output(calls[0], '2'), output(calls[1], 'none')];
    const third = await ask(whole, { ...about, worker: [{ text: '42 in all.' }], chat: [{ text: 'There are 42.' }] });
    assert.equal(third.status, 200, third.text);
    const roles = third.sent('worker')[0].messages.map(({ role }: Json) => role);
    const rounds = ['assistant', 'tool', 'assistant', 'tool', 'assistant', 'tool', 'tool'];
    assert.deepEqual(roles, ['system', 'user', ...rounds]);
    const [asked] = third.sent('chat');
    assert.deepEqual(
      asked.messages.map(({ role, content }: Json) => [role, content]),
      [
        ['user', QUESTION.content],
        ['assistant', null],
        ['tool', '42 in all.'],
      ],
    );
    const [ended, message] = third.items();
    assert.deepEqual(
      [ended.type, ended.status, ended.call_id, ended.outcome, message.type],
      ['svc:subagent', 'completed', item.call_id, '42 in all.', 'message'],
    );
    near(third.read().usage.cost, 2 * TURN_USD);

    const next = await ask([...whole, ...third.items(), QUESTION], { ...about, chat: [{ text: 'Still 42.' }] });
    assert.equal(next.status, 200, next.text);
    assert.deepEqual(next.sent('chat')[0].messages.slice(0, 3), asked.messages);
    assert.equal(next.sent('worker').length, 0);
    const rows = await rowsOf(key.hash, 7);
    near(
      rows.reduce((sum, row) => sum + row.total_cost, 0),
      7 * TURN_USD,
    );
  });
}

async function rowsOf(hash: string, count: number): Promise<Json[]> {
  for (;;) {
    const reply = await gateway.get(`/generations?api_key_id=${hash}`, MANAGEMENT_KEY);
    const { data } = (await reply.json()) as Json;
    if (data.length >= count) return data;
  }
}

test('a subagent gets only the functions that are named', async () => {
  const named = { inherit_functions: false, inherited_function_names: [' other ', 'unknown'] };
  const { sent, status, text } = await ask([QUESTION], {
    parameters: named,
    chat: [DELEGATES, { text: 'Done.' }],
    worker: [{ text: 'None.' }],
  });
  assert.equal(status, 200, text);
  assert.deepEqual(
    sent('worker')[0].tools.map((tool: Json) => tool.function.name),
    ['other'],
  );
});

test('the other calls of the turn are there when the subagent has ended', async () => {
  const turn = calling(['subagent', TASK, 'call_1'], ['other', {}, 'call_2']);
  const { first, history } = await suspended({ chat: [turn] });
  const [own, waiting, call] = first.items();
  assert.deepEqual([own.name, waiting.type, call.subagent_id], ['other', 'svc:subagent', waiting.call_id]);
  const input = [...history, output(own, 'done'), output(call, '40')];
  const next = await ask(input, { worker: [{ text: '40.' }], chat: [{ text: 'There are 40.' }] });
  assert.equal(next.status, 200, next.text);
  const [, made, ...results] = next.sent('chat')[0].messages;
  assert.equal(made.tool_calls.length, 2);
  assert.deepEqual(results.map(({ content }: Json) => content).sort(), ['40.', 'done']);
});

test('a subagent that is no longer offered, and one without a result, are errors for the model', async () => {
  const { history, call } = await suspended();
  const gone = await ask([...history, output(call, '40')], { tools: [LOOKUP], chat: [{ text: 'Well.' }] });
  assert.equal(gone.status, 200, gone.text);
  assert.match(gone.sent('chat')[0].messages.at(-1).content, /did not finish/);
  const failed = await ask([...history, output(call, '40')], { worker: [{ text: '' }], chat: [{ text: 'Well.' }] });
  assert.equal(failed.status, 200, failed.text);
  assert.match(failed.sent('chat')[0].messages.at(-1).content, /error/);
  assert.deepEqual([failed.items()[0].type, failed.items()[0].status], ['svc:subagent', 'incomplete']);
});

test('a subagent has its last answer without functions after as many calls as it may make', async () => {
  const parameters = { max_tool_calls: 1 };
  const { history, call } = await suspended({ parameters });
  const { sent } = await ask([...history, output(call, '40')], {
    parameters,
    worker: [{ text: '40.' }],
    chat: [{ text: '40.' }],
  });
  assert.equal(sent('worker')[0].tool_choice, 'none');
});

test('a history that was changed is refused with the path, and nothing is asked', async () => {
  const { history, call } = await suspended();
  const [, item] = history;
  const change = (more: Json, ...others: Json[]) => [QUESTION, item, { ...call, ...more }, ...others];
  const done = output(call, '40');
  const own = call.subagent_items;
  const big = Array.from({ length: 1001 }, () => own[0]);
  for (const [input, path] of [
    [[...history], 'input[2]'],
    [change({ subagent_id: 'call_x' }, done), 'input[2].subagent_id'],
    [change({ subagent_id: 7 }, done), 'input[2].subagent_id'],
    [change({ subagent_id: undefined }, done), 'input[2].subagent_id'],
    [change({ subagent_items: undefined }, done), 'input[2].subagent_items'],
    [change({ subagent_items: 'all' }, done), 'input[2].subagent_items'],
    [change({ subagent_items: big }, done), 'input[2].subagent_items'],
    [change({ subagent_items: [...own, 'text'] }, done), 'input[2].subagent_items[1].type'],
    [change({ subagent_items: [...own, { ...own[0], call_id: 7 }] }, done), 'input[2].subagent_items[1].call_id'],
    [change({ subagent_items: [...own, { type: 'message', role: 'system', content: 'x' }] }, done), 'items[1]'],
    [change({ subagent_items: [...own, { type: 'item_reference', id: 'msg_1' }] }, done), 'input[2].subagent_items[1]'],
    [change({ subagent_items: [...own, call] }, done), 'input[2].subagent_items[1]'],
    [change({ call_id: 'call_y' }, output({ call_id: 'call_y' }, '40')), 'input[2].call_id'],
    [[...history, call, done], 'input[3].call_id'],
    [[QUESTION, call, done], 'input[1].subagent_id'],
    [[QUESTION, { ...item, status: 'completed' }, call, done], 'input[2].subagent_id'],
    [[QUESTION, { ...item, arguments: undefined, task_description: 7 }, call, done], 'input[1].task_description'],
  ] as const) {
    const { status, text, sent } = await ask([...input]);
    assert.equal(status, 400, text);
    assert.ok(text.includes(path), `${path}: ${text}`);
    assert.deepEqual([sent('chat').length, sent('worker').length], [0, 0]);
  }
});

test('a subagent does not continue for a request that its budget refuses', async () => {
  const { history, call } = await suspended();
  const poor = await control.call('POST', '/keys', { name: 'poor', limit: 0.0000001 });
  for (const stream of [false, true]) {
    const { status, text, sent } = await ask([...history, output(call, '40')], { stream, token: poor.body.key });
    assert.equal(status, 402, text);
    assert.deepEqual([sent('chat').length, sent('worker').length], [0, 0]);
  }
});

test('guardrail filters see what a subagent reads and what the client gets of it', async () => {
  const rules = {
    content_filters: [
      { pattern: 'secret-[0-9]', action: 'redact', label: '[gone]', apply_to: ['request', 'response'] },
    ],
  };
  const key = await guarded(rules);
  const { history, call } = await suspended({ token: key.token, worker: [asks('secret-1')] });
  assert.match(call.arguments, /\[gone\]/);
  assert.doesNotMatch(JSON.stringify(history), /secret-1/);
  const input = [...history, output(call, 'secret-2')];
  const again = await ask(input, { token: key.token, worker: [asks('secret-3')] });
  assert.equal(again.status, 200, again.text);
  assert.match(again.sent('worker')[0].messages.at(-1).content, /\[gone\]/);
  assert.doesNotMatch(again.text, /secret-3/);
});

test('a suspended subagent continues a stored response', async () => {
  const { first, call } = await suspended({ more: { store: true } });
  const { id } = JSON.parse(first.text);
  const next = await ask([output(call, '40')], {
    more: { previous_response_id: id, store: true },
    worker: [{ text: '40.' }],
    chat: [{ text: 'There are 40.' }],
  });
  assert.equal(next.status, 200, next.text);
  assert.equal(next.sent('chat')[0].messages.at(-1).content, '40.');
});

test("OpenAI's SDK runs the functions of a subagent, streamed and not", async () => {
  const client = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api });
  const about = { model: 'test/chat', tools: [{ type: 'svc:subagent', parameters: PARAMETERS }, LOOKUP] as Json };
  for (const stream of [false, true]) {
    const respond = async (input: Json[]) => {
      if (!stream) return client.responses.create({ ...about, input });
      return client.responses.stream({ ...about, input }).finalResponse();
    };
    script([DELEGATES], [asks('bolt')], stream);
    const first = await respond([QUESTION]);
    const call = first.output.find((item) => item.type === 'function_call');
    assert.ok(call);
    script([{ text: 'There are 40.' }], [{ text: '40.' }], stream);
    const next = await respond([QUESTION, ...first.output, output(call, '40')]);
    assert.equal(next.output_text, 'There are 40.');
  }
});

test("OpenRouter's SDK runs the functions of a subagent, streamed and not", async () => {
  const client = new OpenRouter({ apiKey: INFERENCE_KEY, serverURL: gateway.api });
  const subagent = { type: 'openrouter:subagent', parameters: { model: 'test/worker', inheritFunctions: true } };
  const tools = [subagent, { ...LOOKUP, strict: null }] as Json;
  for (const stream of [false, true]) {
    const respond = async (input: Json[]): Promise<Json> => {
      const reply: Json = await client.beta.responses.send({
        responsesRequest: { model: 'test/chat', input, tools, stream } as Json,
      });
      if (!stream) return reply;
      let whole: Json;
      for await (const event of reply) if (event.type === 'response.completed') whole = event.response;
      return whole;
    };
    script([DELEGATES], [asks('bolt')], stream);
    const first = await respond([QUESTION]);
    const call = first.output.find(({ type }: Json) => type === 'function_call');
    assert.equal(call.subagentItems.length, 1);
    script([{ text: 'There are 40.' }], [{ text: '40.' }], stream);
    const done = { type: 'function_call_output', callId: call.callId, output: '40' };
    const next = await respond([QUESTION, ...first.output, done]);
    assert.equal(next.output.at(-1).content[0].text, 'There are 40.');
  }
});
