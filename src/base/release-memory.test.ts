import assert from 'node:assert/strict';
import { test } from 'node:test';
import { TestClock } from '../testing/clock/clock.ts';
import { releaseMemory } from './release-memory.ts';

const MINUTE = 60_000;

function started(quiet: boolean) {
  const clock = new TestClock();
  const use = { quiet, begun: 0 };
  const collections: number[] = [];
  const from = clock.monotonic();
  releaseMemory(clock, use, () => collections.push(clock.monotonic() - from));
  return { clock, use, collections };
}

test('memory is given back shortly after the start, once', () => {
  const { clock, collections } = started(true);
  clock.advance(60 * MINUTE);
  assert.deepEqual(collections, [2_000]);
});

test('a gateway that is in use two seconds after its start keeps what it has compiled', () => {
  const { clock, use, collections } = started(false);
  clock.advance(2_000);
  use.quiet = true;
  clock.advance(MINUTE);
  assert.deepEqual(collections, []);
});

test('memory is released after ten idle minutes, and again only after further use', () => {
  const { clock, use, collections } = started(true);
  clock.advance(2_000);
  use.begun = 5;
  clock.advance(MINUTE);
  for (let minute = 0; minute < 9; minute++) clock.advance(MINUTE);
  assert.equal(collections.length, 1);
  use.begun = 6;
  clock.advance(10 * MINUTE);
  assert.equal(collections.length, 1, 'a request in between begins the quiet time anew');
  clock.advance(MINUTE);
  assert.equal(collections.length, 2);
  clock.advance(60 * MINUTE);
  assert.equal(collections.length, 2);
  use.begun = 7;
  clock.advance(11 * MINUTE);
  assert.equal(collections.length, 3);
});

test('an answer that runs on for all that time is not held up', () => {
  const { clock, use, collections } = started(true);
  clock.advance(2_000);
  use.begun = 1;
  use.quiet = false;
  clock.advance(30 * MINUTE);
  assert.equal(collections.length, 1);
  use.quiet = true;
  clock.advance(MINUTE);
  assert.equal(collections.length, 2);
});
