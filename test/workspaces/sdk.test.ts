/** `@openrouter/sdk`, unmodified, through every operation on workspaces and budgets; it checks each answer by its schemas. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatWhole } from '../../src/testing/upstream/chat-upstream.ts';
import { inDatabase, type Json } from './control.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  {
    env: { GATEHOUSE_NAMESPACE: 'openrouter' },
    yaml: { account: { balance_usd: 25 } },
    providers: { m: {} },
  },
);
const sdkOf = (apiKey: string) => new OpenRouter({ apiKey, serverURL: gateway.api, retryConfig: { strategy: 'none' } });
const admin = sdkOf(MANAGEMENT_KEY);
const { workspaces } = admin;

const statusIs = (statusCode: number) => (error: unknown) =>
  (error as { statusCode?: number }).statusCode === statusCode;

test('create, get, update, list and delete', async () => {
  const { data: made } = await workspaces.create({
    createWorkspaceRequest: {
      name: 'Team',
      slug: 'team',
      description: 'One of them',
      defaultTextModel: 'test/m',
      defaultProviderSort: 'throughput',
      disabledServerTools: ['openrouter:web_search'],
      ioLoggingSamplingRate: 0.5,
    },
  });
  assert.deepEqual(
    [made.slug, made.defaultTextModel, made.defaultProviderSort, made.ioLoggingSamplingRate, made.updatedAt],
    ['team', 'test/m', 'throughput', 0.5, null],
  );
  assert.deepEqual(made.disabledServerTools, ['openrouter:web_search'], 'as the namespace spells it');
  assert.deepEqual((await workspaces.get({ id: 'team' })).data, made);
  assert.deepEqual((await workspaces.get({ id: made.id })).data, made);
  const { data: changed } = await workspaces.update({
    id: 'team',
    updateWorkspaceRequest: {
      name: 'Teams',
      description: null,
      disabledServerTools: null,
      ioLoggingApiKeyIds: [7],
      isObservabilityIoLoggingEnabled: true,
    },
  });
  assert.deepEqual(
    [changed.name, changed.description, changed.disabledServerTools, changed.ioLoggingApiKeyIds],
    ['Teams', null, null, [7]],
  );
  assert.equal(changed.defaultGuardrailId, made.defaultGuardrailId);
  for (const n of [1, 2, 3]) await workspaces.create({ createWorkspaceRequest: { name: `N ${n}`, slug: `n-${n}` } });
  const slugs: string[] = [];
  for await (const page of await workspaces.list({ limit: 2 })) {
    assert.equal(page.result.totalCount, 5);
    slugs.push(...page.result.data.map(({ slug }) => slug));
  }
  assert.deepEqual(slugs, ['default', 'team', 'n-1', 'n-2', 'n-3']);
  assert.equal((await workspaces.delete({ id: 'n-3' })).deleted, true);
  await assert.rejects(workspaces.get({ id: 'n-3' }), statusIs(404));
  await assert.rejects(workspaces.delete({ id: 'default' }), statusIs(400));
  await assert.rejects(
    workspaces.create({ createWorkspaceRequest: { name: 'Twin', slug: 'team' } }),
    (error: Error) => statusIs(400)(error) && /slug is already used/.test(error.message),
  );
});

test('list, add and remove members', async () => {
  await inDatabase(gateway, [
    `insert into users (id, name, created_at) values ('user_a', 'A', now()), ('user_b', 'B', now())`,
    `insert into members select distinct organization_id, id, 'member', now() from members, users where id in ('user_a', 'user_b')`,
  ]);
  const userIds = ['user_a', 'user_b'];
  const request = { id: 'team', bulkAddWorkspaceMembersRequest: { userIds } };
  const added = await workspaces.bulkAddMembers(request);
  assert.deepEqual([added.addedCount, added.data.map(({ role }) => role)], [2, ['member', 'member']]);
  const seen: string[] = [];
  for await (const page of await workspaces.listMembers({ id: 'team', limit: 1 })) {
    seen.push(...page.result.data.map(({ userId }) => userId));
  }
  assert.equal(seen.length, 3);
  const removed = await workspaces.bulkRemoveMembers({
    id: 'team',
    bulkRemoveWorkspaceMembersRequest: { userIds: ['user_a'] },
  });
  assert.equal(removed.removedCount, 1);
});

test('set, get, list and delete budgets, and a key that is held to them', async () => {
  const { id } = (await workspaces.get({ id: 'team' })).data;
  const set = (interval: 'daily' | 'weekly' | 'monthly' | 'lifetime', limitUsd: number, byok?: boolean) =>
    workspaces.setBudget({
      workspaceRef: 'team',
      interval,
      upsertWorkspaceBudgetRequest: { limitUsd, ...(byok !== undefined && { includeByokInBudgets: byok }) },
    });
  const monthly = await set('monthly', 20, true);
  assert.deepEqual(
    [monthly.data.limitUsd, monthly.data.resetInterval, monthly.data.workspaceId, monthly.includeByokInBudgets],
    [20, 'monthly', id, true],
  );
  assert.equal((await set('lifetime', 200)).data.resetInterval, 'lifetime');
  await assert.rejects(set('daily', 20), statusIs(400));
  await set('daily', 0.000001);
  assert.deepEqual(
    (await workspaces.listBudgets({ workspaceRef: id })).data.map(({ resetInterval }) => resetInterval),
    ['lifetime', 'monthly', 'daily'],
  );
  assert.equal((await workspaces.getBudget({ workspaceRef: 'team', interval: 'daily' })).data.limitUsd, 0.000001);

  const made = await admin.apiKeys.create({ requestBody: { name: 'theirs', workspaceId: id } });
  const theirs = sdkOf(made.key);
  gateway.upstream.script('m', { ...chatWhole('hello'), repeat: true });
  const ask = () =>
    theirs.chat.send({ chatRequest: { messages: [{ role: 'user', content: 'hi' }], maxTokens: 100, stream: false } });
  await assert.rejects(ask(), statusIs(402));
  assert.equal((await workspaces.deleteBudget({ workspaceRef: 'team', interval: 'daily' })).deleted, true);
  const answer: Json = await ask();
  assert.equal(answer.model, 'test/m', 'the default model of the workspace');
  await assert.rejects(workspaces.getBudget({ workspaceRef: 'team', interval: 'daily' }), statusIs(404));
  await assert.rejects(sdkOf(made.key).workspaces.list(), statusIs(403));
});

test('the balance', async () => {
  const { data } = await admin.credits.getCredits();
  assert.equal(data.totalCredits, 25);
  assert.ok(Math.abs(data.totalUsage - (10 * 0.000003 + 2 * 0.000015)) < 1e-12);
});
