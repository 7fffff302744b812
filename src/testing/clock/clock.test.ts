import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sleep, waitAtMost } from '../../base/clock.ts';
import { TestClock, until } from './clock.ts';

test('timers fire in the order of their moments, those of one moment in the order they were set', () => {
  const clock = new TestClock(1000);
  const fired: string[] = [];
  const note = (name: string) => () => void fired.push(`${name}@${clock.now()}`);
  clock.timer(30, note('c'));
  clock.timer(10, note('a'));
  clock.timer(10, note('b'));
  clock.timer(31, note('late'));
  clock.advance(30);
  assert.deepEqual(fired, ['a@1010', 'b@1010', 'c@1030']);
  assert.equal(clock.now(), 1030);
  assert.equal(clock.monotonic(), 30);
  assert.equal(clock.timers, 1);
});

test('a timer set by a timer fires within the same advance when it is due by then', () => {
  const clock = new TestClock();
  const fired: number[] = [];
  clock.timer(10, () => clock.timer(5, () => void fired.push(clock.monotonic())));
  clock.advance(14);
  assert.deepEqual(fired, []);
  clock.advance(1);
  assert.deepEqual(fired, [15]);
});

test('refresh restarts the delay, also of a timer that has fired; cancel is final', () => {
  const clock = new TestClock();
  let fired = 0;
  const timer = clock.timer(10, () => void fired++);
  clock.advance(9);
  timer.refresh();
  clock.advance(9);
  assert.equal(fired, 0);
  clock.advance(1);
  assert.equal(fired, 1);
  timer.refresh();
  clock.advance(10);
  assert.equal(fired, 2);
  timer.refresh();
  timer.cancel();
  timer.refresh();
  clock.advance(100);
  assert.equal(fired, 2);
});

test('setting the wall clock fires nothing and leaves the monotonic time alone', () => {
  const clock = new TestClock();
  let fired = 0;
  clock.timer(10, () => void fired++);
  clock.set(Date.UTC(2030, 0, 1));
  assert.equal(fired, 0);
  assert.equal(clock.now(), Date.UTC(2030, 0, 1));
  clock.advance(10);
  assert.equal(fired, 1);
  assert.equal(clock.now(), Date.UTC(2030, 0, 1) + 10);
});

test('sleep of the base follows the test clock', async () => {
  const clock = new TestClock();
  let awake = false;
  const slept = sleep(clock, 1000).then(() => {
    awake = true;
  });
  clock.advance(999);
  await Promise.resolve();
  assert.equal(awake, false);
  clock.advance(1);
  await slept;
});

test('a wait of the base ends with the work or at its time, and leaves no timer', async () => {
  const clock = new TestClock();
  await waitAtMost(clock, 1000, Promise.resolve());
  await assert.rejects(waitAtMost(clock, 1000, Promise.reject(new Error('failed'))), /failed/);
  assert.equal(clock.timers, 0);
  const never = waitAtMost(clock, 1000, new Promise(() => {}));
  clock.advance(1000);
  await never;
});

test('until yields the value, and names what it waited for when it gives up', async () => {
  let count = 0;
  assert.equal(await until(() => ++count > 3 && count, 'a count'), 4);
  assert.equal(await until(async () => ++count > 7 && count, 'a count that is read'), 8);
  await assert.rejects(
    until(() => false, 'pigs fly', 20),
    /pigs fly/,
  );
});
