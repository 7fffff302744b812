/** The limit of a guardrail that is assigned to a member is one for all keys of the member, over all processes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { startDirectory } from '../scim/directory.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

/** Costs 2 USD a million written tokens, and a thousand are asked for: a fifth of a cent, and a little for the prompt. */
const SIMULATED = { yaml: { providers: [{ id: 'simulated', kind: 'simulated' }] } };
const TURN = { model: 'simulated/echo', max_tokens: 1_000 };

test('keys of one member share the limit of the guardrail; other keys do not', async (t) => {
  const directory = await startDirectory(t, SIMULATED);
  const other = await startGateway(t, { ...SIMULATED, target: directory.gateway.target });
  const { control } = directory;
  const { call } = control;
  const [one, two] = [await directory.user('one@example.test'), await directory.user('two@example.test')];
  const { body } = await call('POST', '/guardrails', { name: 'g', limit_usd: 0.000001, reset_interval: 'daily' });
  const guardrail = body.data.id as string;
  const assigned = await call('POST', `/guardrails/${guardrail}/assignments/members`, {
    member_user_ids: [one.id, two.id],
  });
  assert.equal(assigned.status, 200, JSON.stringify(assigned.body));
  const keysOf = async (creator_user_id: string | null) => [
    await control.keyIn(undefined, 'a', { creator_user_id }),
    await control.keyIn(undefined, 'b', { creator_user_id }),
  ];
  const [first, second] = await keysOf(one.id);
  const [theirs] = await keysOf(two.id);
  const [nobodys] = await keysOf(null);
  const ask = (place: { api: string }, token: string) =>
    controlOf(place).call('POST', '/chat/completions', { ...TURN, messages: [{ role: 'user', content: 'hi' }] }, token);
  assert.equal((await ask(other, first!.token)).status, 402);
  const room = { limit_usd: 0.0041, reset_interval: 'daily' };
  assert.equal((await call('PATCH', `/guardrails/${guardrail}`, room)).status, 200);
  assert.equal((await ask(directory.gateway, first!.token)).status, 200);
  const spent = async (key: string) => {
    // Asked where it was spent, which knows of it before the database does.
    const budgets = (await call('GET', '/budget', undefined, key)).body.data as Json[];
    const [budget] = budgets.filter(({ scope }) => scope === 'guardrail');
    return budget && [budget.limit_usd, budget.spent_usd > 0];
  };
  assert.deepEqual(await spent(first!.token), [0.0041, true]);
  assert.deepEqual(await spent(second!.token), [0.0041, true], 'what one key spent the other one sees');
  assert.deepEqual(await spent(theirs!.token), [0.0041, false]);
  assert.equal(await spent(nobodys!.token), undefined);
  // Used up by the one, it refuses the other, in the other process.
  const { body: now } = await call('GET', '/budget', undefined, first!.token);
  const used = (now.data as Json[]).find(({ scope }) => scope === 'guardrail').spent_usd as number;
  const lowered = await call('PATCH', `/guardrails/${guardrail}`, { ...room, limit_usd: used + 0.000001 });
  assert.equal(lowered.status, 200, JSON.stringify(lowered.body));
  const refused = await ask(other, second!.token);
  assert.equal(refused.status, 402, JSON.stringify(refused.body));
  assert.equal(refused.body.error.metadata.budget.scope, 'guardrail');
  assert.equal((await ask(other, nobodys!.token)).status, 200);
});
