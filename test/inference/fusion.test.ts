/** `svc:fusion`, the plugin `fusion` and the model `svc/fusion`: a panel and an analyst within a request. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { answerOf, errorOf, type Told } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';
import { startGuarded } from '../guardrails/guarded.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const MODELS = ['writer', 'red', 'blue', 'judge'] as const;
type Name = (typeof MODELS)[number];

const { gateway, control } = await startGuarded(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: Object.fromEntries(MODELS.map((name) => [name, { kind: 'chat' }])),
    yaml: {
      routing: {
        scores: ['red', 'blue', 'writer', 'judge'].map((name, index) => ({
          model: `test/${name}`,
          quality: 0.9 - index / 10,
        })),
      },
    },
  },
);

/** Of each turn, at 3 and 15 USD for a million tokens. */
const USAGE = { input: 10, output: 5 };
const TURN_USD = 0.000105;
const ANALYSIS = {
  consensus: ['It is big.'],
  contradictions: [{ topic: 'colour', stances: [{ model: 'test/red', stance: 'red' }] }],
  partial_coverage: [],
  unique_insights: [{ model: 'test/blue', insight: 'It swims.' }],
  blind_spots: ['its age'],
};
const CALL = { calls: [{ id: 'call_1', name: 'fusion', arguments: '{"prompt":"What is a whale?"}' }] };
const USUAL: Partial<Record<Name, readonly (Told | Answer)[]>> = {
  writer: [CALL, { text: 'A big animal.' }],
  red: [{ text: 'Big and red.' }],
  blue: [{ text: 'Big and blue.' }],
  judge: [{ text: JSON.stringify(ANALYSIS) }],
};

interface Asked {
  format?: ClientFormat;
  stream?: boolean;
  parameters?: Json;
  answers?: Partial<Record<Name, readonly (Told | Answer)[]>>;
  key?: string;
  more?: Json;
}

async function ask({ format = 'chat', stream = false, parameters, answers, key, more }: Asked = {}) {
  const outer = more?.model === 'svc/fusion' ? 'red' : 'writer';
  const before = new Map(MODELS.map((name) => [name, gateway.upstream.requests(name).length]));
  for (const name of MODELS) {
    const told = { ...USUAL, ...answers }[name] ?? [];
    gateway.upstream.script(
      name,
      told.map((each) =>
        'chunks' in each ? each : answerOf('chat', stream && name === outer, { usage: USAGE, ...each }),
      ) as Answer[],
    );
  }
  const turns = [{ role: 'user', content: 'Tell me about whales.' }];
  const settings = { analysis_models: ['test/red', 'test/blue'], model: 'test/judge', ...parameters };
  const reply = await gateway.post(
    PATH_OF[format],
    {
      model: 'test/writer',
      stream,
      ...(format === 'messages' && { max_tokens: 1000 }),
      ...(format === 'responses' ? { input: turns } : { messages: turns }),
      tools: [{ type: 'svc:fusion', parameters: settings }],
      ...more,
    },
    key ? { authorization: `Bearer ${key}` } : {},
  );
  const text = await reply.text();
  const sent = (name: Name): Json[] =>
    gateway.upstream
      .requests(name)
      .slice(before.get(name))
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
    test(`a panel answers, an analyst compares, all are charged once | ${format}${stream ? ', streamed' : ''}`, async () => {
      const key = await control.keyIn(undefined, 'fuses');
      const { status, text, sent, read } = await ask({ format, stream, key: key.token });
      assert.equal(status, 200, text);
      for (const name of ['red', 'blue'] as const) {
        const [{ messages, tools, max_completion_tokens: most, max_tokens: older }] = sent(name);
        assert.equal(messages[0].content, 'What is a whale?');
        // Without a search engine the panel can only read pages.
        assert.deepEqual(
          tools.map((tool: Json) => tool.function.name),
          ['web_fetch'],
        );
        assert.equal(most ?? older, 8000);
      }
      const [analyst] = sent('judge');
      assert.deepEqual(
        [analyst.temperature, analyst.response_format.type, analyst.tools],
        [0, 'json_schema', undefined],
      );
      assert.match(
        analyst.messages[1].content,
        /What is a whale\?.*\[answer of test\/red\]\nBig and red\..*Big and blue\./s,
      );
      const told = JSON.parse(sent('writer')[1].messages.at(-1).content);
      assert.deepEqual(told.analysis, ANALYSIS);
      assert.deepEqual(told.responses[1], { model: 'test/blue', content: 'Big and blue.' });
      const { usage, history } = read();
      near(usage.cost, 5 * TURN_USD);
      near(usage.cost_details.server_tool_cost, 3 * TURN_USD);
      assert.equal((await rowsOf(key.hash, 4)).length, 4);
      if (format !== 'responses') return;
      const { type, status: state, analysis, responses } = history[0];
      assert.deepEqual([type, state, responses.length], ['svc:fusion', 'completed', 2]);
      assert.deepEqual(analysis, ANALYSIS);
    });
  }
}

test('models that fail are named; without an analysis the answers remain, without answers the tool fails', async () => {
  const failing = [errorOf('chat', 400, 'no whales')];
  const one = await ask({ answers: { blue: failing }, format: 'responses' });
  const [item] = one.read().history;
  assert.deepEqual([item.status, item.responses.length, item.failed_models.length], ['completed', 1, 1], one.text);
  assert.deepEqual([item.failed_models[0].model, item.failed_models[0].status_code], ['test/blue', 400]);
  for (const judge of [failing, [{ text: 'They agree.' }]]) {
    const bare = await ask({ answers: { judge }, format: 'responses' });
    const [shown] = bare.read().history;
    assert.deepEqual([shown.status, shown.failure_reason, shown.analysis], ['completed', 'analysis_failed', undefined]);
    assert.match(bare.sent('writer')[1].messages.at(-1).content, /Big and blue/);
  }
  const none = await ask({ answers: { blue: failing, red: failing }, format: 'responses' });
  const [failed] = none.read().history;
  assert.deepEqual(
    [failed.status, failed.failure_reason, failed.failed_models.length],
    ['incomplete', 'all_panels_failed', 2],
  );
  assert.equal(none.sent('judge').length, 0);
});

test('the model that asks is the analyst by default, and the panel has the tools that the request gives it', async () => {
  const writer = [CALL, { text: JSON.stringify(ANALYSIS) }, { text: 'A big animal.' }];
  const calls = [{ id: 'c', name: 'datetime', arguments: '{}' }];
  const { sent, text } = await ask({
    parameters: { model: undefined, tools: [{ type: 'svc:datetime' }], max_tool_calls: 1, temperature: 0.7 },
    answers: { writer, red: [{ calls }, { text: 'Now it is red.' }] },
  });
  assert.equal(sent('writer').length, 3, text);
  assert.equal(sent('red')[1].tool_choice, 'none');
  assert.equal(sent('red')[0].temperature, 0.7);
  assert.equal(sent('writer')[1].temperature, 0);
});

test('the model svc/fusion asks the panel first, and the best model writes the answer', async () => {
  const red = [{ ...CALL }, { text: 'Big and red.' }, { text: JSON.stringify(ANALYSIS) }, { text: 'A big animal.' }];
  const more = { model: 'svc/fusion', tools: undefined };
  const answers = { red, writer: [{ text: 'Big.' }] };
  const { status, text, sent, read } = await ask({ answers, more });
  assert.equal(status, 200, text);
  assert.deepEqual(sent('red')[0].tool_choice, { type: 'function', function: { name: 'fusion' } });
  assert.deepEqual(
    [sent('red').length, sent('blue').length, sent('writer').length, sent('judge').length],
    [4, 1, 1, 0],
  );
  assert.equal(read().history[0].content, 'A big animal.');
  assert.equal(JSON.parse(text).model, 'test/red');
  const chosen = await ask({
    more: { ...more, plugins: [{ id: 'fusion', model: 'test/judge', analysis_models: ['test/blue'], tools: [] }] },
    answers: { judge: [CALL, { text: JSON.stringify(ANALYSIS) }, { text: 'Big.' }] },
  });
  assert.equal(chosen.status, 200, chosen.text);
  assert.deepEqual([chosen.sent('judge').length, chosen.sent('blue').length, chosen.sent('red').length], [3, 1, 0]);
  assert.equal(chosen.sent('blue')[0].tools, undefined);
});

test('the plugin gives the tool its settings, which the request may override, or adds it', async () => {
  const plugins = [{ id: 'fusion', analysis_models: ['test/blue'], model: 'test/judge' }];
  const added = await ask({ more: { tools: undefined, plugins } });
  assert.equal(added.status, 200, added.text);
  assert.equal(added.sent('writer')[0].tool_choice, undefined);
  assert.deepEqual([added.sent('blue').length, added.sent('red').length], [1, 0]);
  const own = [{ type: 'svc:fusion', parameters: { analysis_models: ['test/red'] } }];
  const both = await ask({ more: { tools: own, plugins } });
  assert.deepEqual(
    [both.sent('blue').length, both.sent('red').length, both.sent('judge').length],
    [0, 1, 1],
    both.text,
  );
});

test('settings that are not valid are refused with their path', async () => {
  for (const [parameters, path] of [
    [{ analysis_models: [] }, 'analysis_models'],
    [{ analysis_models: ['test/none'] }, 'analysis_models[0]'],
    [{ analysis_models: Array(9).fill('test/red') }, 'analysis_models'],
    [{ analysis_models: [7] }, 'analysis_models[0]'],
    [{ model: 'test/none' }, 'model'],
    [{ max_tool_calls: 17 }, 'max_tool_calls'],
    [{ tools: [{ type: 'svc:fusion' }] }, 'tools[0].type'],
    [{ tools: [{ type: 'svc:subagent' }] }, 'tools[0].type'],
    [{ tools: Array(9).fill({ type: 'svc:datetime' }) }, 'tools'],
  ] as const) {
    const { status, text } = await ask({ parameters });
    assert.equal(status, 400, text);
    assert.ok(text.includes(`tools[0].parameters.${path}`), text);
  }
  const plugin = await ask({ more: { plugins: [{ id: 'fusion', preset: 'large' }] } });
  assert.equal(plugin.status, 400, plugin.text);
  assert.match(plugin.text, /plugins\[0\]\.preset/);
});

test('requests are nested two deep: a panel of a subagent asks no further models', async () => {
  const advisor = { type: 'svc:advisor', parameters: { model: 'test/judge' } };
  const inner = {
    type: 'svc:fusion',
    parameters: { analysis_models: ['test/blue'], model: 'test/judge', tools: [advisor] },
  };
  const task = JSON.stringify({ task_name: 'x', task_description: 'What is a whale?' });
  const advice = { calls: [{ id: 'a', name: 'advisor', arguments: '{"prompt":"help"}' }] };
  const { status, text, sent } = await ask({
    answers: {
      writer: [{ calls: [{ id: 's', name: 'subagent', arguments: task }] }, { text: 'Big.' }],
      red: [CALL, { text: 'Big.' }],
      blue: [advice, { text: 'Big and blue.' }],
    },
    more: { tools: [{ type: 'svc:subagent', parameters: { model: 'test/red', tools: [inner] } }] },
  });
  assert.equal(status, 200, text);
  assert.match(sent('blue')[1].messages.at(-1).content, /nested/);
  // The analyst only.
  assert.equal(sent('judge').length, 1);
});

test('a stream of the responses format reports the progress of the panel', async () => {
  const answers = { blue: [errorOf('chat', 400, 'no such thing')] };
  const { text } = await ask({ format: 'responses', stream: true, answers });
  const events: Json[] = text
    .split('\n')
    .filter((line: string) => line.startsWith('data: {'))
    .map((line: string) => JSON.parse(line.slice(6)));
  const [item] = events.filter(
    ({ type, item: added }) => type === 'response.output_item.added' && /fusion/.test(added.type),
  );
  const told = events.filter(({ type }) => type.startsWith('response.fusion_call.'));
  const names = told.map(({ type }) => type.slice('response.fusion_call.'.length));
  assert.deepEqual(names.slice(0, 3), ['in_progress', 'panel.added', 'panel.added'], text);
  assert.deepEqual(names.slice(3, 5).toSorted(), ['panel.completed', 'panel.failed']);
  assert.deepEqual(names.slice(5), ['analysis.in_progress', 'analysis.completed', 'completed']);
  for (const { item_id, output_index } of told) {
    assert.deepEqual([item_id, output_index], [item.item.id, item.output_index]);
  }
  const of = (name: string) => told.find(({ type }) => type.endsWith(name));
  assert.deepEqual([of('panel.completed').model, of('panel.completed').content], ['test/red', 'Big and red.']);
  assert.equal(of('panel.failed').model, 'test/blue');
  assert.deepEqual(of('analysis.completed').analysis, ANALYSIS);
  assert.equal(of('analysis.in_progress').analyst_model, 'test/judge');
  const sequence = events.map(({ sequence_number: number }) => number);
  assert.deepEqual(
    sequence,
    sequence.toSorted((one, other) => one - other),
  );
});
