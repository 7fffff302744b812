/** Server tools that upstreams have themselves: requested in their words, shown in the client's. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { PRICING } from '../../src/testing/gateway/gateway.ts';
import { corpusMissing, recordings } from '../../src/testing/recordings/corpus.ts';
import { answerOf, errorOf, streamOf, wholeOf } from '../../src/testing/upstream/answers.ts';
import { type Answer, startUpstream } from '../../src/testing/upstream/upstream.ts';
import { startGuarded } from '../guardrails/guarded.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const PRICE = 0.01;
const model = (more: object) => ({ model: { pricing: { ...PRICING, web_search: String(PRICE) }, ...more } });
const engines = await startUpstream();
after(() => engines.close());
const url = engines.script('searxng', [{ chunks: [JSON.stringify({ results: [] })], repeat: true }]);
const hook = { after: (close: unknown) => after(close as () => Promise<void>) };
const { gateway, guarded } = await startGuarded(hook, {
  providers: {
    claude: { kind: 'anthropic', ...model({ upstream_id: 'claude-sonnet-4-6' }) },
    gpt: { kind: 'openai', ...model({ upstream_id: 'gpt-5.2' }) },
    grok: { kind: 'xai', ...model({ upstream_id: 'grok-4' }) },
    gemini: { kind: 'google', ...model({ upstream_id: 'gemini-2.5-flash' }) },
    // The catalog says that the model takes no tools.
    sonar: { kind: 'perplexity', ...model({ upstream_id: 'sonar', supported_parameters: ['temperature'] }) },
    plain: { kind: 'chat' },
    bedrock: { kind: 'bedrock', region: 'us-east-1', ...model({ upstream_id: 'anthropic.claude-sonnet-4-6' }) },
  },
  yaml: { web_search: { engines: [{ kind: 'searxng', url }] } },
});

type Provider = 'claude' | 'gpt' | 'grok' | 'gemini' | 'sonar' | 'plain' | 'bedrock';

interface Asked {
  format?: ClientFormat;
  stream?: boolean;
  parameters?: Json;
  tools?: Json[];
  history?: Json[];
  more?: Json;
}

function bodyOf(provider: Provider, { format = 'chat', stream = false, parameters, tools, history = [], more }: Asked) {
  const turns = [{ role: 'user', content: 'What is new?' }, ...history];
  if (history.length > 0) turns.push({ role: 'user', content: 'And before?' });
  return {
    model: `test/${provider}`,
    stream,
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: turns } : { messages: turns }),
    tools: tools ?? [{ type: 'svc:web_search', ...(parameters && { parameters }) }],
    ...more,
  };
}

async function ask(provider: Provider, answers: readonly Answer[], asked: Asked = {}) {
  gateway.upstream.script(provider, answers);
  const before = gateway.upstream.requests(provider).length;
  const { format = 'chat', stream = false } = asked;
  const reply = await gateway.post(PATH_OF[format], bodyOf(provider, asked));
  const text = await reply.text();
  const sent: Json[] = gateway.upstream
    .requests(provider)
    .slice(before)
    .map(({ path, json }) => ({ path, ...(json as object) }));
  return {
    status: reply.status,
    text,
    sent,
    id: reply.headers.get('x-generation-id')!,
    read: () => wholeAnswer(format, stream, text),
  };
}

const PAGE = { url: 'https://news.example/a', title: 'News' };
const OPENAI_USAGE = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
const searched = wholeOf({
  id: 'resp_1',
  object: 'response',
  status: 'completed',
  model: 'gpt-5.2',
  output: [
    {
      type: 'web_search_call',
      id: 'ws_1',
      status: 'completed',
      action: { type: 'search', query: 'news', sources: [{ type: 'url', url: PAGE.url }] },
    },
    { type: 'web_search_call', id: 'ws_2', status: 'completed', action: { type: 'open_page', url: PAGE.url } },
    {
      type: 'message',
      id: 'msg_1',
      role: 'assistant',
      status: 'completed',
      content: [
        {
          type: 'output_text',
          text: 'All is well.',
          annotations: [{ type: 'url_citation', ...PAGE, start_index: 0, end_index: 12 }],
        },
      ],
    },
  ],
  usage: OPENAI_USAGE,
});

test('each upstream is asked for the tool in its own words', async () => {
  const answers = {
    claude: answerOf('messages', false, { text: 'ok' }),
    gpt: searched,
    grok: searched,
    gemini: wholeOf({ candidates: [{ content: { parts: [{ text: 'ok' }] }, finishReason: 'STOP' }] }),
    sonar: answerOf('chat', false, { text: 'ok' }),
  };
  const user_location = { type: 'approximate', country: 'DE' };
  const parameters = { allowed_domains: ['News.example'], search_context_size: 'low', user_location };
  const asked = async (provider: keyof typeof answers, settings: Json = parameters) => {
    const { sent, text, status } = await ask(provider, [answers[provider]], { parameters: settings });
    assert.equal(status, 200, text);
    return sent[0];
  };
  const allowed_domains = ['news.example'];
  assert.deepEqual((await asked('claude')).tools, [
    { type: 'web_search_20250305', name: 'web_search', allowed_domains, user_location },
  ]);
  const gpt = await asked('gpt');
  assert.equal(gpt.path, '/responses');
  assert.deepEqual(gpt.tools, [
    { type: 'web_search', filters: { allowed_domains }, search_context_size: 'low', user_location },
  ]);
  assert.deepEqual((await asked('grok', { ...parameters, x_search: { from_date: '2026-01-01' } })).tools, [
    { type: 'web_search', filters: { allowed_domains } },
    { type: 'x_search', from_date: '2026-01-01' },
  ]);
  assert.deepEqual((await asked('gemini', { engine: 'native' })).tools, [{ googleSearch: {} }]);
  const sonar = await asked('sonar');
  assert.deepEqual(
    [sonar.tools, sonar.search_domain_filter, sonar.web_search_options],
    [undefined, allowed_domains, { search_context_size: 'low' }],
  );
  const fetched = await ask('claude', [answers.claude], {
    tools: [{ type: 'svc:web_fetch', parameters: { blocked_domains: ['a.com'], max_uses: 3 } }],
  });
  assert.deepEqual(fetched.sent[0].tools, [
    { type: 'web_fetch_20250910', name: 'web_fetch', blocked_domains: ['a.com'], max_uses: 3 },
  ]);
});

test('an upstream without the tool, or without what the request demands of it, gets a function with auto, a refusal with native', async () => {
  const own = { type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } };
  const ok = answerOf('chat', false, { text: 'ok' });
  const gemini = wholeOf({ candidates: [{ content: { parts: [{ text: 'ok' }] }, finishReason: 'STOP' }] });
  const tool = (parameters: Json) => [{ type: 'svc:web_search', parameters }];
  const cases: [Provider, Answer, Json[]][] = [
    ['plain', ok, tool({})],
    ['gpt', ok, tool({ excluded_domains: ['a.com'] })],
    ['gemini', gemini, [...tool({}), own]],
    ['gemini', gemini, tool({ max_uses: 1 })],
  ];
  for (const [provider, answer, tools] of cases) {
    const auto = await ask(provider, [answer], { tools });
    assert.equal(auto.status, 200, auto.text);
    const names = JSON.stringify(auto.sent[0].tools);
    assert.match(names, /"name":"web_search"/);
    assert.doesNotMatch(names, /googleSearch|"type":"web_search"/);
    const native = [{ ...tools[0], parameters: { ...tools[0].parameters, engine: 'native' } }, ...tools.slice(1)];
    const refused = await ask(provider, [answer], { tools: native });
    assert.equal(refused.status, 400, refused.text);
    assert.match(refused.text, /tools\[0\]\.parameters\.engine: no upstream of this model has such a search itself/);
    assert.equal(refused.sent.length, 0);
  }
});

const recorded = (id: string): Answer => {
  const { bytes, stream } = recordings(undefined, /anthropic|google/).find((each) => each.id.includes(id))!;
  return { headers: { 'content-type': stream ? 'text/event-stream' : 'application/json' }, chunks: [bytes] };
};

interface Recorded {
  provider: Provider;
  id: string;
  stream: boolean;
  tool: string;
  searches: number;
  /** What is shown of the first call. */
  input: RegExp;
}

const RECORDED: readonly Recorded[] = [
  {
    provider: 'claude',
    id: 'messages-web-search.json',
    stream: false,
    tool: 'web_search',
    searches: 1,
    input: /ggplot2 1\.0\.0/,
  },
  {
    provider: 'claude',
    id: 'claude-haiku-4-5-streams-search',
    stream: true,
    tool: 'web_search',
    searches: 1,
    input: /./,
  },
  {
    provider: 'claude',
    id: 'messages-web-fetch.json',
    stream: false,
    tool: 'web_fetch',
    searches: 0,
    input: /starwars/,
  },
  {
    provider: 'claude',
    id: 'web-fetch-tool-20260209-1.chunks',
    stream: true,
    tool: 'web_fetch',
    searches: 0,
    input: /http/,
  },
  {
    provider: 'gemini',
    id: 'google-model-web-search-tool-stream',
    stream: true,
    tool: 'web_search',
    searches: 1,
    input: /San Francisco/,
  },
];

for (const format of CLIENT_FORMATS) {
  test(`recorded answers of upstreams that ran the tool reach a client, and its next request any upstream | ${format}`, {
    skip: corpusMissing,
  }, async () => {
    for (const { provider, id: recording, stream, tool, searches, input } of RECORDED) {
      const tools = [{ type: `svc:${tool}` }];
      const { status, text, read, id } = await ask(provider, [recorded(recording)], { format, stream, tools });
      assert.equal(status, 200, text);
      const { history, usage } = read();
      assert.equal(
        (usage.server_tool_use_details ?? usage.server_tool_use)?.web_search_requests ?? 0,
        searches,
        recording,
      );
      const row = await rowOf(gateway, id);
      assert.ok(usage.cost > searches * PRICE, recording);
      assert.equal(row['total_cost'], usage.cost);
      shown(format, provider, history, tool, input);
      // Every upstream accepts the history, and only the one that it came from gets its blocks.
      for (const next of ['claude', 'gpt', 'gemini', 'plain'] as const) {
        const answer = {
          claude: answerOf('messages', false, { text: 'ok' }),
          gpt: searched,
          gemini: wholeOf({ candidates: [{ content: { parts: [{ text: 'ok' }] }, finishReason: 'STOP' }] }),
          plain: answerOf('chat', false, { text: 'ok' }),
        }[next];
        const more = await ask(next, [answer], { format, history });
        assert.equal(more.status, 200, `${recording} ${next} ${more.text}`);
        const sent = JSON.stringify(more.sent[0]);
        assert.doesNotMatch(sent, /_shown_|sealed-block/, `${recording} ${next}`);
        const returns = next === provider && provider === 'claude';
        assert.equal(/srvtoolu_/.test(sent), returns, `${recording} ${next} ${sent}`);
      }
    }
  });
}

/** What the client sees of the call. */
function shown(format: ClientFormat, provider: Provider, history: Json[], tool: string, input: RegExp): void {
  const what = JSON.stringify(history);
  if (format === 'chat') {
    if (tool === 'web_search' && history[0].content !== '') assert.ok(history[0].annotations?.length > 0, what);
    return;
  }
  if (format === 'responses') {
    const item = history.find(({ type }) => type === 'web_search_call');
    assert.equal(item?.status, 'completed', what);
    assert.match(item.action.query ?? item.action.url, input);
    if (tool === 'web_search') assert.ok(item.action.sources.length > 0, what);
    return;
  }
  const use = history[0].content.find((block: Json) => block.type === 'server_tool_use' && block.name === tool);
  const result = history[0].content.find((block: Json) => block.type === `${tool}_tool_result`);
  assert.match(JSON.stringify(use?.input), input, what);
  assert.equal(result.tool_use_id, use.id);
  if (provider === 'gemini') assert.ok(result.content[0].url.startsWith('https://'), what);
}

test('a cloud provider without the tools of its vendor gets neither their blocks nor citations of them', async () => {
  const found = { type: 'web_search_result', ...PAGE, encrypted_content: 'E', page_age: null };
  const cited = { type: 'web_search_result_location', ...PAGE, cited_text: 'x', encrypted_index: 'E' };
  const content = [
    { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'news' } },
    { type: 'web_search_tool_result', tool_use_id: 'srvtoolu_1', content: [found] },
    { type: 'text', text: 'All is well.', citations: [cited] },
  ];
  const history = [{ role: 'assistant', content }];
  const answer = answerOf('messages', false, { text: 'ok' });
  for (const tools of [[], [{ type: 'svc:datetime' }]]) {
    for (const [provider, kept] of [
      ['bedrock', [{ type: 'text', text: 'All is well.' }]],
      ['claude', content],
    ] as const) {
      const { status, text, sent } = await ask(provider, [answer], { format: 'messages', history, tools });
      assert.equal(status, 200, text);
      assert.deepEqual(sent[0].messages[1].content, kept);
    }
  }
  // A citation that was shown for a search of another format's upstream.
  const shown = [{ type: 'text', text: 'x', citations: [{ ...cited, encrypted_index: '' }] }];
  for (const tools of [[], [{ type: 'svc:datetime' }]]) {
    const past = [{ role: 'assistant', content: shown }];
    const { sent } = await ask('claude', [answer], { format: 'messages', history: past, tools });
    assert.deepEqual(sent[0].messages[1].content, [{ type: 'text', text: 'x' }]);
  }
});

test('a search of OpenAI is shown to clients of messages, and counted without the pages that it opened', async () => {
  const { read, id, text } = await ask('gpt', [searched], { format: 'messages' });
  const { history, usage } = read();
  const [use, result, sealed] = history[0].content;
  assert.deepEqual([use.name, use.input], ['web_search', { query: 'news' }], text);
  assert.deepEqual([result.type, result.content[0].url], ['web_search_tool_result', PAGE.url]);
  assert.equal(sealed.type, 'redacted_thinking');
  assert.equal(usage.server_tool_use.web_search_requests, 1);
  const tokens = 10 * Number(PRICING.prompt) + 5 * Number(PRICING.completion);
  assert.ok(Math.abs(usage.cost - tokens - PRICE) < 1e-9, text);
  assert.equal((await rowOf(gateway, id))['total_cost'], usage.cost);
  const next = await ask('gpt', [searched], { format: 'messages', history });
  const items = next.sent[0].input.map(({ type, id }: Json) => id ?? type);
  assert.deepEqual(items.slice(1, 4), ['ws_1', 'ws_2', 'message']);
});

for (const stream of [false, true]) {
  test(`a turn that the provider has paused is continued${stream ? ', streamed' : ''}`, async () => {
    const use = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: { query: 'news' } };
    const head = { id: 'msg_1', type: 'message', role: 'assistant', model: 'claude-sonnet-4-6' };
    const usage = { input_tokens: 10, output_tokens: 5 };
    const paused = { stop_reason: 'pause_turn', stop_sequence: null };
    const events = [
      { type: 'message_start', message: { ...head, content: [], stop_reason: null, usage } },
      { type: 'content_block_start', index: 0, content_block: { ...use, input: {} } },
      { type: 'content_block_delta', index: 0, delta: { type: 'input_json_delta', partial_json: '{"query":"news"}' } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: paused, usage: { output_tokens: 5 } },
      { type: 'message_stop' },
    ].map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`);
    const first = stream ? streamOf(events) : wholeOf({ ...head, content: [use], ...paused, usage });
    const { status, text, sent, read } = await ask(
      'claude',
      [first, answerOf('messages', stream, { text: 'All is well.' })],
      { stream },
    );
    assert.equal(status, 200, text);
    assert.deepEqual(sent[1].messages.at(-1), { role: 'assistant', content: [use] });
    const { history, usage: sum } = read();
    assert.equal(history[0].content, 'All is well.');
    assert.equal(sum.prompt_tokens, 20);
  });
}

test('where filters have to see what tools find, the gateway searches itself unless the request demands otherwise', async () => {
  const { token } = await guarded({ content_filters: [{ pattern: 'PRJ-[0-9]', action: 'redact' }] });
  for (const [engine, type] of [
    ['auto', undefined],
    ['native', 'web_search_20250305'],
  ] as const) {
    gateway.upstream.script('claude', [answerOf('messages', false, { text: 'ok' })]);
    const body = bodyOf('claude', { parameters: { engine } });
    const reply = await gateway.post('/chat/completions', body, { authorization: `Bearer ${token}` });
    assert.equal(reply.status, 200, await reply.text());
    const sent = gateway.upstream.requests('claude').at(-1)!.json as Json;
    assert.deepEqual([sent.tools[0].name, sent.tools[0].type], ['web_search', type]);
  }
});

test('failover to another provider changes whose tool is used', async () => {
  gateway.upstream.script('claude', [errorOf('messages', 529, 'overloaded')]);
  const calls = [{ id: 'call_1', name: 'web_search', arguments: '{"query":"news"}' }];
  const answers = [answerOf('chat', false, { calls }), answerOf('chat', false, { text: 'Nothing.' })];
  const before = gateway.upstream.requests('claude').length;
  const { read, sent, text } = await ask('plain', answers, { more: { model: 'test/claude', models: ['test/plain'] } });
  const [first]: Json[] = gateway.upstream
    .requests('claude')
    .slice(before)
    .map(({ json }) => json);
  assert.equal(first.tools[0].type, 'web_search_20250305');
  assert.equal(sent[0].tools[0].function.name, 'web_search');
  assert.equal(read().history[0].content, 'Nothing.', text);
});
