/**
 * The requests that each kind of provider sends, for clients of chat and messages, through a whole gateway with a scripted
 * upstream. The expectations come from the services' documentation.
 */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { KINDS } from '../../src/providers/index.ts';
import { ask, readStreamed, readWhole } from '../../src/testing/gateway/ask-gateway.ts';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';
import {
  answerOf,
  chatChunk,
  chatData,
  chatFinish,
  chatReply,
  type Format,
  streamOf,
  wholeOf,
} from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies that upstreams received
type Json = any;

const NAMES = KINDS.filter(({ speaks, id, transport }) => speaks === 'chat' && id !== 'chat' && !transport);
const MODELS: Record<string, string> = {
  azure: 'my deployment',
  cerebras: 'gpt-oss-120b',
  deepseek: 'deepseek-v4-flash',
  fireworks: 'accounts/fireworks/models/gpt-oss-20b',
  groq: 'openai/gpt-oss-120b',
  mistral: 'mistral-small-latest',
  openai: 'o4-mini',
  moonshot: 'kimi-k2.6',
  perplexity: 'sonar-reasoning-pro',
  together: 'zai-org/GLM-5',
  xai: 'grok-4.5',
  zai: 'glm-5',
};

const gateway: Gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      ...Object.fromEntries(
        NAMES.map(({ id }) => [id, { kind: id, model: { upstream_id: MODELS[id] ?? 'some-model' } }]),
      ),
      old: { kind: 'chat', stream_options: false },
      counting: { kind: 'mistral', stream_options: true },
      team: { kind: 'openai', headers: { 'OpenAI-Organization': 'org-77' }, think_tags: true },
    },
  },
);

const USER = { role: 'user', content: 'hi' };
const TOOL = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };
const OTHER = { type: 'function', function: { name: 'g', parameters: { type: 'object', properties: {} } } };

/** The call that the upstream got for a request that must succeed. */
async function called(served: Format, provider: string, body: object, told: Json = { text: 'ok' }) {
  const stream = (body as Json).stream === true;
  gateway.upstream.script(provider, answerOf('chat', stream, told));
  const { status, text } = await ask(gateway, served, `test/${provider}`, { ...body });
  assert.equal(status, 200, text);
  return gateway.upstream.requests(provider).at(-1)!;
}

async function sent(provider: string, body: object, served: Format = 'chat'): Promise<Json> {
  return (await called(served, provider, { messages: [USER], ...body })).json;
}

test('stream_options: false keeps them from a server that refuses them, and its streams are counted by estimate', async () => {
  const own = { stream_options: { include_usage: true } };
  for (const [served, body] of [
    ['chat', own],
    ['chat', {}],
    ['messages', { max_tokens: 100 }],
  ] as const) {
    assert.equal((await sent('old', { stream: true, ...body }, served)).stream_options, undefined);
  }
  assert.deepEqual((await sent('counting', { stream: true })).stream_options, { include_usage: true });
  gateway.upstream.script('old', { headers: { 'content-type': 'text/event-stream' }, chunks: ['data: [DONE]\n\n'] });
  const reply = await gateway.post('/completions', { model: 'test/old', prompt: ['a', 'b'], stream: true, ...own });
  await reply.text();
  const { path, json } = gateway.upstream.requests('old').at(-1)!;
  assert.deepEqual([path, 'stream_options' in (json as Json)], ['/completions', false]);
});

test('usage is asked for on every stream, but where the service refuses the question', async () => {
  for (const { id } of NAMES) {
    for (const served of ['chat', 'messages'] as const) {
      const body = await sent(id, { stream: true, ...(served === 'messages' && { max_tokens: 100 }) }, served);
      assert.equal(body.stream, true);
      assert.deepEqual(body.stream_options, id === 'mistral' ? undefined : { include_usage: true }, id);
    }
  }
});

test('the output cap goes out under the name that the service knows', async () => {
  for (const { id } of NAMES) {
    const name = id === 'openai' || id === 'azure' ? 'max_completion_tokens' : 'max_tokens';
    const other = name === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens';
    for (const given of ['max_tokens', 'max_completion_tokens']) {
      const body = await sent(id, { [given]: 55 });
      assert.deepEqual([body[name], other in body], [55, false], `${id} ${given}`);
    }
    assert.equal((await sent(id, { max_tokens: 55 }, 'messages'))[name], 55, id);
  }
});

/** What goes out for an effort that a client of either format asks for. */
const EFFORTS: Record<string, { asked: string; goes: Json }[]> = {
  cerebras: [
    { asked: 'high', goes: { reasoning_effort: 'high' } },
    { asked: 'none', goes: { reasoning_effort: 'low' } },
    { asked: 'max', goes: { reasoning_effort: 'high' } },
  ],
  deepseek: [
    { asked: 'none', goes: { thinking: { type: 'disabled' } } },
    { asked: 'medium', goes: { thinking: { type: 'enabled' }, reasoning_effort: 'high' } },
    { asked: 'max', goes: { thinking: { type: 'enabled' }, reasoning_effort: 'max' } },
  ],
  moonshot: [
    { asked: 'none', goes: { thinking: { type: 'disabled' } } },
    { asked: 'low', goes: { thinking: { type: 'enabled' } } },
  ],
  zai: [{ asked: 'low', goes: { thinking: { type: 'enabled' } } }],
  alibaba: [
    { asked: 'none', goes: { enable_thinking: false } },
    { asked: 'high', goes: { enable_thinking: true } },
  ],
  together: [
    { asked: 'none', goes: { reasoning: { enabled: false } } },
    { asked: 'high', goes: { reasoning: { enabled: true } } },
  ],
  mistral: [
    { asked: 'none', goes: { reasoning_effort: 'none' } },
    { asked: 'low', goes: { reasoning_effort: 'high' } },
  ],
  groq: [
    { asked: 'minimal', goes: { reasoning_effort: 'low' } },
    { asked: 'medium', goes: { reasoning_effort: 'medium' } },
  ],
  xai: [
    { asked: 'none', goes: { reasoning_effort: 'low' } },
    { asked: 'xhigh', goes: { reasoning_effort: 'high' } },
  ],
  perplexity: [{ asked: 'max', goes: { reasoning_effort: 'high' } }],
  ollama: [{ asked: 'max', goes: { reasoning_effort: 'high' } }],
  fireworks: [{ asked: 'minimal', goes: { reasoning_effort: 'low' } }],
  openai: [
    { asked: 'none', goes: { reasoning_effort: 'low' } },
    { asked: 'medium', goes: { reasoning_effort: 'medium' } },
  ],
  openrouter: [{ asked: 'low', goes: { reasoning: { effort: 'low' } } }],
  vllm: [{ asked: 'low', goes: { reasoning_effort: 'low' } }],
  azure: [{ asked: 'low', goes: { reasoning_effort: 'low' } }],
};

test('the effort of thinking reaches the service in its own members, whichever member the client uses', async () => {
  const fields = ['reasoning', 'reasoning_effort', 'thinking', 'enable_thinking', 'reasoning_format'];
  const about = (body: Json) => Object.fromEntries(fields.flatMap((key) => (key in body ? [[key, body[key]]] : [])));
  for (const [provider, cases] of Object.entries(EFFORTS)) {
    for (const { asked, goes } of cases) {
      assert.deepEqual(about(await sent(provider, { reasoning: { effort: asked } })), goes, `${provider} ${asked}`);
      const short = provider === 'openrouter' ? { reasoning_effort: asked } : goes;
      assert.deepEqual(about(await sent(provider, { reasoning_effort: asked })), short, `${provider} ${asked}, short`);
    }
  }
  const budget = { thinking: { type: 'enabled', budget_tokens: 2048 }, max_tokens: 4000 };
  assert.deepEqual(about(await sent('alibaba', budget, 'messages')), { enable_thinking: true });
  assert.equal((await sent('alibaba', budget, 'messages')).thinking_budget, 2048);
  assert.deepEqual(about(await sent('deepseek', budget, 'messages')).thinking, { type: 'enabled' });
  assert.deepEqual(about(await sent('together', { thinking: { type: 'disabled' } }, 'messages')), {
    reasoning: { enabled: false },
  });
});

test("a vendor's own switch is the client's to set", async () => {
  const own = { type: 'enabled', clear_thinking: false };
  assert.deepEqual((await sent('zai', { thinking: own, reasoning: { effort: 'none' } })).thinking, own);
});

test('parameters that a service refuses are left out, others stay', async () => {
  const all = {
    temperature: 0.5,
    seed: 7,
    logit_bias: { 5: 1 },
    top_k: 3,
    stop: ['x'],
    frequency_penalty: 0.1,
    unheard_of: 1,
  };
  const mistral = await sent('mistral', all);
  assert.deepEqual(
    [mistral.random_seed, mistral.seed, mistral.logit_bias, mistral.top_k],
    [7, undefined, undefined, undefined],
  );
  assert.deepEqual([mistral.temperature, mistral.stop, mistral.unheard_of], [0.5, ['x'], 1]);
  assert.deepEqual([mistral.user, mistral.safety_identifier], [undefined, undefined]);
  const groq = await sent('groq', { ...all, service_tier: 'default' });
  assert.deepEqual([groq.seed, groq.logit_bias, groq.top_k, groq.service_tier], [7, undefined, undefined, undefined]);
  const xai = await sent('xai', all);
  assert.deepEqual([xai.stop, xai.frequency_penalty, xai.seed], [undefined, undefined, 7]);
  const openai = await sent('openai', all);
  assert.deepEqual([openai.temperature, openai.frequency_penalty, openai.seed], [undefined, undefined, 7]);
  const cerebras = await sent('cerebras', all);
  assert.deepEqual([cerebras.frequency_penalty, cerebras.top_k], [undefined, 3]);
  const zai = await sent('zai', { user: 'me' });
  assert.deepEqual([typeof zai.user_id, zai.user], ['string', undefined]);
  assert.equal((await sent('mistral', { stop_sequences: ['x'], top_k: 3 }, 'messages')).top_k, undefined);
});

test('a feature that a service lacks refuses the endpoint by its name', async () => {
  const schema = { type: 'json_schema', json_schema: { name: 'a', schema: { type: 'object' } } };
  for (const [provider, body, field] of [
    ['perplexity', { tools: [TOOL] }, 'tools'],
    ['deepseek', { response_format: { type: 'python' } }, 'response_format'],
  ] as const) {
    const { status, json } = await ask(gateway, 'chat', `test/${provider}`, { messages: [USER], ...body });
    assert.equal(status, 400);
    assert.deepEqual(json.error.metadata.unsupported, [field]);
  }
  assert.equal((await sent('perplexity', { tools: [TOOL], tool_choice: 'none' })).tools, undefined);
  for (const provider of ['deepseek', 'zai']) {
    const { tools, response_format } = await sent(provider, { response_format: schema });
    assert.deepEqual([tools[0].function.parameters, response_format], [{ type: 'object', properties: {} }, undefined]);
  }
  assert.deepEqual((await sent('deepseek', { response_format: { type: 'json_object' } })).response_format, {
    type: 'json_object',
  });
});

test('services that take words for tool choices get a forced tool alone and required', async () => {
  for (const provider of ['lmstudio', 'llamacpp']) {
    const forced = { type: 'function', function: { name: 'g' } };
    const chat = await sent(provider, { tools: [TOOL, OTHER], tool_choice: forced });
    assert.deepEqual([chat.tool_choice, chat.tools], ['required', [OTHER]]);
    const messages = await sent(
      provider,
      {
        tools: [
          { name: 'f', input_schema: {} },
          { name: 'g', input_schema: {} },
        ],
        tool_choice: { type: 'tool', name: 'g' },
      },
      'messages',
    );
    assert.deepEqual(
      [messages.tool_choice, messages.tools.map((tool: Json) => tool.function.name)],
      ['required', ['g']],
    );
    assert.equal((await sent(provider, { tools: [TOOL, OTHER], tool_choice: 'auto' })).tools.length, 2);
  }
  const format = (await sent('lmstudio', { response_format: { type: 'json_object' } })).response_format;
  assert.deepEqual([format.type, format.json_schema.schema.type], ['json_schema', 'object']);
});

const HISTORY = [
  { role: 'user', content: 'x', name: 'Ann' },
  {
    role: 'assistant',
    content: null,
    refusal: null,
    reasoning: 'hm',
    reasoning_details: [{ type: 'reasoning.text', text: 'hm', index: 0 }],
    annotations: [],
    tool_calls: [
      {
        id: 'call_with_a_long_id',
        index: 0,
        type: 'function',
        function: { name: 'f', arguments: '{"n":9007199254740993}' },
      },
    ],
  },
  { role: 'tool', tool_call_id: 'call_with_a_long_id', content: 'r' },
  { role: 'user', content: 'y' },
];

test('an answer that a client sends back as it came is taken by services that refuse what they do not know', async () => {
  const mistral = (await sent('mistral', { messages: HISTORY, tools: [TOOL] })).messages;
  const { id } = mistral[1].tool_calls[0];
  assert.match(id, /^[A-Za-z0-9]{9}$/);
  assert.deepEqual(mistral, [
    { role: 'user', content: 'x' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id, type: 'function', function: { name: 'f', arguments: '{"n":9007199254740993}' } }],
    },
    { role: 'tool', tool_call_id: id, content: 'r' },
    { role: 'assistant', content: 'OK.' },
    { role: 'user', content: 'y' },
  ]);
  for (const provider of ['groq', 'cerebras']) {
    const [first, second, third] = (await sent(provider, { messages: HISTORY, tools: [TOOL] })).messages;
    assert.deepEqual(first, HISTORY[0]);
    assert.deepEqual(Object.keys(second).sort(), ['content', 'role', 'tool_calls']);
    assert.deepEqual(Object.keys(second.tool_calls[0]).sort(), ['function', 'id', 'type']);
    assert.deepEqual(third, HISTORY[2]);
  }
  const native = [
    USER,
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_01', name: 'f', input: {} }] },
    {
      role: 'user',
      content: [
        { type: 'tool_result', tool_use_id: 'toolu_01', content: 'r' },
        { type: 'text', text: 'y' },
      ],
    },
  ];
  const body = { messages: native, tools: [{ name: 'f', input_schema: {} }] };
  const translated = (await sent('mistral', body, 'messages')).messages;
  assert.deepEqual(
    translated.map((one: Json) => one.role),
    ['user', 'assistant', 'tool', 'assistant', 'user'],
  );
  assert.equal(translated[1].tool_calls[0].id, translated[2].tool_call_id);
  assert.equal((await sent('mistral', body, 'messages')).messages[2].tool_call_id, translated[2].tool_call_id);
});

test('a developer message is a system message before its members are checked', async () => {
  const messages = [{ role: 'developer', content: 'be short', name: 'boss' }, USER];
  assert.deepEqual((await sent('mistral', { messages })).messages, [{ role: 'system', content: 'be short' }, USER]);
});

test('a message that fits a strict service goes through byte for byte', async () => {
  const messages =
    '[ {"role":"user","content":"x"}, {"role" : "assistant","content":"y"},{"role":"user","content":"z"} ]';
  for (const provider of ['mistral', 'groq', 'cerebras']) {
    gateway.upstream.script(provider, answerOf('chat', false, { text: 'ok' }));
    const reply = await gateway.post('/chat/completions', `{"model":"test/${provider}","messages":${messages}}`);
    assert.equal(reply.status, 200);
    const { body } = gateway.upstream.requests(provider).at(-1)!;
    assert.ok(body.includes(messages), provider);
  }
});

test('thinking goes back to the services that want it, and to no other', async () => {
  const turn = { role: 'assistant', content: 'y', reasoning: 'hm' };
  for (const { id } of NAMES) {
    const { messages } = await sent(id, { messages: [USER, turn, USER] });
    const { content, role, ...others } = messages[1];
    const name: string | undefined = {
      deepseek: 'reasoning_content',
      deepinfra: 'reasoning_content',
      fireworks: 'reasoning_content',
      llamacpp: 'reasoning_content',
      moonshot: 'reasoning_content',
      zai: 'reasoning_content',
      openrouter: 'reasoning',
      vllm: 'reasoning',
    }[id];
    assert.deepEqual(others, name === undefined ? {} : { [name]: 'hm' }, id);
  }
});

test('a last message of the assistant is marked as to be continued where the service wants a mark', async () => {
  const messages = [USER, { role: 'assistant', content: 'The answer is' }];
  for (const served of ['chat', 'messages'] as const) {
    for (const [provider, mark] of [
      ['mistral', 'prefix'],
      ['moonshot', 'partial'],
      ['alibaba', 'partial'],
      ['vllm', undefined],
    ] as const) {
      const last = (await sent(provider, { messages }, served)).messages.at(-1);
      assert.deepEqual(last, { ...messages[1], ...(mark && { [mark]: true }) }, provider);
    }
  }
});

test('a document goes to Mistral as the part that it knows', async () => {
  const source = { type: 'base64', media_type: 'application/pdf', data: 'JVBERi0=' };
  const content = [
    { type: 'document', title: 'a.pdf', source },
    { type: 'text', text: 'sum up' },
  ];
  const body = await sent('mistral', { messages: [{ role: 'user', content }] }, 'messages');
  const { type, document_url } = body.messages[0].content[0];
  assert.deepEqual([type, document_url], ['document_url', 'data:application/pdf;base64,JVBERi0=']);
});

const TAGGED = '<think>\nfirst é\n</think>\n\nThe answer';
const SEEN = { text: 'The answer', reasoning: '\nfirst é\n' };

test('thinking between tags is reported as thinking, however the stream is split', async () => {
  for (const served of ['chat', 'messages'] as const) {
    for (const size of [1, 2, 5, 100]) {
      const pieces = TAGGED.match(new RegExp(`[\\s\\S]{1,${size}}`, 'gu'))!;
      const events = [
        chatChunk({ role: 'assistant', content: '' }),
        ...pieces.map((content) => chatChunk({ content })),
      ];
      gateway.upstream.script('perplexity', streamOf([...events, chatFinish(), 'data: [DONE]\n\n']));
      const { text } = await ask(gateway, served, 'test/perplexity', { messages: [USER], stream: true });
      const seen = readStreamed(served, text);
      assert.deepEqual({ text: seen.text, reasoning: seen.reasoning }, SEEN, `${served} ${size}`);
    }
    gateway.upstream.script('perplexity', wholeOf(chatReply({ text: TAGGED })));
    const { text: whole } = await ask(gateway, served, 'test/perplexity', { messages: [USER] });
    const seen = readWhole(served, whole);
    assert.deepEqual({ text: seen.text, reasoning: seen.reasoning }, SEEN, served);
  }
});

test('a text that only looks like thinking stays as it is', async () => {
  for (const written of ['<thin', ' <', '<b>bold</b>', 'a <think>b</think>', '']) {
    for (const served of ['chat', 'messages'] as const) {
      const events = [
        chatChunk({ role: 'assistant', content: '' }),
        ...[...written].map((content) => chatChunk({ content })),
      ];
      gateway.upstream.script('vllm', streamOf([...events, chatFinish(), 'data: [DONE]\n\n']));
      if (written === '') continue;
      const { text } = await ask(gateway, served, 'test/vllm', { messages: [USER], stream: true });
      assert.equal(readStreamed(served, text).text, written, served);
      gateway.upstream.script('vllm', wholeOf(chatReply({ text: written })));
      assert.equal(
        readWhole(served, (await ask(gateway, served, 'test/vllm', { messages: [USER] })).text).text,
        written,
      );
    }
  }
});

test('sources next to a response are its citations', async () => {
  const sources = {
    citations: ['https://a.example/', 'https://b.example/'],
    search_results: [{ title: 'A', url: 'https://a.example/' }],
  };
  gateway.upstream.script('perplexity', wholeOf({ ...chatReply({ text: 'yes [1]' }), ...sources }));
  const whole = (await ask(gateway, 'messages', 'test/perplexity', { messages: [USER] })).json;
  assert.deepEqual(
    whole.content[0].citations.map(({ url, title }: Json) => [url, title ?? null]),
    [
      ['https://a.example/', 'A'],
      ['https://b.example/', null],
    ],
  );
  const reply = (await ask(gateway, 'chat', 'test/perplexity', { messages: [USER] })).json;
  assert.deepEqual(reply.citations, sources.citations);
});

test('errors of each shape are reported by their kind', async () => {
  const shapes: [string, number, unknown, number][] = [
    [
      'mistral',
      422,
      { object: 'error', message: { detail: [{ type: 'extra_forbidden', msg: 'Extra inputs are not permitted' }] } },
      422,
    ],
    [
      'azure',
      404,
      { error: { code: 'DeploymentNotFound', message: 'The API deployment for this resource does not exist.' } },
      404,
    ],
    ['azure', 401, { statusCode: 401, message: 'Unauthorized. Access token is missing or invalid.' }, 502],
    [
      'azure',
      400,
      { error: { code: 'content_filter', message: 'filtered', innererror: { code: 'ResponsibleAIPolicyViolation' } } },
      400,
    ],
    ['lmstudio', 400, { error: "'response_format.type' must be 'json_schema' or 'text'" }, 400],
    ['zai', 429, { error: { code: '1302', message: 'High concurrency usage of this API' } }, 429],
    [
      'cerebras',
      429,
      { message: 'Tokens per minute limit exceeded', type: 'too_many_requests_error', code: 'token_quota_exceeded' },
      429,
    ],
  ];
  for (const [provider, status, body, shown] of shapes) {
    gateway.upstream.script(provider, wholeOf(body, { status }));
    const { status: got, json } = await ask(gateway, 'chat', `test/${provider}`, { messages: [USER] });
    assert.equal(got, shown, `${provider} ${JSON.stringify(json)}`);
  }
});

test("Groq's counts come in its own member and Moonshot's in the choice", async () => {
  const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
  const chunks = {
    groq: [chatFinish(), chatData({ choices: [], x_groq: { usage } })],
    moonshot: [chatChunk({}, { finish_reason: 'stop', usage })],
  };
  for (const [provider, ends] of Object.entries(chunks)) {
    const events = [chatChunk({ role: 'assistant', content: 'a' }), ...ends, 'data: [DONE]\n\n'];
    gateway.upstream.script(provider, streamOf(events));
    const { text } = await ask(gateway, 'messages', `test/${provider}`, { messages: [USER], stream: true });
    assert.match(text, /"input_tokens":7/, provider);
    assert.match(text, /"output_tokens":3/, provider);
  }
});

test('operator headers reach the service with its credential, and no client headers do', async () => {
  gateway.upstream.script('team', answerOf('chat', false, { text: 'ok' }));
  const { headers } = await ask(gateway, 'chat', 'test/team', { messages: [USER] }, { 'openai-organization': 'mine' });
  const seen = gateway.upstream.requests('team').at(-1)!.headers;
  assert.equal(seen['openai-organization'], 'org-77');
  assert.match(seen['authorization'] ?? '', /^Bearer /);
  assert.equal(headers.get('openai-organization'), null);
});

test('think_tags enables thinking in the text for kinds without it', async () => {
  gateway.upstream.script('team', wholeOf(chatReply({ text: TAGGED })));
  const { text } = await ask(gateway, 'messages', 'test/team', { messages: [USER] });
  assert.equal(readWhole('messages', text).reasoning, SEEN.reasoning);
});
