import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestClock } from '../testing/clock/clock.ts';
import { ClaimTime } from './claim-time.ts';

test('a jump of the wall clock ends no claim before living processes could renew it', () => {
  const clock = new TestClock();
  const time = new ClaimTime(clock, 5_000);
  const started = clock.now();
  const passed = () => time.now() - started;
  clock.advance(60_000);
  assert.equal(passed(), 60_000);
  clock.set(clock.now() + 3_600_000);
  assert.equal(passed(), 60_000);
  clock.advance(9_000);
  assert.equal(passed(), 69_000);
  clock.advance(1_000);
  assert.equal(passed(), 3_670_000);
});

test('small corrections of the wall clock, and those backwards, count at once', () => {
  const clock = new TestClock();
  const time = new ClaimTime(clock, 5_000);
  for (const ms of [4_000, -3_600_000]) {
    clock.set(clock.now() + ms);
    assert.equal(time.now(), clock.now());
  }
});
