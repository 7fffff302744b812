/**
 * A batch of 100,000 items and 190 MB, killed three times: `node --test test/process/batch-large.scale.ts`;
 * GATEHOUSE_BATCH_ITEMS items, 100,000 if not set.
 */
import { test } from 'node:test';
import { largeBatch, sharedBatch } from './batch-large.ts';

const ITEMS = Number(process.env['GATEHOUSE_BATCH_ITEMS'] ?? 100_000);

test(`${ITEMS} items run below 400 MiB, whenever the process is killed`, async (t) => {
  await largeBatch(t, { items: ITEMS, itemBytes: 1_900, memory: 400 });
});

test('two processes share a batch, and one of them finishes it when the other is killed', async (t) => {
  await sharedBatch(t, ITEMS / 5);
});
