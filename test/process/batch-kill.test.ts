/** Several processes with one database work on a batch; kill -9 of one of them: another one continues it (bug 85). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { migrations } from '../../src/migrations.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { databaseUrl, emptyDatabase } from '../../src/testing/database/database.ts';
import { rowsOnce } from '../../src/testing/database/rows.ts';
import { gatewayHome, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { type Plan, PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';
import { batchesOf, isFinal, type Json } from '../batches/batches-client.ts';

const ITEMS = 40;
/** Those after it are held by the upstream, so that the process is killed while they run. */
const DONE = 20;
/** Items of a batch that a process begins with. */
const FIRST_AT_ONCE = 4;
/** A promise of the guide. */
const TAKEOVER_MS = 15_000;

// Bug 85
test('another process continues a batch within 15 s, no result is lost or doubled, and the ledger has every run', async (t) => {
  const upstream = await new PlannedUpstream().listen();
  t.after(() => upstream.close());
  const target = await emptyDatabase(t, migrations, true);
  const env = { DATABASE_URL: databaseUrl(target) };
  const yaml = plannedYaml(upstream.url);
  const first = await startGatewayProcess(t, { home: await gatewayHome(t, false), env, yaml });
  const requests = Array.from({ length: ITEMS }, (_, n) => {
    const plan: Plan = { tag: `item-${n}`, promptTokens: 10 + n, completionTokens: 5 };
    if (n >= DONE) plan.hold = 'head';
    return {
      custom_id: plan.tag,
      body: { max_tokens: 20, messages: [{ role: 'user', content: JSON.stringify(plan) }] },
    };
  });
  const { submitted } = batchesOf(first);
  const { id } = await submitted({ endpoint: '/v1/chat/completions', model: 'test/planned', requests });
  await until(() => upstream.tags('sent').size === DONE && upstream.open > 1, 'the next items run');
  const second = await startGatewayProcess(t, { home: await gatewayHome(t, false), env, yaml });
  const { send } = batchesOf(second);
  const before = (await send('GET', `/batches/${id}`)).body;
  assert.deepEqual([before.status, before.request_counts.completed], ['in_progress', DONE]);
  const asked = () => upstream.log.filter(({ what }) => what === 'asked').length;
  const askedBefore = asked();
  first.signal('SIGKILL');
  await first.exit;
  const killedAt = performance.now();
  await until(() => asked() > askedBefore, 'the other process continues', 60_000);
  const tookMs = performance.now() - killedAt;
  t.diagnostic(`continued after ${Math.round(tookMs)} ms`);
  assert.ok(tookMs < TAKEOVER_MS, `${tookMs} ms`);

  const batch = await until(
    async () => {
      upstream.release();
      const { body } = await send('GET', `/batches/${id}`);
      return isFinal(body.status) && body;
    },
    'the batch ends',
    60_000,
  );
  assert.deepEqual([batch.status, batch.request_counts], ['completed', { total: ITEMS, completed: ITEMS, failed: 0 }]);
  assert.deepEqual(
    batch.results.map(({ custom_id: of }: Json) => of),
    requests.map(({ custom_id: of }) => of),
  );
  assert.equal(batch.usage.prompt_tokens, (ITEMS * (10 + 10 + ITEMS - 1)) / 2);
  assert.ok(asked() > ITEMS, 'items in flight ran twice');
  // The rows of the killed process come from its journal, at its next start.
  await startGatewayProcess(t, { home: first.home, env });
  assert.equal((await rowsOnce(target, asked())).length, asked());
});

test('two processes share a batch, no item runs in both, and one of them finishes it when the other is killed', async (t) => {
  const upstream = await new PlannedUpstream().listen();
  t.after(() => upstream.close());
  const target = await emptyDatabase(t, migrations, true);
  const env = { DATABASE_URL: databaseUrl(target) };
  const yaml = plannedYaml(upstream.url);
  const first = await startGatewayProcess(t, { home: await gatewayHome(t, false), env, yaml });
  const requests = Array.from({ length: ITEMS }, (_, n) => {
    const plan: Plan = { tag: `item-${n}`, promptTokens: 10 + n, completionTokens: 5, hold: 'head' };
    return {
      custom_id: plan.tag,
      body: { user: plan.tag, max_tokens: 20, messages: [{ role: 'user', content: JSON.stringify(plan) }] },
    };
  });
  const { submitted, send } = batchesOf(first);
  const { id } = await submitted({ endpoint: '/v1/chat/completions', model: 'test/planned', requests });
  await until(() => upstream.open === FIRST_AT_ONCE, 'the first process works on it');
  const second = await startGatewayProcess(t, { home: await gatewayHome(t, false), env, yaml });
  await until(() => upstream.open === 2 * FIRST_AT_ONCE, 'the second one works on it, too');
  const asked = () => upstream.log.filter(({ what }) => what === 'asked').length;
  assert.equal(upstream.tags('asked').size, asked(), 'each item once');
  upstream.release();
  await until(() => upstream.tags('sent').size >= DONE / 2 || void upstream.release(), 'some items end');
  assert.equal(upstream.tags('asked').size, asked(), 'each item once');
  await until(() => upstream.open > FIRST_AT_ONCE || void upstream.release(), 'further items run');
  second.signal('SIGKILL');
  await second.exit;
  const batch = await until(
    async () => {
      upstream.release();
      const { body } = await send('GET', `/batches/${id}`);
      return isFinal(body.status) && body;
    },
    'the batch ends',
    60_000,
  );
  assert.deepEqual([batch.status, batch.request_counts], ['completed', { total: ITEMS, completed: ITEMS, failed: 0 }]);
  const ids = batch.results.map(({ custom_id: of }: Json) => of);
  assert.deepEqual(
    ids,
    requests.map(({ custom_id: of }) => of),
  );
  await startGatewayProcess(t, { home: second.home, env });
  const rows = await rowsOnce(target, asked());
  // At most twice, if the result was not written before the kill.
  const runs = new Map(requests.map(({ custom_id: tag }) => [tag, 0]));
  for (const { tag, unconfirmed } of rows) if (!unconfirmed) runs.set(tag, runs.get(tag)! + 1);
  for (const [tag, count] of runs) assert.ok(count === 1 || count === 2, `${tag} has ${count} runs that ended`);
});
