/** `@openrouter/sdk`, unmodified, through every operation of SCIM that it has; it checks each answer by its schemas. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { OpenRouter } from '@openrouter/sdk';
import { MANAGEMENT_KEY } from '../../src/testing/gateway/gateway.ts';
import { startDirectory } from './directory.ts';

const directory = await startDirectory(
  { after: (close) => after(close as () => Promise<void>) },
  { env: { GATEHOUSE_NAMESPACE: 'openrouter' } },
);
const { gateway, control } = directory;
const { scim } = new OpenRouter({
  apiKey: MANAGEMENT_KEY,
  serverURL: gateway.api,
  retryConfig: { strategy: 'none' },
});
const NOBODY = '00000000-0000-7000-8000-000000000000';

const statusIs = (statusCode: number) => (error: unknown) =>
  (error as { statusCode?: number }).statusCode === statusCode;

test('groups and mappings: list, create, read, update, delete', async () => {
  const { id: userId } = await directory.user('sdk@example.test');
  for (const name of ['One', 'Two', 'Three']) await directory.group(name, [userId]);
  const names: string[] = [];
  const ids: string[] = [];
  for await (const { result } of await scim.listGroups({ limit: 2 })) {
    assert.equal(result.totalCount, 3);
    names.push(...result.data.map(({ displayName }) => displayName));
    ids.push(...result.data.map(({ id }) => id));
  }
  assert.deepEqual(names, ['One', 'Two', 'Three']);
  const workspaceId = (await control.made({ name: 'Team', slug: 'team' })).id;
  const request = { scimGroupId: ids[0]!, workspaceId, role: 'member' as const };
  const { data: made } = await scim.create({ createScimGroupMappingRequest: request });
  assert.deepEqual([made.scimGroupId, made.workspaceId, made.role], [ids[0], workspaceId, 'member']);
  assert.deepEqual((await scim.read({ id: made.id })).data, made);
  await assert.rejects(scim.create({ createScimGroupMappingRequest: request }), statusIs(409));
  await assert.rejects(
    scim.create({ createScimGroupMappingRequest: { ...request, scimGroupId: NOBODY } }),
    statusIs(404),
  );
  const { data: raised } = await scim.update({ id: made.id, updateScimGroupMappingRequest: { role: 'admin' } });
  assert.equal(raised.role, 'admin');
  assert.equal((await directory.rolesIn('team'))[userId], 'admin');
  for (const scimGroupId of ids.slice(1))
    await scim.create({ createScimGroupMappingRequest: { ...request, scimGroupId } });
  let seen = 0;
  for await (const { result } of await scim.listMappings({ limit: 1 })) seen += result.data.length;
  assert.equal(seen, 3);
  assert.equal((await scim.delete({ id: made.id, keepMembers: 'false' })).deleted, true);
  assert.equal((await directory.rolesIn('team'))[userId], 'member', 'by the other two groups');
  await assert.rejects(scim.read({ id: made.id }), statusIs(404));
});

test('sync jobs: create and get', async () => {
  const { result, headers } = await scim.createSyncJob();
  assert.equal(result.data.status, 'queued');
  assert.deepEqual(headers['location'], [`/api/v1/scim/sync-jobs/${result.data.id}`]);
  for (let look = 0; ; look++) {
    const { data } = await scim.getSyncJob({ id: result.data.id });
    if (data.status === 'succeeded') {
      assert.deepEqual([data.syncedGroups, data.deletedGroups, data.errorMessage], [3, 0, null]);
      break;
    }
    assert.ok(look < 10_000, JSON.stringify(data));
  }
  await assert.rejects(scim.getSyncJob({ id: NOBODY }), statusIs(404));
});
