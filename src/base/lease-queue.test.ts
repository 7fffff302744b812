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

class Installation {
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
      retryMs: REST_MS,
      covers: ({ window, amount }) => window.idle >= amount,
      refusalOf: (parts) => (parts.some(({ amount }) => amount > 100) ? 'never' : undefined),
      turn: async () => {
        this.turns += 1;
        this.turn();
        return false;
      },
    });
  }

  wait(name: string, parts: readonly Part[], installation?: 'first' | 'last'): void {
    const take = () => {
      for (const { window, amount } of parts) window.idle -= amount;
      return 'served';
    };
    this.queue.wait(parts, take, installation).then(
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
  const installation = new Installation();
  const [one, other] = [windowOf(5), windowOf(5)];
  installation.wait('large', [{ window: one, amount: 10 }]);
  installation.wait('small', [{ window: one, amount: 1 }]);
  installation.wait('elsewhere', [{ window: other, amount: 1 }]);
  await settle();
  assert.deepEqual(installation.told, ['elsewhere served']);
  installation.wait('grows', [{ window: one, amount: 6 }], 'first');
  await installation.back(one, 1);
  assert.deepEqual(installation.told, ['elsewhere served', 'grows served']);
  await installation.back(one, 11);
  assert.deepEqual(installation.told, ['elsewhere served', 'grows served', 'large served', 'small served']);
  assert.deepEqual([one.idle, one.blocked], [0, false]);
});

test('all parts are taken at once or none; what can never be had is refused, and blocks nothing', async () => {
  const installation = new Installation();
  const [one, other] = [windowOf(1), windowOf(0)];
  installation.wait('both', [
    { window: one, amount: 1 },
    { window: other, amount: 1 },
  ]);
  installation.wait('never', [{ window: one, amount: 101 }]);
  await settle();
  assert.deepEqual([one.idle, one.blocked, other.blocked], [1, false, true]);
  assert.deepEqual([...installation.queue.wanted], [[other, [{ window: other, amount: 1 }]]]);
  await installation.back(other, 1);
  assert.deepEqual(installation.told, ['never never', 'both served']);
  assert.deepEqual([one.idle, other.idle], [0, 0]);
});

test('when a request gives up, the ones after it are tried at once, and the window stays blocked for them', async () => {
  const installation = new Installation();
  const window = windowOf(5);
  installation.wait('large', [{ window, amount: 10 }]);
  installation.wait('small', [{ window, amount: 5 }]);
  installation.wait('next', [{ window, amount: 5 }]);
  installation.turn = () =>
    installation.queue.refuseWaiting(({ parts }) => (parts[0]?.amount === 10 ? 'gave up' : undefined));
  await settle();
  assert.deepEqual(installation.told, ['large gave up', 'small served']);
  assert.equal(window.blocked, true);
});

test('turns follow a return or a delay, and without waiting requests nothing is asked', async () => {
  const installation = new Installation();
  const window = windowOf(0);
  installation.wait('one', [{ window, amount: 1 }]);
  await settle();
  assert.equal(installation.turns, 1);
  installation.clock.advance(REST_MS - 1);
  await settle();
  assert.equal(installation.turns, 1);
  installation.clock.advance(1);
  await settle();
  assert.equal(installation.turns, 2);
  // Comes back while the others are asked.
  installation.turn = () => {
    window.idle = 1;
    installation.queue.signal();
  };
  installation.clock.advance(REST_MS);
  await settle();
  assert.deepEqual(installation.told, ['one served']);
  assert.deepEqual([installation.turns, installation.clock.timers], [4, 0]);
});

test('a full queue refuses with a retry, and a failure reaches all waiting requests', async () => {
  const installation = new Installation(2);
  const window = windowOf(0);
  for (const name of ['one', 'two', 'three']) installation.wait(name, [{ window, amount: 1 }]);
  await settle();
  assert.deepEqual(installation.told, ['three: too many requests wait for a test']);
  installation.queue.fail(new Error('down'));
  await settle();
  assert.deepEqual(installation.told.slice(1), ['one: down', 'two: down']);
  assert.equal(window.blocked, false);
});
