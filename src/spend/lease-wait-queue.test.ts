import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, TestClock } from '../testing/clock/clock.ts';
import { sampleBudget } from '../testing/laws/spend-samples.ts';
import { Leases } from './leases.ts';
import type { LeaseAnswer, LeaseRequest } from './store.ts';

const PATIENCE_MS = 2_000;
const [LIMIT, BOUND] = [1_000n, 10n];
const budget = sampleBudget(LIMIT);

/** A database that answers when the test says so. */
class SlowDatabase {
  readonly clock = new TestClock();
  readonly asked: LeaseRequest[] = [];
  readonly told: string[] = [];
  readonly leases: Leases;
  #answer: (answers: LeaseAnswer[]) => void = () => {};

  constructor() {
    const ask = (requests: readonly LeaseRequest[]) => {
      this.asked.push(...requests);
      return new Promise<LeaseAnswer[]>((resolve) => {
        this.#answer = resolve;
      });
    };
    const store = { ask, recall: async () => {}, announceReturn: async () => {} };
    this.leases = new Leases(store, this.clock, { patienceMs: PATIENCE_MS, waitMs: 30_000, maxWaiting: 10 });
  }

  async reserve(name: string): Promise<void> {
    const reserved = this.leases.reserve([budget], { creditNano: BOUND, byokNano: 0n }, this.clock.now());
    void Promise.resolve(reserved).then((answer) =>
      this.told.push(`${name} ${answer.refused ? 'refused' : 'reserved'}`),
    );
    await settle();
  }

  /** The question is answered this long after it was asked; the other processes hold all that is not granted. */
  async answers(grantedNano: bigint, afterMs: number): Promise<void> {
    this.clock.advance(afterMs);
    const { windowId } = this.asked.at(-1)!;
    this.#answer([{ windowId, grantedNano, usedNano: 0n, leasedNano: LIMIT }]);
    await settle();
    this.clock.advance(100);
    await settle();
  }
}

test('a request is not refused because the database is slow', async () => {
  const database = new SlowDatabase();
  await database.reserve('one');
  await database.answers(0n, 5 * PATIENCE_MS);
  assert.deepEqual(
    database.told,
    [],
    'the first answer takes longer than the patience, and others may still return something',
  );
  await database.answers(BOUND, 10);
  assert.deepEqual(database.told, ['one reserved']);
});

test('a request that comes while the database is asked is not refused by an answer to others', async () => {
  const database = new SlowDatabase();
  await database.reserve('one');
  await database.reserve('two');
  await database.answers(BOUND, 5 * PATIENCE_MS);
  assert.deepEqual(database.told, ['one reserved']);
  await database.answers(BOUND, 10);
  assert.deepEqual(database.told, ['one reserved', 'two reserved']);
});

test('a request is refused when the database, asked after the patience has ended, has no room', async () => {
  const database = new SlowDatabase();
  await database.reserve('one');
  await database.answers(0n, PATIENCE_MS);
  assert.deepEqual(database.told, []);
  await database.answers(0n, 10);
  assert.deepEqual(database.told, ['one refused']);
});
