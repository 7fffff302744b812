/** The background jobs of a whole gateway. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/base/clock.ts';
import { silentLog } from '../../src/base/log.ts';
import { migrations } from '../../src/migrations.ts';
import { openDatabase } from '../../src/storage/database.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { enterRows } from '../../src/testing/database/ledger-rows.ts';
import { readDays, readRows } from '../../src/testing/database/rows.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { NOON, sampleAccepted, sampleGeneration } from '../../src/testing/laws/spend-samples.ts';
import { wholeOf } from '../../src/testing/upstream/answers.ts';

test('a starting gateway adds rows that an earlier version left out of the daily totals', async (t) => {
  const target = await emptyDatabase(t, migrations, true);
  const database = await openDatabase({ target, clock: systemClock, log: silentLog });
  t.after(() => database.close());
  await enterRows(database, [sampleGeneration(sampleAccepted('left-out', { createdAt: NOON }))]);
  await database.query('update generations set summed = false');
  await database.query('delete from generation_days');
  await startGateway(t, { target, jobs: 'now' });
  await until(async () => (await readDays(target)).requests === 1n, 'the row is in the daily totals');
});

test('while background jobs cannot run, a request is served and entered, in a month that did not exist', async (t) => {
  const target = await emptyDatabase(t, migrations);
  const database = await openDatabase({ target, clock: systemClock, log: silentLog });
  t.after(() => database.close());
  await database.query('create schema gatehouse_jobs');
  await database.query('create table gatehouse_jobs.version (of_something_else integer)');
  const gateway = await startGateway(t, { target, providers: { planned: {} }, jobs: 'now' });
  gateway.upstream.script('planned', [
    wholeOf({
      id: 'up-1',
      choices: [{ index: 0, message: { role: 'assistant', content: 'ok' }, finish_reason: 'stop' }],
      usage: { prompt_tokens: 10, completion_tokens: 1, total_tokens: 11 },
    }),
  ]);
  const messages = [{ role: 'user', content: 'hi' }];
  const response = await gateway.post('/chat/completions', { model: 'test/planned', messages, max_tokens: 5 });
  assert.equal(response.status, 200);
  await response.arrayBuffer();
  await until(async () => (await readRows(target)).length === 1, 'the row is entered');
  const [row] = await readRows(target);
  assert.equal(row?.input, 10n);
  assert.match((await readiness(gateway)).problems![0]!, /background jobs/);
});

test('/ready is degraded after the tables of the job runner were lost', async (t) => {
  const target = await emptyDatabase(t, migrations, true);
  const database = await openDatabase({ target, clock: systemClock, log: silentLog });
  t.after(() => database.close());
  const gateway = await startGateway(t, { target, jobs: 'now' });
  const hasRun = async () =>
    (await database.query("select 1 from gatehouse_jobs.job where state = 'completed'")).length;
  await until(async () => (await hasRun()) > 0, 'the job runner has started');
  assert.equal((await readiness(gateway)).status, 'ok');
  // Renamed, because dropping the tables one by one can deadlock with a job that runs.
  await database.query('alter schema gatehouse_jobs rename to lost');
  await until(async () => (await readiness(gateway)).status === 'degraded', 'the loss is noticed');
});

async function readiness({ url }: { url: string }): Promise<{ status: string; problems?: string[] }> {
  const response = await fetch(`${url}/ready`);
  assert.equal(response.status, 200);
  return (await response.json()) as { status: string; problems?: string[] };
}
