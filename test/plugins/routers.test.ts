/** Router models through a whole gateway: the choice, who answered, the metadata, the lists and the refusals. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import OpenAI from 'openai';
import { BODY_FORMATS, type BodyFormat } from '../../src/testing/clients/served-answer.ts';
import { INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';

// biome-ignore lint/suspicious/noExplicitAny: bodies of every shape
type Json = any;

const priced = (price: string, more: Json = {}) => ({
  kind: 'chat',
  model: { pricing: { prompt: price, completion: price }, supported_parameters: ['max_tokens'], ...more },
});
const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    providers: {
      cheap: priced('0.000001'),
      fair: priced('0.000002'),
      usual: priced('0.000003'),
      dear: priced('0.000004', { supported_parameters: ['max_tokens', 'tools'] }),
      dearest: priced('0.000005'),
      gift: priced('0'),
    },
    yaml: {
      routing: {
        scores: [
          { model: 'test/fair', coding: 0.8 },
          { model: 'test/dear', coding: 0.9, quality: 0.9 },
        ],
      },
    },
  },
);

const ROUTES: Record<BodyFormat, string> = {
  chat: '/chat/completions',
  messages: '/messages',
  responses: '/responses',
};
const ALL = ['cheap', 'fair', 'usual', 'dear', 'dearest', 'gift'];

async function ask(served: BodyFormat, body: Json, headers: Record<string, string> = {}) {
  for (const name of ALL) gateway.upstream.script(name, answerOf('chat', body.stream === true, { text: 'ok' }));
  const input =
    served === 'responses' ? { input: 'hi' } : { messages: [{ role: 'user', content: 'hi' }], max_tokens: 50 };
  const reply = await gateway.post(ROUTES[served], { ...input, ...body }, { 'x-svc-metadata': 'enabled', ...headers });
  const text = await reply.text();
  return {
    status: reply.status,
    text,
    json: body.stream ? undefined : (JSON.parse(text) as Json),
    headers: reply.headers,
  };
}

const BAND = (cost_tier: string) => [{ id: 'auto-router', cost_tier, excluded_models: ['test/gift'] }];

for (const served of BODY_FORMATS) {
  test(`${served}: svc/auto answers with a model of the band, and says which`, async () => {
    const plugins = BAND('max');
    const { json } = await ask(served, { model: 'svc/auto', plugins });
    assert.equal(json.model, 'test/dearest');
    const metadata = json.svc_metadata;
    assert.deepEqual([metadata.requested, metadata.strategy], ['svc/auto', 'auto']);
    const [stage] = metadata.pipeline;
    assert.deepEqual([stage.type, stage.name, stage.data.reason], ['plugin', 'auto-router', 'price band max']);
    assert.equal(stage.data.models[0], 'test/dearest');
    const streamed = await ask(served, { model: 'openrouter/auto', plugins, stream: true });
    assert.ok(streamed.text.includes('"test/dearest"'), streamed.text);
    const sent = gateway.upstream.requests('dearest').at(-1)!.json as Json;
    assert.equal('plugins' in sent, false);
  });
}

test('the next model takes over when the first choice fails, and the row has the router', async () => {
  const plugins = BAND('low');
  gateway.upstream.script('cheap', { status: 503, repeat: true });
  const reply = await gateway.post('/chat/completions', {
    model: 'svc/auto',
    messages: [{ role: 'user', content: 'hi' }],
    plugins,
  });
  const json = (await reply.json()) as Json;
  assert.equal(json.model, 'test/fair');
  const id = reply.headers.get('x-generation-id')!;
  const { data } = (await (await gateway.get(`/generation?id=${id}`)).json()) as Json;
  assert.deepEqual([data.router, data.model], ['svc/auto', 'test/fair']);
  gateway.clock.jump(3_600_000);
});

test('requests get only models that have what they need', async () => {
  const tools = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }];
  const { json } = await ask('chat', { model: 'svc/auto', tools });
  assert.equal(json.model, 'test/dear');
});

test('pareto takes the cheapest model that codes well enough, free a free one, switchyard the best', async () => {
  assert.equal((await ask('chat', { model: 'svc/pareto-code' })).json.model, 'test/fair');
  const free = await ask('chat', { model: 'svc/free' });
  assert.deepEqual([free.json.model, free.json.svc_metadata.strategy], ['test/gift', 'free']);
  assert.equal((await ask('chat', { model: 'svc/switchyard' })).json.model, 'test/dear');
  const plugins = [{ id: 'switchyard-router', algorithm: 'passthrough' }];
  const passed = await ask('chat', { model: 'svc/switchyard', models: ['test/usual'], plugins });
  assert.equal(passed.json.model, 'test/usual');
  const alone = await ask('chat', { model: 'svc/switchyard', plugins });
  assert.deepEqual([alone.status, alone.json.error.metadata?.path ?? alone.text.includes('models')], [400, true]);
});

test('what fits nothing is 404 with the path of the settings, and wrong settings are 400', async () => {
  const none = await ask('chat', { model: 'svc/auto', plugins: [{ id: 'auto-router', allowed_models: ['other/*'] }] });
  assert.equal(none.status, 404, none.text);
  assert.match(none.text, /fits the settings of svc\/auto/);
  const price = await ask('chat', { model: 'svc/pareto-code', plugins: [{ id: 'pareto-router', max_price: 0.5 }] });
  assert.equal(price.status, 404);
  for (const [plugin, path] of [
    [{ id: 'auto-router', cost_tier: 'cheap' }, 'plugins[0].cost_tier'],
    [{ id: 'auto-router', allowed_models: Array(1025).fill('x') }, 'plugins[0].allowed_models'],
    [{ id: 'auto-router', excluded_models: Array(70).fill('x'.repeat(1000)) }, 'plugins[0].excluded_models'],
    [{ id: 'pareto-router', min_coding_score: 2 }, 'plugins[0].min_coding_score'],
    [{ id: 'switchyard-router', algorithm: 'magic' }, 'plugins[0].algorithm'],
  ] as const) {
    const wrong = await ask('chat', { model: 'svc/auto', plugins: [plugin] });
    assert.equal(wrong.status, 400, path);
    assert.ok(wrong.text.includes(path), wrong.text);
  }
  for (const model of ['svc/bodybuilder', 'svc/auto:nitro']) {
    assert.match((await ask('chat', { model })).text, /is a router model, which this gateway does not support/);
  }
});

test('a session stays with its model, and a pinned model is that of the last answer', async () => {
  const first = await ask('chat', { model: 'svc/auto', plugins: BAND('max'), session_id: 's1' });
  assert.equal(first.json.model, 'test/dearest');
  const second = await ask('chat', { model: 'svc/auto', plugins: BAND('low'), session_id: 's1' });
  assert.equal(second.json.model, 'test/dearest');
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: 'ok', model: 'test/usual' },
    { role: 'user', content: 'and?' },
  ];
  const plugins = [{ id: 'auto-router', pin_model: true }];
  assert.equal((await ask('chat', { model: 'svc/auto', plugins, messages })).json.model, 'test/usual');
});

test('the lists show router models, which have no price of their own', async () => {
  const { data } = (await (await gateway.get('/models')).json()) as Json;
  const auto = data.find(({ id }: Json) => id === 'svc/auto');
  assert.deepEqual(
    [auto.pricing, auto.architecture.tokenizer, auto.name],
    [{ prompt: '-1', completion: '-1' }, 'Router', 'Auto Router'],
  );
  assert.equal(((await (await gateway.get('/model/svc/auto')).json()) as Json).data.id, 'svc/auto');
  const endpoints = (await (await gateway.get('/models/svc/pareto-code/endpoints')).json()) as Json;
  assert.deepEqual(endpoints.data.endpoints, []);
  const priced = (await (await gateway.get('/models?max_price=100')).json()) as Json;
  assert.equal(
    priced.data.some(({ id }: Json) => id.startsWith('svc/')),
    false,
  );
});

test('the real clients get the answer of the chosen model', async () => {
  for (const name of ALL) gateway.upstream.script(name, answerOf('chat', false, { text: 'ok' }));
  const openai = new OpenAI({ baseURL: gateway.api, apiKey: INFERENCE_KEY, maxRetries: 0 });
  const asked: Json = { model: 'svc/auto', messages: [{ role: 'user', content: 'hi' }], plugins: BAND('max') };
  assert.equal((await openai.chat.completions.create(asked)).model, 'test/dearest');
  const openrouter = new OpenRouter({ serverURL: gateway.api, apiKey: INFERENCE_KEY });
  gateway.upstream.script('dearest', answerOf('chat', false, { text: 'ok' }));
  const sent: Json = await openrouter.chat.send({
    chatRequest: {
      model: 'openrouter/auto',
      messages: [{ role: 'user', content: 'hi' }],
      plugins: [{ id: 'auto-router', costTier: 'max', excludedModels: ['test/gift'] } as Json],
      stream: false,
    },
  });
  assert.equal(sent.model, 'test/dearest');
});
