import assert from 'node:assert/strict';
import { test } from 'node:test';
import { revokeOperatorKey } from '../../src/access/index.ts';
import { silentLog } from '../../src/base/log.ts';
import { openChanges } from '../../src/storage/changes.ts';
import type { Database } from '../../src/storage/database.ts';
import { create, installation } from '../../src/testing/database/keys.ts';

test('a key deleted between being found and being revoked is not revoked twice', async (t) => {
  const { gate, keys, target } = await installation(t);
  const { hash } = await create(gate, keys, { name: 'one' });
  const { database, clock } = gate;
  const changes = await openChanges({ target, database, clock, log: silentLog });
  t.after(() => changes.close());
  const late: Database = {
    up: true,
    query: (text, values) => database.query(text, values),
    async transaction(work) {
      assert.equal((await gate.call('DELETE', `/keys/${hash}`, keys.management)).status, 200);
      return database.transaction(work);
    },
    close: async () => {},
  };
  await assert.rejects(revokeOperatorKey({ database: late, changes, clock }, hash), /no key has a hash that begins/);
  const entries = await database.query(`select from audit_entries where action = 'key.deleted' and resource_id = $1`, [
    hash,
  ]);
  assert.equal(entries.length, 1);
});
