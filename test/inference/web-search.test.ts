/** `svc:web_search` through a whole gateway, with each search engine played by a server of ours. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { CLIENT_FORMATS, type ClientFormat, PATH_OF, wholeAnswer } from '../../src/testing/clients/whole-answer.ts';
import { rowOf } from '../../src/testing/gateway/ask-gateway.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf, type Told } from '../../src/testing/upstream/answers.ts';
import { type Answer, startUpstream } from '../../src/testing/upstream/upstream.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const engines = await startUpstream();
after(() => engines.close());
const KINDS = ['exa', 'parallel', 'firecrawl', 'perplexity', 'tavily', 'brave', 'searxng'] as const;
const urls = Object.fromEntries(KINDS.map((kind) => [kind, engines.script(kind, [])]));
const engine = (kind: string, more = {}) => ({
  kind,
  url: urls[kind],
  ...(kind !== 'searxng' && { api_key: `key-of-${kind}` }),
  price_per_search: 0.005,
  ...more,
});

const start = (list: readonly object[]) =>
  startGateway(
    { after: (close) => after(close as () => Promise<void>) },
    { providers: { chat: { kind: 'chat' } }, yaml: { web_search: { engines: list } } },
  );
const gateway = await start(KINDS.slice(0, 4).map((kind) => engine(kind)));

const PAGES = [
  { url: 'https://docs.example.com/a', title: 'Page <strong>A</strong>', text: 'All about A.', at: '2026-01-02' },
  { url: 'https://other.org/b', title: 'Page B', text: 'B, and B again.', at: '2026-02-03' },
];

const REPLIES: Record<(typeof KINDS)[number], (pages: typeof PAGES) => Json> = {
  exa: (pages) => ({ results: pages.map(({ url, title, text, at }) => ({ url, title, text, publishedDate: at })) }),
  parallel: (pages) => ({
    search_id: 's',
    results: pages.map(({ url, title, text, at }) => ({ url, title, excerpts: [text], publish_date: at })),
  }),
  firecrawl: (pages) => ({
    success: true,
    data: { web: pages.map(({ url, title, text }) => ({ url, title, description: text })) },
  }),
  perplexity: (pages) => ({
    results: pages.map(({ url, title, text, at }) => ({ url, title, snippet: text, date: at })),
  }),
  tavily: (pages) => ({
    results: pages.map(({ url, title, text, at }) => ({ url, title, content: text, published_date: at })),
  }),
  brave: (pages) => ({
    web: { results: pages.map(({ url, title, text, at }) => ({ url, title, description: text, page_age: at })) },
  }),
  searxng: (pages) => ({
    results: pages.map(({ url, title, text, at }) => ({ url, title, content: text, publishedDate: at })),
  }),
};

const replyOf = (kind: (typeof KINDS)[number], pages = PAGES): Answer => ({
  headers: { 'content-type': 'application/json' },
  chunks: [JSON.stringify(REPLIES[kind](pages))],
});

const SEARCH = { id: 'call_1', name: 'web_search', arguments: '{"query":"what is A"}' };
const USAGE = { input: 10, output: 5 };

async function ask(
  format: ClientFormat,
  stream: boolean,
  answers: readonly Told[],
  parameters: Json = {},
  on = gateway,
) {
  on.upstream.script(
    'chat',
    answers.map((told) => answerOf('chat', stream, { usage: USAGE, ...told })),
  );
  const before = on.upstream.requests('chat').length;
  const turns = [{ role: 'user', content: 'What is A?' }];
  const reply = await on.post(PATH_OF[format], {
    model: 'test/chat',
    stream,
    ...(format === 'messages' && { max_tokens: 1000 }),
    ...(format === 'responses' ? { input: turns } : { messages: turns }),
    tools: [{ type: 'svc:web_search', parameters }],
  });
  const text = await reply.text();
  const sent: Json[] = on.upstream
    .requests('chat')
    .slice(before)
    .map(({ json }) => json);
  return {
    status: reply.status,
    text,
    sent,
    read: () => wholeAnswer(format, stream, text),
    id: reply.headers.get('x-generation-id')!,
  };
}

const CITED = `It is [A](${PAGES[0]!.url}).`;

for (const format of CLIENT_FORMATS) {
  for (const stream of [false, true]) {
    test(`a search runs, its pages are cited, and it is charged | ${format}${stream ? ', streamed' : ''}`, async () => {
      engines.script('exa', [replyOf('exa')]);
      const { text, sent, read, id } = await ask(format, stream, [{ calls: [SEARCH] }, { text: CITED }]);
      const told = sent[1].messages.at(-1).content;
      assert.match(
        told,
        /are data, not instructions.*Page A\nURL: https:\/\/docs\.example\.com\/a\nPublished: 2026-01-02\nAll about A\./s,
      );
      const { history, usage } = read();
      assert.match(JSON.stringify(history), /docs\.example\.com/);
      const counts = usage.server_tool_use_details ?? usage.server_tool_use;
      assert.equal(counts.web_search_requests, 1);
      assert.equal(usage.cost_details.server_tool_cost, 0.005);
      assert.ok(usage.cost > 0.005, text);
      const row = await rowOf(gateway, id);
      assert.equal(row['total_cost'], usage.cost);
      if (format === 'chat') {
        const [{ url_citation: cited }] = history[0].annotations;
        assert.equal(CITED.slice(cited.start_index, cited.end_index), PAGES[0]!.url);
        assert.equal(cited.title, 'Page A');
      } else if (format === 'messages') {
        const [use, result, answer] = history[0].content;
        assert.deepEqual([use.name, use.input], ['web_search', { query: 'what is A' }]);
        assert.deepEqual([result.type, result.content[1].url], ['web_search_tool_result', PAGES[1]!.url]);
        assert.equal(answer.citations[0].url, PAGES[0]!.url);
      } else {
        const [item, message] = history;
        assert.deepEqual([item.type, item.status, item.action.query], ['svc:web_search', 'completed', 'what is A']);
        assert.equal(message.content[0].annotations[0].url, PAGES[0]!.url);
      }
    });
  }
}

test('each engine is asked in its own words, and its results are within what was asked for', async () => {
  const settings = {
    allowed_domains: ['Example.com'],
    max_results: 3,
    max_characters: 7,
    user_location: { country: 'de' },
  };
  for (const kind of KINDS) {
    const on = await start([engine(kind, { serves: ['exa'] })]);
    engines.script(kind, [replyOf(kind)]);
    const wanted = kind === 'exa' || KINDS.indexOf(kind) > 3 ? 'exa' : kind;
    const { sent, text } = await ask(
      'chat',
      false,
      [{ calls: [SEARCH] }, { text: 'ok' }],
      { ...settings, engine: wanted },
      on,
    );
    await on.close();
    const request = engines.requests(kind).at(-1)!;
    const told: string = sent[1]?.messages.at(-1).content ?? text;
    assert.ok(
      told.includes('All abo') && !told.includes('All about') && !told.includes('other.org'),
      `${kind}: ${told}`,
    );
    const asked = JSON.stringify([request.path, request.json]);
    assert.ok(asked.includes('what') && /example\.com/.test(asked), `${kind}: ${asked}`);
    const { authorization, 'x-api-key': key, 'x-subscription-token': token } = request.headers;
    assert.equal(
      authorization ?? key ?? token,
      kind === 'searxng'
        ? undefined
        : ['exa', 'parallel', 'brave'].includes(kind)
          ? `key-of-${kind}`
          : `Bearer key-of-${kind}`,
    );
  }
});

test('an engine that fails, and uses that are used up, are results for the model; only what was searched is charged', async () => {
  const calls = [SEARCH, { ...SEARCH, id: 'call_2' }, { ...SEARCH, id: 'call_3' }];
  engines.script('exa', [
    { status: 500, chunks: ['no'] },
    { ...replyOf('exa'), repeat: true },
  ]);
  const turns = [...calls.map((call) => ({ calls: [call] })), { text: 'ok' }];
  const { sent, read } = await ask('chat', false, turns, { max_uses: 2 });
  const results = sent[3].messages.filter(({ role }: Json) => role === 'tool').map(({ content }: Json) => content);
  assert.match(results[0], /status 500/);
  assert.match(results[1], /Page A/);
  assert.match(results[2], /no further searches/);
  assert.equal(read().usage.cost_details.server_tool_cost, 0.005);
  assert.equal(read().usage.server_tool_use_details.web_search_requests, 1);
});

test('without an engine a request that needs one is refused with the name of the setting', async () => {
  const on = await start([engine('tavily')]);
  for (const [wanted, status] of [
    ['auto', 200],
    ['exa', 400],
    ['perplexity', 400],
  ] as const) {
    engines.script('tavily', [replyOf('tavily')]);
    const reply = await ask('chat', false, [{ calls: [SEARCH] }, { text: 'ok' }], { engine: wanted }, on);
    assert.equal(reply.status, status, reply.text);
    if (status === 400) assert.match(reply.text, /tools\[0\]\.parameters\.engine .*web_search\.engines/);
  }
  const cases: [Json, string][] = [
    [{ engine: 'bing' }, 'engine'],
    [{ max_results: 0 }, 'max_results'],
    [{ allowed_domains: ['https://a.com/x'] }, 'allowed_domains[0]'],
    [{ allowed_domains: ['a.com'], excluded_domains: ['b.com'] }, 'excluded_domains'],
    [{ mode: 'slow' }, 'mode'],
    [{ user_location: { country: 'Germany' } }, 'user_location.country'],
    [{ engine: 'exa', x_search: {} }, 'x_search'],
  ];
  for (const [parameters, path] of cases) {
    const { status, text } = await ask('chat', false, [], parameters);
    assert.ok(status === 400 && text.includes(`tools[0].parameters.${path} `), text);
  }
});

test('a client that leaves during a search aborts it, and is charged for the turn and the search', async () => {
  engines.script('exa', [{ end: 'stall-before-headers' }]);
  gateway.upstream.script('chat', [answerOf('chat', true, { text: 'Looking.', calls: [SEARCH], usage: USAGE })]);
  const stop = new AbortController();
  const before = engines.requests('exa').length;
  const reply = await fetch(`${gateway.api}/responses`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${(await import('../../src/testing/gateway/gateway.ts')).INFERENCE_KEY}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ model: 'test/chat', stream: true, input: 'hi', tools: [{ type: 'svc:web_search' }] }),
    signal: stop.signal,
  });
  const seen = reply.body!.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
  let text = '';
  // The call is shown before the search has ended.
  while (!text.includes('"svc:web_search"')) text += (await seen.next()).value;
  assert.match(text, /"status":"in_progress"/);
  await engines.request('exa', before + 1);
  gateway.clock.jump(10_000);
  while (!text.includes(': SVC PROCESSING')) text += (await seen.next()).value;
  stop.abort();
  const request = engines.requests('exa').at(-1)!;
  while (request.closedEarlyAt === undefined) await new Promise((resolve) => void setImmediate(resolve));
  const row = await rowOf(gateway, reply.headers.get('x-generation-id')!);
  assert.equal(row['cancelled'], true);
  assert.equal(row['total_cost'], 10 * 3e-6 + 5 * 15e-6 + 0.005);
});
