/** Losses in translation that users of other gateways met, each asked of the ways through a whole gateway that it concerns. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib';
import {
  ask,
  FINISHES,
  FORMAT_PAIRS,
  FORMATS,
  PATHS,
  readStreamed,
  readWhole,
  requestOf,
} from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, chatReply, type Format, messagesReply, wholeOf } from '../../src/testing/upstream/answers.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      chat: {},
      messages: { kind: 'messages' },
      strict: { kind: 'vllm', strict_template: true },
      openai: { kind: 'openai' },
      router: { kind: 'openrouter' },
      anthropic: { kind: 'anthropic' },
    },
  },
);

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const USER = { role: 'user', content: 'x' };
const TOOL = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };
const NATIVE_TOOL = { name: 'f', input_schema: { type: 'object', properties: {} } };

/** What the upstream got for a request that must succeed. */
async function sent(served: Format, provider: string, body: object): Promise<Json> {
  const spoken = provider === 'messages' || provider === 'anthropic' ? 'messages' : 'chat';
  gateway.upstream.script(provider, answerOf(spoken, false, { text: 'ok' }));
  const { status, text } = await ask(gateway, served, `test/${provider}`, { ...body });
  assert.equal(status, 200, text);
  return gateway.upstream.requests(provider).at(-1)!.json;
}

/** The refusal of a request that must not reach the upstream. */
async function refused(served: Format, provider: string, body: object): Promise<Json> {
  const before = gateway.upstream.requests(provider).length;
  const { status, json, text } = await ask(gateway, served, `test/${provider}`, { ...body });
  assert.equal(status, 400, text);
  assert.equal(gateway.upstream.requests(provider).length, before, 'the upstream was asked');
  return json;
}

test('37 | a strict template gets one system message and alternating roles, others get the messages unchanged', async () => {
  const messages = [
    { role: 'system', content: 'A' },
    { role: 'developer', content: 'B' },
    { role: 'user', content: 'x' },
    { role: 'user', content: [{ type: 'text', text: 'y' }] },
  ];
  const merged = await sent('chat', 'strict', { messages });
  assert.deepEqual(
    merged.messages.map((one: Json) => one.role),
    ['system', 'user'],
  );
  assert.equal(merged.messages[0].content, 'A\n\nB');
  const user = merged.messages[1].content;
  const texts = typeof user === 'string' ? user : user.map((part: Json) => part.text).join('');
  assert.match(texts, /^x\s*y$/);
  const kept = await sent('chat', 'chat', { messages });
  assert.deepEqual(kept.messages, [messages[0], { role: 'system', content: 'B' }, messages[2], messages[3]]);
  assert.deepEqual((await sent('chat', 'openai', { messages })).messages, messages);
  const native = await sent('chat', 'messages', { messages });
  assert.deepEqual(native.messages, [
    {
      role: 'user',
      content: [
        { type: 'text', text: 'x' },
        { type: 'text', text: 'y' },
      ],
    },
  ]);
  assert.equal(JSON.stringify(native.system).match(/"text":"[AB]/g)?.length, 2);
});

test('38 | consecutive messages of one role are merged, with their blocks in order', async () => {
  const text = (role: string, content: string) => ({ role, content });
  const body = await sent('chat', 'messages', {
    messages: [text('user', 'a'), text('user', 'b'), text('assistant', 'c'), text('assistant', 'd'), text('user', 'e')],
  });
  assert.deepEqual(
    body.messages.map((one: Json) => [one.role, one.content.map((block: Json) => block.text)]),
    [
      ['user', ['a', 'b']],
      ['assistant', ['c', 'd']],
      ['user', ['e']],
    ],
  );
});

test('39 | empty texts are dropped for every role, and tool results stay', async () => {
  const call = { id: 't1', type: 'function', function: { name: 'f', arguments: '{}' } };
  const empties = ['', null, [], [{ type: 'text', text: '' }]];
  for (const empty of empties) {
    const body = await sent('chat', 'messages', {
      tools: [TOOL],
      messages: [
        { role: 'system', content: '' },
        USER,
        { role: 'assistant', content: empty, tool_calls: [call] },
        { role: 'tool', tool_call_id: 't1', content: empty ?? '' },
        {
          role: 'user',
          content: [
            { type: 'text', text: '' },
            { type: 'text', text: 'go' },
          ],
        },
      ],
    });
    assert.ok(!JSON.stringify(body).includes('"text":""'), JSON.stringify(body));
    assert.ok(!('system' in body) || body.system.length > 0);
    const [, , last] = body.messages;
    assert.equal(last.content[0].tool_use_id, 't1');
    assert.ok([undefined, ''].includes(last.content[0].content) || last.content[0].content.length === 0);
    assert.equal(last.content[1].text, 'go');
  }
});

const CHOICES: [unknown, unknown][] = [
  ['auto', { type: 'auto' }],
  ['none', { type: 'none' }],
  ['required', { type: 'any' }],
  [
    { type: 'function', function: { name: 'f' } },
    { type: 'tool', name: 'f' },
  ],
];

for (const [chat, messages] of CHOICES) {
  test(`40 | the tool choice ${JSON.stringify(chat)} is ${JSON.stringify(messages)} in the messages format, and back`, async () => {
    assert.deepEqual((await sent('chat', 'messages', { tools: [TOOL], tool_choice: chat })).tool_choice, messages);
    assert.deepEqual(
      (await sent('messages', 'chat', { tools: [NATIVE_TOOL], tool_choice: messages })).tool_choice,
      chat,
    );
    assert.deepEqual((await sent('chat', 'chat', { tools: [TOOL], tool_choice: chat })).tool_choice, chat);
    const single = await sent('chat', 'messages', { tools: [TOOL], tool_choice: chat, parallel_tool_calls: false });
    assert.deepEqual(
      single.tool_choice,
      chat === 'none' ? messages : { ...(messages as object), disable_parallel_tool_use: true },
    );
    if (chat !== 'none') {
      const back = await sent('messages', 'chat', {
        tools: [NATIVE_TOOL],
        tool_choice: { ...(messages as object), disable_parallel_tool_use: true },
      });
      assert.equal(back.parallel_tool_calls, false);
    }
  });
}

test('40 | an unknown tool choice, or one without a tool name, is a 400 with its path', async () => {
  for (const choice of ['any', 'sometimes', { type: 'function' }, { type: 'banana' }, 3]) {
    const { error } = await refused('chat', 'messages', { tools: [TOOL], tool_choice: choice });
    assert.match(error.message, /tool_choice/);
  }
  for (const choice of [{ type: 'required' }, { type: 'tool' }, 'auto']) {
    const { error } = await refused('messages', 'chat', { tools: [NATIVE_TOOL], tool_choice: choice });
    assert.match(error.message, /tool_choice/);
  }
});

const THOUGHT = [
  { type: 'thinking', thinking: 'line1\n\n  zwei é \u2028 ', signature: 'RXFRQkNn==' },
  { type: 'redacted_thinking', data: 'RW0wSw==' },
  { type: 'thinking', thinking: '', signature: 'b25seQ==' },
  { type: 'text', text: 'let me see' },
  { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
];

test('41, 43 | thinking is sent back block by block, byte for byte, with its setting', async () => {
  const body = await sent('messages', 'messages', {
    thinking: { type: 'enabled', budget_tokens: 1024 },
    tools: [NATIVE_TOOL],
    messages: [
      USER,
      { role: 'assistant', content: THOUGHT },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'r' }] },
    ],
  });
  assert.deepEqual(body.messages[1].content, THOUGHT);
  assert.deepEqual(body.thinking, { type: 'enabled', budget_tokens: 1024 });
});

test('41, 43 | the same blocks come back through the chat format, whole and streamed', async () => {
  for (const stream of [false, true]) {
    const whole = wholeOf({ ...messagesReply({}), content: THOUGHT, stop_reason: 'tool_use' });
    gateway.upstream.script('messages', whole);
    const { text } = await ask(gateway, 'chat', 'test/messages', {
      tools: [TOOL],
      reasoning: { max_tokens: 1024 },
      stream,
    });
    let details: Json[] = [];
    if (!stream) details = JSON.parse(text).choices[0].message.reasoning_details;
    for (const [, data] of stream ? text.matchAll(/^data: (\{[^\n]*)\n/gm) : []) {
      for (const choice of JSON.parse(data!).choices) details.push(...(choice.delta.reasoning_details ?? []));
    }
    const call = { id: 'toolu_1', type: 'function', function: { name: 'f', arguments: '{}' } };
    const body = await sent('chat', 'messages', {
      tools: [TOOL],
      messages: [
        USER,
        { role: 'assistant', content: 'let me see', tool_calls: [call], reasoning_details: details },
        { role: 'tool', tool_call_id: 'toolu_1', content: 'r' },
      ],
    });
    assert.deepEqual(body.messages[1].content, THOUGHT);
  }
});

test('41 | thinking of one vendor is never sent to another', async () => {
  const messages = [USER, { role: 'assistant', content: THOUGHT.slice(0, 4) }, USER];
  const body = await sent('messages', 'chat', { messages });
  assert.ok(!/RXFRQkNn|RW0wSw|b25seQ/.test(JSON.stringify(body)));
  assert.equal(body.messages[1].content, 'let me see');
});

test('41 | thinking without the vendor’s own signature is not sent to a vendor that checks signatures', async () => {
  // A chat service's encrypted thinking travels through a messages client, and the conversation moves on to Anthropic.
  const detail = { type: 'reasoning.encrypted', data: 'RU5DUllQVEVE', format: 'openai-responses-v1', index: 0 };
  const value: Json = chatReply({ text: 'hi' });
  value.choices[0].message.reasoning_details = [detail];
  gateway.upstream.script('router', wholeOf(value));
  const { content } = (await ask(gateway, 'messages', 'test/router')).json;
  assert.ok(JSON.stringify(content).includes('RU5DUllQVEVE'));
  const unsigned = { type: 'thinking', thinking: 'plain', signature: '' };
  const own = { type: 'thinking', thinking: 'own', signature: 'c2ln' };
  const messages = [
    USER,
    { role: 'assistant', content: [unsigned, own, ...content] },
    USER,
    { role: 'assistant', content: [unsigned] },
    USER,
  ];
  const text = { type: 'text', text: 'hi', citations: [] };
  const strict = await sent('messages', 'anthropic', { messages });
  assert.deepEqual(strict.messages, [USER, { role: 'assistant', content: [own, text] }, USER, USER]);
  // A server that signs nothing gets its unsigned thinking back.
  const lenient = await sent('messages', 'messages', { messages });
  assert.deepEqual(lenient.messages[1].content, [unsigned, own, text]);
  const origin = await sent('messages', 'router', { messages: [USER, { role: 'assistant', content }, USER] });
  assert.deepEqual(origin.messages[1].reasoning_details, [detail]);
});

test('30, 31 | results follow their calls directly, also when the client put a text before them', async () => {
  const body = await sent('messages', 'chat', {
    tools: [NATIVE_TOOL],
    messages: [
      USER,
      { role: 'assistant', content: [{ type: 'tool_use', id: 't1', name: 'f', input: {} }] },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'note' },
          { type: 'tool_result', tool_use_id: 't1', content: 'r' },
        ],
      },
    ],
  });
  assert.deepEqual(body.messages.slice(2), [
    { role: 'tool', tool_call_id: 't1', content: 'r' },
    { role: 'user', content: 'note' },
  ]);
});

test('44 | cache breakpoints keep their positions, at most four, and are dropped where unsupported', async () => {
  const mark = { cache_control: { type: 'ephemeral' } };
  const hour = { cache_control: { type: 'ephemeral', ttl: '1h' } };
  const body = {
    tools: [{ ...TOOL, ...mark }],
    messages: [
      { role: 'system', content: [{ type: 'text', text: 'big', ...hour }] },
      { role: 'user', content: [{ type: 'text', text: 'x' }] },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 't1', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 't1', content: [{ type: 'text', text: 'r', ...mark }] },
    ],
  };
  const native = await sent('chat', 'messages', body);
  assert.deepEqual(native.system[0].cache_control, hour.cache_control);
  assert.deepEqual(native.tools[0].cache_control, mark.cache_control);
  // On the result, or on the text inside it: the format takes both.
  const result = native.messages[2].content[0];
  assert.deepEqual(result.cache_control ?? result.content[0].cache_control, mark.cache_control);
  const many = await sent('chat', 'messages', {
    messages: Array.from({ length: 7 }, (_, index) => ({
      role: index % 2 === 0 ? 'user' : 'assistant',
      content: [{ type: 'text', text: `t${index}`, ...mark }],
    })),
  });
  assert.equal(JSON.stringify(many).split('cache_control').length - 1, 4);
  for (const served of FORMATS) {
    const asked =
      served === 'chat'
        ? body
        : {
            system: [{ type: 'text', text: 'big', ...hour }],
            tools: [{ ...NATIVE_TOOL, ...mark }],
            messages: [{ role: 'user', content: [{ type: 'text', text: 'x', ...mark }] }],
          };
    assert.ok(!JSON.stringify(await sent(served, 'chat', asked)).includes('cache_control'), served);
    assert.ok(JSON.stringify(await sent(served, 'router', asked)).includes('"ttl":"1h"'), served);
  }
});

test('45 | the matched stop sequence is reported only if the upstream reports it', async () => {
  const reply = (more: object) => {
    const value: Json = chatReply({ text: 'abc' });
    Object.assign(value.choices[0], more);
    return wholeOf(value);
  };
  for (const [answer, reason, sequence] of [
    [reply({ stop_reason: 'END' }), 'stop_sequence', 'END'],
    [reply({}), 'end_turn', null],
    [reply({ stop_reason: null }), 'end_turn', null],
    // vLLM names the token where a token ended it.
    [reply({ stop_reason: 128_009 }), 'end_turn', null],
    [reply({ finish_reason: 'length', stop_reason: null }), 'max_tokens', null],
  ] as const) {
    gateway.upstream.script('chat', answer);
    const { json } = await ask(gateway, 'messages', 'test/chat', { stop_sequences: ['END'] });
    assert.deepEqual([json.stop_reason, json.stop_sequence], [reason, sequence]);
  }
});

const REASONS: [string, string][] = [
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['refusal', 'content_filter'],
  ['pause_turn', 'stop'],
  ['a_later_word', 'stop'],
];

for (const [native, unified] of REASONS) {
  test(`45 | the stop reason ${native} is ${unified} in chat, the native word kept`, async () => {
    const value: Json = {
      ...messagesReply({ text: 'abc' }),
      stop_reason: native,
      stop_sequence: native === 'stop_sequence' ? 'END' : null,
    };
    gateway.upstream.script('messages', wholeOf(value));
    const { json } = await ask(gateway, 'chat', 'test/messages');
    assert.deepEqual([json.choices[0].finish_reason, json.choices[0].native_finish_reason], [unified, native]);
    const events = (answerOf('messages', true, { text: 'abc' }).chunks as string[]).map((event) =>
      event.replace('"stop_reason":"end_turn"', `"stop_reason":"${native}"`),
    );
    gateway.upstream.script('messages', { headers: { 'content-type': 'text/event-stream' }, chunks: events });
    const { text } = await ask(gateway, 'chat', 'test/messages', { stream: true });
    assert.equal(readStreamed('chat', text).finish, unified);
  });
}

test('46 | a request without max_tokens gets the endpoint’s limit, and no request gets more', async () => {
  assert.equal((await sent('chat', 'messages', {})).max_tokens, 8000);
  assert.equal((await sent('chat', 'messages', { max_tokens: 9_000_000 })).max_tokens, 8000);
  assert.equal((await sent('chat', 'messages', { max_tokens: 70 })).max_tokens, 70);
  assert.equal((await sent('chat', 'messages', { max_completion_tokens: 60 })).max_tokens, 60);
  assert.equal((await sent('chat', 'messages', { max_tokens: 70, max_completion_tokens: 60 })).max_tokens, 60);
  for (const [provider, name] of [
    ['chat', 'max_tokens'],
    ['openai', 'max_completion_tokens'],
  ] as const) {
    const body = await sent('chat', provider, { max_tokens: 70, max_completion_tokens: 60 });
    assert.equal(body[name], 60);
    assert.equal(['max_tokens', 'max_completion_tokens'].filter((key) => key in body).length, 1);
  }
  for (const reasoning of [
    { max_tokens: 5000 },
    { max_tokens: 2000 },
    { effort: 'high' },
    { effort: 'xhigh' },
    { enabled: true },
  ]) {
    for (const cap of [undefined, 1100, 3000]) {
      const body = await sent('chat', 'messages', { reasoning, ...(cap && { max_tokens: cap }) });
      const budget = body.thinking?.budget_tokens;
      assert.ok(budget === undefined || (budget >= 1024 && budget < body.max_tokens), JSON.stringify(body));
      assert.ok(body.max_tokens <= 8000);
    }
  }
  gateway.upstream.script('messages', answerOf('messages', false, { text: '...', finish: 'length' }));
  assert.equal((await ask(gateway, 'chat', 'test/messages')).json.choices[0].finish_reason, 'length');
});

const IMAGES: Record<string, string> = {
  'image/png': 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=',
  'image/jpeg': '/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD',
  'image/gif': 'R0lGODlhAQABAAAAACw=',
  'image/webp': 'UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASo=',
};

test('48 | the bytes of an image determine its type, whatever its data URL says', async () => {
  for (const [type, data] of Object.entries(IMAGES)) {
    for (const declared of [type, 'image/png', 'image/*', 'IMAGE/JPG', 'image/jpg', 'application/octet-stream']) {
      for (const url of [`data:${declared};base64,${data}`, `data:${declared};charset=utf-8;base64,${data}`]) {
        const body = await sent('chat', 'messages', {
          messages: [
            {
              role: 'user',
              content: [
                { type: 'image_url', image_url: { url } },
                { type: 'text', text: '?' },
              ],
            },
          ],
        });
        assert.deepEqual(body.messages[0].content[0].source, { type: 'base64', media_type: type, data });
      }
    }
  }
});

test('48 | an image type that the upstream does not accept is a 400 that names the type', async () => {
  for (const url of [
    'data:image/svg+xml;utf8,%3Csvg/%3E',
    'data:image/svg+xml;base64,PHN2Zy8+',
    'data:image/bmp;base64,Qk0AAA==',
    'data:image/tiff;base64,SUkqAA==',
  ]) {
    const { error } = await refused('chat', 'messages', {
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    });
    assert.match(error.message, /svg|bmp|tiff/);
  }
  for (const url of ['data:', 'data:image/png;base64', 'not a url', '']) {
    const { status, text } = await ask(gateway, 'chat', 'test/messages', {
      messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
    });
    assert.equal(status, 400, `${url}: ${text}`);
  }
});

test('50 | a PDF is one document in every kind of part', async () => {
  const data = 'JVBERi0xLjQK';
  const source = { type: 'base64', media_type: 'application/pdf', data };
  for (const part of [
    { type: 'file', file: { filename: 'a.pdf', file_data: `data:application/pdf;base64,${data}` } },
    { type: 'image_url', image_url: { url: `data:application/pdf;base64,${data}` } },
  ]) {
    const body = await sent('chat', 'messages', {
      messages: [{ role: 'user', content: [{ type: 'text', text: 'about?' }, part] }],
    });
    assert.equal(body.messages[0].content[1].type, 'document');
    assert.deepEqual(body.messages[0].content[1].source, source);
  }
  const back = await sent('messages', 'chat', {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'document', source, title: 'a.pdf' },
          { type: 'text', text: 'about?' },
        ],
      },
    ],
  });
  assert.equal(back.messages[0].content[0].type, 'file');
  assert.equal(back.messages[0].content[0].file.file_data, `data:application/pdf;base64,${data}`);
  const raw = { type: 'file', file: { filename: 'a.pdf', file_data: data } };
  const { status, text } = await ask(gateway, 'chat', 'test/messages', {
    messages: [{ role: 'user', content: [raw] }],
  });
  assert.ok(status === 400 || text.includes('"choices"'), text);
});

const PACKERS = { gzip: gzipSync, deflate: deflateSync, br: brotliCompressSync };

for (const { served, spoken, name } of FORMAT_PAIRS) {
  test(`80 | ${name} | compressed responses, errors and streams reach the client decompressed and without content-encoding`, async () => {
    for (const [encoding, pack] of Object.entries(PACKERS)) {
      const packed = (answer: Answer): Answer => {
        const bytes = pack(Buffer.from((answer.chunks as string[]).join('')));
        return {
          ...answer,
          headers: {
            ...answer.headers,
            'content-encoding': encoding,
            ...(!answer.headers!['content-type']!.includes('stream') && { 'content-length': String(bytes.length) }),
          },
          chunks: [bytes],
        };
      };
      const error = wholeOf({ error: { message: 'bad thing', type: 'invalid_request_error' } }, { status: 400 });
      for (const [answer, stream] of [
        [answerOf(spoken, false, { text: 'Hello' }), false],
        [error, false],
        [error, true],
        [answerOf(spoken, true, { text: 'Hello' }), true],
      ] as const) {
        gateway.upstream.script(spoken, packed(answer));
        const response = await gateway.post(PATHS[served], requestOf(served, `test/${spoken}`, { stream }));
        const bytes = Buffer.from(await response.arrayBuffer());
        assert.equal(response.headers.get('content-encoding'), null);
        const length = response.headers.get('content-length');
        if (length !== null) assert.equal(Number(length), bytes.length);
        assert.equal(response.status, answer.status ?? 200);
        if (response.status === 400) assert.match(bytes.toString(), /bad thing/);
        else assert.equal((stream ? readStreamed : readWhole)(served, bytes.toString()).text, 'Hello');
      }
    }
  });
}

test('40 and its kind | several texts of a response are joined in chat without losing or adding a character', async () => {
  const texts = ['one', ' two\n', '', '\n three'];
  const value = { ...messagesReply({}), content: texts.map((text) => ({ type: 'text', text })) };
  gateway.upstream.script('messages', wholeOf(value));
  assert.equal((await ask(gateway, 'chat', 'test/messages')).json.choices[0].message.content, texts.join(''));
});

test('a refusal sent as text reaches a messages client, and one without text is a refusal in both formats', async () => {
  const value: Json = chatReply({});
  value.choices[0].message = { role: 'assistant', content: null, refusal: 'I will not.' };
  gateway.upstream.script('chat', wholeOf(value));
  const told = await ask(gateway, 'messages', 'test/chat');
  assert.equal(told.json.content[0].text, 'I will not.');
  assert.equal(told.json.stop_reason, 'refusal');
  gateway.upstream.script('messages', wholeOf({ ...messagesReply({}), content: [], stop_reason: 'refusal' }));
  const chat = await ask(gateway, 'chat', 'test/messages');
  assert.equal(chat.json.choices[0].finish_reason, FINISHES.chat['content_filter']);
});
