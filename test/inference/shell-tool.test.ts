/** `svc:bash` and `svc:shell` through a whole gateway, in real sandboxes where the machine can make them. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { openFolder } from '../../src/testing/egress-proxy/supervised.ts';
import { type Gateway, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { skip } from '../../src/testing/sandboxes/sandboxes.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const place = { after: (close: () => unknown) => after(close as () => Promise<void>) };
const folder = path.join(openFolder(place), 'sandboxes');
for (const [id, owner] of [
  ['cleft', 'container left'],
  ['intern-left', 'intern left'],
] as const) {
  mkdirSync(path.join(folder, id, 'workspace'), { recursive: true });
  writeFileSync(path.join(folder, id, 'workspace', 'file'), 'left');
  writeFileSync(path.join(folder, id, 'record.json'), JSON.stringify({ owner }));
}
const providers = { chat: { kind: 'chat' }, claude: { kind: 'messages' } };
const gateway = await startGateway(place, { providers, yaml: { sandboxes: { folder } } });
const bare = await startGateway(place, { providers, yaml: { sandboxes: { driver: 'none' } } });

const USAGE = { input: 10, output: 5 };
const SVC = { engine: 'svc', environment: { type: 'container_auto', network_policy: { type: 'disabled' } } };
const bash = (id: string, command: string) => ({ id, name: 'bash', arguments: JSON.stringify({ command }) });
const shell = (input: Json) => ({ id: 'call_shell', name: 'shell', arguments: JSON.stringify(input) });

function bodyOf(format: ClientFormat, stream: boolean, tools: Json[], history: Json[] = []): Json {
  const turns = [{ role: 'user', content: 'Do it' }, ...history];
  return {
    model: 'test/chat',
    stream,
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: turns } : { messages: turns }),
    tools,
  };
}

async function ask(format: ClientFormat, stream: boolean, answers: readonly Told[], body: Json, of: Gateway = gateway) {
  of.upstream.script(
    'chat',
    answers.map((told) => answerOf('chat', stream, { usage: USAGE, ...told })),
  );
  const before = of.upstream.requests('chat').length;
  const reply = await of.post(PATH_OF[format], body);
  const text = await reply.text();
  const sent: Json[] = of.upstream
    .requests('chat')
    .slice(before)
    .map(({ json }) => json);
  const results = (turn: number) =>
    sent[turn].messages
      .slice(sent[turn - 1].messages.length)
      .filter(({ role }: Json) => role === 'tool')
      .map(({ content }: Json) => JSON.parse(content));
  return { status: reply.status, text, sent, results, read: () => wholeAnswer(format, stream, text) };
}

const TOOLS = [
  { type: 'svc:bash', parameters: SVC },
  { type: 'svc:shell', parameters: { engine: 'svc' } },
];
const left = () => readdirSync(folder).filter((id) => id.startsWith('c'));
const noneIsLeft = () => until(() => left().length === 0, 'the sandboxes of containers are destroyed');

test('a start removes what the containers of a killed gateway have left, and nothing else', () => {
  assert.deepEqual([left(), existsSync(path.join(folder, 'intern-left', 'workspace', 'file'))], [[], true]);
});

describe('in a sandbox', { skip }, () => {
  for (const format of CLIENT_FORMATS) {
    test(`a file that one call writes is there for the next, until the request ends | ${format}`, async () => {
      for (const stream of [false, true]) {
        const turns = [
          { calls: [bash('call_1', 'echo "größer" > note; echo done; exit 3')] },
          { calls: [shell({ commands: ['cat note; pwd', 'echo no >&2; ls /sys/class/net | grep -v lo'] })] },
          { text: 'Written.' },
        ];
        const { results, read, text } = await ask(format, stream, turns, bodyOf(format, stream, TOOLS));
        assert.deepEqual(results(1), [{ stdout: 'done\n', stderr: '', exit_code: 3 }], text);
        const [[first, second]] = results(2);
        assert.deepEqual(first, { stdout: 'größer\n/workspace\n', stderr: '', exit_code: 0 });
        // No network but, at most, loopback.
        assert.deepEqual([second.stdout, second.stderr.startsWith('no\n')], ['', true]);
        const { history } = read();
        if (format === 'responses') {
          const [ofBash, ofShell] = history;
          assert.deepEqual([ofBash.type, ofBash.stdout, ofBash.exitCode], ['svc:bash', 'done\n', 3]);
          assert.equal(ofShell.action.commands.length, 2);
          assert.deepEqual(ofShell.output[0].outcome, { type: 'exit', exitCode: 0 });
        } else if (format === 'messages') {
          const blocks = history[0].content.filter(({ type }: Json) => type.endsWith('_tool_result'));
          assert.deepEqual(
            blocks.map(({ type }: Json) => type),
            ['svc_bash_tool_result', 'svc_shell_tool_result'],
          );
          assert.equal(blocks[0].content.stdout, 'done\n');
        } else assert.ok(JSON.stringify(history).includes('exit_code'));
        await noneIsLeft();
        const next = await ask(
          format,
          stream,
          [{ calls: [bash('call_2', 'ls')] }, { text: 'Gone.' }],
          bodyOf(format, stream, TOOLS, [...history, { role: 'user', content: 'Still there?' }]),
        );
        assert.deepEqual(next.results(1), [{ stdout: '', stderr: '', exit_code: 0 }], next.text);
      }
    });
  }

  test("Anthropic's SDK runs code on a model of another vendor, in the words of its own tool", async () => {
    const client = new Anthropic({ apiKey: INFERENCE_KEY, baseURL: gateway.api.replace(/\/v1$/, '') });
    const call = (id: string, name: string, input: Json) => ({ id, name, arguments: JSON.stringify(input) });
    for (const stream of [false, true]) {
      const about: Json = {
        model: 'test/chat',
        max_tokens: 1000,
        messages: [{ role: 'user', content: 'Do it' }],
        tools: [{ type: 'code_execution_20250825', name: 'code_execution' }],
      };
      const respond = (input: Json) =>
        stream ? client.messages.stream(input).finalMessage() : client.messages.create(input);
      const script = (...turns: Told[]) =>
        gateway.upstream.script(
          'chat',
          turns.map((told) => answerOf('chat', stream, { usage: USAGE, ...told })),
        );
      script({ calls: [call('call_1', 'bash_code_execution', { command: 'echo hi; exit 3' })] }, { text: 'Done.' });
      const reply: Json = await respond(about);
      const [use, result, text] = reply.content;
      assert.deepEqual(
        [use.type, use.name, use.input.command, result.type, result.tool_use_id, text.text],
        [
          'server_tool_use',
          'bash_code_execution',
          'echo hi; exit 3',
          'bash_code_execution_tool_result',
          use.id,
          'Done.',
        ],
      );
      const output = { stdout: 'hi\n', stderr: '', return_code: 3, content: [] };
      assert.deepEqual(result.content, { type: 'bash_code_execution_result', ...output });
      script({ text: 'Bye.' });
      const before = gateway.upstream.requests('chat').length;
      const messages = [...about.messages, { role: 'assistant', content: reply.content }, about.messages[0]];
      await respond({ ...about, messages });
      const sent: Json = gateway.upstream.requests('chat')[before]!.json;
      assert.deepEqual(
        sent.messages.slice(1, 3).map(({ role, tool_calls: calls, content }: Json) => [role, calls?.length ?? content]),
        [
          ['assistant', 1],
          ['tool', '{"stdout":"hi\\n","stderr":"","exit_code":3}'],
        ],
      );
    }
    await noneIsLeft();
  });

  test("Anthropic's first code execution runs Python, and the next request continues with what it printed", async () => {
    const client = new Anthropic({ apiKey: INFERENCE_KEY, baseURL: gateway.api.replace(/\/v1$/, '') });
    const code = 'print(6 * 7)';
    for (const stream of [false, true]) {
      const about: Json = {
        model: 'test/chat',
        max_tokens: 1000,
        messages: [{ role: 'user', content: 'Do it' }],
        tools: [{ type: 'code_execution_20250522', name: 'code_execution' }],
        betas: ['code-execution-2025-05-22'],
      };
      const respond = (input: Json) =>
        stream ? client.beta.messages.stream(input).finalMessage() : client.beta.messages.create(input);
      const script = (...turns: Told[]) =>
        gateway.upstream.script(
          'chat',
          turns.map((told) => answerOf('chat', stream, { usage: USAGE, ...told })),
        );
      const calls = [{ id: 'call_1', name: 'code_execution', arguments: JSON.stringify({ code }) }];
      script({ calls }, { text: 'It is 42.' });
      const before = gateway.upstream.requests('chat').length;
      const { content }: Json = await respond(about);
      const [use, result, text] = content;
      assert.deepEqual(
        [use.type, use.name, use.input, result.type, result.tool_use_id, text.text],
        ['server_tool_use', 'code_execution', { code }, 'code_execution_tool_result', use.id, 'It is 42.'],
      );
      const { type, stdout, stderr, return_code: status, content: files } = result.content;
      assert.deepEqual([type, files], ['code_execution_result', []]);
      // The machine of the test may have no Python.
      if (status === 0) assert.deepEqual([stdout, stderr], ['42\n', '']);
      else assert.match(stderr, /python3/);
      const [offered]: Json = (gateway.upstream.requests('chat')[before]!.json as Json).tools;
      assert.deepEqual([offered.function.name, offered.function.parameters.required], ['code_execution', ['code']]);
      script({ text: 'Bye.' });
      await respond({ ...about, messages: [...about.messages, { role: 'assistant', content }, about.messages[0]] });
      const sent: Json = gateway.upstream.requests('chat').at(-1)!.json;
      const [, asked, told] = sent.messages;
      assert.deepEqual(JSON.parse(asked.tool_calls[0].function.arguments), { code });
      assert.deepEqual([told.role, JSON.parse(told.content)], ['tool', { stdout, stderr, exit_code: status }]);
    }
    await noneIsLeft();
  });

  test("OpenAI's SDK runs code on a model of another vendor, in the words of its own tool", async () => {
    const client = new OpenAI({ apiKey: INFERENCE_KEY, baseURL: gateway.api });
    for (const stream of [false, true]) {
      const code = 'print(6 * 7)';
      const calls = [{ id: 'call_1', name: 'code_interpreter', arguments: JSON.stringify({ code }) }];
      const turns: Told[] = [{ calls }, { text: 'It is 42.' }];
      gateway.upstream.script(
        'chat',
        turns.map((told) => answerOf('chat', stream, { usage: USAGE, ...told })),
      );
      const about: Json = {
        ...{ model: 'test/chat', input: 'Do it', include: ['code_interpreter_call.outputs'] },
        tools: [{ type: 'code_interpreter', container: { type: 'auto' } }],
      };
      const events: string[] = [];
      let reply: OpenAI.Responses.Response;
      if (stream) {
        const streamed = client.responses.stream(about);
        streamed.on('event', ({ type }) => void events.push(type));
        reply = await streamed.finalResponse();
      } else reply = await client.responses.create(about);
      const [item] = reply.output;
      assert.ok(item?.type === 'code_interpreter_call', JSON.stringify(reply.output));
      assert.deepEqual([item.status, item.code, reply.output_text], ['completed', code, 'It is 42.']);
      const [output] = item.outputs ?? [];
      // The machine of the test may have no Python.
      assert.ok(output?.type === 'logs' && /^42\n$|python3/.test(output.logs), JSON.stringify(item));
      assert.match(item.container_id, /^cntr_/);
      const told = ['in_progress', 'interpreting', 'completed'].map((step) => `response.code_interpreter_call.${step}`);
      assert.deepEqual(
        events.filter((type) => told.includes(type)),
        stream ? told : [],
      );
    }
    await noneIsLeft();
  });

  test('limits of time, output and length end or shorten a command, and the model sees why', async () => {
    const turns = [
      {
        calls: [
          shell({ commands: ['sleep 1000', 'sleep 1001'], timeout_ms: 50 }),
          bash('call_2', 'yes'),
          { ...shell({ commands: ['seq 1 1000'], max_output_length: 40 }), id: 'call_3' },
          bash('call_4', 'head -c 100000 /dev/zero | tr "\\0" x'),
        ],
      },
      { text: 'ok' },
    ];
    const { results, read, text } = await ask('responses', false, turns, bodyOf('responses', false, TOOLS));
    const [timed, much, short, long] = results(1);
    assert.deepEqual(
      timed.map(({ ended }: Json) => ended),
      ['it took too long', 'it took too long'],
      text,
    );
    assert.deepEqual([much.exit_code, much.ended], [137, 'it wrote too much']);
    assert.match(short[0].stdout, /^1\n2\n.*characters left out\]\n.*1000\n$/s);
    assert.match(long.stdout, /^x{7500}\n\[85000 characters left out\]\nx{7500}$/);
    assert.deepEqual(read().history[0].output[0].outcome, { type: 'timeout' });
    await noneIsLeft();
  });

  test('a client that leaves ends its sandbox, and a key has few of them at once', async () => {
    const stop = new AbortController();
    const sleeping = answerOf('chat', true, { usage: USAGE, calls: [bash('call_1', 'sleep 1000')] });
    gateway.upstream.script('chat', sleeping);
    const asked = Array.from({ length: 4 }, () =>
      fetch(gateway.api + PATH_OF.chat, {
        method: 'POST',
        headers: { authorization: `Bearer ${INFERENCE_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify(bodyOf('chat', true, TOOLS)),
        signal: stop.signal,
      }).catch(() => {}),
    );
    await until(() => left().length === 4, 'each request has a sandbox');
    const turns = [{ calls: [bash('call_1', 'ls')] }, { text: 'Later, then.' }];
    const { results, status } = await ask('chat', false, turns, bodyOf('chat', false, TOOLS));
    assert.equal(status, 200);
    assert.deepEqual(results(1), [{ error: 'this key already runs 4 sandboxes; try again later' }]);
    stop.abort();
    await Promise.all(asked);
    await noneIsLeft();
    const again = await ask('chat', false, turns, bodyOf('chat', false, TOOLS));
    assert.equal(again.results(1)[0].exit_code, 0);
    await noneIsLeft();
  });
});

for (const format of CLIENT_FORMATS) {
  test(`with the engine auto or native the client runs the command, as that of its own function | ${format}`, async () => {
    for (const parameters of [undefined, { engine: 'auto' }, { engine: 'native' }]) {
      const tools = [{ type: 'svc:bash', ...(parameters && { parameters }) }];
      const first = await ask(format, false, [{ calls: [bash('call_1', 'ls')] }], bodyOf(format, false, tools), bare);
      assert.equal(first.sent.length, 1, first.text);
      const { history, finish } = first.read();
      assert.equal(finish, { chat: 'tool_calls', messages: 'tool_use', responses: 'completed' }[format]);
      const result: Json = {
        chat: { role: 'tool', tool_call_id: 'call_1', content: 'a file' },
        messages: { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'a file' }] },
        responses: { type: 'function_call_output', call_id: 'call_1', output: 'a file' },
      }[format];
      const body = bodyOf(format, false, tools, [...history, result]);
      const next = await ask(format, false, [{ text: 'One file.' }], body, bare);
      assert.match(JSON.stringify(next.sent[0]?.messages), /ls.*a file/, next.text);
    }
  });

  test(`what cannot be had is refused by its path | ${format}`, async () => {
    const auto = (more: Json) => ({ engine: 'svc', environment: { type: 'container_auto', ...more } });
    const cases: [string, Json, string][] = [
      ['svc:bash', { engine: 'docker' }, 'engine must be one of auto, native, svc'],
      ['svc:shell', { engine: 'native' }, 'engine must be one of auto, svc'],
      ['svc:bash', { environment: 'x' }, 'environment must be an object'],
      ['svc:bash', { environment: { type: 'container' } }, 'environment.type must be container_auto or container_ref'],
      [
        'svc:bash',
        { environment: { type: 'container_reference', container_id: 'a/b' } },
        'environment.container_id must be 1 to 40',
      ],
      [
        'svc:shell',
        auto({ file_ids: Array(21).fill('svc_file_1') }),
        'environment.file_ids must be a list of at most 20',
      ],
      ['svc:shell', auto({ file_ids: [''] }), 'environment.file_ids[0] must be the id of a file'],
      ['svc:bash', auto({ network_policy: { type: 'open' } }), 'environment.network_policy.type must be disabled or'],
      [
        'svc:bash',
        auto({ network_policy: { type: 'allowlist', allowed_domains: ['a.example', 'https://b.example'] } }),
        'environment.network_policy.allowed_domains[1] must be a domain',
      ],
      ['svc:shell', { sleep_after_seconds: -1 }, 'sleep_after_seconds must be a number of at least 0'],
      [
        'svc:bash',
        SVC,
        'engine needs a sandbox, and this gateway has none (sandboxes.driver): sandboxes.driver is none',
      ],
      ['svc:shell', { engine: 'svc' }, 'engine needs a sandbox'],
    ];
    for (const [type, parameters, problem] of cases) {
      const { status, text } = await ask(format, false, [], bodyOf(format, false, [{ type, parameters }]), bare);
      assert.ok(status === 400 && text.includes(`tools[0].parameters.${problem}`), text);
    }
  });
}

test('code execution of a vendor stays with the vendor, and its settings that only it knows are refused', async () => {
  const tool = { type: 'code_execution_20250825', name: 'code_execution' };
  gateway.upstream.script('claude', answerOf('messages', false, { text: 'Done.' }));
  const vendors = { ...bodyOf('messages', false, [tool]), model: 'test/claude' };
  assert.equal((await gateway.post(PATH_OF.messages, vendors)).status, 200);
  const sent: Json = gateway.upstream.requests('claude').at(-1)!.json;
  assert.deepEqual(sent.tools, [tool]);

  const interpreter = (container?: Json) => [{ type: 'code_interpreter', container }];
  for (const [format, tools, message, more] of [
    ['responses', interpreter(), 'tools[0].container'],
    ['responses', interpreter({ type: 'auto', memory_limit: '4g' }), 'tools[0].container.memory_limit'],
    ['responses', interpreter({ type: 'auto', file_ids: 'all' }), 'tools[0].container.file_ids'],
    ['responses', interpreter('no such name'), 'tools[0].container'],
    ['messages', [tool], 'container', { container: 'no such name' }],
    ['messages', [tool], 'test/chat', { container: { skills: [] } }],
  ] as const) {
    const refused = await ask(format, false, [], { ...bodyOf(format, false, [...tools]), ...more });
    assert.equal(refused.status, 400, refused.text);
    assert.ok(refused.text.includes(message), refused.text);
    assert.equal(refused.sent.length, 0);
  }
  // Without a sandbox only the vendor can run it.
  const without = await ask('messages', false, [], bodyOf('messages', false, [tool]), bare);
  assert.equal(without.status, 400, without.text);
});
