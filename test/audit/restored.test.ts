import assert from 'node:assert/strict';
import path from 'node:path';
import { test } from 'node:test';
import { auditMigrations, gatewayAuthor, recordChange } from '../../src/audit/index.ts';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { backup } from '../../src/storage/archive/backup.ts';
import { restore } from '../../src/storage/archive/restore.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { emptyDatabase, emptyFolder, freshDatabase } from '../../src/testing/database/database.ts';

test('a restored log has every entry, continues after them, and is append-only too', async (t) => {
  const author = gatewayAuthor('org', 0);
  const change = { action: 'thing.made', resourceType: 'thing', workspaceId: null } as const;
  const from = await freshDatabase(t, { migrations: auditMigrations });
  for (const resourceId of ['one', 'two']) {
    await from.database.transaction((tx) => recordChange(tx, author, { ...change, resourceId }));
  }
  const file = path.join(emptyFolder(t), 'backup');
  await backup({ target: from.target, file, version: '0', now: 0 });
  const target = await emptyDatabase(t);
  await restore({ target, file, migrations: auditMigrations, log: silentLog });
  const database = await openDatabase({ target, clock: systemClock, log: silentLog });
  t.after(() => database.close());
  await database.transaction((tx) => recordChange(tx, author, { ...change, resourceId: 'three' }));
  const rows = await database.query<{ id: string }>('select resource_id as id from audit_entries order by place');
  assert.deepEqual(
    rows.map(({ id }) => id),
    ['one', 'two', 'three'],
  );
  await assert.rejects(database.query('truncate audit_entries'), /append-only/);
});
