/** MCP servers through a whole gateway, with a server of the SDK as a process of its own. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { after, test } from 'node:test';
import OpenAI from 'openai';
import { createLog } from '../../../src/base/log.ts';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF, wholeAnswer } from '../../../src/testing/clients/whole-answer.ts';
import { until } from '../../../src/testing/clock/clock.ts';
import { INFERENCE_KEY, MANAGEMENT_KEY, startGateway } from '../../../src/testing/gateway/gateway.ts';
import { answerOf, type Told } from '../../../src/testing/upstream/answers.ts';
import { startUpstream } from '../../../src/testing/upstream/upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const TOKEN = 'secret-token';
const server = spawn(process.execPath, [path.join(import.meta.dirname, 'mcp-server.ts')], {
  stdio: ['ignore', 'pipe', 'inherit'],
});
after(() => void server.kill());
const [first] = (await once(server.stdout, 'data')) as [Buffer];
const port = Number(String(first));
const home = `http://127.0.0.1:${port}`;

/** A server that does not answer. */
const silent = await startUpstream();
after(() => silent.close());
const logged: string[] = [];
const log = createLog({ stream: { write: (line) => void logged.push(line) }, level: 'debug' });
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: { chat: { kind: 'chat' } },
    yaml: { egress: { networks: ['127.0.0.1'], ports: [port, Number(new URL(silent.url).port)] } },
    log,
  },
);
after(() => assert.ok(!logged.join().includes(TOKEN), 'the token is in the log'));

const NOTES = { server_label: 'notes', server_url: `${home}/mcp`, authorization: TOKEN, require_approval: 'never' };
const calledOf = async () => (await (await fetch(`${home}/calls`)).json()) as { name: string; args: unknown }[];

interface Asked {
  tools: Json[];
  stream?: boolean;
  history?: Json[];
  more?: Json;
}

async function ask(format: ClientFormat, answers: readonly Told[], { tools, stream = false, history, more }: Asked) {
  gateway.upstream.script(
    'chat',
    answers.map((told) => answerOf('chat', stream, { usage: { input: 10, output: 5 }, ...told })),
  );
  const before = gateway.upstream.requests('chat').length;
  const turns = history ?? [{ role: 'user', content: 'What is the value of x?' }];
  const reply = await gateway.post(PATH_OF[format], {
    model: 'test/chat',
    stream,
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: turns } : { messages: turns }),
    tools,
    ...more,
  });
  const text = await reply.text();
  const sent: Json[] = gateway.upstream
    .requests('chat')
    .slice(before)
    .map(({ json }) => json);
  return { status: reply.status, text, sent, turns, read: () => wholeAnswer(format, stream, text) };
}

const calling = (name: string, input: Json, id = 'call_1'): Told => ({
  calls: [{ id, name, arguments: JSON.stringify(input) }],
});
const namesOf = (sent: Json): string[] => sent.tools.map((tool: Json) => tool.function.name);

for (const format of CLIENT_FORMATS) {
  test(`every tool of a server is a function for the model, and the gateway calls it | ${format}`, async () => {
    for (const stream of [false, true]) {
      for (const url of [`${home}/mcp`, `${home}/sse`, `${home}/moved`]) {
        const tools = [{ type: 'svc:mcp', parameters: { ...NOTES, server_url: url } }];
        const turns = [calling('notes_lookup', { key: 'x' }), { text: 'It is 42.' }];
        const { status, text, sent, read, turns: asked } = await ask(format, turns, { tools, stream });
        assert.equal(status, 200, text);
        assert.deepEqual(
          namesOf(sent[0]).map((name) => name.replace(/_[0-9a-f]{8}$/, '')),
          ['notes_lookup', 'notes_delete_note', 'notes_broken', 'notes_silent'],
        );
        assert.equal(sent[1].messages.at(-1).content, 'the value of x is 42');
        const { history, usage } = read();
        const counts = usage.server_tool_use_details ?? usage.server_tool_use;
        assert.deepEqual([counts.tool_calls_requested, counts.tool_calls_executed], [1, 1]);
        const next = await ask(format, [{ text: 'Bye.' }], {
          tools: [],
          stream,
          history: [...asked, ...history, asked[0]],
        });
        assert.deepEqual(next.sent[0].messages.slice(0, 3), sent[1].messages, next.text);
      }
    }
  });
}

test('a server that cannot be used refuses the request, and the error does not repeat text of the server', async () => {
  for (const [changed, message] of [
    [{ authorization: 'wrong' }, /401/],
    [{ server_url: `${home}/nothing` }, /404/],
    [{ server_url: `http://10.0.0.1:${port}/mcp` }, /not public/],
    [{ server_url: `${home}/elsewhere` }, /cannot be used/],
  ] as const) {
    const tools = [{ type: 'svc:mcp', parameters: { ...NOTES, ...changed } }];
    const { status, text } = await ask('chat', [], { tools });
    assert.equal(status, 400, text);
    assert.match(text, /tools\[0\]\.parameters\.server_url/);
    assert.match(text, message);
    assert.doesNotMatch(text, /who are you/);
  }
});

test('a session at the server ends with the request', async () => {
  const tools = [{ type: 'svc:mcp', parameters: { ...NOTES, server_url: `${home}/session` } }];
  const { sent } = await ask('chat', [calling('notes_lookup', { key: 'x' }), { text: 'ok' }], { tools });
  assert.equal(sent[1].messages.at(-1).content, 'the value of x is 42');
  const open = async () => (await (await fetch(`${home}/sessions`)).json()) as string[];
  await until(async () => (await open()).length === 0, 'the end of the session');
});

test('settings that are not valid are refused with their path', async () => {
  for (const [changed, at] of [
    [{ server_label: '1 x' }, 'server_label'],
    [{ server_url: 'ftp://x' }, 'server_url'],
    [{ connector_id: 'connector_gmail' }, 'connector_id'],
    [{ require_approval: 'always' }, 'require_approval'],
    [{ require_approval: undefined }, 'require_approval'],
    [{ allowed_tools: [1] }, 'allowed_tools[0]'],
    [{ headers: { host: 'x' } }, 'headers.host'],
    [{ headers: { 'x\n': 'x' } }, 'headers.x'],
    [{ headers: { 'x-y': 'a\r\nb: c' } }, 'headers.x-y'],
    [{ headers: { Authorization: 'Bearer x' } }, 'headers.Authorization'],
  ] as const) {
    const { status, text } = await ask('chat', [], {
      tools: [{ type: 'svc:mcp', parameters: { ...NOTES, ...changed } }],
    });
    assert.equal(status, 400);
    assert.ok(JSON.parse(text).error.message.includes(`tools[0].parameters.${at}`), text);
  }
  const twice = [NOTES, NOTES].map((parameters) => ({ type: 'svc:mcp', parameters }));
  assert.match((await ask('chat', [], { tools: twice })).text, /tools\[1\]\.parameters\.server_label/);
});

const MCP = { type: 'mcp', ...NOTES };

test('the responses format shows the list of tools once, and calls as mcp_call', async () => {
  for (const stream of [false, true]) {
    const tools = [{ ...MCP, allowed_tools: { read_only: true } }];
    const first = await ask('responses', [calling('notes_lookup', { key: 'x' }), { text: 'It is 42.' }], {
      tools,
      stream,
    });
    assert.equal(first.status, 200, first.text);
    assert.deepEqual(namesOf(first.sent[0]), ['notes_lookup']);
    assert.ok(!first.text.includes(TOKEN), 'the token is repeated');
    const { history } = first.read();
    const [list, call, message] = history as Json[];
    assert.equal(list.type, 'mcp_list_tools');
    assert.deepEqual(
      list.tools.map(({ name, annotations }: Json) => [name, annotations]),
      [['lookup', { readOnlyHint: true }]],
    );
    const { id: _, ...shown } = call;
    assert.deepEqual(shown, {
      type: 'mcp_call',
      status: 'completed',
      server_label: 'notes',
      name: 'lookup',
      arguments: '{"key":"x"}',
      output: 'the value of x is 42',
      error: null,
    });
    assert.equal(message.type, 'message');
    const next = await ask('responses', [{ text: 'Bye.' }], {
      tools,
      stream,
      history: [...first.turns, ...history, first.turns[0]],
    });
    assert.deepEqual(next.sent[0].messages.slice(0, 3), first.sent[1].messages);
    assert.doesNotMatch(next.text, /mcp_list_tools"/);
  }
});

test('a call that needs approval ends the answer, and runs in the next request if the client allows it', async () => {
  const tools = [{ ...MCP, require_approval: { never: { tool_names: ['lookup'] } } }];
  const name = namesOf((await ask('responses', [{ text: 'Hi.' }], { tools })).sent[0]).find((each) =>
    /delete/.test(each),
  )!;
  for (const stream of [false, true]) {
    const before = (await calledOf()).length;
    const both: Told = {
      calls: [
        { id: 'call_1', name: 'notes_lookup', arguments: '{"key":"x"}' },
        { id: 'call_2', name, arguments: '{"id":"n1"}' },
      ],
    };
    const first = await ask('responses', [both], { tools, stream });
    assert.equal(first.status, 200, first.text);
    assert.equal((await calledOf()).length, before + 1);
    const history = first.read().history as Json[];
    const asked = history.find(({ type }) => type === 'mcp_approval_request');
    assert.deepEqual([asked.server_label, asked.name, asked.arguments], ['notes', 'delete.note', '{"id":"n1"}']);
    const answered = (approve: boolean, reason?: string) => [
      ...first.turns,
      ...history,
      { type: 'mcp_approval_response', approval_request_id: asked.id, approve, ...(reason && { reason }) },
    ];

    const denied = await ask('responses', [{ text: 'Then not.' }], {
      tools,
      stream,
      history: answered(false, 'keep it'),
    });
    assert.match(
      JSON.stringify(denied.sent[0].messages.slice(-2)),
      /the value of x is 42.*did not allow this call: keep it/s,
    );
    const waiting = await ask('responses', [{ text: 'Well?' }], {
      tools,
      stream,
      history: answered(true).slice(0, -1),
    });
    assert.match(waiting.sent[0].messages.at(-1).content, /has not allowed this call yet/);
    assert.equal((await calledOf()).length, before + 1);

    const allowed = await ask('responses', [{ text: 'Done.' }], { tools, stream, history: answered(true) });
    assert.equal(allowed.status, 200, allowed.text);
    assert.deepEqual((await calledOf()).slice(before + 1), [{ name: 'delete.note', args: { id: 'n1' } }]);
    assert.equal(allowed.sent[0].messages.at(-1).content, 'deleted n1');
    const shown = allowed.read().history as Json[];
    assert.deepEqual(
      [shown[0].type, shown[0].approval_request_id, shown[0].output, shown[1].type],
      ['mcp_call', asked.id, 'deleted n1', 'message'],
    );

    // It has been carried out, so it does not run again.
    const again = [...answered(true), ...shown, first.turns[0]];
    const next = await ask('responses', [{ text: 'Bye.' }], { tools, stream, history: again });
    assert.equal(next.status, 200, next.text);
    assert.equal((await calledOf()).length, before + 2);
    assert.equal(next.sent[0].messages.filter(({ content }: Json) => content === 'deleted n1').length, 1);
  }
});

test('an allowed call does not run for a request that its limits refuse', async () => {
  const tools = [{ ...MCP, require_approval: 'always' }];
  const first = await ask('responses', [calling('notes_lookup', { key: 'x' })], { tools });
  const asked = (first.read().history as Json[]).find(({ type }) => type === 'mcp_approval_request');
  const history = [
    ...first.turns,
    ...first.read().history,
    { type: 'mcp_approval_response', approval_request_id: asked.id, approve: true },
  ];
  const before = (await calledOf()).length;
  const create = async (more: Json) => {
    const made = await gateway.post('/keys', { name: 'poor', ...more }, { authorization: `Bearer ${MANAGEMENT_KEY}` });
    return ((await made.json()) as Json).key as string;
  };
  for (const stream of [false, true]) {
    const token = await create({ limit: 0.0000001 });
    const sent = gateway.upstream.requests('chat').length;
    const headers = { authorization: `Bearer ${token}` };
    const reply = await gateway.post('/responses', { model: 'test/chat', input: history, tools, stream }, headers);
    const text = await reply.text();
    assert.equal(reply.status, 402, text);
    assert.equal((await calledOf()).length, before, text);
    assert.equal(gateway.upstream.requests('chat').length, sent);
  }
});

test('a tool that fails and a server that breaks off are results for the model, and errors in the item', async () => {
  const failed = async (name: string) => {
    const { sent, read, text } = await ask('responses', [calling(name, {}), { text: 'Oh.' }], { tools: [MCP] });
    assert.equal(sent.length, 2, text);
    return { told: sent[1].messages.at(-1).content, item: (read().history as Json[])[1] };
  };
  const broken = await failed('notes_broken');
  assert.equal(broken.told, 'the disk is full');
  assert.deepEqual([broken.item.status, broken.item.error.type], ['failed', 'mcp_tool_execution_error']);
  const silent = await failed('notes_silent');
  assert.match(silent.told, /the server notes failed/);
  assert.equal(silent.item.status, 'failed');
  const away = await ask('responses', [{ text: 'Hi.' }], { tools: [{ ...MCP, authorization: 'wrong' }] });
  const [list] = away.read().history as Json[];
  assert.deepEqual([list.type, list.tools, list.error], ['mcp_list_tools', [], 'it answered with status 401']);
});

test('a stream is kept alive while tools are listed, and a client that leaves ends that', async () => {
  const url = silent.script('silent', { end: 'stall-before-headers', repeat: true });
  const stop = new AbortController();
  const pending = fetch(`${gateway.api}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'test/chat',
      stream: true,
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ type: 'svc:mcp', parameters: { ...NOTES, server_url: url } }],
    }),
    signal: stop.signal,
  });
  await silent.request('silent', 1);
  gateway.clock.jump(10_000);
  const seen = (await pending).body!.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
  let text = '';
  while (!text.includes(': SVC PROCESSING')) text += (await seen.next()).value;
  stop.abort();
  const request = silent.requests('silent').at(-1)!;
  while (request.closedEarlyAt === undefined) await new Promise((resolve) => void setImmediate(resolve));

  const late = gateway.post('/chat/completions', {
    model: 'test/chat',
    stream: true,
    messages: [{ role: 'user', content: 'hi' }],
    tools: [{ type: 'svc:mcp', parameters: { ...NOTES, server_url: url } }],
  });
  await silent.request('silent', 2);
  gateway.clock.jump(10_000);
  const { status, body } = await late;
  gateway.clock.jump(30_000);
  // The head of the stream has been sent, so the refusal is an event in it.
  assert.equal(status, 200);
  assert.match(await new Response(body).text(), /"error".*did not answer within 30 s/);
});

test("OpenAI's SDK reads lists, calls and requests for approval", async () => {
  const client = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api });
  gateway.upstream.script('chat', [answerOf('chat', false, calling('notes_lookup', { key: 'y' }))]);
  const reply = await client.responses.create({
    model: 'test/chat',
    input: 'What is y?',
    tools: [{ type: 'mcp', server_label: 'notes', server_url: `${home}/mcp`, authorization: TOKEN }],
  });
  const [list, asked] = reply.output;
  assert.ok(list?.type === 'mcp_list_tools' && asked?.type === 'mcp_approval_request');
  gateway.upstream.script('chat', [answerOf('chat', false, { text: 'It is 42.' })]);
  const next = await client.responses.create({
    model: 'test/chat',
    input: [
      { role: 'user', content: 'What is y?' },
      list,
      asked,
      { type: 'mcp_approval_response', approval_request_id: asked.id, approve: true },
    ],
    tools: [{ type: 'mcp', server_label: 'notes', server_url: `${home}/mcp`, authorization: TOKEN }],
  });
  assert.equal(next.output_text, 'It is 42.');
  assert.ok(next.output.some((item) => item.type === 'mcp_call' && item.output === 'the value of y is 42'));
});

test('an approval can continue a stored response', async () => {
  const tools = [{ ...MCP, require_approval: 'always' }];
  const first = await ask('responses', [calling('notes_lookup', { key: 'z' })], { tools, more: { store: true } });
  assert.equal(first.status, 200, first.text);
  const { id, output } = JSON.parse(first.text);
  const asked = output.find(({ type }: Json) => type === 'mcp_approval_request');
  const history = [{ type: 'mcp_approval_response', approval_request_id: asked.id, approve: true }];
  const more = { previous_response_id: id };
  const next = await ask('responses', [{ text: 'It is 42.' }], { tools, history, more });
  assert.equal(next.status, 200, next.text);
  assert.equal(next.sent[0].messages.at(-1).content, 'the value of z is 42');
});
