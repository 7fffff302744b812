/** The loop of server tools through a whole gateway, with the smallest tool: in every served format, streamed and not. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import fc from 'fast-check';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Format, type Told } from '../../src/testing/upstream/answers.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: { chat: { kind: 'chat' }, messages: { kind: 'messages' }, judge: { kind: 'chat' } },
    yaml: { limits: { server_tool_turns: 12, server_tool_calls: 6 }, alignment: { model: 'test/judge' } },
  },
);

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const SPOKEN: readonly Format[] = ['chat', 'messages'];
const USAGE = { input: 10, output: 5 };
const DATETIME = { type: 'svc:datetime' };

const asks = (id: string, timezone?: string) => ({
  id,
  name: 'datetime',
  arguments: timezone === undefined ? '{}' : JSON.stringify({ timezone }),
});

function functionOf(format: ClientFormat, name: string): Json {
  const parameters = { type: 'object', properties: {} };
  if (format === 'messages') return { name, input_schema: parameters };
  return format === 'responses'
    ? { type: 'function', name, parameters }
    : { type: 'function', function: { name, parameters } };
}

function bodyOf(format: ClientFormat, spoken: Format, stream: boolean, more: Json = {}, history: Json[] = []): Json {
  const turns = [{ role: 'user', content: 'How late is it?' }, ...history];
  return {
    model: `test/${spoken}`,
    stream,
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: turns } : { messages: turns }),
    tools: [DATETIME, functionOf(format, 'lookup')],
    ...more,
  };
}

async function ask(format: ClientFormat, spoken: Format, answers: readonly Told[], body: Json, headers = {}) {
  gateway.upstream.script(
    spoken,
    answers.map((told) => answerOf(spoken, body.stream, { usage: USAGE, ...told })),
  );
  const before = gateway.upstream.requests(spoken).length;
  const reply = await gateway.post(PATH_OF[format], body, headers);
  const text = await reply.text();
  const sent: Json[] = gateway.upstream
    .requests(spoken)
    .slice(before)
    .map((one) => one.json);
  const read = () => wholeAnswer(format, body.stream, text);
  return { status: reply.status, text, sent, read, id: reply.headers.get('x-generation-id')! };
}

const namesOf = (sent: Json) => sent.tools?.map((tool: Json) => tool.name ?? tool.function.name);
/** What providers hash of messages: all but the breakpoints of prompt caches. */
const prompt = (messages: Json) =>
  JSON.stringify(messages, (key, value) => (key === 'cache_control' ? undefined : value));

/** The result that the client adds for its own call. */
function resultOf(format: ClientFormat, id: string): Json {
  if (format === 'chat') return { role: 'tool', tool_call_id: id, content: 'looked up' };
  if (format === 'responses') return { type: 'function_call_output', call_id: id, output: 'looked up' };
  return { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'looked up' }] };
}

for (const format of CLIENT_FORMATS) {
  for (const spoken of SPOKEN) {
    for (const stream of [false, true]) {
      test(`a server tool runs between two turns of one answer | ${format} to ${spoken}${stream ? ', streamed' : ''}`, async () => {
        const turns = [{ text: 'Let me see.', calls: [asks('call_1', 'Europe/Berlin')] }, { text: 'Late.' }];
        const told = { 'x-svc-metadata': 'enabled' };
        const { sent, text, status, read, id } = await ask(format, spoken, turns, bodyOf(format, spoken, stream), told);
        assert.equal(status, 200, text);
        assert.equal(sent.length, 2);
        const stage = '{"type":"server_tools","name":"server-tools","summary":"ran 1 of 1 call"';
        assert.ok(text.includes(`"pipeline":[${stage}`), text);
        for (const body of sent) assert.deepEqual(namesOf(body), ['datetime', 'lookup']);
        assert.equal(prompt(sent[1].messages.slice(0, sent[0].messages.length)), prompt(sent[0].messages));
        assert.match(JSON.stringify(sent[1].messages.at(-1)), /\d\d:\d\d\+0[12]:00.*Europe/);
        const { usage, history } = read();
        const shown = JSON.stringify(history);
        assert.ok(shown.includes('Let me see.') && shown.includes('Late.') && shown.includes('Europe/Berlin'), shown);
        assert.equal(usage.output_tokens ?? usage.completion_tokens, 10);
        const counts = usage.server_tool_use_details ?? usage.server_tool_use;
        assert.deepEqual([counts.tool_calls_requested, counts.tool_calls_executed], [1, 1]);
        const row = await rowOf(gateway, id);
        assert.equal(row['tokens_completion'], 10);
      });

      test(`the next request continues with the call and its result | ${format} to ${spoken}${stream ? ', streamed' : ''}`, async () => {
        const first = await ask(
          format,
          spoken,
          [{ calls: [asks('call_1')] }, { text: 'Late.' }],
          bodyOf(format, spoken, stream),
        );
        const history = [...first.read().history, { role: 'user', content: 'And now?' }];
        for (const tools of [undefined, [functionOf(format, 'lookup')], []]) {
          const more = tools === undefined ? {} : { tools };
          const next = await ask(format, spoken, [{ text: 'Later.' }], bodyOf(format, spoken, stream, more, history));
          assert.equal(next.status, 200, next.text);
          const [before, now] = [first.sent[1].messages, next.sent[0].messages];
          // Prompt caches hit: what the second turn sent is the beginning of what the next request sends.
          assert.equal(prompt(now.slice(0, before.length)), prompt(before));
          assert.deepEqual(
            namesOf(next.sent[0]),
            tools === undefined ? ['datetime', 'lookup'] : tools.length === 1 ? ['lookup'] : ['datetime'],
          );
        }
      });
    }

    test(`a call of the client's own ends the answer, with the results of server tools in it | ${format} to ${spoken}`, async () => {
      const own = { id: 'call_9', name: 'lookup', arguments: '{}' };
      for (const stream of [false, true]) {
        const turns = [{ calls: [asks('call_1')] }, { text: 'Looking.', calls: [asks('call_2', 'Asia/Tokyo'), own] }];
        const first = await ask(format, spoken, turns, bodyOf(format, spoken, stream));
        assert.equal(first.sent.length, 2, first.text);
        const { history, finish } = first.read();
        assert.equal(finish, format === 'chat' ? 'tool_calls' : format === 'messages' ? 'tool_use' : 'completed');
        assert.ok(JSON.stringify(history).includes('Asia/Tokyo'));
        const body = bodyOf(format, spoken, stream, {}, [...history, resultOf(format, 'call_9')]);
        const next = await ask(format, spoken, [{ text: 'Done.' }], body);
        assert.equal(next.status, 200, next.text);
        const { messages } = next.sent[0];
        assert.equal(prompt(messages.slice(0, 3)), prompt(first.sent[1].messages));
        // Both calls are in one turn of the model, and both results follow it.
        const calls =
          spoken === 'chat'
            ? messages[3].tool_calls
            : messages[3].content.filter((block: Json) => block.type === 'tool_use');
        assert.deepEqual(calls.map(({ id }: Json) => id).toSorted(), ['call_2', 'call_9']);
        const results = spoken === 'chat' ? messages.slice(4) : messages[4].content;
        assert.equal(results.length, 2);
      }
    });
  }

  test(`calls run side by side, and a failed one is a result for the model | ${format}`, async () => {
    const calls = [
      asks('call_1', 'Europe/Berlin'),
      asks('call_2', 'Mars/Olympus'),
      { id: 'call_3', name: 'datetime', arguments: '[]' },
      { id: 'call_4', name: 'datetime', arguments: '{"zone":"UTC"}' },
    ];
    for (const stream of [false, true]) {
      const { sent, read } = await ask(
        format,
        'messages',
        [{ calls }, { text: 'ok' }],
        bodyOf(format, 'messages', stream),
      );
      const results = sent[1].messages.at(-1).content;
      assert.deepEqual(
        results.map((one: Json) => [one.tool_use_id, one.is_error ?? false]),
        [
          ['call_1', false],
          ['call_2', true],
          ['call_3', true],
          ['call_4', true],
        ],
      );
      const { usage, history } = read();
      const counts = usage.server_tool_use_details ?? usage.server_tool_use;
      assert.deepEqual([counts.tool_calls_requested, counts.tool_calls_executed], [4, 2]);
      const body = bodyOf(format, 'messages', stream, {}, [...history, { role: 'user', content: 'And?' }]);
      const next = await ask(format, 'messages', [{ text: 'ok' }], body);
      assert.equal(prompt(next.sent[0].messages.slice(0, 3)), prompt(sent[1].messages));
    }
  });

  test(`each stop condition ends the loop: pending calls run, and the last turn cannot call | ${format}`, async () => {
    const forever = Array.from({ length: 6 }, (_, index) => ({ calls: [asks(`call_${index}`)] }));
    const ends = (conditions: Json[]) => ({ stop_server_tools_when: conditions, max_tool_calls: 1 });
    const cases: [Json, number][] = [
      [ends([{ type: 'step_count_is', step_count: 2 }]), 3],
      [ends([{ type: 'has_tool_call', tool_name: 'svc:datetime' }]), 2],
      [ends([{ type: 'has_tool_call', tool_name: 'openrouter:datetime' }]), 2],
      [ends([{ type: 'has_tool_call', tool_name: 'datetime' }]), 2],
      [ends([{ type: 'max_tokens_used', max_tokens: 31 }]), 4],
      [ends([{ type: 'max_cost', max_cost_in_dollars: 0.0003 }]), 4],
      [ends([{ type: 'finish_reason_is', reason: 'tool_calls' }]), 2],
      [
        ends([
          { type: 'finish_reason_is', reason: 'other' },
          { type: 'step_count_is', step_count: 1 },
        ]),
        2,
      ],
      [{ max_tool_calls: 3 }, 4],
      [{ max_tool_calls: 0 }, 1],
    ];
    for (const [more, turns] of cases) {
      for (const stream of [false, true]) {
        const answers = [
          ...forever.slice(0, turns - 1),
          { text: 'Enough.', calls: turns === 3 ? [asks('call_x')] : [] },
        ];
        const { sent, read, text } = await ask(format, 'chat', answers, bodyOf(format, 'chat', stream, more));
        assert.equal(sent.length, turns, `${JSON.stringify(more)}: ${text}`);
        sent.forEach(({ tool_choice: choice }, index) => {
          assert.equal(choice === 'none', index === turns - 1, JSON.stringify(more));
        });
        const { history, finish } = read();
        assert.ok(JSON.stringify(history).includes('Enough.'));
        assert.ok(['stop', 'end_turn', 'completed'].includes(finish), finish);
      }
    }
  });

  test(`what is wrong with tools and conditions is refused by its path | ${format}`, async () => {
    const cases: [Json, string][] = [
      [{ tools: [{ ...DATETIME, parameters: { timezone: 'Mars/Olympus' } }] }, 'tools[0].parameters.timezone'],
      [{ stop_server_tools_when: [{ type: 'never' }] }, 'stop_server_tools_when[0].type'],
      [{ stop_server_tools_when: [] }, 'stop_server_tools_when'],
      [{ stop_server_tools_when: [{ type: 'step_count_is' }] }, 'stop_server_tools_when[0].step_count'],
      [{ stop_server_tools_when: [{ type: 'step_count_is', step_count: 0 }] }, 'stop_server_tools_when[0].step_count'],
      [
        { stop_server_tools_when: [{ type: 'max_cost', max_cost_in_dollars: -1 }] },
        'stop_server_tools_when[0].max_cost_in_dollars',
      ],
      [{ stop_server_tools_when: [{ type: 'has_tool_call', tool_name: '' }] }, 'stop_server_tools_when[0].tool_name'],
    ];
    for (const [more, path] of cases) {
      const { status, text } = await ask(format, 'chat', [], bodyOf(format, 'chat', false, more));
      assert.equal(status, 400, text);
      assert.ok(text.includes(`${path} `), `${path}: ${text}`);
    }
  });

  test(`a forced call is forced once | ${format}`, async () => {
    const choice: Json = { chat: DATETIME, responses: DATETIME, messages: { type: 'tool', name: 'datetime' } }[format];
    const body = bodyOf(format, 'chat', false, { tool_choice: choice });
    const { sent } = await ask(format, 'chat', [{ calls: [asks('call_1')] }, { text: 'ok' }], body);
    assert.equal(sent[0].tool_choice.function.name, 'datetime');
    assert.ok(sent[1].tool_choice === undefined || sent[1].tool_choice === 'auto');
  });

  test(`a client's function of the same name keeps it | ${format}`, async () => {
    const tools = [functionOf(format, 'datetime'), DATETIME];
    const body = bodyOf(format, 'chat', false, { tools });
    const { sent } = await ask(
      format,
      'chat',
      [{ calls: [{ ...asks('call_1'), name: 'svc_datetime' }] }, { text: 'ok' }],
      body,
    );
    assert.equal(sent.length, 2);
    assert.deepEqual(namesOf(sent[1]), ['datetime', 'svc_datetime']);
  });
}

test('limits of the installation: calls beyond them are not run, and the last turn comes', async () => {
  const many = [0, 1].map((turn) => ({
    calls: Array.from({ length: 4 }, (_, index) => asks(`call_${turn}_${index}`)),
  }));
  const { sent, read } = await ask('chat', 'chat', [...many, { text: 'ok' }], bodyOf('chat', 'chat', false));
  const results = sent[2].messages.filter(({ role }: Json) => role === 'tool').map(({ content }: Json) => content);
  assert.equal(results.filter((text: string) => text.includes('already made 6 calls')).length, 2);
  const counts = read().usage.server_tool_use_details;
  assert.deepEqual([counts.tool_calls_requested, counts.tool_calls_executed], [8, 6]);
  const turns = Array.from({ length: 12 }, (_, index) => ({ calls: [asks(`call_${index}`)] }));
  const conditions = { stop_server_tools_when: [{ type: 'step_count_is', step_count: 100 }] };
  const long = await ask('chat', 'chat', [...turns, { text: 'ok' }], bodyOf('chat', 'chat', false, conditions));
  assert.deepEqual([long.sent.length, long.sent[12].tool_choice], [13, 'none']);
});

const turnsArbitrary = fc.array(
  fc.record({
    text: fc.option(fc.constantFrom('Well. ', 'Zeit: \u00fcber \ud83d\ude00 ', 'a'.repeat(40)), { nil: undefined }),
    thinking: fc.option(fc.constant({ text: 'Hm.', signature: 'c2ln' }), { nil: undefined }),
    calls: fc.array(fc.constantFrom('{}', '{"timezone":"Asia/Tokyo"}', '{"timezone":"Nowhere"}', '{', '[]'), {
      minLength: 1,
      maxLength: 3,
    }),
  }),
  { maxLength: 4 },
);

test('a stream and an answer in one piece are the same in substance, for every loop and format', async () => {
  const ending = fc.constantFrom('text', 'own call', 'both', 'length');
  // The time that the tool tells is the same in both.
  gateway.clock.stand();
  await fc.assert(
    fc.asyncProperty(
      turnsArbitrary,
      ending,
      fc.constantFrom(...CLIENT_FORMATS),
      fc.constantFrom(...SPOKEN),
      // Which turn is judged to break a rule, if any is judged.
      fc.constantFrom(undefined, 'audit', 'none', 0, 1),
      async (turns, end, format, spoken, judged) => {
        const own = { id: 'call_own', name: 'lookup', arguments: '{}' };
        const answers: Told[] = turns.map(({ calls, text, thinking }, turn) => ({
          ...(text !== undefined && { text }),
          ...(thinking !== undefined && spoken === 'messages' && { thinking }),
          calls: calls.map((written, index) => ({
            id: `call_${turn}_${index}`,
            name: 'datetime',
            arguments: spoken === 'chat' || written === '{}' || written.includes('zone') ? written : '{}',
          })),
        }));
        answers.push(
          end === 'text'
            ? { text: 'Done.' }
            : end === 'length'
              ? { text: 'Do', finish: 'length' }
              : { calls: end === 'both' ? [asks('call_last'), own] : [own] },
        );
        if (typeof judged === 'number') answers.splice(judged, 0, { text: 'Secret.', calls: [asks('call_secret')] });
        const asked = (stream: boolean) => {
          gateway.upstream.script('judge', judgements(answers.length, judged === 'audit' ? 0 : judged));
          const more =
            judged === undefined ? {} : { plugins: [{ ...ALIGNED, mode: judged === 'audit' ? judged : 'enforce' }] };
          return ask(format, spoken, answers, bodyOf(format, spoken, stream, more));
        };
        const [whole, streamed] = [await asked(false), await asked(true)];
        assert.deepEqual([whole.status, whole.text.includes('Secret.')], [200, false], whole.text);
        assert.equal(streamed.text.includes('Secret.'), false);
        assert.deepEqual(plain(streamed.read()), plain(whole.read()));
        assert.equal(
          prompt(streamed.sent.map(({ messages }) => messages)),
          prompt(whole.sent.map(({ messages }) => messages)),
        );
      },
    ),
    { numRuns: 40 },
  );
  gateway.clock.goOn();
});

const ALIGNED = { id: 'alignment', rules: ['Tell no secret.'] };

/** For each turn. @param broken the one that breaks the rule */
function judgements(turns: number, broken: unknown) {
  return Array.from({ length: turns }, (_, turn) => {
    const rules = [{ rule: 1, applicable: true, probability: turn === broken ? 1 : 0 }];
    return answerOf('chat', false, { text: JSON.stringify({ rules }), usage: USAGE });
  });
}

/** Without ids that are made of the generation's, and without what streams leave out where it says nothing. */
function plain(answer: Json): Json {
  return JSON.parse(JSON.stringify(answer), (key, value) => {
    if (key === 'id' && /^(msg|rs|fc)_/.test(value)) return '';
    return value === null ? undefined : value;
  });
}

test('tokens are counted with the functions that the model gets', async () => {
  const own = await startGateway(
    { after: (close) => after(close as () => Promise<void>) },
    { providers: { claude: { kind: 'anthropic' } } },
  );
  own.upstream.script('claude', [{ chunks: ['{"input_tokens":12}'] }]);
  const messages = [{ role: 'user', content: 'hi' }];
  const reply = await own.post('/messages/count_tokens', { model: 'test/claude', messages, tools: [DATETIME] });
  assert.deepEqual(await reply.json(), { input_tokens: 12 });
  const [sent] = own.upstream.requests('claude') as Json[];
  assert.deepEqual(namesOf(sent.json), ['datetime']);
  await own.close();
});
