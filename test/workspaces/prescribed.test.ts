/** Workspace rules: default models, default sorting, disabled tools. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { controlOf, type Json } from './control.ts';

let drawn = 0;
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    // The lot falls on the dear endpoint, which is asked about second, every time.
    random: () => (drawn++ % 2 === 0 ? 0.9999 : 0.0001),
    providers: {
      text: {},
      painter: {
        kind: 'openai',
        model: {
          upstream_id: 'gpt-image-1.5',
          pricing: { prompt: '0', completion: '0', output_images: [{ price: '0.04' }] },
          output_modalities: ['image'],
        },
      },
      cheap: { model: { id: 'test/both', pricing: { prompt: '0.000001', completion: '0.000001' } } },
      dear: { model: { id: 'test/both', pricing: { prompt: '0.00001', completion: '0.00001' } } },
    },
  },
);
const { call, made, keyIn, refused } = controlOf(gateway);
const { upstream } = gateway;
const workspace = await made({ name: 'Team', slug: 'team' });
const key = await keyIn(workspace.id, 'theirs');
const post = (path: string, body: Json) => call('POST', path, body, key.token);
const prescribe = async (body: Json) => assert.equal((await call('PATCH', '/workspaces/team', body)).status, 200);

const MESSAGES = [{ role: 'user', content: 'hi' }];

test('a request that names no model is refused as long as there is no default, and then asks the default', async () => {
  upstream.script('text', { ...chatWhole('hello'), repeat: true });
  await refused(post('/chat/completions', { messages: MESSAGES }), 400, /model is required/);
  await prescribe({ default_text_model: 'test/text' });
  for (const [path, body] of [
    ['/chat/completions', { messages: MESSAGES }],
    ['/chat/completions', { messages: MESSAGES, model: null }],
    ['/responses', { input: 'hi' }],
    ['/completions', { prompt: 'hi' }],
  ] as const) {
    const answer = await post(path, body);
    assert.equal(answer.status, 200, `${path}: ${JSON.stringify(answer.body)}`);
    assert.equal(answer.body.model, 'test/text');
    const sent = upstream.requests('text').at(-1)!;
    assert.equal((JSON.parse(String(sent.body)) as Json).model, 'upstream-text');
  }
  const own = { messages: MESSAGES, models: ['test/both'] };
  upstream.script('dear', { ...chatWhole('hello'), repeat: true });
  assert.equal((await post('/chat/completions', own)).body.model, 'test/both', 'a list of models is a choice');
  await refused(post('/images', { prompt: 'Earth' }), 400, /model is required/);
  await refused(post('/embeddings', { input: 'hi' }), 400, /model/);
});

test('images have their own default model', async () => {
  await prescribe({ default_image_model: 'test/painter' });
  upstream.script('painter', {
    headers: { 'content-type': 'application/json' },
    chunks: [JSON.stringify({ created: 1, data: [{ b64_json: 'aGk=' }] })],
  });
  const answer = await post('/images', { prompt: 'Earth' });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
  assert.equal((JSON.parse(String(upstream.requests('painter').at(-1)!.body)) as Json).model, 'gpt-image-1.5');
});

test('endpoints are sorted as the workspace prescribes, unless the request or the variant says how', async () => {
  for (const name of ['cheap', 'dear']) upstream.script(name, { ...chatWhole(name), repeat: true });
  const whoAnswers = async (more: Json = {}) =>
    (await post('/chat/completions', { model: 'test/both', messages: MESSAGES, ...more })).body.provider;
  assert.equal(await whoAnswers(), 'Provider dear');
  await prescribe({ default_provider_sort: 'price' });
  assert.equal(await whoAnswers(), 'Provider cheap');
  assert.equal(await whoAnswers({ provider: { order: ['dear'] } }), 'Provider dear');
  // No throughput is known yet, so they stay in configured order.
  assert.equal(await whoAnswers({ provider: { sort: 'price' } }), 'Provider cheap');
  await prescribe({ default_provider_sort: null });
  assert.equal(await whoAnswers(), 'Provider dear');
  assert.equal(await whoAnswers({ model: 'test/both:floor' }), 'Provider cheap');
});

const TOOLS: [string, string, Json][] = [
  ['svc:web_search', '/chat/completions', { tools: [{ type: 'svc:web_search' }] }],
  ['svc:web_search', '/chat/completions', { tools: [{ type: 'openrouter:web_search' }] }],
  ['svc:web_search', '/chat/completions', { tools: [{ type: 'web_search' }] }],
  ['svc:web_search', '/chat/completions', { tools: [{ type: 'web_search_preview_2025_03_11' }] }],
  ['svc:web_search', '/chat/completions', { web_search_options: {} }],
  ['svc:web_search', '/chat/completions', { plugins: [{ id: 'web' }] }],
  ['svc:web_search', '/responses', { tools: [{ type: 'web_search' }] }],
  ['svc:web_search', '/messages', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
  ['svc:web_fetch', '/messages', { tools: [{ type: 'web_fetch_20250910', name: 'web_fetch' }] }],
  ['svc:web_fetch', '/chat/completions', { plugins: [{ id: 'web-fetch' }] }],
  ['svc:image_generation', '/responses', { tools: [{ type: 'image_generation' }] }],
  ['svc:tool_search', '/messages', { tools: [{ type: 'tool_search_tool_regex_20251119', name: 't' }] }],
  ['svc:experimental__search_models', '/chat/completions', { tools: [{ type: 'svc:experimental__search_models' }] }],
  ['svc:bash', '/messages', { tools: [{ type: 'openrouter:bash' }] }],
];

test('a request that names a server tool which is off is refused with 403 and the path, in every format and spelling', async () => {
  const common = { model: 'test/text', max_tokens: 100 };
  const before = upstream.requests('text').length;
  for (const [tool, path, body] of TOOLS) {
    await prescribe({ disabled_server_tools: ['svc:datetime', tool] });
    const conversation =
      path === '/responses' ? { model: 'test/text', input: 'hi' } : { ...common, messages: MESSAGES };
    const { status, body: answer } = await post(path, { ...conversation, ...body });
    const told = JSON.stringify(answer);
    assert.equal(status, 403, `${JSON.stringify(body)}: ${told}`);
    assert.match(told, new RegExp(`(?:tools\\[0\\]\\.type|plugins\\[0\\]\\.id|web_search_options) names ${tool},`));
    await prescribe({ disabled_server_tools: [] });
    assert.notEqual(
      (await post(path, { ...conversation, ...body })).status,
      403,
      `${JSON.stringify(body)} when it is on`,
    );
  }
  assert.ok(upstream.requests('text').length >= before);
});

test("tools of the client's own are no server tools, whatever they are called", async () => {
  await prescribe({ disabled_server_tools: ['svc:bash', 'svc:shell', 'svc:web_search'] });
  upstream.script('text', { ...chatWhole('hello'), repeat: true });
  const schema = { type: 'object', properties: { type: { const: 'svc:bash' } } };
  const tools = ['bash', 'web_search', 'shell'].map((name) => ({
    type: 'function',
    function: { name, parameters: schema },
  }));
  const answer = await post('/chat/completions', { model: 'test/text', messages: MESSAGES, tools });
  assert.equal(answer.status, 200, JSON.stringify(answer.body));
});

test('a default model that the catalog has lost is refused by its name, and no other workspace has it', async () => {
  await prescribe({ disabled_server_tools: null, default_text_model: 'test/text' });
  const elsewhere = await keyIn(undefined, 'elsewhere');
  await refused(elsewhere.ask({}), 400, /model is required/);
  const { config, app } = gateway;
  app.reload({ ...config, providers: config.providers.filter(({ id }) => id !== 'text') });
  await refused(key.ask({}), 400, /test\/text/);
  await refused(call('PATCH', '/workspaces/team', { default_text_model: 'test/text' }), 400, /default_text_model/);
  await prescribe({ name: 'Still changed' });
  app.reload(config);
  assert.equal((await key.ask({})).status, 200);
});
