/** A limit that is set counts what was spent before it, to the last request, whichever process served that. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';
import { controlOf, type Json } from '../workspaces/control.ts';

const OK = {
  id: 'c',
  choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
  usage: { prompt_tokens: 100_000, completion_tokens: 0, total_tokens: 100_000 },
};
/** 100,000 tokens of 3 millionths of a dollar. */
const COST = 0.3;

async function twoProcesses(t: TestContext) {
  // BYOK credentials are encrypted with one key, which both have.
  const options = { providers: { a: {} }, env: { GATEHOUSE_KEK: Buffer.alloc(32, 7).toString('base64') } };
  const first = await startGateway(t, options);
  const second = await startGateway(t, { ...options, target: first.target });
  for (const { upstream } of [first, second]) upstream.script('a', [{ ...wholeOf(OK), repeat: true }]);
  const control = controlOf(first);
  const workspace = await control.made({ name: 'Team', slug: 'team' });
  const key = await control.keyIn(workspace.id, 'spender');
  const elsewhere = controlOf(second);
  return {
    control,
    key,
    workspace,
    /** The control plane, of the process that serves nothing else. */
    async set(method: string, path: string, body: Json): Promise<Json> {
      const { status, body: answer } = await control.call(method, path, body);
      assert.ok(status === 200 || status === 201, JSON.stringify(answer));
      return answer.data;
    },
    /** Through the process that did not receive the limits. */
    spend: (): Promise<{ status: number; body: Json }> =>
      elsewhere.call(
        'POST',
        '/chat/completions',
        { model: 'test/a', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] },
        key.token,
      ),
  };
}

test('a limit that a key is given counts the request that was answered just before', async (t) => {
  const { control, key, spend } = await twoProcesses(t);
  assert.equal((await spend()).status, 200);
  const { status } = await control.call('PATCH', `/keys/${key.hash}`, { limit: COST, limit_reset: 'daily' });
  assert.equal(status, 200);
  assert.equal((await spend()).status, 402);
  assert.equal((await control.call('PATCH', `/keys/${key.hash}`, { limit: null })).status, 200);
  assert.equal((await spend()).status, 200);
  // Another window has other spend in it.
  assert.equal(
    (await control.call('PATCH', `/keys/${key.hash}`, { limit: 2 * COST, limit_reset: 'monthly' })).status,
    200,
  );
  assert.equal((await spend()).status, 402);
});

test('the limit of a guardrail counts the request that was answered just before, be it set, changed or given', async (t) => {
  const { key, workspace, set, spend } = await twoProcesses(t);
  const { id: first } = await set('POST', '/guardrails', { name: 'first' });
  await set('POST', `/guardrails/${first}/assignments/keys`, { key_hashes: [key.hash] });
  assert.equal((await spend()).status, 200);
  await set('PATCH', `/guardrails/${first}`, { limit_usd: COST, reset_interval: 'daily' });
  assert.equal((await spend()).status, 402, 'set');
  await set('PATCH', `/guardrails/${first}`, { limit_usd: null, reset_interval: null });
  assert.equal((await spend()).status, 200);
  await set('PATCH', `/guardrails/${first}`, { limit_usd: 2 * COST, reset_interval: 'monthly' });
  assert.equal((await spend()).status, 402, 'of another window');
  await set('POST', `/guardrails/${first}/assignments/keys/remove`, { key_hashes: [key.hash] });
  assert.equal((await spend()).status, 200);

  const limit = (spent: number) => ({ limit_usd: spent * COST, reset_interval: 'weekly' });
  const { id: second } = await set('POST', '/guardrails', { name: 'second', ...limit(3) });
  await set('POST', `/guardrails/${second}/assignments/keys`, { key_hashes: [key.hash] });
  assert.equal((await spend()).status, 402, 'given to the key');
  await set('POST', `/guardrails/${second}/assignments/keys/remove`, { key_hashes: [key.hash] });
  assert.equal((await spend()).status, 200);
  const { creator_user_id: member } = await set('GET', `/keys/${key.hash}`, undefined);
  const { id: third } = await set('POST', '/guardrails', { name: 'third', ...limit(4) });
  await set('POST', `/guardrails/${third}/assignments/members`, { member_user_ids: [member] });
  assert.equal((await spend()).status, 402, 'given to the member');
  await set('POST', `/guardrails/${third}/assignments/members/remove`, { member_user_ids: [member] });
  assert.equal((await spend()).status, 200);
  await set('PATCH', `/guardrails/${workspace.default_guardrail_id}`, limit(5));
  assert.equal((await spend()).status, 402, 'of the whole workspace');
});

test('a budget that counts BYOK from now on counts what they were used for just before', async (t) => {
  const { key, workspace, set, spend } = await twoProcesses(t);
  await set('POST', '/byok', { provider: 'a', key: 'own-secret', workspace_id: workspace.id });
  await set('PUT', '/workspaces/team/budgets/lifetime', { limit_usd: COST });
  const { id } = await set('POST', '/guardrails', { name: 'g', limit_usd: 2 * COST, reset_interval: 'daily' });
  await set('POST', `/guardrails/${id}/assignments/keys`, { key_hashes: [key.hash] });
  assert.equal((await spend()).status, 200);
  const counted = { limit_usd: COST, include_byok_in_budgets: true };
  await set('PUT', '/workspaces/team/budgets/lifetime', counted);
  assert.equal((await spend()).status, 402, 'of the workspace');
  await set('PUT', '/workspaces/team/budgets/lifetime', { ...counted, include_byok_in_budgets: false });
  assert.equal((await spend()).status, 200, 'BYOK costs nothing again');
  await set('PATCH', `/guardrails/${id}`, { include_byok_in_budgets: true });
  assert.equal((await spend()).status, 402, 'of the guardrail');
});
