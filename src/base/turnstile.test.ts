import assert from 'node:assert/strict';
import { test } from 'node:test';
import { settle } from '../testing/clock/clock.ts';
import { Turnstile } from './turnstile.ts';

test('work runs in order and only so much of it at once, whether it fails or not; what is too much is refused', async () => {
  const turnstile = new Turnstile(2, 5);
  const begun: number[] = [];
  const ends: (() => void)[] = [];
  const work = (number: number) =>
    turnstile.pass(async () => {
      begun.push(number);
      await new Promise<void>((resolve) => void ends.push(resolve));
      if (number % 2 === 1) throw new Error('odd');
      return number;
    });
  const all = [0, 1, 2, 3, 4, 5, 6].map((number) => work(number).catch((error: Error) => error.message));
  await assert.rejects(work(7), { status: 503 });
  for (let ended = 0; ended < 7; ended += 1) {
    await settle();
    assert.deepEqual(begun, [0, 1, 2, 3, 4, 5, 6].slice(0, ended + 2));
    ends[ended]!();
  }
  assert.deepEqual(await Promise.all(all), [0, 'odd', 2, 'odd', 4, 'odd', 6]);
});
