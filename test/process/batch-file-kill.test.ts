/** Kill -9 of the process that reads the input file of a batch: the next one reads it, and every request has one result. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { connect } from '../../src/testing/database/rows.ts';
import { gatewayHome, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { created, ended, lineOf, linesOf, openaiOf } from '../batches/openai-client.ts';

const ITEMS = 1_500;
const FILLING = 'x'.repeat(10_000);

// Bug 85
test('a batch whose input file is being read survives kill -9, and so does one whose last line is bad', async (t) => {
  const target = await emptyDatabase(t, migrations, true);
  const url =
    'connectionString' in target
      ? target.connectionString
      : `postgresql://postgres@/${target.database ?? 'postgres'}?host=${encodeURIComponent(target.socketFolder)}`;
  const env = { DATABASE_URL: url };
  const first = await startGatewayProcess(t, { home: await gatewayHome(t, false), env, yaml: {} });
  const openai = openaiOf(first);
  const good = Array.from({ length: ITEMS }, (_, n) => lineOf(`item-${n}`, { text: FILLING }));
  const batches = [await created(openai, good), await created(openai, [...good, { ...good[0], custom_id: 'item-7' }])];
  const client = await connect(target);
  t.after(() => client.end());
  const stored = async () => {
    const { rows } = await client.query(
      `select state, (select count(*)::int from batch_items where batch_id = id) as items from batches order by id`,
    );
    return rows as { state: string; items: number }[];
  };
  await until(async () => (await stored()).some(({ items }) => items > 0), 'items are stored', 60_000);
  first.signal('SIGKILL');
  await first.exit;
  const before = await stored();
  assert.ok(
    before.some(({ state, items }) => state === 'validating' && items > 0),
    JSON.stringify(before),
  );

  const second = await startGatewayProcess(t, { home: first.home, env });
  const again = openaiOf(second);
  await until(async () => (await again.batches.retrieve(batches[0]!.id)).status !== 'validating', 'it is read', 60_000);
  await again.batches.cancel(batches[0]!.id);
  const cancelled = await ended(again, batches[0]!.id, 60_000);
  assert.equal(cancelled.status, 'cancelled');
  assert.equal(cancelled.request_counts!.total, ITEMS);
  await linesOf(
    again,
    cancelled,
    good.map((line) => line.custom_id),
  );
  const failed = await ended(again, batches[1]!.id, 60_000);
  assert.equal(failed.status, 'failed');
  const [{ code, line, message }] = failed.errors!.data as [{ code: string; line: number; message: string }];
  assert.deepEqual([code, line], ['duplicate_custom_id', ITEMS + 1]);
  assert.match(message, /"item-7" is also that of line 8$/);
  assert.deepEqual(
    (await stored()).map(({ items }) => items),
    [ITEMS, 0],
  );
});
