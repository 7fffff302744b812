import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Concurrency } from './concurrency.ts';

test('slots are shared, never more than there are, and background work leaves a quarter of them to the rest', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.array(fc.tuple(fc.boolean(), fc.boolean()), { maxLength: 300 }),
      (maxConcurrency, steps) => {
        const provider = { id: 'p', maxConcurrency };
        const all = new Concurrency();
        const background = all.background();
        let running = 0;
        for (const [isBackground, enters] of steps) {
          const of = isBackground ? background : all;
          if (!enters) {
            if (running === 0) continue;
            of.leave(provider);
            running -= 1;
            continue;
          }
          const most = isBackground ? Math.max(1, Math.floor(maxConcurrency * 0.75)) : maxConcurrency;
          assert.equal(of.enter(provider), running < most);
          if (running < most) running += 1;
        }
      },
    ),
  );
});

test('background work runs also where there is a single slot, and leaves one of two', () => {
  const all = new Concurrency();
  assert.ok(all.background().enter({ id: 'one', maxConcurrency: 1 }));
  assert.ok(all.background().enter({ id: 'two', maxConcurrency: 2 }));
  assert.ok(!all.background().enter({ id: 'two', maxConcurrency: 2 }));
  assert.ok(all.enter({ id: 'two', maxConcurrency: 2 }));
});
