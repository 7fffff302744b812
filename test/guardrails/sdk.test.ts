/** `@openrouter/sdk`, unmodified, through every operation on guardrails; it checks each answer by its schemas. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { MANAGEMENT_KEY, startGateway } from '../../src/testing/gateway/gateway.ts';
import { controlOf } from '../workspaces/control.ts';

const gateway = await startGateway(
  { after: (close) => after(close as () => Promise<void>) },
  { env: { GATEHOUSE_NAMESPACE: 'openrouter' }, providers: { m: {} } },
);
const { keyIn, call } = controlOf(gateway);
const { guardrails } = new OpenRouter({
  apiKey: MANAGEMENT_KEY,
  serverURL: gateway.api,
  retryConfig: { strategy: 'none' },
});

async function all<T>(pages: AsyncIterable<{ result: { data: T[] } }>): Promise<T[]> {
  const items: T[] = [];
  for await (const { result } of pages) items.push(...result.data);
  return items;
}

test('create, get, update, list and delete', async () => {
  const { data: made } = await guardrails.create({
    createGuardrailRequest: {
      name: 'From the client',
      allowedModels: ['test/m'],
      allowedDataRegions: ['global'],
      enforceZdrAnthropic: true,
      contentFilterBuiltins: [{ slug: 'regex-prompt-injection', action: 'flag', scanScope: 'user_only' }],
      contentFilters: [{ pattern: 'PRJ-\\d+', action: 'redact', label: '[project]' }],
      limitUsd: 12.5,
      resetInterval: 'monthly',
    },
  });
  assert.deepEqual([made.allowedModels, made.enforceZdrAnthropic, made.limitUsd], [['test/m'], true, 12.5]);
  assert.deepEqual(made.contentFilterBuiltins, [
    { slug: 'regex-prompt-injection', action: 'flag', label: '[PROMPT_INJECTION]', scanScope: 'user_only' },
  ]);
  assert.deepEqual(made.contentFilters, [{ pattern: 'PRJ-\\d+', action: 'redact', label: '[project]' }]);
  assert.deepEqual((await guardrails.get({ id: made.id })).data, made);
  const { data: changed } = await guardrails.update({
    id: made.id,
    updateGuardrailRequest: { name: 'Renamed', contentFilters: null },
  });
  assert.deepEqual([changed.name, changed.contentFilters, changed.limitUsd], ['Renamed', null, 12.5]);
  const listed = await all(await guardrails.list());
  assert.deepEqual(
    listed.map(({ id }) => id),
    [made.id],
  );
  assert.deepEqual(await guardrails.delete({ id: made.id }), { deleted: true });
  await assert.rejects(
    guardrails.get({ id: made.id }),
    (error) => (error as { statusCode?: number }).statusCode === 404,
  );
});

test('keys and members are assigned, listed and taken back', async () => {
  const { data } = await guardrails.create({ createGuardrailRequest: { name: 'Assigned' } });
  const { id } = data;
  const { hash } = await keyIn(undefined, 'of the client');
  const user = (await call('GET', `/keys/${hash}`)).body.data.creator_user_id as string;
  const keys = { bulkAssignKeysRequest: { keyHashes: [hash] } };
  assert.deepEqual(await guardrails.bulkAssignKeys({ id, ...keys }), { assignedCount: 1 });
  for (const pages of [await guardrails.listKeyAssignments(), await guardrails.listGuardrailKeyAssignments({ id })]) {
    assert.deepEqual(
      (await all(pages)).map(({ keyHash, guardrailId }) => [keyHash, guardrailId]),
      [[hash, id]],
    );
  }
  const removed = await guardrails.bulkUnassignKeys({ id, bulkUnassignKeysRequest: { keyHashes: [hash] } });
  assert.deepEqual(removed, { unassignedCount: 1 });
  const members = { bulkAssignMembersRequest: { memberUserIds: [user] } };
  assert.deepEqual(await guardrails.bulkAssignMembers({ id, ...members }), { assignedCount: 1 });
  for (const pages of [
    await guardrails.listMemberAssignments(),
    await guardrails.listGuardrailMemberAssignments({ id }),
  ]) {
    assert.deepEqual(
      (await all(pages)).map(({ userId, guardrailId }) => [userId, guardrailId]),
      [[user, id]],
    );
  }
  const back = await guardrails.bulkUnassignMembers({ id, bulkUnassignMembersRequest: { memberUserIds: [user] } });
  assert.deepEqual(back, { unassignedCount: 1 });
});
