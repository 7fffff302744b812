/** Workspace budgets through a whole gateway: validation, refusals, reports, resets. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { type Gateway, type GatewayOptions, MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import type { Answer } from '../../src/testing/upstream/upstream.ts';
import { controlOf, inDatabase, type Json } from './control.ts';

/** Nothing for the prompt and a cent for a thousand tokens of output, of which `test/m` may write as many. */
const PRICES = { prompt: '0', completion: '0.00001' };

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

async function scene(t: TestContext, options: GatewayOptions = {}) {
  const gateway = await startGateway(t, { providers: { m: { model: { pricing: PRICES } } }, ...options });
  const control = controlOf(gateway);
  const workspace = await control.made({ name: 'Team', slug: 'team' });
  const key = await control.keyIn(workspace.id, 'theirs');
  /** Spends a cent at most. */
  const ask = (max_tokens = 1000) => key.ask({ model: 'test/m', max_tokens });
  const put = (interval: string, body: Json) => control.call('PUT', `/workspaces/team/budgets/${interval}`, body);
  const budgets = async (): Promise<Json[]> => (await control.call('GET', '/budget', undefined, key.token)).body.data;
  return { gateway, ...control, workspace, key, ask, put, budgets };
}

/** Moves to the given time of the clock's own week. */
function jumpTo(gateway: Gateway, time: number): void {
  gateway.clock.jump(time - gateway.clock.now());
}

const DAY = 86_400_000;

test('limits strictly decrease as the interval narrows, whichever is changed, and the refusal names both', async (t) => {
  const { put, call, refused } = await scene(t);
  assert.equal((await put('weekly', { limit_usd: 10 })).status, 200);
  await refused(put('daily', { limit_usd: 10 }), 400, /limit_usd must be below the weekly limit of 10 USD/);
  await refused(put('daily', { limit_usd: 10.000000001 }), 400, /below the weekly limit/);
  await refused(put('monthly', { limit_usd: 10 }), 400, /limit_usd must be above the weekly limit of 10 USD/);
  await refused(put('lifetime', { limit_usd: 9 }), 400, /above the weekly limit/);
  assert.equal((await put('daily', { limit_usd: 9.999999999 })).status, 200);
  assert.equal((await put('lifetime', { limit_usd: 30 })).status, 200);
  await refused(put('monthly', { limit_usd: 30 }), 400, /below the lifetime limit of 30 USD/);
  assert.equal((await put('monthly', { limit_usd: 20 })).status, 200);
  await refused(put('weekly', { limit_usd: 9 }), 400, /above the daily limit/);
  await refused(put('weekly', { limit_usd: 20 }), 400, /below the monthly limit/);
  const listed = (await call('GET', '/workspaces/team/budgets')).body;
  assert.deepEqual(
    listed.data.map(({ reset_interval, limit_usd }: Json) => [reset_interval, limit_usd]),
    [
      ['lifetime', 30],
      ['monthly', 20],
      ['weekly', 10],
      ['daily', 9.999999999],
    ],
  );
});

test('of two changes at the same time that would cross, one is refused', async (t) => {
  const { put, call } = await scene(t);
  const answers = await Promise.all([put('daily', { limit_usd: 7 }), put('weekly', { limit_usd: 5 })]);
  assert.deepEqual(answers.map(({ status }) => status).toSorted(), [200, 400]);
  assert.equal((await call('GET', '/workspaces/team/budgets')).body.data.length, 1);
});

test('a budget is created, changed, read and deleted; deleting twice is not an error', async (t) => {
  const { put, call, refused, workspace } = await scene(t);
  const made = (await put('daily', { limit_usd: 2.5 })).body;
  assert.deepEqual(Object.keys(made.data).toSorted(), [
    'created_at',
    'id',
    'limit_usd',
    'reset_interval',
    'updated_at',
    'workspace_id',
  ]);
  assert.deepEqual([made.data.workspace_id, made.include_byok_in_budgets], [workspace.id, false]);
  const changed = (await put('daily', { limit_usd: 3, include_byok_in_budgets: true })).body;
  assert.deepEqual(
    [changed.data.id, changed.data.created_at, changed.data.limit_usd, changed.include_byok_in_budgets],
    [made.data.id, made.data.created_at, 3, true],
  );
  assert.equal((await put('weekly', { limit_usd: 5 })).body.include_byok_in_budgets, true, 'for every interval');
  assert.equal((await call('GET', '/workspaces/team')).body.data.include_byok_in_budgets, true);
  const path = `/workspaces/${workspace.id}/budgets/daily`;
  assert.deepEqual((await call('GET', path)).body, changed);
  const deletions = async () => (await call('GET', '/audit?action=budget.deleted')).body.data.length;
  const before = await deletions();
  assert.deepEqual((await call('DELETE', path)).body, { deleted: true });
  assert.deepEqual((await call('DELETE', path)).body, { deleted: true });
  assert.equal((await deletions()) - before, 1, 'the second time there was nothing to delete');
  await refused(call('GET', path), 404, /no daily budget/);
  await refused(call('GET', '/workspaces/team/budgets/hourly'), 400, /interval/);
  await refused(put('yearly', { limit_usd: 1 }), 400, /interval/);
  await refused(call('GET', '/workspaces/nobody/budgets'), 404, /no workspace/);
  for (const limit_usd of [0, -1, '5', null, undefined, 1e-10, 1e10]) {
    await refused(put('daily', { limit_usd }), 400, /limit_usd/);
  }
  await refused(put('daily', { limit_usd: 1, include_byok_in_budgets: 'yes' }), 400, /include_byok_in_budgets/);
  await refused(put('daily', { limit_usd: 1, reset_interval: 'daily' }), 400, /reset_interval/);
});

test('a refusal names the budget, the worst-case cost, what is left, and the reset time', async (t) => {
  const { gateway, ask, put, refused } = await scene(t);
  gateway.upstream.script('m', answer(500));
  jumpTo(gateway, Math.ceil(gateway.clock.now() / DAY) * DAY + DAY / 2);
  await put('monthly', { limit_usd: 1 });
  await put('daily', { limit_usd: 0.012 });
  assert.equal((await ask()).status, 200);
  const { metadata } = await refused(
    ask(),
    402,
    /could cost 0\.01 USD, but 0\.007 USD are left in the daily budget of the workspace, which resets at/,
  );
  const midnight = new Date(Math.ceil(gateway.clock.now() / DAY) * DAY).toISOString();
  assert.deepEqual(metadata.budget, {
    scope: 'workspace',
    id: metadata.budget.id,
    interval: 'daily',
    limit_usd: 0.012,
    spent_usd: 0.005,
    resets_at: midnight,
  });
  assert.equal(gateway.upstream.requests('m').length, 1, 'nothing was sent');
  assert.equal((await ask(500)).status, 200, 'what still fits');
});

test('every key of a workspace counts, no key of another, and what was spent before a budget was set', async (t) => {
  const { gateway, ask, put, made, keyIn, workspace, call } = await scene(t);
  gateway.upstream.script('m', answer(1000));
  assert.equal((await ask()).status, 200);
  const second = await keyIn(workspace.id, 'second');
  const elsewhere = await keyIn((await made({ name: 'Other', slug: 'other' })).id, 'elsewhere');
  await put('daily', { limit_usd: 0.025 });
  assert.equal((await second.ask({ model: 'test/m', max_tokens: 1000 })).status, 200);
  for (const key of [second.ask, (body: Json) => call('POST', '/chat/completions', body, second.token)]) {
    const body = { model: 'test/m', max_tokens: 1000, messages: [{ role: 'user', content: 'hi' }] };
    assert.equal((await key(body)).status, 402);
  }
  assert.equal((await ask()).status, 402);
  assert.equal((await elsewhere.ask({ model: 'test/m', max_tokens: 1000 })).status, 200);
});

test('a limit that is raised, lowered or removed holds from the next request on', async (t) => {
  const { gateway, ask, put, call } = await scene(t);
  gateway.upstream.script('m', answer(1));
  for (let round = 0; round < 4; round++) {
    await put('daily', { limit_usd: 0.005 });
    assert.equal((await ask()).status, 402);
    await put('daily', { limit_usd: 5 });
    assert.equal((await ask()).status, 200);
    await put('daily', { limit_usd: 0.005 });
    assert.equal((await ask()).status, 402, 'also within what was leased under the higher one');
    await call('DELETE', '/workspaces/team/budgets/daily');
    assert.equal((await ask()).status, 200);
  }
});

test('windows start at midnight UTC, on Monday and on the first; a lifetime budget never resets', async (t) => {
  const { gateway, ask, put, budgets, call } = await scene(t);
  gateway.upstream.script('m', answer(1000));
  const nextYear = new Date(gateway.clock.now()).getUTCFullYear() + 1;
  // A Thursday that is the last of its month, a minute before midnight.
  let at = Date.UTC(nextYear, 0, 31);
  while (new Date(at).getUTCDay() !== 4)
    at = Date.UTC(new Date(at).getUTCFullYear(), new Date(at).getUTCMonth() + 2, 0);
  jumpTo(gateway, at + DAY - 60_000);
  const spend = async (interval: string, end: number | null) => {
    await put(interval, { limit_usd: 0.015 });
    assert.equal((await ask()).status, 402, `${interval}: the cent of before counts`);
    const [state] = await budgets();
    assert.deepEqual([state.spent_usd, state.resets_at], [0.01, end === null ? null : new Date(end).toISOString()]);
    await call('DELETE', `/workspaces/team/budgets/${interval}`);
  };
  assert.equal((await ask()).status, 200);
  await spend('daily', at + DAY);
  await spend('weekly', at + 4 * DAY);
  await spend('monthly', at + DAY);
  await spend('lifetime', null);
  jumpTo(gateway, at + DAY);
  for (const [interval, status] of [
    ['daily', 200],
    ['monthly', 200],
    ['weekly', 402],
    ['lifetime', 402],
  ] as const) {
    // What was just asked for must not count in the next one.
    const spent = interval === 'daily' ? 0.01 : interval === 'monthly' ? 0.02 : 0.03;
    await put(interval, { limit_usd: spent + 0.005 });
    assert.equal((await ask()).status, status, interval);
    await call('DELETE', `/workspaces/team/budgets/${interval}`);
  }
  jumpTo(gateway, at + 4 * DAY);
  await put('weekly', { limit_usd: 0.01001 });
  assert.equal((await ask()).status, 200, 'a new week');
  await call('DELETE', '/workspaces/team/budgets/weekly');
  jumpTo(gateway, at + 400 * DAY);
  await put('lifetime', { limit_usd: 0.015 });
  assert.equal((await ask()).status, 402);
});

test('spend belongs to the window in which the request was accepted, however late it ends', async (t) => {
  const { gateway, key, put, budgets } = await scene(t);
  jumpTo(gateway, Math.ceil(gateway.clock.now() / DAY) * DAY + DAY - 1_000);
  const whole = answer(1000);
  gateway.upstream.script('m', { ...whole, chunks: [{ gate: 'go' }, ...(whole.chunks ?? [])], repeat: false });
  await put('daily', { limit_usd: 0.015 });
  const late = key.ask({ model: 'test/m', max_tokens: 1000 });
  await gateway.upstream.request('m');
  gateway.clock.jump(2_000);
  assert.deepEqual((await budgets())[0].reserved_usd, 0, 'nothing of the new day');
  gateway.upstream.open('go');
  assert.equal((await late).status, 200);
  assert.equal((await budgets())[0].spent_usd, 0);
  gateway.upstream.script('m', answer(1000));
  assert.equal((await key.ask({ model: 'test/m', max_tokens: 1000 })).status, 200, 'the new day is whole');
});

test('GET /budget has every budget of the calling key, with what is spent and what is held for running requests', async (t) => {
  const { gateway, put, call, keyIn, workspace } = await scene(t, { yaml: { account: { balance_usd: 50 } } });
  const key = await keyIn(workspace.id, 'limited', { limit: 3, limit_reset: 'weekly' });
  await put('lifetime', { limit_usd: 20 });
  await put('daily', { limit_usd: 2 });
  const list = async (token = key.token) => (await call('GET', '/budget', undefined, token)).body.data as Json[];
  assert.deepEqual(
    (await list()).map(({ scope, reset_interval, limit_usd }) => [scope, reset_interval, limit_usd]),
    [
      ['account', 'lifetime', 50],
      ['workspace', 'lifetime', 20],
      ['workspace', 'daily', 2],
      ['key', 'weekly', 3],
    ],
  );
  const whole = answer(700);
  gateway.upstream.script('m', { ...whole, chunks: [{ gate: 'go' }, ...(whole.chunks ?? [])], repeat: false });
  const running = key.ask({ model: 'test/m', max_tokens: 1000 });
  await gateway.upstream.request('m');
  for (const state of await list()) {
    assert.equal(state.spent_usd, 0);
    assert.ok(state.reserved_usd >= 0.01, `${state.scope} holds ${state.reserved_usd}`);
    assert.equal(state.unreturned_usd, 0);
    assert.ok(Math.abs(state.available_usd - (state.limit_usd - state.reserved_usd)) < 1e-9);
  }
  gateway.upstream.open('go');
  assert.equal((await running).status, 200);
  for (const state of await list()) {
    assert.equal(state.spent_usd, 0.007);
    assert.ok(Math.abs(state.remaining_usd - (state.limit_usd - 0.007)) < 1e-9);
  }
  assert.deepEqual(
    (await list(MANAGEMENT_KEY)).map(({ scope }) => scope),
    ['account'],
    'a management key spends nothing in a workspace',
  );
});

test('what a process that is gone has not given back is shown, and counts as spent until it does', async (t) => {
  const { gateway, workspace, ask, put, budgets } = await scene(t);
  gateway.upstream.script('m', answer(1));
  await put('lifetime', { limit_usd: 0.05 });
  const window = `workspace/${workspace.id}/lifetime/0`;
  await inDatabase(gateway, [
    `insert into spend_processes values ('gone', 'elsewhere', now() - interval '1 hour')`,
    `insert into spend_leases values ('gone', '${window}', 45000000)`,
    `insert into spend_windows values ('${window}', 0, 0, 45000000)`,
  ]);
  const [state] = await budgets();
  assert.deepEqual(
    [state.spent_usd, state.reserved_usd, state.unreturned_usd, state.remaining_usd, state.available_usd],
    [0, 0.045, 0.045, 0.05, 0.005],
  );
  assert.equal((await ask()).status, 402);
  assert.equal((await ask(400)).status, 200);
});

test('GET /credits is the balance and all that was spent of it; without a balance it says that it is unlimited', async (t) => {
  const limited = await scene(t, { yaml: { account: { balance_usd: 0.025 } } });
  limited.gateway.upstream.script('m', answer(1000));
  const credits = async ({ call }: typeof limited) => (await call('GET', '/credits')).body.data;
  assert.deepEqual(await credits(limited), { total_credits: 0.025, total_usage: 0, unlimited: false });
  assert.equal((await limited.ask()).status, 200);
  assert.equal((await limited.ask()).status, 200);
  await limited.refused(limited.ask(), 402, /0\.005 USD are left in the account balance/);
  assert.deepEqual(await credits(limited), { total_credits: 0.025, total_usage: 0.02, unlimited: false });
  const unlimited = await scene(t);
  unlimited.gateway.upstream.script('m', answer(1000));
  assert.equal((await unlimited.ask()).status, 200);
  assert.deepEqual(await credits(unlimited), { total_credits: 1e9, total_usage: 0.01, unlimited: true });
});
