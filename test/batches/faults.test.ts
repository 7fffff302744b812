/** What breaks while a batch arrives or runs: it is refused as a whole, or goes on later, and nothing is lost or runs twice. */
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { type TestContext, test } from 'node:test';
import type pg from 'pg';
import { until } from '../../src/testing/clock/clock.ts';
import { connectOnce } from '../../src/testing/database/database.ts';
import { type Gateway, startGateway } from '../../src/testing/gateway/gateway.ts';
import { chatReply, wholeOf } from '../../src/testing/upstream/answers.ts';
import { batchesOf, chatBatch, type Json, scripted } from './batches-client.ts';
import { chatAnswer, item, nativeBatch, startNative } from './native.ts';

/** SQLSTATE of a full disk. */
const DISK_FULL = '53100';

/** Makes the database refuse what `when` describes, until it is told to stop. */
async function refusing(t: TestContext, { target }: Gateway, { on, when }: { on: 'insert' | 'update'; when: string }) {
  const client: pg.Client = await connectOnce(t, target);
  await client.query(
    `create function refuse_it() returns trigger language plpgsql as
      $$ begin raise exception 'could not extend file: No space left on device' using errcode = '${DISK_FULL}'; end $$`,
  );
  await client.query(
    `create trigger refuse_it before ${on} on batch_items for each row when (${when}) execute function refuse_it()`,
  );
  return {
    stop: () => client.query('drop trigger refuse_it on batch_items'),
    count: async (table: string) => (await client.query(`select count(*)::int as n from ${table}`)).rows[0].n as number,
  };
}

const repliesTo = (gateway: Gateway) =>
  gateway.upstream.script('plain', [{ ...wholeOf(chatReply({ text: 'done' })), repeat: true }]);

const plainBatch = (count: number) =>
  chatBatch(
    Array.from({ length: count }, (_, n) => item(`item-${n}`)),
    { model: 'test/plain' },
  );

test('a database that becomes full while a batch arrives: 503 to retry, nothing of it is stored, and later it is taken', async (t) => {
  const gateway = await startGateway(t);
  const { send, submitted, ended } = batchesOf(gateway);
  const refusal = await refusing(t, gateway, { on: 'insert', when: 'new.position >= 300' });
  const body = chatBatch(Array.from({ length: 600 }, (_, n) => scripted(`item-${n}`, { text: 'x' })));
  const { status, body: answer } = await send('POST', '/batches', body);
  assert.equal(status, 503, JSON.stringify(answer));
  assert.equal(answer.error.metadata.retryable, true);
  const listed = await until(async () => (await send('GET', '/batches')).body.data, 'the database answers again');
  assert.deepEqual(listed, []);
  assert.deepEqual([await refusal.count('batch_items'), await refusal.count('batch_intakes')], [0, 0]);
  await refusal.stop();
  const batch = await ended((await submitted(body)).id);
  assert.deepEqual(batch.request_counts, { total: 600, completed: 600, failed: 0 });
});

test('results that the database cannot take are kept until it can: nothing runs twice, and little runs meanwhile', async (t) => {
  const gateway = await startGateway(t, { providers: { plain: {} } });
  repliesTo(gateway);
  const { send, submitted, ended } = batchesOf(gateway);
  const asked = () => gateway.upstream.requests('plain').length;
  const refusal = await refusing(t, gateway, { on: 'update', when: 'new.outcome is not null' });
  const { id } = await submitted(plainBatch(200));
  await until(() => asked() > 0, 'the first items run');
  // Longer than a claim lasts.
  for (let n = 0; n < 5; n += 1) {
    gateway.clock.jump(3_000);
    await until(async () => (await refusal.count('batch_items where claim is not null')) > 0, 'claims are renewed');
  }
  assert.ok(asked() < 64, `${asked()} items ran although no result could be stored`);
  const shown = await until(
    async () => (await send('GET', `/batches/${id}`)).body.request_counts,
    'the database answers between two refusals',
  );
  assert.equal(shown.completed, 0);
  await refusal.stop();
  const batch = await ended(id);
  assert.deepEqual(batch.request_counts, { total: 200, completed: 200, failed: 0 });
  assert.equal(asked(), 200);
});

test('a result that the database refuses for good fails its item alone', async (t) => {
  const gateway = await startGateway(t, { providers: { plain: {} } });
  repliesTo(gateway);
  const client = await connectOnce(t, gateway.target);
  await client.query(
    `alter table batch_items add constraint seven check (position <> 7 or response is null or outcome is null)`,
  );
  const { submitted, ended } = batchesOf(gateway);
  const batch = await ended((await submitted(plainBatch(20))).id);
  assert.deepEqual(batch.request_counts, { total: 20, completed: 19, failed: 1 });
  const failed: Json[] = batch.results.filter(({ error }: Json) => error !== null);
  assert.deepEqual(
    failed.map(({ custom_id: of, error }) => [of, error.error_type]),
    [['item-7', 'server']],
  );
  assert.match(failed[0].error.message, /could not be stored/);
  assert.equal(gateway.upstream.requests('plain').length, 20);
});

test('results that the database refuses at first, since a lock is not available, are written afterwards', async (t) => {
  const gateway = await startGateway(t, { providers: { plain: {} } });
  repliesTo(gateway);
  const client = await connectOnce(t, gateway.target);
  // What was rolled back does not turn a sequence back.
  await client.query(
    `create sequence refusals;
     create function refuse_twice() returns trigger language plpgsql as $$ begin
       if nextval('refusals') <= 2 then raise exception 'lock not available' using errcode = '55P03'; end if; return new; end $$;
     create trigger refuse_twice before update on batch_items for each row when (new.outcome is not null)
       execute function refuse_twice()`,
  );
  const { submitted, ended } = batchesOf(gateway);
  const batch = await ended((await submitted(plainBatch(20))).id);
  assert.deepEqual(batch.request_counts, { total: 20, completed: 20, failed: 0 });
  assert.equal(gateway.upstream.requests('plain').length, 20);
});

test('an item that was begun 30 times and never ended, as if it killed its process, fails without running again', async (t) => {
  const gateway = await startGateway(t, { providers: { plain: {} } });
  repliesTo(gateway);
  const client = await connectOnce(t, gateway.target);
  await client.query(
    `create function begun() returns trigger language plpgsql as $$ begin new.attempts = 30; return new; end $$`,
  );
  await client.query(
    `create trigger begun before insert on batch_items for each row when (new.position = 3) execute function begun()`,
  );
  const { submitted, ended } = batchesOf(gateway);
  const batch = await ended((await submitted(plainBatch(10))).id);
  assert.deepEqual(batch.request_counts, { total: 10, completed: 9, failed: 1 });
  assert.match(batch.results[3].error.message, /started 30 times and never finished/);
  assert.equal(gateway.upstream.requests('plain').length, 9);
});

test('a batch whose connections to the database all break in the middle ends with one result for each item', async (t) => {
  const gateway = await startGateway(t, { providers: { plain: {} } });
  repliesTo(gateway);
  const { submitted, ended, send } = batchesOf(gateway);
  const client = await connectOnce(t, gateway.target);
  const { id } = await submitted(plainBatch(600));
  for (const share of [0.2, 0.4, 0.6]) {
    const done = async () => (await send('GET', `/batches/${id}`)).body.request_counts?.completed ?? 0;
    await until(async () => (await done()) >= 600 * share, `${share} of the items`);
    await client.query(
      `select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()`,
    );
  }
  const batch = await ended(id);
  assert.deepEqual(batch.request_counts, { total: 600, completed: 600, failed: 0 });
  assert.equal(new Set(batch.results.map(({ response }: Json) => response.request_id)).size, 600);
  const ledger = async () => {
    const { rows } = await client.query('select count(*)::int as n, sum(cost_nano)::float8 as cost from generations');
    return rows[0] as { n: number; cost: number };
  };
  const asked = gateway.upstream.requests('plain').length;
  await until(async () => (await ledger()).n >= asked, 'every row is entered');
  const { n, cost } = await ledger();
  assert.equal(n, asked);
  assert.ok(cost / 1e9 >= batch.usage.cost - 1e-9);
});

test('a native batch whose blob cannot be stored is planned again later, and no item is lost', async (t) => {
  const { vendor, gateway } = await startNative(t, 'openai', {});
  vendor.answer = chatAnswer;
  const folder = path.join(gateway.dataDir, 'blobs');
  // Where the folder is expected there is a file: nothing can be written.
  writeFileSync(folder, '');
  const { submitted, ended, send } = batchesOf(gateway);
  const { id } = await submitted(nativeBatch([item('a'), item('b')]));
  await until(async () => (await send('GET', `/batches/${id}`)).body.status === 'in_progress', 'the batch begins');
  gateway.clock.jump(6_000);
  assert.deepEqual((await send('GET', `/batches/${id}`)).body.request_counts, { total: 2, completed: 0, failed: 0 });
  rmSync(folder);
  gateway.clock.jump(6_000);
  const batch = await ended(id);
  assert.deepEqual(batch.request_counts, { total: 2, completed: 2, failed: 0 });
});
