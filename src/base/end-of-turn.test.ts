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

test('requests come before answers, and both before what is written, with the writes that they add', () => {
  const scheduled: (() => void)[] = [];
  const done: string[] = [];
  const atEnd = endOfTurn((run) => scheduled.push(run));
  atEnd(() => done.push('write of a stream'));
  for (const stage of ['answer', 'accept', 'answer'] as const) {
    atEnd(() => {
      done.push(stage);
      atEnd(() => done.push(`write of ${stage}`));
      if (stage === 'accept') atEnd(() => done.push('later'), 'accept');
    }, stage);
  }
  assert.equal(scheduled.length, 1);
  scheduled.shift()!();
  const written = ['write of a stream', 'write of accept', 'write of answer', 'write of answer'];
  assert.deepEqual(done, ['accept', 'answer', 'answer', ...written]);
  assert.equal(scheduled.length, 1);
  scheduled.shift()!();
  assert.deepEqual([done.at(-1), scheduled.length], ['later', 0]);
});
