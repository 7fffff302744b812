import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endOfTurn } from './end-of-turn.ts';

test('the work of one turn runs in order, in one call; what writes adds waits for the next turn', () => {
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

test('what has arrived is handled before anything is written, with the writes that it adds', () => {
  const scheduled: (() => void)[] = [];
  const done: string[] = [];
  const atEnd = endOfTurn((run) => scheduled.push(run));
  atEnd(() => done.push('write of a stream'));
  for (const name of ['one', 'two']) {
    atEnd(() => {
      done.push(`handle ${name}`);
      atEnd(() => done.push(`write ${name}`));
      if (name === 'two') atEnd(() => done.push('handle three'), 'handle');
    }, 'handle');
  }
  assert.equal(scheduled.length, 1);
  scheduled.shift()!();
  assert.deepEqual(done, ['handle one', 'handle two', 'write of a stream', 'write one', 'write two']);
  assert.equal(scheduled.length, 1);
  scheduled.shift()!();
  assert.deepEqual([done.at(-1), scheduled.length], ['handle three', 0]);
});
