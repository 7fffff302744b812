/** The limit of a guardrail counts all of its window, whenever it was set or given to a key, as those of keys do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { controlOf, type Json } from '../workspaces/control.ts';
import { postWith, startGuarded } from './guarded.ts';

/** Costs 60 millionths of a USD: ten tokens of the prompt, two of the answer. */
const ASK = { model: 'test/chat', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] };
const COST = 0.00006;
const DAY_MS = 86_400_000;

test('what keys have spent earlier in the window counts in a limit that is set, or given to them, later', async (t) => {
  const { gateway, control } = await startGuarded(t, { providers: { chat: {} } });
  const other = await startGateway(t, { providers: { chat: {} }, target: gateway.target });
  for (const place of [gateway, other]) place.upstream.script('chat', chatWhole('fine'));
  const member = (await control.call('GET', `/keys/${(await control.keyIn(undefined, 'any')).hash}`)).body.data
    .creator_user_id;
  const key = await control.keyIn(undefined, 'one', { creator_user_id: member });
  const second = await control.keyIn(undefined, 'two', { creator_user_id: member });
  const workspace = (await control.call('GET', `/keys/${key.hash}`)).body.data.workspace_id;
  const { default_guardrail_id: standard } = (await control.call('GET', `/workspaces/${workspace}`)).body.data;
  const ask = async (place: { post: typeof gateway.post }, token: string) =>
    (await postWith(place, token, '/chat/completions', ASK)).status;
  /** In requests, by guardrail. */
  const spent = async (token: string) => {
    const budgets = (await control.call('GET', '/budget', undefined, token)).body.data as Json[];
    const ofGuardrails = budgets.filter(({ scope }) => scope === 'guardrail');
    return ofGuardrails.map(({ spent_usd }) => Math.round(spent_usd / COST));
  };
  const spend = async (place: { post: typeof gateway.post; api: string }, token: string, times: number) => {
    for (let turn = 0; turn < times; turn++) assert.equal(await ask(place, token), 200);
    // Asked where it was spent, which enters what it knows before it answers.
    await controlOf(place).call('GET', '/budget', undefined, token);
  };
  await spend(gateway, key.token, 2);
  await spend(other, key.token, 1);
  await spend(gateway, second.token, 1);

  const rules = { limit_usd: 1, reset_interval: 'daily' };
  const { id } = (await control.call('POST', '/guardrails', { name: 'late', ...rules })).body.data;
  await control.call('PATCH', `/guardrails/${standard}`, { ...rules, reset_interval: 'weekly' });
  assert.deepEqual(await spent(key.token), [3], 'the default one of the workspace');
  await control.call('POST', `/guardrails/${id}/assignments/keys`, { key_hashes: [key.hash] });
  assert.deepEqual([await spent(key.token), await spent(second.token)], [[3, 3], [1]]);
  await control.call('POST', `/guardrails/${id}/assignments/members`, { member_user_ids: [member] });
  await control.call('POST', `/guardrails/${id}/assignments/keys/remove`, { key_hashes: [key.hash] });
  assert.deepEqual(
    [await spent(key.token), await spent(second.token)],
    [
      [3, 4],
      [1, 4],
    ],
    'all keys of the member',
  );

  // Taken away for a while, it has seen what was spent meanwhile.
  await control.call('PATCH', `/guardrails/${id}`, { limit_usd: null, reset_interval: null });
  await spend(gateway, second.token, 1);
  const room = 5 * COST + 0.0000001;
  await control.call('PATCH', `/guardrails/${id}`, { ...rules, limit_usd: room });
  for (const place of [gateway, other]) {
    const refused = await postWith(place, key.token, '/chat/completions', ASK);
    assert.equal(refused.status, 402, JSON.stringify(refused.body));
    assert.equal(Math.round(refused.body.error.metadata.budget.spent_usd / COST), 5);
  }
  for (const place of [gateway, other]) place.clock.jump(DAY_MS);
  assert.equal((await spent(key.token))[1], 0, 'the next day it is whole');
});
