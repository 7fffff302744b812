/** Two processes on one database: what is written through one holds for the next request of the other. */
import assert from 'node:assert/strict';
import { after, type TestContext, test } from 'node:test';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';
import { startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { type Answer, startUpstream } from '../../src/testing/upstream/upstream.ts';
import { controlOf, type Json } from './control.ts';

/** A request for a thousand tokens could cost exactly one cent, with what is added for rounding up. */
const PRICES = { prompt: '0', completion: '0.000009999998' };
const BODY = { model: 'test/m', max_tokens: 1000, messages: [{ role: 'user', content: 'hi' }] };

const answer = (completion: number): Answer => ({
  headers: { 'content-type': 'application/json' },
  chunks: [
    JSON.stringify({
      id: 'up',
      object: 'chat.completion',
      created: 1,
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'good' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: completion, total_tokens: 10 + completion },
    }),
  ],
  repeat: true,
});

async function pair(t: Pick<TestContext, 'after'>, completion: number): Promise<[Gateway, Gateway]> {
  const options = { providers: { m: { model: { pricing: PRICES, max_completion_tokens: 10_000 } } } };
  const a = await startGateway(t, options);
  const b = await startGateway(t, { ...options, target: a.target });
  for (const { upstream } of [a, b]) upstream.script('m', answer(completion));
  return [a, b];
}

const status = async (gateway: Pick<Gateway, 'api'>, token: string, body: Json = BODY): Promise<number> =>
  (await controlOf(gateway).call('POST', '/chat/completions', body, token)).status;

test('what is written through one process holds for the next request of the other, every time', async () => {
  const [a, b] = await pair({ after: (close) => after(close as () => Promise<void>) }, 1);
  const { call, made, keyIn } = controlOf(a);
  const workspace = await made({ name: 'Team', slug: 'team' });
  const key = await keyIn(workspace.id, 'theirs');
  const other = controlOf(b);
  const daily = '/workspaces/team/budgets/daily';
  const search = { ...BODY, tools: [{ type: 'svc:web_search' }] };
  const { model: _none, ...unnamed } = BODY;
  for (let round = 0; round < 6; round++) {
    // Through either of them by turns.
    const [write, asked] = round % 2 === 0 ? [call, b] : [other.call, a];
    await write('PUT', daily, { limit_usd: 0.0001 });
    assert.equal(await status(asked, key.token), 402);
    await write('PUT', daily, { limit_usd: 50 });
    assert.equal(await status(asked, key.token), 200);
    await write('PUT', daily, { limit_usd: 0.0001 });
    assert.equal(await status(asked, key.token), 402);
    await write('DELETE', daily);
    assert.equal(await status(asked, key.token), 200);
    await write('PATCH', '/workspaces/team', { disabled_server_tools: ['svc:web_search'] });
    assert.equal(await status(asked, key.token, search), 403);
    await write('PATCH', '/workspaces/team', { disabled_server_tools: null, default_text_model: 'test/m' });
    assert.notEqual(await status(asked, key.token, search), 403);
    assert.equal(await status(asked, key.token, unnamed), 200);
    await write('PATCH', '/workspaces/team', { default_text_model: null });
    assert.equal(await status(asked, key.token, unnamed), 400);
  }
  await call('PATCH', `/keys/${key.hash}`, { disabled: true });
  await call('DELETE', '/workspaces/team');
  assert.equal(await status(b, key.token), 401);
});

test('a budget that is set through one process counts what the other had settled right before', async (t) => {
  const [a, b] = await pair(t, 1000);
  const { call, made, keyIn } = controlOf(a);
  const { token } = await keyIn((await made({ name: 'Team', slug: 'team' })).id, 'theirs');
  for (let cents = 1; cents <= 5; cents++) {
    assert.equal(await status(b, token), 200);
    await call('PUT', '/workspaces/team/budgets/lifetime', { limit_usd: cents / 100 + 0.005 });
    assert.equal(await status(b, token), 402, `after ${cents} cents`);
    await call('DELETE', '/workspaces/team/budgets/lifetime');
  }
});

/** All at the same time, half of them through each process, and through several keys of the workspace. */
async function flood(gateways: readonly Pick<Gateway, 'api'>[], tokens: readonly string[], count: number, body: Json) {
  const statuses = await Promise.all(
    Array.from({ length: count }, (_, n) => status(gateways[n % gateways.length]!, tokens[n % tokens.length]!, body)),
  );
  const passed = statuses.filter((each) => each === 200).length;
  assert.equal(statuses.filter((each) => each === 402).length, count - passed, `${[...new Set(statuses)]}`);
  return passed;
}

async function team(a: Pick<Gateway, 'api'>): Promise<{ tokens: string[]; spent(): Promise<number> }> {
  const { call, made, keyIn } = controlOf(a);
  const workspace = await made({ name: 'Team', slug: 'team' });
  const tokens: string[] = [];
  for (const name of ['one', 'two', 'three']) tokens.push((await keyIn(workspace.id, name)).token);
  for (const [interval, limit_usd] of [
    ['lifetime', 4],
    ['monthly', 3],
    ['weekly', 2],
    ['daily', 1],
  ] as const) {
    assert.equal((await call('PUT', `/workspaces/team/budgets/${interval}`, { limit_usd })).status, 200);
  }
  return {
    tokens,
    async spent() {
      const states: Json[] = (await call('GET', '/budget', undefined, tokens[0])).body.data;
      assert.equal(states.length, 4);
      assert.equal(new Set(states.map(({ spent_usd }) => spent_usd)).size, 1, 'every interval counts the same');
      return states[0].spent_usd;
    },
  };
}

test('of concurrent requests of one cent through two processes exactly 100 pass a workspace budget of one dollar', async (t) => {
  const [a, b] = await pair(t, 1000);
  const { tokens, spent } = await team(a);
  assert.equal(await flood([a, b], tokens, 300, BODY), 100);
  assert.equal(a.upstream.requests('m').length + b.upstream.requests('m').length, 100, 'nothing else was sent');
  await b.app.close();
  assert.equal(await spent(), 100 * 0.009999998);
});

test('with a worst case of ten cents and a real cost of one, 90 to 100 pass, and no budget is exceeded', async (t) => {
  const [a, b] = await pair(t, 1000);
  const { tokens, spent } = await team(a);
  const passed = await flood([a, b], tokens, 200, { ...BODY, max_tokens: 10_000 });
  assert.ok(passed >= 90 && passed <= 100, `${passed} passed`);
  await b.app.close();
  assert.ok((await spent()) <= 1);
});

test('the same through the workers of one installation while one is killed', async (t) => {
  const upstream = await startUpstream();
  t.after(() => upstream.close());
  upstream.script('m', answer(1000));
  const model = { id: 'test/m', upstream_id: 'm', max_completion_tokens: 10_000, pricing: PRICES };
  const gateway = await startGatewayProcess(t, {
    env: { GATEHOUSE_WORKERS: '2' },
    yaml: {
      providers: [{ id: 'm', name: 'M', kind: 'chat', base_url: `${upstream.url}/m`, api_key: 'k', models: [model] }],
    },
  });
  const place = { api: gateway.api };
  const { tokens, spent } = await team(place);
  assert.equal(await flood([place], tokens, 60, BODY), 60);
  const workers = gateway.lines('listening').map(({ pid }) => Number(pid));
  assert.equal(workers.length, 2);
  process.kill(workers[0]!, 'SIGKILL');
  // Whatever comes meanwhile may fail, but nothing may pass beyond the limit.
  let last = 0;
  for (let n = 0; n < 200 && last !== 402; n++) last = await status(place, tokens[n % 3]!).catch(() => 0);
  assert.equal(last, 402);
  assert.ok(upstream.requests('m').length <= 100, `${upstream.requests('m').length} were sent`);
  assert.ok((await spent()) <= 1);
});
