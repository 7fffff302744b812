/** The claim of a use on its container while the wall clock jumps ahead: it is set, or the machine was suspended. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import { uuidv7 } from '../../src/base/ids.ts';
import { silentLog } from '../../src/base/log.ts';
import { Claims } from '../../src/containers/claims.ts';
import { expireContainersJob } from '../../src/containers/removal.ts';
import { migrations } from '../../src/migrations.ts';
import { settle } from '../../src/testing/clock/clock.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { JumpClock } from '../../src/testing/gateway/jump-clock.ts';

const HOUR_MS = 3_600_000;

/** A container that no request uses yet, and the claims of a process. */
async function scene(t: TestContext) {
  const { database } = await freshDatabase(t, { migrations });
  const clock = new JumpClock();
  const claims = new Claims({ database, clock, log: silentLog });
  t.after(() => claims.close());
  const [id, organization, now] = [uuidv7(clock.now()), 'org_1', new Date(clock.now())];
  await database.query(`insert into organizations (id, name, created_at) values ($1, 'o', $2)`, [organization, now]);
  const [workspace] = await database.query<{ id: string }>(
    `insert into workspaces (id, organization_id, name, slug, created_at, updated_at) values ($1, $2, 'w', 'w', $3, $3)
      returning id`,
    [uuidv7(clock.now()), organization, now],
  );
  await database.query(
    `insert into containers (id, organization_id, workspace_id, key_id, name, copied, bytes, version, created_at, used_at,
        expires_at) values ($1, $2, $3, $4, 'c', '{}', 0, 0, $5, $5, $6)`,
    [id, organization, workspace!.id, randomUUID(), now, new Date(clock.now() + 2 * HOUR_MS)],
  );
  return { database, clock, claims, id };
}

test('a use keeps its container when the wall clock jumps ahead', async (t) => {
  const { database, clock, claims, id } = await scene(t);
  let losses = 0;
  const lost = () => {
    losses += 1;
  };
  const { signal } = new AbortController();
  const first = await claims.take(id, 'c', signal, lost);
  clock.setWall(HOUR_MS);
  const second = assert.rejects(claims.take(id, 'c', signal, lost), { status: 409 });
  let refused = false;
  void second.finally(() => {
    refused = true;
  });
  while (!refused) {
    clock.jump(1_000);
    await database.query('select 1');
    await settle();
  }
  await second;
  assert.equal(losses, 0);
  claims.end(first!);
});

test('a container in use does not expire when the wall clock jumps ahead', async (t) => {
  const { database, clock, claims, id } = await scene(t);
  const expire = expireContainersJob({ database, clock, blobs: { drop: async () => {} } });
  const run = () => expire.run({ data: {}, attempt: 1, signal: new AbortController().signal });
  const count = async () => (await database.query('select 1 from containers')).length;
  const claim = await claims.take(id, 'c', new AbortController().signal, () => {});
  clock.setWall(3 * HOUR_MS);
  await run();
  assert.equal(await count(), 1);
  // Its process dies.
  claims.end(claim!);
  clock.jump(60_000);
  await run();
  assert.equal(await count(), 0);
});
