import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Log } from '../base/log.ts';
import type { Database } from '../storage/database.ts';
import { TestClock } from '../testing/clock/clock.ts';
import type { GroupCommit } from './group-commit.ts';
import type { Journal, Segment } from './journal.ts';
import type { Leases } from './leases.ts';
import { LEDGER_LIMITS, Ledger } from './ledger.ts';

test('an outage of the database is logged once, however often the ledger retries', async () => {
  const said: string[] = [];
  let tries = 0;
  let isAway = true;
  const clock = new TestClock();
  const ledger = new Ledger({
    database: {
      transaction: async () => {
        tries += 1;
        if (isAway) throw new Error('away');
        return [];
      },
    } as unknown as Database,
    processId: 'process',
    journal: { release: () => {} } as unknown as Journal,
    commits: {
      settled: (_head: unknown, _row: unknown, written: (segment: Segment, offset: number) => void) =>
        written({ number: 1 } as Segment, 0),
    } as unknown as GroupCommit,
    leases: { entered: () => {} } as unknown as Leases,
    clock,
    log: { warn: (event: string) => said.push(event) } as unknown as Log,
    limits: LEDGER_LIMITS,
  });
  const settle = (id: string) => ledger.settle({ id, row: '{}', taken: [] }, () => {});
  const pass = async (times: number) => {
    for (let at = 0; at < times; at++) {
      clock.advance(500);
      for (let turn = 0; turn < 20; turn++) await Promise.resolve();
    }
  };

  settle('a');
  await pass(10);
  assert.ok(tries >= 9, `${tries} tries`);
  assert.deepEqual(said, ['rows are waiting in the journal']);
  isAway = false;
  await pass(1);
  assert.ok(ledger.empty);
  isAway = true;
  settle('b');
  await pass(3);
  assert.equal(said.length, 2, 'the next outage');
});
