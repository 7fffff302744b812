import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Database, Queryable } from '../storage/database.ts';
import { oneWriter } from './one-writer.ts';

/** A database whose transactions are the test's own functions. */
const plain = {
  transaction: (work: (tx: Queryable) => Promise<unknown>) => work(undefined as unknown as Queryable),
} as Database;

test('transactions start in order, each after the previous one has committed or failed', async () => {
  const writer = oneWriter(plain);
  const events: string[] = [];
  const gates = [0, 1, 2].map(() => Promise.withResolvers<void>());
  const results = gates.map(({ promise }, index) =>
    writer.transaction(async () => {
      events.push(`begin ${index}`);
      await promise;
      events.push(`end ${index}`);
      if (index === 0) throw new Error('not well');
      return index;
    }),
  );
  gates[2]!.resolve();
  gates[1]!.resolve();
  gates[0]!.resolve();
  const settled = await Promise.allSettled(results);
  assert.deepEqual(events, ['begin 0', 'end 0', 'begin 1', 'end 1', 'begin 2', 'end 2']);
  assert.deepEqual(
    settled.map((each) => (each.status === 'fulfilled' ? each.value : each.reason.message)),
    ['not well', 1, 2],
  );
});

test('beyond a thousand waiting transactions get a retryable error until there is room again', async () => {
  const writer = oneWriter(plain);
  const gate = Promise.withResolvers<void>();
  const taken = Array.from({ length: 1_000 }, () => writer.transaction(() => gate.promise));
  await assert.rejects(
    writer.transaction(async () => {}),
    { status: 429 },
  );
  gate.resolve();
  await Promise.all(taken);
  assert.equal(await writer.transaction(async () => 'room'), 'room');
});
