import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MemoryBudget } from '../../base/memory-budget.ts';
import { FileHold } from './file-hold.ts';

test('requests never hold more than the share together, and all of it is free after their end', () => {
  const step = fc.tuple(fc.nat({ max: 3 }), fc.integer({ min: 1, max: 60 }), fc.boolean());
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const memory = new MemoryBudget(100);
      const holds = Array.from({ length: 4 }, () => new FileHold(memory));
      const held = [0, 0, 0, 0];
      for (const [index, bytes, ends] of steps) {
        if (ends) {
          holds[index]!.release();
          held[index] = 0;
          continue;
        }
        const sum = held.reduce((one, other) => one + other, 0);
        if (sum + bytes <= 100) {
          holds[index]!.take(bytes, 'messages[0]');
          held[index]! += bytes;
        } else {
          assert.throws(() => holds[index]!.take(bytes, 'messages[0]'), { status: 503 });
        }
      }
      for (const hold of holds) hold.release();
      assert.ok(memory.take(100));
      assert.ok(!memory.take(1));
    }),
  );
});
