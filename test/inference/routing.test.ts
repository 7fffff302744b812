import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Gateway, type GatewayOptions, INFERENCE_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import {
  CHAT_END,
  chatChunk,
  chatFailure,
  chatStream,
  chatUsage,
  chatWhole,
} from '../../src/testing/upstream/chat-upstream.ts';

const MESSAGES = [{ role: 'user', content: 'hi' }];
const BODY = { model: 'test/m', messages: MESSAGES };

/** Endpoints of `test/m`; each member is merged over the model's. */
function serving(t: TestContext, models: Record<string, object>, more: Partial<GatewayOptions> = {}): Promise<Gateway> {
  const providers = Object.fromEntries(
    Object.entries(models).map(([name, model]) => [name, { model: { id: 'test/m', ...model } }]),
  );
  return startGateway(t, { providers, ...more });
}

/** The endpoint that answered. */
async function served(gateway: Gateway, body: object, headers: Record<string, string> = {}): Promise<string> {
  const reply = await gateway.post('/chat/completions', { ...BODY, ...body }, headers);
  assert.equal(reply.status, 200, await reply.clone().text());
  return ((await reply.json()) as { provider: string }).provider.replace('Provider ', '');
}

interface EndpointView {
  provider_name: string;
  latency_last_30m: { p50: number; p90: number } | null;
  throughput_last_30m: { p50: number } | null;
  uptime_last_5m: number | null;
  uptime_last_1d: number | null;
}

/** The catalog's entry of the endpoint. */
async function figures(gateway: Gateway, provider: string): Promise<EndpointView> {
  const reply = await gateway.get('/models/test/m/endpoints');
  assert.equal(reply.status, 200);
  const { data } = (await reply.json()) as { data: { endpoints: EndpointView[] } };
  return data.endpoints.find(({ provider_name }) => provider_name === `Provider ${provider}`)!;
}

/** Streams an answer whose first token arrives `delayMs` of the gateway's clock after the dispatch. */
async function delayed(gateway: Gateway, name: string, delayMs: number, round: number): Promise<void> {
  gateway.upstream.script(name, chatStream('x', [{ gate: `${name} ${round}` }]));
  const pending = gateway.post('/chat/completions', { ...BODY, stream: true });
  await gateway.upstream.request(name, round);
  gateway.clock.jump(delayMs);
  gateway.upstream.open(`${name} ${round}`);
  await (await pending).text();
}

/** Lets the gateway fold and share its counts until the catalog shows the expected figures. */
async function shown(
  gateway: Gateway,
  provider: string,
  look: (view: EndpointView) => boolean,
  others: readonly Gateway[] = [],
): Promise<EndpointView> {
  for (let round = 0; round < 200; round++) {
    for (const each of [gateway, ...others]) each.clock.jump(2_500);
    const view = await figures(gateway, provider);
    if (look(view)) return view;
    await new Promise<void>((resolve) => setImmediate(resolve));
  }
  throw new Error(`the figures of ${provider} do not come: ${JSON.stringify(await figures(gateway, provider))}`);
}

const near = (actual: number | undefined, expected: number) =>
  assert.ok(Math.abs(actual! - expected) <= expected * 0.1, `${actual} is not within 10 % of ${expected}`);

test('an upstream delayed by the clock is shown with that delay, within 10 %, and its tokens per second', async (t) => {
  const gateway = await serving(t, { one: {} });
  for (let round = 1; round <= 5; round++) await delayed(gateway, 'one', 4_000, round);
  const view = await shown(gateway, 'one', ({ latency_last_30m }) => latency_last_30m !== null);
  near(view.latency_last_30m?.p50, 4_000);
  // Two tokens in four seconds.
  near(view.throughput_last_30m?.p50, 0.5);
  assert.deepEqual([view.uptime_last_5m, view.uptime_last_1d], [100, 100]);
});

test('two gateways on one database show the same figures of both, also after one of them has stopped', async (t) => {
  const one = await serving(t, { shared: {} });
  const two = await serving(t, { shared: {} }, { target: one.target });
  for (let round = 1; round <= 3; round++) await delayed(one, 'shared', 1_000, round);
  for (let round = 1; round <= 3; round++) await delayed(two, 'shared', 9_000, round);
  two.upstream.script('shared', chatFailure(500));
  assert.equal((await two.post('/chat/completions', BODY)).status, 502);
  const both = ({ uptime_last_1d, latency_last_30m }: EndpointView) =>
    uptime_last_1d === 85.714 && latency_last_30m !== null && latency_last_30m.p90 > 8_000;
  for (const gateway of [one, two]) {
    const view = await shown(gateway, 'shared', both, [gateway === one ? two : one]);
    near(view.latency_last_30m?.p50, 1_000);
    near(view.latency_last_30m?.p90, 9_000);
  }
  await two.close();
  await one.close();
  const three = await serving(t, { shared: {} }, { target: one.target });
  near((await shown(three, 'shared', both)).latency_last_30m?.p50, 1_000);
});

test("a client's own fault and a disconnect do not affect the uptime of an endpoint", async (t) => {
  const gateway = await serving(t, { one: {} });
  gateway.upstream.script('one', [
    chatFailure(400),
    chatFailure(404),
    chatFailure(429),
    chatWhole('good'),
    chatFailure(503),
  ]);
  for (let count = 0; count < 5; count++) await (await gateway.post('/chat/completions', BODY)).text();
  const view = await shown(gateway, 'one', ({ uptime_last_5m }) => uptime_last_5m !== null);
  assert.equal(view.uptime_last_5m, 50);
});

test('sorted by latency and throughput, requests go to the endpoint with the best figures', async (t) => {
  const gateway = await serving(t, { slow: {}, fast: {} });
  gateway.upstream.script('slow', chatStream('x', [{ gate: 'slow' }], chatUsage(10, 1_000)));
  gateway.upstream.script('fast', chatStream('x', [], chatUsage(10, 1)));
  const ask = async (only: string) => {
    const pending = gateway.post('/chat/completions', { ...BODY, stream: true, provider: { only: [only] } });
    await gateway.upstream.request(only);
    if (only === 'slow') gateway.clock.jump(5_000);
    gateway.upstream.open('slow');
    await (await pending).text();
  };
  await ask('slow');
  await ask('fast');
  await shown(gateway, 'fast', ({ latency_last_30m }) => latency_last_30m !== null);
  await shown(gateway, 'slow', ({ latency_last_30m }) => latency_last_30m !== null);
  gateway.upstream.script('slow', chatWhole('x'));
  gateway.upstream.script('fast', chatWhole('x'));
  assert.equal(await served(gateway, { provider: { sort: 'latency' } }), 'fast');
  assert.equal(await served(gateway, { provider: { preferred_max_latency: { p90: 1 } } }), 'fast');
  assert.equal(await served(gateway, {}), 'slow');
});

test('sorted by price, also across models when they are not partitioned', async (t) => {
  const price = (prompt: string) => ({ pricing: { prompt, completion: '0.000001' } });
  const gateway = await startGateway(t, {
    providers: {
      dear: { model: { id: 'test/m', ...price('0.000003') } },
      cheap: { model: { id: 'test/m', ...price('0.000002') } },
      other: { model: { id: 'test/other', ...price('0.000001') } },
    },
  });
  for (const name of ['dear', 'cheap', 'other']) gateway.upstream.script(name, chatWhole('x'));
  const models = { models: ['test/m', 'test/other'] };
  assert.equal(await served(gateway, { provider: { sort: 'price' } }), 'cheap');
  assert.equal(await served(gateway, { model: 'test/m:floor' }), 'cheap');
  assert.equal(await served(gateway, { ...models, provider: { sort: { by: 'price' } } }), 'cheap');
  assert.equal(await served(gateway, { ...models, provider: { sort: { by: 'price', partition: 'none' } } }), 'other');
  assert.equal(await served(gateway, { ...models, route: 'sort', provider: { sort: 'price' } }), 'other');
  assert.equal(await served(gateway, { provider: { sort: 'price', order: ['dear'] } }), 'dear');
});

test('endpoints with many invalid tool calls are tried last for requests with tools, and for no others', async (t) => {
  const gateway = await serving(t, { sloppy: {}, sound: {} });
  const tools = [{ type: 'function', function: { name: 'look', parameters: { type: 'object' } } }];
  const call = (args: string, name = 'look') =>
    chatWhole('', { tool_calls: [{ id: 'c', type: 'function', function: { name, arguments: args } }] });
  const streamed = chatChunk({
    tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'look', arguments: '{"a"' } }],
  });
  gateway.upstream.script('sloppy', [
    call('{"city": '),
    call('{}', 'invented'),
    {
      headers: { 'content-type': 'text/event-stream' },
      chunks: [streamed, chatChunk({}, 'tool_calls'), chatUsage(), CHAT_END],
    },
    { ...chatWhole('x'), repeat: true },
  ]);
  gateway.upstream.script('sound', chatWhole('x'));
  assert.equal(await served(gateway, { tools }), 'sloppy');
  assert.equal(await served(gateway, { tools }), 'sloppy');
  await (await gateway.post('/chat/completions', { ...BODY, tools, stream: true })).text();
  await shown(gateway, 'sloppy', ({ uptime_last_5m }) => uptime_last_5m !== null);
  assert.equal(await served(gateway, { tools }), 'sound');
  assert.equal(await served(gateway, { provider: { sort: 'exacto' } }), 'sound');
  assert.equal(await served(gateway, { model: 'test/m:exacto' }), 'sound');
  assert.equal(await served(gateway, {}), 'sloppy');
});

test('a session stays at its endpoint while that answers, and at the next one after a failure', async (t) => {
  const names = ['one', 'two', 'three', 'four'];
  const gateway = await serving(t, Object.fromEntries(names.map((name) => [name, {}])), { random: Math.random });
  for (const name of names) gateway.upstream.script(name, chatWhole('x'));
  const session = { session_id: 'conversation' };
  const home = await served(gateway, session);
  for (let count = 0; count < 5; count++) assert.equal(await served(gateway, session), home);
  for (let count = 0; count < 5; count++)
    assert.equal(await served(gateway, {}, { 'x-session-id': 'conversation' }), home);
  gateway.upstream.script(home, [chatFailure(500), { ...chatWhole('x'), repeat: true }]);
  const next = await served(gateway, session);
  assert.notEqual(next, home);
  gateway.clock.jump(60_000);
  for (let count = 0; count < 5; count++) assert.equal(await served(gateway, session), next);
  const homes = new Set<string>();
  for (let count = 0; count < 30; count++) homes.add(await served(gateway, { session_id: `session ${count}` }));
  assert.ok(homes.size > 1);
  for (const request of gateway.upstream.requests())
    assert.equal((request.json as { session_id?: string }).session_id, undefined);
});

test('a long prompt without a session goes to the provider that has cached it, and before that to any', async (t) => {
  const gateway = await serving(t, { one: {}, two: {} }, { random: () => 0.5 });
  const cached = {
    usage: {
      prompt_tokens: 2_000,
      completion_tokens: 2,
      total_tokens: 2_002,
      prompt_tokens_details: { cached_tokens: 1_900 },
    },
  };
  gateway.upstream.script('one', chatWhole('x'));
  gateway.upstream.script('two', chatWhole('x', {}, cached));
  const system = { role: 'system', content: 'Rules. '.repeat(600) };
  const first = { messages: [system, ...MESSAGES] };
  const later = { messages: [system, ...MESSAGES, { role: 'assistant', content: 'x' }, ...MESSAGES] };
  assert.equal(await served(gateway, first), 'one');
  assert.equal(await served(gateway, { ...first, provider: { order: ['two'] } }), 'two');
  assert.equal(await served(gateway, later), 'two');
  assert.equal(
    await served(gateway, { messages: [{ role: 'system', content: 'Other. '.repeat(600) }, ...MESSAGES] }),
    'one',
  );
});

test('a refused credential is in cooldown for all models, a rate limited one for its model only', async (t) => {
  const keys = ['key-a', 'key-b'];
  const gateway = await startGateway(t, {
    providers: {
      one: { api_key: keys, models: ['test/m', 'test/other'].map((id) => ({ id, upstream_id: id })) },
    },
  });
  const used = () =>
    gateway.upstream.requests('one').map(({ headers }) => headers.authorization?.slice('Bearer '.length));
  const ask = async (model: string) =>
    assert.equal((await gateway.post('/chat/completions', { ...BODY, model })).status, 200);
  gateway.upstream.script('one', [
    chatFailure(429, 'slow', { 'retry-after': '60' }),
    { ...chatWhole('x'), repeat: true },
  ]);
  await ask('test/m');
  for (let count = 0; count < 3; count++) await ask('test/m');
  assert.deepEqual(used(), ['key-a', ...Array(4).fill('key-b')]);
  await ask('test/other');
  await ask('test/other');
  assert.deepEqual(new Set(used().slice(-2)), new Set(keys));
  gateway.clock.jump(61_000);
  gateway.upstream.script('one', [chatFailure(401, 'Incorrect API key provided'), { ...chatWhole('x'), repeat: true }]);
  const before = used().length;
  await ask('test/m');
  const [refused] = used().slice(before);
  for (const model of ['test/m', 'test/other', 'test/other']) await ask(model);
  assert.ok(
    !used()
      .slice(before + 1)
      .includes(refused),
  );
});

test('a service tier is requested where it has a price, charged at it, and falls back to the default', async (t) => {
  const gateway = await startGateway(t, {
    providers: {
      plain: { model: { id: 'test/m' } },
      tiered: {
        model: {
          id: 'test/m',
          service_tiers: {
            priority: { pricing: { prompt: '0.00001', completion: '0.00002' } },
            flex: { pricing: { prompt: '0.000001', completion: '0.000002' } },
          },
        },
      },
    },
  });
  const asked = async (body: object) => {
    const reply = await gateway.post('/chat/completions', { ...BODY, ...body });
    const { provider, usage } = (await reply.json()) as { provider: string; usage: { cost: number } };
    const sent = gateway.upstream.requests().at(-1)!.json as { service_tier?: string };
    return [provider, sent.service_tier, Math.round(usage.cost * 1e9)];
  };
  gateway.upstream.script('plain', chatWhole('x'));
  gateway.upstream.script('tiered', chatWhole('x'));
  const plain = 10 * 3_000 + 2 * 15_000;
  assert.deepEqual(await asked({}), ['Provider plain', undefined, plain]);
  const priority = 10 * 10_000 + 2 * 20_000;
  for (const service_tier of ['priority', 'fast', 'ultrafast']) {
    assert.deepEqual(await asked({ service_tier }), ['Provider tiered', 'priority', priority]);
  }
  assert.deepEqual(await asked({ service_tier: 'flex' }), ['Provider tiered', 'flex', 10 * 1_000 + 2 * 2_000]);
  assert.deepEqual(await asked({ provider: { only: ['tiered/priority'] } }), ['Provider tiered', 'priority', priority]);
  assert.deepEqual(await asked({ model: 'test/m:floor' }), ['Provider tiered', 'flex', 10 * 1_000 + 2 * 2_000]);
  // No endpoint has this tier: it is dropped, because the upstream would charge an unknown price.
  assert.deepEqual(await asked({ service_tier: 'scale' }), ['Provider plain', undefined, plain]);
  gateway.upstream.script('tiered', [
    chatFailure(503),
    { ...chatWhole('x', {}, { service_tier: 'default' }), repeat: true },
  ]);
  assert.deepEqual(await asked({ service_tier: 'priority', provider: { ignore: ['plain'] } }), [
    'Provider tiered',
    undefined,
    plain,
  ]);
  gateway.clock.jump(60_000);
  // The upstream reports that it used its default tier, and charges that one.
  assert.deepEqual(await asked({ service_tier: 'priority' }), ['Provider tiered', 'priority', plain]);
});

test('errors over HTTP: 403 for lists, 404 privacy_restricted, 404 with every rule for each endpoint', async (t) => {
  const gateway = await serving(t, {
    one: { supported_parameters: ['temperature'], input_modalities: ['text'] },
    two: {},
  });
  const refused = async (body: object) => {
    const reply = await gateway.post('/chat/completions', { ...BODY, ...body });
    const { error } = (await reply.json()) as {
      error: { code: number; availability?: Record<string, unknown>; metadata?: Record<string, unknown> };
    };
    return [reply.status, error.availability?.['code'], error.availability?.['excluded_by']];
  };
  assert.deepEqual(await refused({ provider: { only: ['nobody'] } }), [
    404,
    'constraint_filtered',
    ['allowed_providers'],
  ]);
  assert.deepEqual(await refused({ provider: { zdr: true } }), [404, 'privacy_restricted', ['data_policy:zdr']]);
  assert.deepEqual(await refused({ provider: { max_price: { prompt: 0.1 } } }), [
    404,
    'constraint_filtered',
    ['max_price'],
  ]);
  const picture = { type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } };
  assert.deepEqual(await refused({ provider: { only: ['one'] }, messages: [{ role: 'user', content: [picture] }] }), [
    404,
    'constraint_filtered',
    ['allowed_providers', 'feature:image_input'],
  ]);
  assert.deepEqual(await refused({ provider: { sort: 'cheapest' } }), [400, undefined, undefined]);
  assert.equal(gateway.upstream.requests().length, 0);
});

test('the account settings of the yaml are enforced, and a reload changes them for the next request', async (t) => {
  const gateway = await serving(
    t,
    { unknown: {}, safe: { data_policy: { zdr: true, trains: false, publishes: false } } },
    { yaml: { account: { zdr: true } } },
  );
  for (const name of ['unknown', 'safe']) gateway.upstream.script(name, chatWhole('x'));
  assert.equal(await served(gateway, {}), 'safe');
  gateway.app.reload({ ...gateway.config, account: { ...gateway.config.account, zdr: false } });
  assert.equal(await served(gateway, {}), 'unknown');
});

test('the messages format routes by the same preferences', async (t) => {
  const gateway = await serving(t, { one: {}, two: { quantization: 'fp8' } });
  gateway.upstream.script('two', chatWhole('good'));
  const reply = await fetch(`${gateway.api}/messages`, {
    method: 'POST',
    headers: { 'x-api-key': INFERENCE_KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ ...BODY, max_tokens: 50, provider: { quantizations: ['fp8'] } }),
  });
  assert.equal(reply.status, 200);
  assert.equal(((await reply.json()) as { content: { text: string }[] }).content[0]!.text, 'good');
});
