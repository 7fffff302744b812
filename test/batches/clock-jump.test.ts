/** Batches while the wall clock jumps ahead: it is set, or the machine was suspended. */
import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { uuidOf } from '../../src/base/ids.ts';
import { until } from '../../src/testing/clock/clock.ts';
import { tapDatabase } from '../../src/testing/database/database-tap.ts';
import { startGateway } from '../../src/testing/gateway/gateway.ts';
import { answerOf } from '../../src/testing/upstream/answers.ts';
import { partsOf } from '../vault/vault.ts';
import { batchesOf, chatBatch } from './batches-client.ts';

const HOUR_MS = 3_600_000;
const scope = { after: (close: unknown) => after(close as () => Promise<void>) };
const gateway = await startGateway(scope, { providers: { chat: {} } });
const { send, submitted, ended } = batchesOf(gateway);
const item = (customId: string) => ({
  custom_id: customId,
  body: { max_tokens: 50, messages: [{ role: 'user', content: customId }] },
});
const sent = () => gateway.upstream.requests('chat').length;
const whole = answerOf('chat', false, { text: 'x' });

/** Submits a batch whose first two requests wait for the gate; resolves when they run. */
async function running(gate: string, count: number): Promise<string> {
  const before = sent();
  const slow = { ...whole, chunks: [{ gate }, ...(whole.chunks as string[])] };
  gateway.upstream.script('chat', [slow, slow, { ...whole, repeat: true }]);
  const requests = Array.from({ length: count }, (_, n) => item(`item-${n}`));
  const { id } = await submitted(chatBatch(requests, { model: 'test/chat' }));
  await until(() => sent() >= before + 2, 'the first requests run');
  return id;
}

async function onceCompleted(id: string, count: number): Promise<void> {
  await until(async () => {
    gateway.clock.jump(100);
    return (await send('GET', `/batches/${id}`)).body.request_counts.completed >= count;
  }, `${count} requests have results`);
}

test('another process does not run what runs elsewhere when the wall clock jumps ahead', async (t) => {
  const before = sent();
  // Before there is another process that could run it.
  const id = await running('two processes', 2);
  const tap = await tapDatabase(t, gateway.target);
  const other = await startGateway(t, {
    providers: { chat: { base_url: `${gateway.upstream.url}/chat` } },
    target: tap.target,
  });
  t.after(() => tap.close());
  await tap.quiet();
  const { database, changes } = (await partsOf(t, gateway))();
  other.clock.setWall(HOUR_MS);
  await database.transaction((tx) => changes.announce(tx, 'batches', uuidOf('batch_', id)!));
  await until(async () => {
    const seen = await database.query(`select 1 from batches where seen_at > now() + interval '30 minutes'`);
    return seen.length > 0;
  }, 'the other process looks at the batch');
  await tap.quiet();
  gateway.clock.setWall(HOUR_MS);
  gateway.upstream.open('two processes');
  assert.equal((await ended(id)).status, 'completed');
  assert.equal(sent() - before, 2);
});

test('no request of a batch runs twice when the wall clock jumps ahead', async () => {
  const before = sent();
  const id = await running('one process', 400);
  gateway.clock.setWall(HOUR_MS);
  await onceCompleted(id, 300);
  gateway.upstream.open('one process');
  assert.deepEqual((await ended(id)).request_counts, { total: 400, completed: 400, failed: 0 });
  assert.equal(sent() - before, 400);
});
