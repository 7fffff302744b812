/** Tools that the client runs and that upstreams know as functions only, over sockets: what goes up, and what comes back. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, chatReply, streamOf, type Told, wholeOf } from '../../src/testing/upstream/answers.ts';
import { responsesAnswer } from '../../src/testing/upstream/responses-answers.ts';
import { AGENT_UPSTREAMS, type AgentUpstream, agentAnswer } from './agent-answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies are read freely
type Json = any;

/** Upstreams that know functions only; the last two speak the responses format. */
const UPSTREAMS = ['chat', 'messages', 'gemini', 'groq', 'compatible'] as const;
type Upstream = (typeof UPSTREAMS)[number];
const FORMAT: Record<Upstream, AgentUpstream> = {
  chat: 'chat',
  messages: 'messages',
  gemini: 'gemini',
  groq: 'responses',
  compatible: 'responses',
};

const PROVIDERS = {
  chat: { kind: 'vllm' },
  messages: { kind: 'messages' },
  gemini: { kind: 'gemini' },
  groq: { kind: 'groq', speaks: ['responses'] },
  responses: { kind: 'responses' },
  compatible: { kind: 'responses', function_tools_only: true },
  openai: { kind: 'openai', speaks: ['responses'] },
};

const PARAMETERS = { type: 'object', properties: { key: { type: 'string' } }, required: ['key'] };
const lookup = (more: Json = {}) => ({
  type: 'function',
  name: 'lookup',
  description: 'Looks up.',
  parameters: PARAMETERS,
  ...more,
});
const NAMESPACES = [
  { type: 'namespace', name: 'mcp__notes', description: 'Notes of the team.', tools: [lookup()] },
  { type: 'namespace', name: 'mcp__wiki', description: 'The wiki.', tools: [lookup()] },
];
const GRAMMAR = { type: 'grammar', syntax: 'lark', definition: 'start: "a"+' };
const CUSTOM = { type: 'custom', name: 'patch', description: 'Edits files.', format: GRAMMAR };

/** The list, whose entries are all of one type. */
function ofType(list: Json[] = [], type: string): Json[] {
  for (const entry of list) assert.equal(entry.type, type);
  return list;
}

/** Names and descriptions of the functions that an upstream was sent. */
function functionsIn(upstream: Upstream, body: Json): { name: string; description?: string; parameters?: Json }[] {
  switch (upstream) {
    case 'chat':
      return ofType(body.tools, 'function').map((tool) => tool.function);
    case 'messages':
      return body.tools?.map(({ input_schema: parameters, ...tool }: Json) => ({ ...tool, parameters })) ?? [];
    case 'gemini':
      return (body.tools ?? []).flatMap(({ functionDeclarations = [] }: Json) =>
        functionDeclarations.map(({ parametersJsonSchema: parameters, ...tool }: Json) => ({ ...tool, parameters })),
      );
    default:
      return ofType(body.tools, 'function');
  }
}

/** Names and arguments of the calls of a history that an upstream was sent. */
function callsIn(upstream: Upstream, body: Json): [string, unknown][] {
  switch (upstream) {
    case 'chat':
      return body.messages.flatMap(({ tool_calls: calls = [] }: Json) =>
        calls.map((call: Json) => [call.function.name, JSON.parse(call.function.arguments)]),
      );
    case 'messages':
      return body.messages.flatMap(({ content }: Json) =>
        Array.isArray(content)
          ? content.filter(({ type }) => type === 'tool_use').map(({ name, input }) => [name, input])
          : [],
      );
    case 'gemini':
      return body.contents.flatMap(({ parts }: Json) =>
        parts.flatMap(({ functionCall: call }: Json) => (call ? [[call.name, call.args]] : [])),
      );
    default:
      return ofType(
        body.input.filter(({ type }: Json) => type?.endsWith('_call')),
        'function_call',
      ).map(({ name, arguments: written }) => [name, JSON.parse(written)]);
  }
}

async function events(answer: Response): Promise<Json[]> {
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return text.split('\n').flatMap((line) => (line.startsWith('data: {') ? [JSON.parse(line.slice(6))] : []));
}

/** The content of a streamed response: the items that are done, which its last event repeats. */
function itemsOf(told: Json[]): Json[] {
  const done = told.filter(({ type }) => type === 'response.output_item.done').map(({ item }) => item);
  assert.deepEqual(told.at(-1)?.response.output, done);
  return done;
}

/** The call among the items; Gemini's signature of it is an item of its own. */
function callOf(items: Json[]): Json {
  return items.find(({ type }) => type.endsWith('_call'));
}

async function ask(gateway: Gateway, upstream: string, told: Told | undefined, request: Json) {
  const format = FORMAT[upstream as Upstream] ?? 'responses';
  if (told !== undefined) {
    const stream = request.stream !== false;
    const whole =
      format === 'responses'
        ? responsesAnswer(false, told)
        : format === 'gemini'
          ? undefined
          : answerOf(format, false, told);
    gateway.upstream.script(upstream, [stream || whole === undefined ? agentAnswer(format, told) : whole]);
  }
  const answer = await gateway.post('/responses', { model: `test/${upstream}`, stream: true, input: 'hi', ...request });
  const body = () => gateway.upstream.requests(upstream).at(-1)?.json as Json;
  return { answer, body };
}

const called = (name: string, written: string): Told => ({ calls: [{ id: 'call_1', name, arguments: written }] });

test('tools of a namespace are functions upstream, and calls of them come back with their namespace', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  for (const upstream of UPSTREAMS) {
    const { answer, body } = await ask(gateway, upstream, called('mcp__wiki__lookup', '{"key":"a"}'), {
      tools: [...NAMESPACES, { type: 'web_search' }],
      input: [
        { role: 'user', content: 'hi' },
        { type: 'function_call', call_id: 'c0', name: 'lookup', namespace: 'mcp__notes', arguments: '{"key":"b"}' },
        { type: 'function_call_output', call_id: 'c0', output: 'c' },
      ],
    });
    const item = callOf(itemsOf(await events(answer)));
    assert.deepEqual(
      [item.type, item.namespace, item.name, item.call_id, JSON.parse(item.arguments)],
      ['function_call', 'mcp__wiki', 'lookup', 'call_1', { key: 'a' }],
      upstream,
    );
    const functions = functionsIn(upstream, body());
    assert.deepEqual(
      functions.map(({ name }) => name),
      ['mcp__notes__lookup', 'mcp__wiki__lookup'],
      upstream,
    );
    assert.match(functions[0]!.description!, /Looks up\.[\s\S]*Notes of the team\./);
    assert.deepEqual(callsIn(upstream, body()), [['mcp__notes__lookup', { key: 'b' }]], upstream);
  }
});

test('a custom tool is a function of one text, whose pieces reach the client as its input', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  const input = 'line "one"\n\\ two \u{1f600} 世\t';
  for (const upstream of UPSTREAMS) {
    const written = JSON.stringify({ input }).replace('世', '\\u4e16');
    const { answer, body } = await ask(gateway, upstream, called('patch', written), {
      tools: [CUSTOM],
      tool_choice: { type: 'custom', name: 'patch' },
      input: [
        { role: 'user', content: 'hi' },
        { type: 'custom_tool_call', id: 'ctc_0', call_id: 'c0', name: 'patch', input: 'a "b"' },
        { type: 'custom_tool_call_output', call_id: 'c0', output: 'done' },
      ],
    });
    const told = await events(answer);
    const item = callOf(itemsOf(told));
    assert.deepEqual([item.type, item.name, item.input], ['custom_tool_call', 'patch', input], upstream);
    const deltas = told
      .filter(({ type }) => type === 'response.custom_tool_call_input.delta')
      .map(({ delta }) => delta);
    assert.equal(deltas.join(''), input);
    if (upstream !== 'gemini') assert.ok(deltas.length > 3, `${upstream}: ${deltas.length} pieces`);
    const [fn] = functionsIn(upstream, body());
    assert.deepEqual([fn?.name, fn?.parameters.required], ['patch', ['input']]);
    assert.match(fn!.description!, /Edits files\.[\s\S]*lark grammar:\nstart: "a"\+/);
    assert.deepEqual(callsIn(upstream, body()), [['patch', { input: 'a "b"' }]], upstream);
    assert.doesNotMatch(JSON.stringify(body()), /ctc_0/);
  }
});

const PATCH = { type: 'update_file', path: 'a.ts', diff: '-a\n+"b"\n' };

test('a whole answer has the same calls as a streamed one', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  for (const upstream of ['chat', 'messages', 'groq'] as const) {
    const told: Told = {
      calls: [
        { id: 'c1', name: 'mcp__notes__lookup', arguments: '{"key":"a"}' },
        { id: 'c2', name: 'patch', arguments: '{"input":"x\\ny"}' },
        { id: 'c3', name: 'local_shell', arguments: '{"command":["ls","-l"],"timeout_ms":5}' },
        { id: 'c4', name: 'tool_search', arguments: '{"query":"q"}' },
        { id: 'c5', name: 'apply_patch', arguments: JSON.stringify(PATCH) },
      ],
    };
    const tools = [
      ...NAMESPACES,
      CUSTOM,
      ...[{ type: 'local_shell' }, { type: 'tool_search', execution: 'client' }, { type: 'apply_patch' }],
    ];
    const whole = await ask(gateway, upstream, told, { tools, stream: false });
    const text = await whole.answer.text();
    assert.equal(whole.answer.status, 200, text);
    const streamed = await ask(gateway, upstream, told, { tools });
    const shapes = (items: Json[]) => items.map(({ id: _, ...item }) => item);
    const items = shapes(JSON.parse(text).output);
    assert.deepEqual(shapes(itemsOf(await events(streamed.answer))), items, upstream);
    const status = 'completed';
    assert.deepEqual(items, [
      {
        type: 'function_call',
        status,
        call_id: 'c1',
        name: 'lookup',
        arguments: '{"key":"a"}',
        namespace: 'mcp__notes',
      },
      { type: 'custom_tool_call', status, call_id: 'c2', name: 'patch', input: 'x\ny' },
      {
        type: 'local_shell_call',
        status,
        call_id: 'c3',
        action: { type: 'exec', command: ['ls', '-l'], env: {}, timeout_ms: 5 },
      },
      { type: 'tool_search_call', status, call_id: 'c4', execution: 'client', arguments: { query: 'q' } },
      { type: 'apply_patch_call', status, call_id: 'c5', operation: PATCH },
    ]);
  }
});

test('calls of the local shell and of the client’s tool search in a history are calls of functions, with what was found', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  for (const upstream of UPSTREAMS) {
    const { answer, body } = await ask(
      gateway,
      upstream,
      { text: 'ok' },
      {
        tools: [{ type: 'local_shell' }, { type: 'tool_search', execution: 'client' }],
        input: [
          { role: 'user', content: 'hi' },
          {
            type: 'local_shell_call',
            id: 'lsh_1',
            call_id: 'c1',
            status: 'completed',
            action: { type: 'exec', command: ['ls'], env: {} },
          },
          { type: 'local_shell_call_output', id: 'lsh_1', output: 'a.txt' },
          {
            type: 'tool_search_call',
            call_id: 'c2',
            execution: 'client',
            status: 'completed',
            arguments: { query: 'notes' },
          },
          {
            type: 'tool_search_output',
            call_id: 'c2',
            execution: 'client',
            status: 'completed',
            tools: [NAMESPACES[0]],
          },
        ],
      },
    );
    await events(answer);
    assert.deepEqual(callsIn(upstream, body()), [
      ['local_shell', { command: ['ls'] }],
      ['tool_search', { query: 'notes' }],
    ]);
    assert.deepEqual(
      functionsIn(upstream, body()).map(({ name }) => name),
      ['local_shell', 'tool_search', 'mcp__notes__lookup'],
    );
    const sent = JSON.stringify(body());
    assert.match(sent, /a\.txt/);
    assert.equal(sent.match(/mcp__notes__lookup/g)?.length, 2, `${upstream}: the list, and what was found`);
  }
});

test('a patch that a client has applied or refused is a result for any model, and svc:apply_patch without a container makes such items', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  for (const upstream of [...UPSTREAMS, 'responses', 'openai'] as const) {
    for (const [tool, stream] of [
      [{ type: 'svc:apply_patch', parameters: { engine: 'native' } }, true],
      [{ type: 'openrouter:apply_patch' }, false],
    ] as const) {
      const first = await ask(gateway, upstream, called('apply_patch', JSON.stringify(PATCH)), {
        tools: [tool],
        stream,
      });
      const seen = stream ? await events(first.answer) : [];
      const items: Json[] = stream ? itemsOf(seen) : ((await first.answer.json()) as Json).output;
      const call = items.find(({ type }) => type === 'apply_patch_call');
      assert.ok(call, upstream);
      assert.deepEqual([call.status, call.operation], ['completed', PATCH], upstream);
      const diffs = seen.filter(({ type }: Json) => type.includes('operation_diff'));
      assert.deepEqual(
        diffs.map(({ delta, diff }: Json) => delta ?? diff),
        stream ? [PATCH.diff, PATCH.diff] : [],
      );
      const result = {
        type: 'apply_patch_call_output',
        call_id: call.call_id,
        status: 'failed',
        output: 'no such line',
      };
      const input = [{ role: 'user', content: 'hi' }, call, result];
      const { answer, body } = await ask(gateway, upstream, { text: 'ok' }, { tools: [tool], input });
      await events(answer);
      assert.match(JSON.stringify(body()), /no such line/);
      assert.doesNotMatch(JSON.stringify(body()), /apply_patch_call/, upstream);
    }
  }
});

test('an upstream that knows these tools gets the request as it came', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  for (const upstream of ['responses', 'openai']) {
    const own = [{ type: 'local_shell' }, { type: 'apply_patch' }];
    const tools = [...NAMESPACES, CUSTOM, { type: 'web_search' }, ...own];
    const { answer, body } = await ask(gateway, upstream, called('lookup', '{}'), { tools });
    await events(answer);
    assert.deepEqual(body().tools, tools);
  }
});

test('a web search that is merely allowed is left out where the upstream has none, and one that is forced is refused by name', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  for (const upstream of UPSTREAMS) {
    const tools = [{ type: 'web_search' }];
    const allowed = await ask(gateway, upstream, { text: 'ok' }, { tools: [...tools, lookup()], tool_choice: 'auto' });
    await events(allowed.answer);
    assert.deepEqual(
      functionsIn(upstream, allowed.body()).map(({ name }) => name),
      ['lookup'],
    );
    for (const tool_choice of [{ type: 'web_search' }, 'required']) {
      const { answer } = await ask(gateway, upstream, undefined, { tools, tool_choice });
      const text = await answer.text();
      assert.equal(answer.status, 400, text);
      assert.match(text, /web_search/);
    }
  }
});

test('names of 65 to 128 characters go out short and come back whole, in every served format', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  const name = `mcp__${'server'.repeat(12)}__${'tool'.repeat(10)}`;
  assert.ok(name.length > 64 && name.length <= 128);
  for (const upstream of AGENT_UPSTREAMS) {
    const short = (body: Json): string =>
      upstream === 'gemini'
        ? body.tools[0].functionDeclarations[0].name
        : (body.tools[0].name ?? body.tools[0].function.name);
    const limit = upstream === 'messages' ? 128 : 64;
    const tool = { name, description: 'd' };
    // The name upstream is known once it was sent.
    gateway.upstream.script(upstream, [agentAnswer(upstream, { text: 'ok' })]);
    await events(
      await gateway.post('/responses', {
        model: `test/${upstream}`,
        stream: true,
        input: 'hi',
        tools: [{ type: 'function', ...tool }],
      }),
    );
    const sent = short(gateway.upstream.requests(upstream).at(-1)?.json);
    assert.ok(sent.length <= limit, `${upstream}: ${sent.length}`);
    const told = called(sent, '{}');
    gateway.upstream.script(
      upstream,
      [1, 2, 3].map(() => agentAnswer(upstream, told)),
    );
    const responses = await ask(gateway, upstream, undefined, { tools: [{ type: 'function', ...tool }] });
    assert.equal(callOf(itemsOf(await events(responses.answer))).name, name, upstream);
    const messages = [{ role: 'user', content: 'hi' }];
    const chat = { model: `test/${upstream}`, stream: true, messages, tools: [{ type: 'function', function: tool }] };
    const chunks = await events(await gateway.post('/chat/completions', chat));
    const names = chunks.flatMap(({ choices }) => choices[0]?.delta?.tool_calls?.[0]?.function?.name ?? []);
    assert.deepEqual(names, [name], upstream);
    const input_schema = { type: 'object' };
    const anthropic = {
      model: `test/${upstream}`,
      stream: true,
      max_tokens: 99,
      messages,
      tools: [{ ...tool, input_schema }],
    };
    const blocks = await events(await gateway.post('/messages', anthropic));
    assert.deepEqual(
      blocks.flatMap(({ content_block: block }) => (block?.type === 'tool_use' ? [block.name] : [])),
      [name],
    );
  }
});

test('a call that the stream breaks off has no done event, is not in the output, and its block is not closed', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  for (const upstream of ['chat', 'messages', 'responses', 'groq'] as const) {
    const format = upstream === 'responses' ? 'responses' : FORMAT[upstream];
    const tools = [{ type: 'function', name: 'run' }, CUSTOM];
    for (const name of ['run', 'patch']) {
      const { chunks = [] } = agentAnswer(format, { text: 'I go.', ...called(name, '{"input":"rm -r build"}') });
      const ends = { chat: 5, messages: 5, responses: 6, gemini: 0 }[format];
      gateway.upstream.script(
        upstream,
        [1, 2].map(() => streamOf(chunks.slice(0, -ends), { end: 'reset' })),
      );
      const { answer } = await ask(gateway, upstream, undefined, { tools: name === 'run' ? tools : [CUSTOM] });
      const told = await events(answer);
      const done = told.filter(({ type }) => /(call|arguments|input)\.done$|output_item\.done$/.test(type));
      assert.deepEqual(
        done.map(({ item }) => item?.type),
        ['message'],
        `${upstream} ${name}`,
      );
      assert.equal(told.at(-1).type, 'response.failed');
      assert.deepEqual(
        told.at(-1).response.output.map(({ type }: Json) => type),
        ['message'],
      );
      assert.ok(told.some(({ type, item }) => type === 'response.output_item.added' && item.type.endsWith('_call')));
      if (name === 'patch') continue;
      const blocks = await events(
        await gateway.post('/messages', {
          model: `test/${upstream}`,
          stream: true,
          max_tokens: 99,
          messages: [{ role: 'user', content: 'hi' }],
          tools: [{ name, input_schema: { type: 'object' } }],
        }),
      );
      const call = blocks.find(({ content_block: block }) => block?.type === 'tool_use');
      assert.ok(call !== undefined && blocks.at(-1).type === 'error');
      assert.ok(!blocks.some(({ type, index }) => type === 'content_block_stop' && index === call.index));
    }
  }
});

test('broken arguments in a history are valid JSON where the upstream parses them', async (t) => {
  const gateway = await startGateway(t, { providers: { ...PROVIDERS, cohere: { kind: 'cohere' } } });
  for (const upstream of ['chat', 'messages', 'gemini', 'cohere'] as const) {
    await ask(
      gateway,
      upstream,
      { text: 'ok' },
      {
        tools: [lookup()],
        input: [
          { role: 'user', content: 'hi' },
          { type: 'function_call', call_id: 'c0', name: 'lookup', arguments: '{"key":"a' },
          { type: 'function_call_output', call_id: 'c0', output: 'c' },
        ],
      },
    );
    const body = gateway.upstream.requests(upstream).at(-1)?.json;
    const calls = callsIn(upstream === 'cohere' ? 'chat' : upstream, body);
    assert.deepEqual(calls, [['lookup', { INVALID_JSON: '{"key":"a' }]], upstream);
  }
});

test('a signature that Gemini bound to a call returns to it from a client that knows OpenAI’s members only', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  const { answer } = await ask(gateway, 'gemini', called('lookup', '{}'), { tools: [lookup()] });
  const items = itemsOf(await events(answer)).map(({ format: _, signature: _signature, ...item }) => item);
  const input = [
    { role: 'user', content: 'hi' },
    ...items,
    { type: 'function_call_output', call_id: 'call_1', output: 'c' },
  ];
  await ask(gateway, 'gemini', { text: 'ok' }, { tools: [lookup()], input });
  const body = gateway.upstream.requests('gemini').at(-1)?.json as Json;
  const signed = body.contents.flatMap(({ parts }: Json) => parts).find(({ functionCall }: Json) => functionCall);
  assert.equal(signed.thoughtSignature, 'c2lnbmF0dXJl');
  const other = await ask(gateway, 'openai', { text: 'ok' }, { tools: [lookup()], input });
  await events(other.answer);
  assert.doesNotMatch(JSON.stringify(other.body()), /c2lnbmF0dXJl/);
});

test('an allowed web search is Anthropic’s, OpenRouter’s or Gemini 3’s own, next to the functions of the client', async (t) => {
  const gateway = await startGateway(t, {
    providers: {
      messages: { kind: 'anthropic' },
      chat: { kind: 'openrouter' },
      gemini: { kind: 'gemini', model: { upstream_id: 'gemini-3-pro' } },
    },
  });
  const location = { type: 'approximate', city: 'Bonn' };
  const tools = [lookup(), { type: 'web_search', search_context_size: 'low', user_location: location }];
  const sent: Json = {};
  for (const upstream of ['chat', 'messages', 'gemini'] as const) {
    const { answer, body } = await ask(gateway, upstream, { text: 'ok' }, { tools });
    await events(answer);
    sent[upstream] = body();
  }
  assert.deepEqual(sent.chat.web_search_options, {
    search_context_size: 'low',
    user_location: { type: 'approximate', approximate: { city: 'Bonn' } },
  });
  assert.deepEqual(sent.messages.tools[1], {
    type: 'web_search_20250305',
    name: 'web_search',
    user_location: location,
  });
  assert.deepEqual(sent.gemini.tools[0], { googleSearch: {} });
  assert.equal(sent.gemini.tools[1].functionDeclarations[0].name, 'lookup');
});

test('a name that a coding agent has built in is the id of a listed model, with its vendor or without', async (t) => {
  const gateway = await startGateway(t, {
    providers: { chat: { kind: 'chat', model: { id: 'openai/gpt-5.6-luna' } } },
  });
  for (const model of ['gpt-5.6-luna', 'openai/gpt-5.6-luna']) {
    gateway.upstream.script('chat', [agentAnswer('chat', { text: 'A title' })]);
    await events(await gateway.post('/responses', { model, stream: true, input: 'hi' }));
    const sent = gateway.upstream.requests('chat').at(-1)?.json as Json;
    assert.equal(sent.model, 'upstream-chat');
  }
});

test('a tool of a namespace is found by a long joined name, by its bare name, and by the choice of the client', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  const namespace = `mcp__${'server'.repeat(9)}`;
  const tools = [
    { type: 'namespace', name: namespace, description: '', tools: [lookup({ name: 'search_all' }), lookup()] },
    { type: 'namespace', name: 'mcp__a', description: '', tools: [lookup({ name: 'b__c' })] },
    { type: 'namespace', name: 'mcp__a__b', description: '', tools: [lookup({ name: 'c' })] },
  ];
  for (const upstream of UPSTREAMS) {
    const tool_choice = { type: 'function', namespace, name: 'search_all' };
    const first = await ask(gateway, upstream, called('search_all', '{"key":"a"}'), { tools, tool_choice });
    const bare = callOf(itemsOf(await events(first.answer)));
    assert.deepEqual([bare.namespace, bare.name], [namespace, 'search_all'], upstream);
    const names = functionsIn(upstream, first.body()).map(({ name }) => name);
    assert.equal(new Set(names).size, 4, `${upstream}: ${names}`);
    assert.ok(JSON.stringify(first.body().tool_choice ?? first.body().toolConfig).includes(names[0]!), upstream);
    const expected = [
      [namespace, 'search_all'],
      [namespace, 'lookup'],
      ['mcp__a', 'b__c'],
      ['mcp__a__b', 'c'],
    ];
    for (const [at, name] of names.entries()) {
      assert.ok(name.length <= (upstream === 'messages' ? 128 : 64), name);
      const { answer } = await ask(gateway, upstream, called(name, '{"key":"a"}'), { tools });
      const item = callOf(itemsOf(await events(answer)));
      assert.deepEqual([item.namespace, item.name], expected[at], upstream);
    }
  }
});

test('a custom tool of a chat client works on every upstream, and its calls are those of a custom tool', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  const { format: _, type, ...custom } = CUSTOM;
  const call = { id: 'c0', type, custom: { name: 'patch', input: 'a "b"' } };
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'c0', content: 'done' },
  ];
  const tools = [{ type, custom }];
  const choice = { type, custom: { name: 'patch' } };
  const input = 'x\n"y"';
  for (const upstream of ['chat', 'messages', 'gemini', 'compatible'] as const) {
    const told = called('patch', JSON.stringify({ input }));
    gateway.upstream.script(upstream, agentAnswer(FORMAT[upstream] ?? 'responses', told));
    const request = { model: `test/${upstream}`, messages, tools, tool_choice: choice, stream: true };
    const chunks = await events(await gateway.post('/chat/completions', request));
    const sent = gateway.upstream.requests(upstream).at(-1)?.json;
    assert.deepEqual(callsIn(upstream, sent), [['patch', { input: 'a "b"' }]], upstream);
    assert.deepEqual(
      functionsIn(upstream, sent).map(({ name, parameters }) => [name, parameters.required]),
      [['patch', ['input']]],
    );
    const deltas = chunks.flatMap(({ choices }) => choices.flatMap(({ delta }: Json) => delta.tool_calls ?? []));
    const [first, ...others] = deltas;
    assert.deepEqual(first, { index: 0, id: first.id, type: 'custom', custom: { name: 'patch', input: '' } }, upstream);
    assert.equal(others.map((delta) => delta.custom.input).join(''), input);
    assert.equal(chunks.at(-1)?.choices[0].finish_reason, 'tool_calls');
  }
  gateway.upstream.script('messages', [answerOf('messages', false, called('patch', '{"input":"x"}'))]);
  const answer = await gateway.post('/chat/completions', { model: 'test/messages', messages, tools });
  const body = (await answer.json()) as Json;
  assert.deepEqual(body.choices[0].message.tool_calls, [
    { id: 'call_1', index: 0, type: 'custom', custom: { name: 'patch', input: 'x' } },
  ]);
});

test('an unknown chat service gets the custom tools of chat clients as they are', async (t) => {
  const gateway = await startGateway(t, { providers: { any: { kind: 'chat' } } });
  const { type, ...custom } = CUSTOM;
  const tools = [{ type, custom }];
  const call = { id: 'c0', type, custom: { name: 'patch', input: 'a "b"' } };
  const message = { role: 'assistant', content: null, tool_calls: [call] };
  gateway.upstream.script('any', [
    wholeOf({ ...chatReply({}), choices: [{ index: 0, message, finish_reason: 'tool_calls' }] }),
  ]);
  const answer = await gateway.post('/chat/completions', {
    model: 'test/any',
    messages: [{ role: 'user', content: 'hi' }],
    tools,
  });
  const body = (await answer.json()) as Json;
  const sent = gateway.upstream.requests('any').at(-1)?.json as Json;
  assert.deepEqual(sent.tools, tools);
  assert.deepEqual(body.choices[0].message.tool_calls, [call]);
});

test('a chat client that declared only functions gets a custom call as a call of a function', async (t) => {
  const gateway = await startGateway(t, { providers: PROVIDERS });
  const tools = [{ type: 'function', function: { name: 'patch', parameters: {} } }];
  const item = { type: 'custom_tool_call', id: 'ctc_1', call_id: 'c1', name: 'patch', input: 'x\n"y"' };
  const response = { id: 'resp_1', object: 'response', status: 'completed', output: [item] };
  const told: Json[] = [
    { type: 'response.created', response: { ...response, status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, input: '' } },
    ...['x\n', '"y"'].map((delta) => ({ type: 'response.custom_tool_call_input.delta', output_index: 0, delta })),
    { type: 'response.output_item.done', output_index: 0, item },
    { type: 'response.completed', response },
  ];
  const streamed = told.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
  for (const stream of [true, false]) {
    gateway.upstream.script('openai', [stream ? streamOf(streamed) : wholeOf(response)]);
    const request = { model: 'test/openai', messages: [{ role: 'user', content: 'hi' }], tools, stream };
    const answer = await gateway.post('/chat/completions', request);
    const calls = stream
      ? (await events(answer)).flatMap(({ choices }) => choices.flatMap(({ delta }: Json) => delta.tool_calls ?? []))
      : ((await answer.json()) as Json).choices[0].message.tool_calls;
    assert.deepEqual([calls[0].type, calls[0].function.name], ['function', 'patch']);
    const written = calls.map((each: Json) => each.function.arguments).join('');
    assert.deepEqual(JSON.parse(written), { input: item.input });
  }
});
