import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOfTurn } from './end-of-turn.ts';

test('what is to be done at the end of one turn is done in order, by one call; what comes meanwhile, in the next', () => {
  const scheduled: (() => void)[] = [];
  const done: number[] = [];
  const atEnd = endOfTurn((run) => scheduled.push(run));
  atEnd(() => {
    done.push(1);
    atEnd(() => done.push(3));
  });
  atEnd(() => done.push(2));
  assert.equal(scheduled.length, 1);
  scheduled.shift()!();
  assert.deepEqual([done, scheduled.length], [[1, 2], 1]);
  scheduled.shift()!();
  assert.deepEqual([done, scheduled.length], [[1, 2, 3], 0]);
});
