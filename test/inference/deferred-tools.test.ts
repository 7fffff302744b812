/** Deferred tools through a whole gateway: searched for in between, in every served format, streamed and not. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import {
  BODY_FORMATS,
  type BodyFormat,
  readServedStream,
  readServedWhole,
} from '../../src/testing/clients/served-answer.ts';
import { rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Format, type Told } from '../../src/testing/upstream/answers.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: { kind: 'chat' }, messages: { kind: 'messages' } } },
);

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const ROUTES = { chat: '/chat/completions', messages: '/messages', responses: '/responses' } as const;
const SPOKEN: readonly Format[] = ['chat', 'messages'];
const PARAMETERS = {
  type: 'object',
  properties: { customer: { type: 'string' }, amount: { type: 'integer', minimum: 1 } },
  required: ['customer', 'amount'],
  additionalProperties: false,
};
const TOOLS = [
  { name: 'get_time', description: 'The time of day', parameters: { type: 'object', properties: {} } },
  { name: 'create_invoice', description: 'Bills a customer', parameters: PARAMETERS, deferred: true },
  { name: 'listOpenInvoices', description: 'Unpaid bills', parameters: { type: 'object' }, deferred: true },
  { name: 'send_mail', description: 'Sends a letter', parameters: { type: 'object' }, deferred: true },
];
const ARGUMENTS = '{"customer":"Ada","amount":12}';
const USAGE = { input: 10, output: 5 };

const SEARCH = { id: 'call_1', name: 'search_tools', arguments: '{"query":"create invoice, list open"}' };
const CALL = { id: 'call_2', name: 'call_tool', arguments: `{"tool":"create_invoice","arguments":${ARGUMENTS}}` };

/** What providers hash of messages: all but the breakpoints of prompt caches. */
const prompt = (messages: Json) =>
  JSON.stringify(messages, (key, value) => (key === 'cache_control' ? undefined : value));

function toolsOf(format: BodyFormat): unknown[] {
  return TOOLS.map(({ name, description, parameters, deferred }) => {
    const mark = deferred ? { defer_loading: true } : {};
    if (format === 'messages') return { name, description, input_schema: parameters, ...mark };
    if (format === 'responses') return { type: 'function', name, description, parameters, ...mark };
    return { type: 'function', function: { name, description, parameters }, ...mark };
  });
}

function bodyOf(format: BodyFormat, spoken: Format, stream: boolean, more: Json = {}, history: unknown[] = []): Json {
  const turns = [{ role: 'user', content: 'Bill Ada' }, ...history];
  return {
    model: `test/${spoken}`,
    stream,
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: turns } : { messages: turns }),
    tools: toolsOf(format),
    deferred_tools: { protocol: 'v1', profile: 'portable', validation: 'runtime', search: { type: 'bm25' } },
    ...more,
  };
}

async function ask(format: BodyFormat, spoken: Format, stream: boolean, answers: readonly Told[], body: Json) {
  gateway.upstream.script(
    spoken,
    answers.map((told) => answerOf(spoken, stream, { usage: USAGE, ...told })),
  );
  const before = gateway.upstream.requests(spoken).length;
  const reply = await gateway.post(ROUTES[format], body);
  const text = await reply.text();
  const sent: Json[] = gateway.upstream
    .requests(spoken)
    .slice(before)
    .map((one) => one.json);
  return {
    status: reply.status,
    text,
    sent,
    raw: gateway.upstream
      .requests(spoken)
      .slice(before)
      .map((one) => String(one.body)),
  };
}

const read = (format: BodyFormat, stream: boolean, text: string) =>
  stream ? readServedStream(format, text, 'finish') : readServedWhole(format, text);

/** What a client sends back of a whole answer, with the result of its one call. */
function historyOf(format: BodyFormat, text: string, id: string): unknown[] {
  const answer: Json = JSON.parse(text);
  if (format === 'chat') {
    return [answer.choices[0].message, { role: 'tool', tool_call_id: id, content: 'billed' }];
  }
  if (format === 'messages') {
    const result = { type: 'tool_result', tool_use_id: id, content: 'billed' };
    return [
      { role: 'assistant', content: answer.content },
      { role: 'user', content: [result] },
    ];
  }
  return [...answer.output, { type: 'function_call_output', call_id: id, output: 'billed' }];
}

const namesOf = (sent: Json) => sent.tools.map((tool: Json) => tool.name ?? tool.function.name);

for (const format of BODY_FORMATS) {
  for (const spoken of SPOKEN) {
    for (const stream of [false, true]) {
      const way = `${format} to ${spoken}${stream ? ', streamed' : ''}`;
      test(`a deferred tool is found and called, and the client sees one answer | ${way}`, async () => {
        const rounds = [
          { text: 'Looking.', calls: [SEARCH] },
          { text: 'Found.', calls: [CALL] },
        ];
        const { sent, text, status, raw } = await ask(format, spoken, stream, rounds, bodyOf(format, spoken, stream));
        assert.equal(status, 200, text);
        assert.equal(sent.length, 2);
        for (const body of sent) assert.deepEqual(namesOf(body), ['get_time', 'search_tools', 'call_tool']);
        assert.equal(raw[0]!.includes('create_invoice'), false);
        assert.equal(
          JSON.stringify(sent[1].messages.slice(0, sent[0].messages.length)),
          JSON.stringify(sent[0].messages),
        );
        // Definitions are sent once, and only those that were found.
        assert.equal(raw[1]!.split('Bills a customer').length, 2);
        assert.ok(raw[1]!.includes('Unpaid bills') && !raw[1]!.includes('Sends a letter'));
        const { choices, usage } = read(format, stream, text);
        const [choice] = choices;
        assert.deepEqual(choice!.calls, [{ id: 'call_2', name: 'create_invoice', arguments: ARGUMENTS }]);
        assert.equal(choice!.text, 'Looking.Found.');
        assert.ok(['tool_calls', 'tool_use', 'completed'].includes(choice!.finish!), choice!.finish!);
        assert.deepEqual([usage!.input, usage!.output], [20, 10]);
      });
    }

    test(`the conversation continues where it stopped, with the tools that were found | ${format} to ${spoken}`, async () => {
      const rounds = [{ calls: [SEARCH] }, { text: 'Found.', calls: [CALL] }];
      const first = await ask(format, spoken, false, rounds, bodyOf(format, spoken, false));
      const history = historyOf(format, first.text, 'call_2');
      const next = await ask(format, spoken, false, [{ text: 'Done.' }], bodyOf(format, spoken, false, {}, history));
      assert.equal(next.status, 200, next.text);
      const [before, after] = [first.sent[1].messages, next.sent[0].messages];
      // What the second call sent is the beginning of what the third one sends: prompt caches hit.
      assert.equal(prompt(after.slice(0, before.length)), prompt(before));
      assert.equal(next.raw[0]!.split('Bills a customer').length, 2);
      assert.ok(next.raw[0]!.includes('Ada') && next.raw[0]!.includes('billed'));
      assert.deepEqual(namesOf(next.sent[0]), ['get_time', 'search_tools', 'call_tool']);
    });
  }

  test(`the server tool svc:tool_search defers in the same way | ${format}`, async () => {
    for (const prefix of ['svc', 'openrouter']) {
      const search = { type: `${prefix}:tool_search`, parameters: { max_results: 1 } };
      const more = { tools: [...toolsOf(format), search], deferred_tools: undefined };
      const turns = [{ calls: [SEARCH] }, { calls: [CALL] }];
      const { sent, text, raw } = await ask(format, 'chat', true, turns, bodyOf(format, 'chat', true, more));
      assert.deepEqual(namesOf(sent[0]), ['get_time', 'search_tools', 'call_tool']);
      assert.equal(['Bills a customer', 'Unpaid bills'].filter((text) => raw[1]!.includes(text)).length, 1);
      assert.equal(read(format, true, text).choices[0]!.calls[0]!.name, 'create_invoice');
      const wrong = { ...search, parameters: { max_results: 0 } };
      const refused = await ask(
        format,
        'chat',
        false,
        [],
        bodyOf(format, 'chat', false, { ...more, tools: [...toolsOf(format), wrong] }),
      );
      assert.ok(refused.status === 400 && refused.text.includes('tools[4].parameters.max_results '), refused.text);
      const nothing = { ...more, tools: [search, toolsOf(format)[0]] };
      const plain = await ask(format, 'chat', false, [{ text: 'ok' }], bodyOf(format, 'chat', false, nothing));
      assert.deepEqual(namesOf(plain.sent[0]), ['get_time'], plain.text);
    }
  });

  test(`arguments that do not fit are turned down before the client sees them | ${format}`, async () => {
    const wrong = { ...CALL, id: 'call_0', arguments: '{"tool":"create_invoice","arguments":{"customer":"Ada"}}' };
    for (const stream of [false, true]) {
      const body = bodyOf(format, 'chat', stream);
      const { sent, text } = await ask(format, 'chat', stream, [{ calls: [wrong] }, { calls: [CALL] }], body);
      assert.match(JSON.stringify(sent[1].messages.at(-1)), /amount is missing/);
      assert.deepEqual(
        read(format, stream, text).choices[0]!.calls.map(({ id }) => id),
        ['call_2'],
      );
    }
  });

  test(`a call of the client's own next to a search ends the answer, and the search is kept | ${format}`, async () => {
    const own = { id: 'call_9', name: 'get_time', arguments: '{}' };
    const first = await ask(format, 'chat', false, [{ calls: [SEARCH, own] }], bodyOf(format, 'chat', false));
    assert.equal(first.sent.length, 1);
    assert.deepEqual(read(format, false, first.text).choices[0]!.calls, [own]);
    const history = historyOf(format, first.text, 'call_9');
    const next = await ask(format, 'chat', false, [{ text: 'ok' }], bodyOf(format, 'chat', false, {}, history));
    assert.ok(next.raw[0]!.includes('Bills a customer') && next.raw[0]!.includes('billed'));
  });

  test(`what is wrong with the protocol is refused by its path | ${format}`, async () => {
    const good = bodyOf(format, 'chat', false);
    const deferral = (more: Json) => ({ deferred_tools: { ...good.deferred_tools, ...more } });
    const cases: [Json, string][] = [
      [deferral({ protocol: 'v2' }), 'deferred_tools.protocol'],
      [deferral({ profile: 'native' }), 'deferred_tools.profile'],
      [deferral({ validation: 'none' }), 'deferred_tools.validation'],
      [deferral({ search: { type: 'vector' } }), 'deferred_tools.search.type'],
      [deferral({ search: { type: 'bm25', max_results: 0 } }), 'deferred_tools.search.max_results'],
      [deferral({ search: { type: 'custom', result_key: 'ids' } }), 'deferred_tools.search.tool_id'],
      [
        deferral({ search: { type: 'custom', tool_id: 'send_mail', result_key: 'ids' } }),
        'deferred_tools.search.tool_id',
      ],
      [deferral({ search: { type: 'custom', tool_id: 'get_time' } }), 'deferred_tools.search.result_key'],
      [{ deferred_tools: 'v1' }, 'deferred_tools'],
      [{ tools: [] }, 'tools'],
      [{ tools: [...good.tools, good.tools[0]] }, 'tools[4]'],
    ];
    for (const [more, path] of cases) {
      const reply = await gateway.post(ROUTES[format], { ...good, ...more });
      const body = await reply.text();
      assert.equal(reply.status, 400, body);
      // Of two tools of one name, messages names the member.
      assert.ok(body.includes(`${path} `) || body.includes(`${path}.name `), `${path}: ${body}`);
    }
  });

  test(`a catalog that lost a tool which was found is refused | ${format}`, async () => {
    const first = await ask(
      format,
      'chat',
      false,
      [{ calls: [SEARCH] }, { calls: [CALL] }],
      bodyOf(format, 'chat', false),
    );
    const history = historyOf(format, first.text, 'call_2');
    const tools = toolsOf(format).filter((_, index) => index !== 1);
    const reply = await gateway.post(ROUTES[format], bodyOf(format, 'chat', false, { tools }, history));
    assert.equal(reply.status, 400);
    assert.match(await reply.text(), /create_invoice was found earlier/);
  });
}

test('a search by the client itself is the client\u2019s call, and what it names is described after its result', async () => {
  const search = { type: 'custom', tool_id: 'get_time', result_key: 'ids', max_results: 1 };
  const deferred_tools = { protocol: 'v1', profile: 'portable', validation: 'runtime', search };
  const call = { id: 'call_7', type: 'function', function: { name: 'get_time', arguments: '{}' } };
  const result = { role: 'tool', tool_call_id: 'call_7', content: '{"ids":["send_mail","create_invoice"]}' };
  const history = [{ role: 'assistant', content: null, tool_calls: [call] }, result];
  const body = bodyOf('chat', 'chat', false, { deferred_tools }, history);
  const { sent, text, raw } = await ask(
    'chat',
    'chat',
    false,
    [{ calls: [{ ...CALL, arguments: '{"tool":"send_mail","arguments":{}}' }] }],
    body,
  );
  assert.deepEqual(namesOf(sent[0]), ['get_time', 'call_tool']);
  assert.ok(raw[0]!.includes('Sends a letter') && !raw[0]!.includes('Bills a customer'));
  assert.equal(read('chat', false, text).choices[0]!.calls[0]!.name, 'send_mail');
});

test('no digit of the arguments is lost on the way to the client and back', async () => {
  const digits = '{"customer":"Ada","amount":9007199254740993}';
  const call = { ...CALL, arguments: `{"tool":"create_invoice","arguments":${digits}}` };
  const first = await ask('chat', 'chat', true, [{ calls: [call] }], bodyOf('chat', 'chat', true));
  assert.equal(read('chat', true, first.text).choices[0]!.calls[0]!.arguments, digits);
  const made = { id: 'call_2', type: 'function', function: { name: 'create_invoice', arguments: digits } };
  const history = [
    { role: 'assistant', content: null, tool_calls: [made] },
    { role: 'tool', tool_call_id: 'call_2', content: 'billed' },
  ];
  const next = await ask('chat', 'chat', false, [{ text: 'ok' }], bodyOf('chat', 'chat', false, {}, history));
  assert.deepEqual(next.sent[0].messages[1].tool_calls[0].function, { name: 'call_tool', arguments: call.arguments });
});

test('a search by expression takes RE2 and turns down what it cannot read', async () => {
  const deferred_tools = { ...bodyOf('chat', 'chat', false).deferred_tools, search: { type: 'regex' } };
  const searched = (query: string) => ({ calls: [{ ...SEARCH, arguments: JSON.stringify({ query }) }] });
  for (const [query, told] of [
    ['^SEND_', 'Sends a letter'],
    ['(a+)+$(', 'not a regular expression'],
  ] as const) {
    const body = bodyOf('chat', 'chat', false, { deferred_tools });
    const { sent } = await ask('chat', 'chat', false, [searched(query), { text: 'ok' }], body);
    assert.ok(JSON.stringify(sent[1].messages.at(-1)).includes(told), query);
  }
});

test('a model that keeps searching is stopped, and its usage is charged', async () => {
  for (const stream of [false, true]) {
    const { text, sent, status } = await ask(
      'chat',
      'chat',
      stream,
      Array.from({ length: 7 }, () => ({ calls: [SEARCH] })),
      bodyOf('chat', 'chat', stream),
    );
    assert.equal(sent.length, 6, text);
    if (stream) assert.ok(text.includes('"error"') && !text.includes('[DONE]'));
    else assert.equal(status, 502);
    // Each definition once, however often it is found.
    assert.equal(JSON.stringify(sent[5].messages).split('Bills a customer').length, 2);
  }
});

test('the output cap holds for all turns together', async () => {
  const rounds = [{ calls: [SEARCH] }, { text: 'x', finish: 'length' as const }];
  const body = bodyOf('chat', 'chat', false, { max_tokens: 12 });
  const { sent, text } = await ask('chat', 'chat', false, rounds, body);
  assert.deepEqual(
    sent.map((one) => one.max_tokens ?? one.max_completion_tokens),
    [12, 7],
  );
  assert.equal(read('chat', false, text).choices[0]!.finish, 'length');
});

test('an answer in JSON and deferred tools go together, also where the vendor has no mode for JSON', async () => {
  const rounds = [{ calls: [SEARCH] }, { calls: [{ id: 'call_3', name: 'answer', arguments: '{"done":true}' }] }];
  for (const stream of [false, true]) {
    const body = bodyOf('chat', 'messages', stream, { response_format: { type: 'json_object' } });
    const { sent, text } = await ask('chat', 'messages', stream, rounds, body);
    assert.deepEqual(namesOf(sent[0]), ['get_time', 'search_tools', 'call_tool', 'answer']);
    const [choice] = read('chat', stream, text).choices;
    assert.deepEqual([choice!.text, choice!.calls, choice!.finish], ['{"done":true}', [], 'stop']);
  }
});

async function keyWith(limit: number): Promise<Record<string, string>> {
  const reply = await fetch(`${gateway.api}/keys`, {
    method: 'POST',
    headers: { authorization: `Bearer ${MANAGEMENT_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'limited', limit }),
  });
  return { authorization: `Bearer ${((await reply.json()) as Json).key as string}` };
}

async function chargedTo(key: Record<string, string>): Promise<number> {
  const reply = await fetch(`${gateway.api}/key`, { headers: key });
  return ((await reply.json()) as Json).data.usage;
}

const DOLLARS = { input: 0.000003, output: 0.000015 };
const costOf = ({ input, output }: { input: number; output: number }) =>
  input * DOLLARS.input + output * DOLLARS.output;

test('each turn is reserved for itself, and only what the turns did cost is charged', async () => {
  const body = bodyOf('chat', 'chat', false, { max_tokens: 100 });
  const bytes = Buffer.byteLength(JSON.stringify(body));
  // A turn reads the request and the definitions of the two search tools; the next one also what was found.
  const first = (bytes + 4096 + 2048) * DOLLARS.input + 100 * DOLLARS.output;
  const rounds = [{ calls: [SEARCH] }, { text: 'done' }].map((told) =>
    answerOf('chat', false, { usage: USAGE, ...told }),
  );
  for (const [limit, status, turns] of [
    [bytes * DOLLARS.input, 402, 0],
    [first * 3, 200, 2],
  ] as const) {
    gateway.upstream.script('chat', rounds);
    const before = gateway.upstream.requests('chat').length;
    const key = await keyWith(limit);
    const reply = await gateway.post('/chat/completions', body, key);
    assert.equal(reply.status, status, String(limit));
    assert.equal(gateway.upstream.requests('chat').length - before, turns);
    if (status !== 200) continue;
    const { usage } = (await reply.json()) as Json;
    assert.ok(Math.abs(usage.cost - costOf({ input: 20, output: 10 })) < 1e-12, String(usage.cost));
  }
});

test('a budget that covers no further turn ends the answer with 402, and the turns before it are charged', async () => {
  const long = 'y'.repeat(40_000);
  const body = bodyOf('chat', 'chat', false, { max_tokens: 20_000 });
  const bytes = Buffer.byteLength(JSON.stringify(body));
  const key = await keyWith((bytes + 4096 + 4096) * DOLLARS.input + 20_000 * DOLLARS.output);
  const usage = { input: 10, output: 15_000 };
  gateway.upstream.script('chat', [answerOf('chat', false, { text: long, calls: [SEARCH], usage })]);
  const before = gateway.upstream.requests('chat').length;
  const reply = await gateway.post('/chat/completions', body, key);
  assert.equal(reply.status, 402, await reply.text());
  assert.equal(gateway.upstream.requests('chat').length - before, 1);
  const charged = await chargedTo(key);
  assert.ok(Math.abs(charged - costOf(usage)) < 1e-12, String(charged));
});

test('a later turn fails over: first the endpoint that answered, then the next', async () => {
  for (const stream of [false, true]) {
    // The cooldowns of the failures below are over.
    gateway.clock.jump(60_000);
    gateway.upstream.script('chat', [
      answerOf('chat', stream, { text: 'Looking.', calls: [SEARCH], usage: USAGE }),
      { status: 500, chunks: ['{"error":{"message":"boom"}}'] },
    ]);
    gateway.upstream.script('messages', [
      answerOf('messages', stream, { text: 'Found.', usage: { input: 7, output: 3 } }),
    ]);
    const chat = gateway.upstream.requests('chat').length;
    const body = bodyOf('chat', 'chat', stream, { models: ['test/messages'] });
    const reply = await gateway.post('/chat/completions', body);
    const text = await reply.text();
    assert.equal(reply.status, 200, text);
    const { choices, usage } = read('chat', stream, text);
    assert.equal(choices[0]!.text, 'Looking.Found.');
    assert.deepEqual([usage!.input, usage!.output], [17, 8]);
    assert.equal(gateway.upstream.requests('chat').length - chat, 2);
    // The second provider reads what the first one found.
    assert.ok(String(gateway.upstream.requests('messages').at(-1)!.body).includes('Bills a customer'));
    const row = await rowOf(gateway, reply.headers.get('x-generation-id')!);
    assert.equal(row.model, 'test/messages');
    assert.deepEqual(
      (row['provider_responses'] as Json[]).map((each) => each.status),
      [200, 500, 200],
    );
    assert.ok(Math.abs((row['total_cost'] as number) - costOf({ input: 17, output: 8 })) < 1e-12);
  }
});

test('a later turn that no endpoint answers breaks a stream off after what was seen, and is charged', async () => {
  gateway.clock.jump(60_000);
  gateway.upstream.script('chat', [
    answerOf('chat', true, { text: 'Looking.', calls: [SEARCH], usage: USAGE }),
    { status: 500, chunks: ['{"error":{"message":"boom"}}'] },
  ]);
  const reply = await gateway.post('/chat/completions', bodyOf('chat', 'chat', true));
  const text = await reply.text();
  assert.ok(text.includes('Loo') && text.includes('"error"') && !text.includes('[DONE]'), text);
  const row = await rowOf(gateway, reply.headers.get('x-generation-id')!);
  assert.ok(Math.abs((row['total_cost'] as number) - costOf(USAGE)) < 1e-12);
});
