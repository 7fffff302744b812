/** Kill -9 of a process in the middle of a batch: another process, with the same database, continues it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { until } from '../../src/testing/clock/clock.ts';
import { emptyDatabase } from '../../src/testing/database/database.ts';
import { rowsOnce } from '../../src/testing/database/rows.ts';
import { gatewayHome, plannedYaml, startGatewayProcess } from '../../src/testing/process/gateway-process.ts';
import { type Plan, PlannedUpstream } from '../../src/testing/upstream/planned-upstream.ts';
import { batchesOf, isFinal, type Json } from '../batches/batches-client.ts';

const ITEMS = 40;
/** Those after it are held by the upstream, so that the process is killed while they run. */
const DONE = 20;
/** A promise of the guide. */
const TAKEOVER_MS = 15_000;

// Bug 85
test('another process continues a batch within 15 s, no result is lost or doubled, and the ledger has every run', async (t) => {
  const upstream = await new PlannedUpstream().listen();
  t.after(() => upstream.close());
  const target = await emptyDatabase(t);
  const env = { DATABASE_URL: urlOf(target) };
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

function urlOf(target: Awaited<ReturnType<typeof emptyDatabase>>): string {
  if ('connectionString' in target) return target.connectionString;
  return `postgresql://postgres@/${target.database ?? 'postgres'}?host=${encodeURIComponent(target.socketFolder)}`;
}
