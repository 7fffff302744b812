/**
 * Operations on a workspace while it is being deleted: they complete before the deletion, or are refused. The test pauses the
 * deletion in the middle with an open transaction of its own.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { type Answered, controlOf } from './control.ts';

async function scene(t: TestContext) {
  const gateway = await startGateway(t, { providers: { a: {} } });
  const [deleting, watcher] = [await connect(gateway.target), await connect(gateway.target)];
  t.after(async () => {
    await deleting.end();
    await watcher.end();
  });
  const waiting = async () => {
    const { rows } = await watcher.query("select 1 from pg_stat_activity where wait_event_type = 'Lock'");
    return rows.length;
  };
  return {
    control: controlOf(gateway),
    /** @param deletion what it does; it is committed once all that `ask` asks for waits for it */
    async whileDeleting(deletion: string[], id: string, ask: () => Promise<Answered>[]): Promise<Answered[]> {
      await deleting.query('begin');
      for (const statement of deletion) await deleting.query(statement, [id]);
      const asked = ask();
      await until(async () => (await waiting()) === asked.length, 'all wait for the end of the deletion');
      await deleting.query('commit');
      return Promise.all(asked);
    },
  };
}

test('a guardrail that is being deleted cannot be assigned: 404, never a 500', async (t) => {
  const { control, whileDeleting } = await scene(t);
  const { call } = control;
  const { hash } = await control.keyIn(undefined, 'theirs');
  const { creator_user_id: member } = (await call('GET', `/keys/${hash}`)).body.data;
  const { id } = (await call('POST', '/guardrails', { name: 'ends' })).body.data;
  const path = `/guardrails/${id}`;
  const answers = await whileDeleting(['delete from guardrails where id = $1'], id, () => [
    call('POST', `${path}/assignments/keys`, { key_hashes: [hash] }),
    call('POST', `${path}/assignments/members`, { member_user_ids: [member] }),
    call('PATCH', path, { name: 'goes on' }),
  ]);
  for (const { status, body } of answers) assert.equal(status, 404, JSON.stringify(body));
});

test('nothing comes into a workspace that is being deleted, and no key in it is switched on', async (t) => {
  const { control, whileDeleting } = await scene(t);
  const { call } = control;
  const { id, default_guardrail_id: standard } = await control.made({ name: 'Ends', slug: 'ends' });
  const off = await control.keyIn(id, 'off');
  assert.equal((await call('PATCH', `/keys/${off.hash}`, { disabled: true })).status, 200);
  const { creator_user_id: member } = (await call('GET', `/keys/${off.hash}`)).body.data;
  const deletion = [
    'select 1 from workspaces where id = $1 for update',
    'update workspaces set deleted_at = now() where id = $1',
  ];
  const answers = await whileDeleting(deletion, id, () => [
    call('POST', '/keys', { name: 'late', workspace_id: id }),
    call('PATCH', `/keys/${off.hash}`, { disabled: false }),
    call('POST', '/guardrails', { name: 'late', workspace_id: id }),
    call('POST', '/byok', { provider: 'a', key: 'own-secret', workspace_id: id }),
    call('PATCH', `/guardrails/${standard}`, { name: 'late' }),
    call('POST', `/workspaces/${id}/members/add`, { user_ids: [member] }),
    call('PUT', `/workspaces/${id}/budgets/daily`, { limit_usd: 1 }),
  ]);
  assert.deepEqual(
    answers.map(({ status }) => status),
    [400, 400, 400, 400, 404, 404, 404],
    JSON.stringify(answers),
  );
});
