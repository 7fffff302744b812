/** A whole directory of 5,000 pushed user by user, as an identity provider does at first, into a mapped group. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Json } from '../workspaces/control.ts';
import { startDirectory } from './directory.ts';

const USERS = 5_000;
/** As many requests at once as an identity provider makes. */
const AT_ONCE = 8;

test('5,000 users are pushed one by one, and a group of them all has its role', async (t) => {
  const { user, group, control } = await startDirectory(t);
  const ids: string[] = [];
  const startedAt = performance.now();
  let next = 0;
  const push = async () => {
    while (next < USERS) {
      const n = next++;
      const made: Json = await user(`person-${n}@example.test`, {
        name: { givenName: 'Person', familyName: String(n) },
        emails: [{ value: `person-${n}@example.test`, type: 'work', primary: true }],
      });
      ids.push(made.id);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, push));
  t.diagnostic(`${((performance.now() - startedAt) / USERS).toFixed(1)} ms for each user`);
  assert.equal(new Set(ids).size, USERS);
  const { id: workspace_id } = await control.made({ name: 'All', slug: 'all' });
  const { id: scim_group_id } = await group('All', ids);
  await control.call('POST', '/scim/group-mappings', { scim_group_id, workspace_id, role: 'member' });
  const { body } = await control.call('GET', '/workspaces/all/members?limit=1');
  assert.ok(body.total_count >= USERS);
});
