/** Failures around tool calls that users of other gateways met, each asked of the ways through a whole gateway that it concerns. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import {
  ask,
  FINISHES,
  FORMAT_PAIRS,
  FORMATS,
  readStreamed,
  readWhole,
} from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import {
  answerOf,
  CHAT_DONE,
  chatChunk,
  chatFinish,
  chatUsageChunk,
  type Format,
  messagesBlock,
  messagesEnd,
  messagesReply,
  messagesStart,
  streamOf,
  wholeOf,
} from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { providers: { chat: {}, messages: { kind: 'messages' } } },
);

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const NAMES = ['look', 'now', 'run'];
const TOOLS: Record<Format, Json[]> = {
  chat: NAMES.map((name) => ({ type: 'function', function: { name, parameters: { type: 'object', properties: {} } } })),
  messages: NAMES.map((name) => ({ name, input_schema: { type: 'object', properties: {} } })),
};

async function read(served: Format, spoken: Format, answer: Answer, stream: boolean) {
  gateway.upstream.script(spoken, answer);
  const { status, text } = await ask(gateway, served, `test/${spoken}`, { stream, tools: TOOLS[served] });
  assert.equal(status, 200, text);
  return { ...(stream ? readStreamed(served, text) : readWhole(served, text)), raw: text };
}

/** What the upstream got for a request. */
async function sent(served: Format, spoken: Format, body: object): Promise<Json> {
  gateway.upstream.script(spoken, answerOf(spoken, false, { text: 'ok' }));
  const { status, text } = await ask(gateway, served, `test/${spoken}`, { tools: TOOLS[served], ...body });
  assert.equal(status, 200, text);
  return gateway.upstream.requests(spoken).at(-1)!.json;
}

function call(index: number, members: object): string {
  return chatChunk({ tool_calls: [{ index, ...members }] });
}

const CHAT_END = [chatFinish('tool_calls'), chatUsageChunk({ input: 5, output: 5 }), CHAT_DONE];

test('22 | interleaved fragments reach their own call in any order', async () => {
  const texts = ['{"a":[1,2,3],"b":"x y"}', '{"c":"\\"quoted\\""}', '{"d":{"e":null}}'];
  const open = texts.map((_, index) => ({
    index,
    id: `c${index}`,
    type: 'function',
    function: { name: NAMES[index], arguments: '' },
  }));
  // Opened together, one after the other, or each only when the one before has begun.
  const beginnings = [[chatChunk({ tool_calls: open })], open.map((one) => chatChunk({ tool_calls: [one] }))];
  for (const [index, order] of [
    [0, 1, 2],
    [2, 1, 0],
    [1, 2, 0],
  ].entries()) {
    for (const beginning of beginnings) {
      const events = [chatChunk({ role: 'assistant', content: null }), ...beginning];
      for (let at = 0; at < 30; at += 1 + index) {
        for (const which of order) {
          const piece = texts[which]!.slice(at, at + 1 + index);
          if (piece !== '') events.push(call(which, { function: { arguments: piece } }));
        }
      }
      for (const served of FORMATS) {
        const told = await read(served, 'chat', streamOf([...events, ...CHAT_END]), true);
        assert.deepEqual(
          told.calls,
          texts.map((text, which) => ({ id: `c${which}`, name: NAMES[which], arguments: JSON.parse(text) })),
        );
        assert.equal(told.finish, FINISHES[served]['tool_calls']);
      }
    }
  }
});

test('22 | text after a started call, and a call after that text, keep their order', async () => {
  const events = [
    call(0, { id: 'c0', type: 'function', function: { name: 'look', arguments: '{"a":' } }),
    chatChunk({ content: 'between' }),
    call(0, { function: { arguments: '1}' } }),
    call(1, { id: 'c1', type: 'function', function: { name: 'now', arguments: '{}' } }),
    ...CHAT_END,
  ];
  for (const served of FORMATS) {
    const told = await read(served, 'chat', streamOf(events), true);
    assert.equal(told.text, 'between');
    assert.deepEqual(
      told.calls.map((one) => one.arguments),
      [{ a: 1 }, {}],
    );
  }
});

const EMPTY_CALLS: [string, Format, Answer, boolean][] = [
  [
    'no fragment',
    'messages',
    streamOf([
      messagesStart(),
      ...messagesBlock(0, { type: 'tool_use', id: 't', name: 'now', input: {} }),
      ...messagesEnd('tool_use', { output_tokens: 3 }),
    ]),
    true,
  ],
  [
    'an empty fragment',
    'messages',
    streamOf([
      messagesStart(),
      ...messagesBlock(0, { type: 'tool_use', id: 't', name: 'now', input: {} }, [
        { type: 'input_json_delta', partial_json: '' },
      ]),
      ...messagesEnd('tool_use', { output_tokens: 3 }),
    ]),
    true,
  ],
  ['a whole answer', 'messages', wholeOf(messagesReply({ calls: [{ id: 't', name: 'now', arguments: '{}' }] })), false],
  [
    'no input at all',
    'messages',
    wholeOf({ ...messagesReply({}), content: [{ type: 'tool_use', id: 't', name: 'now' }], stop_reason: 'tool_use' }),
    false,
  ],
  [
    'no fragment',
    'chat',
    streamOf([call(0, { id: 't', type: 'function', function: { name: 'now' } }), ...CHAT_END]),
    true,
  ],
  [
    'empty fragments',
    'chat',
    streamOf([
      call(0, { id: 't', type: 'function', function: { name: 'now', arguments: '' } }),
      call(0, { function: { arguments: '' } }),
      ...CHAT_END,
    ]),
    true,
  ],
  [
    'null for arguments',
    'chat',
    streamOf([call(0, { id: 't', type: 'function', function: { name: 'now', arguments: null } }), ...CHAT_END]),
    true,
  ],
  ['an empty text', 'chat', answerOf('chat', false, { calls: [{ id: 't', name: 'now', arguments: '' }] }), false],
];

for (const [what, spoken, answer, stream] of EMPTY_CALLS) {
  test(`23 | ${spoken}, ${stream ? 'streamed' : 'whole'} | a call without arguments (${what}) has the arguments {}`, async () => {
    for (const served of FORMATS) {
      const told = await read(served, spoken, answer, stream);
      assert.deepEqual(told.calls, [{ id: 't', name: 'now', arguments: {} }], told.raw);
    }
  });
}

test('25 | empty argument fragments are accepted', async () => {
  const answers: [Format, Answer][] = [
    [
      'chat',
      streamOf([
        call(0, { id: 't', type: 'function', function: { name: 'look', arguments: '' } }),
        ...['{"k"', '', ':1', '', '}', ''].map((text) => call(0, { function: { arguments: text } })),
        ...CHAT_END,
      ]),
    ],
    [
      'messages',
      streamOf([
        messagesStart(),
        ...messagesBlock(
          0,
          { type: 'tool_use', id: 't', name: 'look', input: {} },
          ['', '{"k"', '', ':1}', ''].map((text) => ({ type: 'input_json_delta', partial_json: text })),
        ),
        ...messagesEnd('tool_use', { output_tokens: 3 }),
      ]),
    ],
  ];
  for (const [spoken, answer] of answers) {
    for (const served of FORMATS) {
      const told = await read(served, spoken, answer, true);
      assert.deepEqual([told.calls[0]?.arguments, told.error], [{ k: 1 }, undefined]);
    }
  }
});

for (const { served, spoken, name } of FORMAT_PAIRS) {
  test(`27 | ${name} | finish tool_calls without any call becomes stop`, async () => {
    for (const stream of [true, false]) {
      const told = await read(served, spoken, answerOf(spoken, stream, { text: 'x', finish: 'tool_calls' }), stream);
      assert.deepEqual([told.finish, told.calls], [FINISHES[served]['stop'], []], told.raw);
      if (served === 'chat') assert.ok(told.raw.includes(`"native_finish_reason":"${FINISHES[spoken]['tool_calls']}"`));
    }
  });

  // A chat service with a forced function call ends with a plain stop, and its clients know that.
  if (served === 'chat' && spoken === 'chat') continue;
  test(`27 | ${name} | calls with a finish other than tool_calls are reported as calls`, async () => {
    for (const stream of [true, false]) {
      const told = await read(
        served,
        spoken,
        answerOf(spoken, stream, { calls: [{ id: 't', name: 'now', arguments: '{}' }], finish: 'stop' }),
        stream,
      );
      assert.deepEqual([told.finish, told.calls.length], [FINISHES[served]['tool_calls'], 1], told.raw);
    }
  });
}

test('27 | a response with neither content nor calls is accepted, since it was billed', async () => {
  for (const served of FORMATS) {
    const told = await read(
      served,
      'messages',
      wholeOf({ ...messagesReply({}), content: [], stop_reason: 'tool_use' }),
      false,
    );
    assert.deepEqual([told.text, told.calls, told.finish], ['', [], FINISHES[served]['stop']]);
  }
});

/** Histories with the same two calls and results in each format. */
function history(served: Format, ids: readonly string[], texts: readonly string[] = ids.map(() => '{}')): Json[] {
  if (served === 'chat') {
    return [
      { role: 'user', content: 'run' },
      {
        role: 'assistant',
        content: null,
        tool_calls: ids.map((id, at) => ({ id, type: 'function', function: { name: 'run', arguments: texts[at] } })),
      },
      ...ids.map((id) => ({ role: 'tool', tool_call_id: id, content: `of ${id}` })),
    ];
  }
  return [
    { role: 'user', content: 'run' },
    {
      role: 'assistant',
      content: ids.map((id, at) => ({ type: 'tool_use', id, name: 'run', input: JSON.parse(texts[at]!) })),
    },
    { role: 'user', content: ids.map((id) => ({ type: 'tool_result', tool_use_id: id, content: `of ${id}` })) },
  ];
}

test('28 | ids of other vendors are mapped to valid, distinct, matching and stable ids', async () => {
  const ids = ['functions.run:0', 'functions.run.0', 'functions_run_0', 'call/ü', '', ' ', 'a'.repeat(300)].filter(
    (id) => id !== '',
  );
  const bodies = [
    await sent('chat', 'messages', { messages: history('chat', ids) }),
    await sent('chat', 'messages', { messages: history('chat', ids) }),
  ];
  assert.deepEqual(bodies[0].messages, bodies[1].messages);
  const [, assistant, user] = bodies[0].messages;
  const uses = assistant.content.map((block: Json) => block.id);
  assert.equal(new Set(uses).size, ids.length);
  for (const id of uses) assert.match(id, /^[a-zA-Z0-9_-]+$/);
  assert.deepEqual(
    user.content.map((block: Json) => block.tool_use_id),
    uses,
  );
  for (const [at, id] of ids.entries()) assert.equal(user.content[at].content[0].text, `of ${id}`);
});

test('30 | results of one turn and the text after them are one user message, in order', async () => {
  const body = await sent('chat', 'messages', {
    messages: [
      ...history('chat', ['t1', 't2', 't3']),
      { role: 'user', content: 'go on' },
      { role: 'user', content: 'please' },
    ],
  });
  assert.deepEqual(
    body.messages.map((one: Json) => one.role),
    ['user', 'assistant', 'user'],
  );
  assert.deepEqual(
    body.messages[2].content.map((block: Json) => block.tool_use_id ?? block.text),
    ['t1', 't2', 't3', 'go on', 'please'],
  );
  assert.ok(body.messages[1].content.every((block: Json) => block.type === 'tool_use'));
});

const PNG = 'iVBORw0KGgo=';

test('31 | images in results follow the tool messages, and their bytes occur nowhere else', async () => {
  const images = [
    { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PNG } },
    { type: 'image', source: { type: 'url', url: 'https://images.example/a.png' } },
  ];
  const messages = history('messages', ['t1', 't2']);
  messages[2].content[0].content = [{ type: 'text', text: 'screen' }, ...images];
  messages[2].content.push({ type: 'text', text: 'what is it?' });
  const body = await sent('messages', 'chat', { messages });
  const roles = body.messages.map((one: Json) => one.role);
  assert.deepEqual(roles.slice(0, 5), ['user', 'assistant', 'tool', 'tool', 'user']);
  assert.ok(!JSON.stringify(body.messages.slice(2, 4)).includes(PNG));
  const behind = JSON.stringify(body.messages.slice(4));
  for (const shown of [`data:image/png;base64,${PNG}`, 'https://images.example/a.png', 'what is it?'])
    assert.ok(behind.includes(shown), behind);
});

test('32 | blocks inside results are relayed unchanged within the messages format', async () => {
  const blocks = [
    { type: 'image', source: { type: 'url', url: 'https://images.example/a.png' } },
    { type: 'image', source: { type: 'file', file_id: 'file_1' } },
    { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'words' }, title: 'T' },
    { type: 'search_result', source: 'https://a.example', title: 'A', content: [{ type: 'text', text: 'found' }] },
    { type: 'tool_reference', tool_name: 'now' },
  ];
  for (const block of blocks) {
    const messages = history('messages', ['t1']);
    messages[2].content[0].content = [block];
    const body = await sent('messages', 'messages', { messages });
    assert.deepEqual(body.messages[2].content[0].content, [block]);
  }
});

for (const { served, spoken, name } of FORMAT_PAIRS) {
  test(`34 | ${name} | numbers in arguments keep their digits in both directions`, async () => {
    const numbers = ['7203685477580700123', '-9007199254740993', '0.1000000000000000055511', '1.0', '1e400'];
    const text = `{"n":[${numbers.join(',')}]}`;
    // A body of the messages format holds the input as an object: written by hand, so that its digits are these.
    const messages = JSON.stringify(history(served, ['t1'], ['{}'])).replace(
      served === 'chat' ? '"arguments":"{}"' : '"input":{}',
      () => (served === 'chat' ? `"arguments":${JSON.stringify(text)}` : `"input":${text}`),
    );
    gateway.upstream.script(spoken, answerOf(spoken, false, { text: 'ok' }));
    const reply = await gateway.post(
      served === 'chat' ? '/chat/completions' : '/messages',
      `{"model":"test/${spoken}","max_tokens":100,"messages":${messages}}`,
    );
    assert.equal(reply.status, 200);
    const got = gateway.upstream.requests(spoken).at(-1)!.body.toString().replaceAll('\\"', '"');
    // A sign that means nothing to a number as such may be lost only where the text becomes an object: 1.0 is 1.
    for (const number of numbers.filter((one) => served === spoken || one !== '1.0')) {
      assert.ok(got.includes(number), `${number} in ${got}`);
    }
    const whole = JSON.stringify(
      spoken === 'chat'
        ? (JSON.parse(
            String(answerOf('chat', false, { calls: [{ id: 't', name: 'run', arguments: text }] }).chunks![0]),
          ) as Json)
        : messagesReply({ calls: [{ id: 't', name: 'run', arguments: '{}' }] }),
    ).replace('"input":{}', () => `"input":${text}`);
    for (const [stream, answer] of [
      [false, wholeOf(whole)],
      [true, answerOf(spoken, true, { calls: [{ id: 't', name: 'run', arguments: text }] })],
    ] as const) {
      gateway.upstream.script(spoken, answer);
      const { text: told } = await ask(gateway, served, `test/${spoken}`, { stream, tools: TOOLS[served] });
      const joined = stream ? fragmentsOf(told) : told.replaceAll('\\"', '"');
      for (const number of numbers.filter((one) => served === spoken || stream || one !== '1.0')) {
        assert.ok(joined.includes(number), `${stream} ${number} in ${joined}`);
      }
    }
  });
}

function fragmentsOf(text: string): string {
  return [...text.matchAll(/"(?:arguments|partial_json)":("(?:[^"\\]|\\.)*")/g)]
    .map((match) => JSON.parse(match[1]!))
    .join('');
}

/** Ways in which servers number their calls. */
const NUMBERINGS: [string, string[]][] = [
  [
    'all of index 0',
    [
      call(0, { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"x":1}' } }),
      call(0, { id: 'c2', type: 'function', function: { name: 'now', arguments: '{"y":2}' } }),
    ],
  ],
  [
    'all of index 0, in fragments',
    [
      call(0, { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"x"' } }),
      call(0, { function: { arguments: ':1}' } }),
      call(0, { id: 'c2', type: 'function', function: { name: 'now', arguments: '' } }),
      call(0, { function: { arguments: '{"y":2}' } }),
    ],
  ],
  [
    'the id repeated in every fragment',
    [
      call(0, { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"x"' } }),
      call(0, { id: 'c1', function: { arguments: ':1}' } }),
      call(1, { id: 'c2', type: 'function', function: { name: 'now', arguments: '{"y":2}' } }),
    ],
  ],
  [
    'the id and the name repeated in every fragment',
    [
      call(0, { id: 'c1', type: 'function', function: { name: 'look', arguments: '' } }),
      call(0, { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"x"' } }),
      call(0, { function: { name: 'look', arguments: ':1}' } }),
      call(1, { id: 'c2', type: 'function', function: { name: 'now', arguments: '{"y":' } }),
      call(1, { id: 'c2', type: 'function', function: { name: 'now', arguments: '2}', strange: 7 } }),
    ],
  ],
  [
    'an empty id and name in the fragments',
    [
      call(0, { id: 'c1', type: 'function', function: { name: 'look', arguments: '' } }),
      call(0, { id: '', function: { name: '', arguments: '{"x":1}' } }),
      call(1, { id: 'c2', type: 'function', function: { name: 'now', arguments: '' } }),
      call(1, { id: '', function: { name: '', arguments: '{"y":2}' } }),
    ],
  ],
  [
    'from 1',
    [
      call(1, { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"x":1}' } }),
      call(2, { id: 'c2', type: 'function', function: { name: 'now', arguments: '{"y":2}' } }),
    ],
  ],
  [
    'not at all',
    [
      chatChunk({ tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{"x":1}' } }] }),
      chatChunk({ tool_calls: [{ id: 'c2', type: 'function', function: { name: 'now', arguments: '{"y":2}' } }] }),
    ],
  ],
  [
    'both in one chunk, without numbers',
    [
      chatChunk({
        tool_calls: [
          { id: 'c1', type: 'function', function: { name: 'look', arguments: '{"x":1}' } },
          { id: 'c2', type: 'function', function: { name: 'now', arguments: '{"y":2}' } },
        ],
      }),
    ],
  ],
];

for (const [what, events] of NUMBERINGS) {
  test(`21, 35 | calls numbered ${what} are two calls`, async () => {
    for (const served of FORMATS) {
      const told = await read(served, 'chat', streamOf([...events, ...CHAT_END]), true);
      assert.deepEqual(
        told.calls,
        [
          { id: 'c1', name: 'look', arguments: { x: 1 } },
          { id: 'c2', name: 'now', arguments: { y: 2 } },
        ],
        told.raw,
      );
    }
  });

  test(`35 and its kind | calls numbered ${what} send id and name only once, because clients concatenate fragments`, async () => {
    const { raw } = await read('chat', 'chat', streamOf([...events, ...CHAT_END]), true);
    for (const word of ['"c1"', '"c2"', '"look"', '"now"']) assert.equal(raw.split(word).length, 2, raw);
    if (JSON.stringify(events).includes('strange')) assert.match(raw, /"strange":7/);
  });
}

test('35 | calls without ids get distinct ids that a second turn can reference', async () => {
  const bare = (index: number, name: string) => call(index, { function: { name, arguments: '{}' } });
  const whole = {
    choices: [
      {
        index: 0,
        finish_reason: 'tool_calls',
        message: {
          role: 'assistant',
          content: null,
          tool_calls: ['look', 'now'].map((name) => ({ function: { name, arguments: '{}' } })),
        },
      },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
  for (const served of FORMATS) {
    for (const [answer, stream] of [
      [streamOf([bare(0, 'look'), bare(1, 'now'), ...CHAT_END]), true],
      [wholeOf(whole), false],
    ] as const) {
      const told = await read(served, 'chat', answer, stream);
      const ids = told.calls.map((one) => one.id);
      assert.deepEqual(
        told.calls.map((one) => one.name),
        ['look', 'now'],
      );
      assert.ok(
        ids.every((id) => id !== '' && id !== 'undefined' && id !== 'null') && new Set(ids).size === 2,
        String(ids),
      );
    }
  }
});

test('40 | arguments sent as an object become JSON text', async () => {
  const whole = {
    choices: [
      {
        index: 0,
        finish_reason: 'tool_calls',
        message: {
          role: 'assistant',
          content: '',
          tool_calls: [{ id: 't', type: 'function', function: { name: 'look', arguments: { x: 1 } } }],
        },
      },
    ],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  };
  for (const served of FORMATS) {
    const told = await read(served, 'chat', wholeOf(whole), false);
    assert.deepEqual(told.calls, [{ id: 't', name: 'look', arguments: { x: 1 } }], told.raw);
  }
});

test('a tool with a longer name than a format takes goes out under a short one, and is called by its own', async () => {
  const long = (tail: string) => `mcp__plugin_${'chrome-devtools-'.repeat(4)}__${tail}`;
  const [first, second] = [long('get_console_message'), long('get_console_messages')];
  const tools = [first, second, 'short'].map((name) => ({ name, input_schema: { type: 'object' } }));
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: first, input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 't1', content: 'r' }] },
  ];
  const body = { tools, tool_choice: { type: 'tool', name: second }, messages };
  gateway.upstream.script('chat', answerOf('chat', false, { text: 'ok' }));
  await ask(gateway, 'messages', 'test/chat', body);
  const sent = gateway.upstream.requests('chat').at(-1)!.json as Json;
  const names: string[] = sent.tools.map((tool: Json) => tool.function.name);
  assert.ok(names.every((name) => /^[a-zA-Z0-9_-]{1,64}$/.test(name)) && new Set(names).size === 3, String(names));
  assert.equal(names[2], 'short');
  assert.equal(sent.messages[1].tool_calls[0].function.name, names[0]);
  assert.equal(sent.tool_choice.function.name, names[1]);
  const calls = names.map((name, at) => ({ id: `c${at}`, name, arguments: '{}' }));
  for (const stream of [false, true]) {
    gateway.upstream.script('chat', answerOf('chat', stream, { calls, finish: 'tool_calls' }));
    const { text } = await ask(gateway, 'messages', 'test/chat', { ...body, stream });
    const told = stream ? readStreamed('messages', text) : readWhole('messages', text);
    assert.deepEqual(
      told.calls.map(({ name }) => name),
      [first, second, 'short'],
    );
  }
  // Where the format takes it the name is the client's.
  gateway.upstream.script('messages', answerOf('messages', false, { text: 'ok' }));
  await ask(gateway, 'messages', 'test/messages', body);
  assert.deepEqual((gateway.upstream.requests('messages').at(-1)!.json as Json).tools, tools);
});
