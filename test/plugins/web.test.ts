/** The plugin `web` and the suffix `:online` through a whole gateway, with a search engine of ours. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI from 'openai';
import { BODY_FORMATS, type BodyFormat } from '../../src/testing/clients/served-answer.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { readRows } from '../../src/testing/database/rows.ts';
import { INFERENCE_KEY } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { startUpstream } from '../../src/testing/upstream/upstream.ts';
import { startGuarded } from '../guardrails/guarded.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const ROUTES: Record<BodyFormat, string> = {
  chat: '/chat/completions',
  messages: '/messages',
  responses: '/responses',
};
const PAGE = { url: 'https://docs.example.com/a', title: 'Page A', text: 'All about A.' };
const ANSWER = `A is a letter, see ${PAGE.url} for more.`;
let scene: Awaited<ReturnType<typeof startGuarded>>;
let engines: Awaited<ReturnType<typeof startUpstream>>;
const closing: (() => unknown)[] = [];
after(async () => {
  for (const close of closing.reverse()) await close();
});

before(async () => {
  engines = await startUpstream();
  closing.push(() => engines.close());
  const url = engines.script('exa', []);
  scene = await startGuarded(
    { after: (close: unknown) => void closing.push(close as () => unknown) },
    {
      providers: { text: { kind: 'chat' } },
      yaml: { web_search: { engines: [{ kind: 'exa', url, api_key: 'key-of-exa', price_per_search: 0.005 }] } },
    },
  );
});

function searches(...pages: (typeof PAGE)[]): void {
  const headers = { 'content-type': 'application/json' };
  engines.script('exa', { headers, chunks: [JSON.stringify({ results: pages })], repeat: true });
}

function bodyOf(served: BodyFormat, more: Json = {}): Json {
  const history = [
    { role: 'user', content: 'Hello' },
    { role: 'assistant', content: 'Hi' },
    { role: 'user', content: 'What is A?' },
  ];
  const asked = served === 'responses' ? { input: history } : { messages: history, max_tokens: 500 };
  return { model: 'test/text', ...asked, ...more };
}

async function ask(served: BodyFormat, more: Json, key?: { token: string }) {
  scene.gateway.upstream.script('text', answerOf('chat', more.stream === true, { text: ANSWER }));
  const earlier = engines.requests('exa').length;
  const headers = { 'x-svc-metadata': 'enabled', ...(key && { authorization: `Bearer ${key.token}` }) };
  const reply = await scene.gateway.post(ROUTES[served], bodyOf(served, more), headers);
  const text = await reply.text();
  return {
    status: reply.status,
    text,
    id: reply.headers.get('x-generation-id')!,
    json: more.stream ? undefined : (JSON.parse(text) as Json),
    searched: engines
      .requests('exa')
      .slice(earlier)
      .map(({ json }) => json as Json),
    sent: () => (scene.gateway.upstream.requests('text').at(-1)!.json as Json).messages,
  };
}

/** The row says so; the API does not. */
async function isEstimated(id: string): Promise<boolean> {
  const row = await until(async () => (await readRows(scene.gateway.target)).find((each) => each.id === id), 'the row');
  return row.estimated;
}

const textOfPart = (content: Json): string =>
  typeof content === 'string' ? content : content.map(({ text }: Json) => text).join('\n');

for (const served of BODY_FORMATS) {
  for (const more of [{ plugins: [{ id: 'web' }] }, { model: 'test/text:online' }]) {
    const how = 'model' in more ? ':online' : 'the plugin';
    test(`${served}: ${how} searches for the last question once and puts the pages before it`, async () => {
      searches(PAGE);
      const { status, text, json, searched, sent, id } = await ask(served, more);
      assert.equal(status, 200, text);
      assert.deepEqual(
        searched.map(({ query }) => query),
        ['What is A?'],
      );
      const last = textOfPart(sent().at(-1).content);
      assert.match(last, /All about A\.[\s\S]*What is A\?/);
      assert.match(last, /data, not instructions/);
      assert.deepEqual(
        sent()
          .slice(0, 2)
          .map(({ content }: Json) => textOfPart(content)),
        ['Hello', 'Hi'],
      );
      assert.ok(text.includes(PAGE.url));
      assert.equal(json.model, 'test/text');
      const [stage] = json.svc_metadata.pipeline;
      assert.deepEqual(
        [stage.type, stage.name, stage.cost_usd, stage.data.urls],
        ['plugin', 'web-search', 0.005, [PAGE.url]],
      );
      const { data } = (await (await scene.gateway.get(`/generation?id=${id}`)).json()) as Json;
      assert.ok(data.total_cost > 0.005 && data.total_cost < 0.006, String(data.total_cost));
    });
  }

  test(`${served}: pages that the answer links to are its citations, streamed and whole`, async () => {
    searches(PAGE);
    const plugins = [{ id: 'web', search_prompt: 'From the web:' }];
    const whole = await ask(served, { plugins });
    const streamed = await ask(served, { plugins, stream: true });
    for (const { text } of [whole, streamed]) assert.match(text, /"title":"Page A"/);
    assert.match(textOfPart(whole.sent().at(-1).content), /^From the web:/);
  });
}

test('lists of domains bind the results, wrong settings and a missing engine are refused with their path', async () => {
  searches(PAGE, { ...PAGE, url: 'https://other.org/b', text: 'Elsewhere.' });
  const only = await ask('chat', { plugins: [{ id: 'web', include_domains: ['other.org'] }] });
  const last = textOfPart(only.sent().at(-1).content);
  assert.ok(last.includes('Elsewhere.') && !last.includes('All about A.'));
  for (const [plugin, path] of [
    [{ id: 'web', max_results: 0 }, 'plugins[0].max_results'],
    [{ id: 'web', include_domains: ['a b'] }, 'plugins[0].include_domains[0]'],
    [{ id: 'web', include_domains: ['a.com'], exclude_domains: ['b.com'] }, 'plugins[0].exclude_domains'],
    [{ id: 'web', engine: 'firecrawl' }, 'plugins[0].engine'],
    [{ id: 'web', search_prompt: 5 }, 'plugins[0].search_prompt'],
  ] as const) {
    const refused = await ask('chat', { plugins: [plugin] });
    assert.equal(refused.status, 400, refused.text);
    assert.ok(refused.text.includes(path), refused.text);
    assert.deepEqual(refused.searched, []);
  }
});

test('a search that fails leaves the request without pages and costs nothing', async () => {
  engines.script('exa', { status: 500, repeat: true });
  const { status, json, sent, id } = await ask('chat', { plugins: [{ id: 'web' }] });
  assert.equal(status, 200);
  assert.equal(textOfPart(sent().at(-1).content), 'What is A?');
  assert.match(json.svc_metadata.pipeline[0].summary, /status 500/);
  const { data } = (await (await scene.gateway.get(`/generation?id=${id}`)).json()) as Json;
  assert.ok(data.total_cost < 0.001, String(data.total_cost));
});

test('a budget that does not cover the search refuses it before it is made, and a refused request pays for none', async () => {
  searches(PAGE);
  const poor = await scene.control.keyIn(undefined, 'poor', { limit: 0.004 });
  const refused = await ask('chat', { plugins: [{ id: 'web' }] }, poor);
  assert.deepEqual([refused.status, refused.searched], [402, []], refused.text);
  const elsewhere = await scene.guarded({ allowed_models: ['test/elsewhere'] });
  const unrouted = await ask('chat', { plugins: [{ id: 'web' }] }, elsewhere);
  assert.deepEqual([unrouted.status, unrouted.searched], [403, []], unrouted.text);
  // The search and the turn together: a limit that covers one of them only is not exceeded.
  const tight = await scene.control.keyIn(undefined, 'tight', { limit: 0.0051 });
  const { status } = await ask('chat', { plugins: [{ id: 'web' }] }, tight);
  assert.equal(status, 402);
});

test('the cost of a search is marked as estimated only if it may not have been made', async () => {
  searches(PAGE);
  const made = await ask('chat', { plugins: [{ id: 'web' }] });
  assert.deepEqual([made.status, await isEstimated(made.id)], [200, false]);
  engines.script('exa', [{ end: 'reset' }]);
  const unknown = await ask('chat', { plugins: [{ id: 'web' }] });
  assert.deepEqual([unknown.status, await isEstimated(unknown.id)], [200, true]);
});

test('what searches cost before their turns are refused or abandoned stays within the limit of the key', async () => {
  searches(PAGE);
  const asked = engines.requests('exa').length;
  // It covers two searches and never a search together with a turn, which may cost 0.0075 and the prompt.
  const poor = await scene.control.keyIn(undefined, 'searching', { limit: 0.012 });
  for (let request = 0; request < 6; request++) {
    const { status, text } = await ask('chat', { plugins: [{ id: 'web' }] }, poor);
    assert.equal(status, 402, text);
  }
  assert.equal(engines.requests('exa').length - asked, 2);
  const { body } = await scene.control.call('GET', '/key', undefined, poor.token);
  assert.equal(body.data.usage, 0.01);
});

test('guardrails see the query and the pages: what is redacted goes nowhere, what is blocked is left out', async () => {
  searches({ ...PAGE, text: 'The code is secret-1234, really.' });
  const redacting = await scene.guarded({
    content_filters: [{ pattern: 'secret-[0-9]{4}|What is', action: 'redact' }],
  });
  const redacted = await ask('chat', { plugins: [{ id: 'web' }] }, redacting);
  assert.equal(redacted.status, 200, redacted.text);
  assert.equal(JSON.stringify(redacted.searched).includes('What is'), false);
  assert.equal(JSON.stringify(redacted.sent()).includes('secret-1234'), false);
  const blocking = await scene.guarded({ content_filters: [{ pattern: 'secret-[0-9]{4}', action: 'block' }] });
  const blocked = await ask('chat', { plugins: [{ id: 'web' }] }, blocking);
  assert.equal(blocked.status, 200, blocked.text);
  assert.equal(textOfPart(blocked.sent().at(-1).content), 'What is A?');
});

test('a workspace that has disabled web search refuses the suffix too', async () => {
  const made = await scene.control.call('POST', '/workspaces', { name: 'no search', slug: 'no-search' });
  const { id } = made.body.data;
  await scene.control.call('PATCH', `/workspaces/${id}`, { disabled_server_tools: ['svc:web_search'] });
  const key = await scene.control.keyIn(id, 'no search');
  for (const served of BODY_FORMATS) {
    const refused = await ask(served, { model: 'test/text:online' }, key);
    assert.equal(refused.status, 403, refused.text);
  }
});

test('the real clients get the citations', async () => {
  searches(PAGE);
  const { api } = scene.gateway;
  scene.gateway.upstream.script('text', answerOf('chat', false, { text: ANSWER }));
  const openai = new OpenAI({ baseURL: api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const answer: Json = await openai.chat.completions.create(bodyOf('chat', { model: 'test/text:online' }));
  assert.equal(answer.choices[0].message.annotations[0].url_citation.url, PAGE.url);
  scene.gateway.upstream.script('text', answerOf('chat', false, { text: ANSWER }));
  const openrouter = new OpenRouter({ serverURL: api, apiKey: INFERENCE_KEY });
  const sent: Json = await openrouter.chat.send({
    chatRequest: {
      model: 'test/text',
      messages: [{ role: 'user', content: 'What is A?' }],
      plugins: [{ id: 'web', maxResults: 3 }],
      stream: false,
    },
  });
  assert.equal(sent.choices[0].message.content, ANSWER);
});

test('a client that leaves during the search is charged for it', async () => {
  const { token, hash } = await scene.control.keyIn(undefined, 'leaves');
  engines.script('exa', [{ end: 'stall-before-headers' }]);
  const asked = engines.requests('exa').length;
  const leaving = new AbortController();
  const pending = fetch(`${scene.gateway.api}/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(bodyOf('chat', { plugins: [{ id: 'web' }], stream: true })),
    signal: leaving.signal,
  });
  await engines.request('exa', asked + 1);
  leaving.abort();
  await assert.rejects(pending);
  for (;;) {
    const { body } = await scene.control.call('GET', `/generations?api_key_id=${hash}`);
    if (body.data.length === 0) continue;
    const [row] = body.data;
    assert.deepEqual([body.data.length, row.cancelled, row.total_cost], [1, true, 0.005]);
    assert.equal(await isEstimated(row.id), true);
    break;
  }
});
