import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle, TestClock } from '../testing/clock/clock.ts';
import { LeaseQueue } from './lease-queue.ts';

const REST_MS = 100;

interface Window {
  blocked: boolean;
  idle: number;
}

interface Part {
  window: Window;
  amount: number;
}

const windowOf = (idle: number): Window => ({ idle, blocked: false });

class Place {
  readonly clock = new TestClock();
  readonly queue: LeaseQueue<Part, string>;
  /** Who was served or refused, in order. */
  readonly told: string[] = [];
  turns = 0;
  turn: () => void = () => {};

  constructor(maxWaiting = 10) {
    this.queue = new LeaseQueue<Part, string>(this.clock, {
      wanted: 'a test',
      maxWaiting,
      restMs: REST_MS,
      covers: ({ window, amount }) => window.idle >= amount,
      refusalOf: (parts) => (parts.some(({ amount }) => amount > 100) ? 'never' : undefined),
      turn: async () => {
        this.turns += 1;
        this.turn();
        return false;
      },
    });
  }

  wait(name: string, parts: readonly Part[], place?: 'first' | 'last'): void {
    const take = () => {
      for (const { window, amount } of parts) window.idle -= amount;
      return 'served';
    };
    this.queue.wait(parts, take, place).then(
      (answer) => this.told.push(`${name} ${answer}`),
      (error: Error) => this.told.push(`${name}: ${error.message}`),
    );
  }

  async back(window: Window, amount: number): Promise<void> {
    window.idle += amount;
    this.queue.signal();
    await settle();
  }
}

test('no request overtakes another that waits for the same window; requests with partial leases go first', async () => {
  const place = new Place();
  const [one, other] = [windowOf(5), windowOf(5)];
  place.wait('large', [{ window: one, amount: 10 }]);
  place.wait('small', [{ window: one, amount: 1 }]);
  place.wait('elsewhere', [{ window: other, amount: 1 }]);
  await settle();
  assert.deepEqual(place.told, ['elsewhere served']);
  place.wait('grows', [{ window: one, amount: 6 }], 'first');
  await place.back(one, 1);
  assert.deepEqual(place.told, ['elsewhere served', 'grows served']);
  await place.back(one, 11);
  assert.deepEqual(place.told, ['elsewhere served', 'grows served', 'large served', 'small served']);
  assert.deepEqual([one.idle, one.blocked], [0, false]);
});

test('all parts are taken at once or none; what can never be had is refused, and blocks nothing', async () => {
  const place = new Place();
  const [one, other] = [windowOf(1), windowOf(0)];
  place.wait('both', [
    { window: one, amount: 1 },
    { window: other, amount: 1 },
  ]);
  place.wait('never', [{ window: one, amount: 101 }]);
  await settle();
  assert.deepEqual([one.idle, one.blocked, other.blocked], [1, false, true]);
  assert.deepEqual([...place.queue.wanted], [[other, [{ window: other, amount: 1 }]]]);
  await place.back(other, 1);
  assert.deepEqual(place.told, ['never never', 'both served']);
  assert.deepEqual([one.idle, other.idle], [0, 0]);
});

test('when a request gives up, the ones after it are tried at once, and the window stays blocked for them', async () => {
  const place = new Place();
  const window = windowOf(5);
  place.wait('large', [{ window, amount: 10 }]);
  place.wait('small', [{ window, amount: 5 }]);
  place.wait('next', [{ window, amount: 5 }]);
  place.turn = () => place.queue.giveUp(({ parts }) => (parts[0]?.amount === 10 ? 'gave up' : undefined));
  await settle();
  assert.deepEqual(place.told, ['large gave up', 'small served']);
  assert.equal(window.blocked, true);
});

test('turns follow a return or a delay, and without waiting requests nothing is asked', async () => {
  const place = new Place();
  const window = windowOf(0);
  place.wait('one', [{ window, amount: 1 }]);
  await settle();
  assert.equal(place.turns, 1);
  place.clock.advance(REST_MS - 1);
  await settle();
  assert.equal(place.turns, 1);
  place.clock.advance(1);
  await settle();
  assert.equal(place.turns, 2);
  // Comes back while the others are asked.
  place.turn = () => {
    window.idle = 1;
    place.queue.signal();
  };
  place.clock.advance(REST_MS);
  await settle();
  assert.deepEqual(place.told, ['one served']);
  assert.deepEqual([place.turns, place.clock.timers], [4, 0]);
});

test('a full queue refuses with a retry, and a failure reaches all waiting requests', async () => {
  const place = new Place(2);
  const window = windowOf(0);
  for (const name of ['one', 'two', 'three']) place.wait(name, [{ window, amount: 1 }]);
  await settle();
  assert.deepEqual(place.told, ['three: too many requests wait for a test']);
  place.queue.fail(new Error('down'));
  await settle();
  assert.deepEqual(place.told.slice(1), ['one: down', 'two: down']);
  assert.equal(window.blocked, false);
});
