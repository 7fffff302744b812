import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError } from '../base/errors.ts';
import { INTERVALS, type Interval } from '../spend/index.ts';
import { samples } from '../testing/laws/samples.ts';
import { checkDecreasing } from './budget.ts';

const interval = fc.constantFrom(...INTERVALS);
/** A small range, so that equal limits are common. */
const limit = fc.bigInt({ min: 1n, max: 12n });
const step = fc.oneof(fc.record({ set: interval, limit }), fc.record({ removed: interval }));

/** True if lifetime > monthly > weekly > daily for the limits that are set; independent of the code under test. */
function decreases(limits: ReadonlyMap<Interval, bigint>): boolean {
  const present = (['daily', 'weekly', 'monthly', 'lifetime'] as const).flatMap((name) => limits.get(name) ?? []);
  return present.every((each, index) => index === 0 || each > present[index - 1]!);
}

test('limits always decrease strictly as the interval narrows, and no valid change is refused', () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const limits = new Map<Interval, bigint>();
      for (const change of steps) {
        if ('removed' in change) {
          limits.delete(change.removed);
          continue;
        }
        const others = [...limits].map(([name, limitNano]) => ({ interval: name, limitNano }));
        const wanted = new Map(limits).set(change.set, change.limit);
        let refusal: unknown;
        try {
          checkDecreasing(change.set, change.limit, others);
        } catch (error) {
          refusal = error;
        }
        assert.equal(refusal === undefined, decreases(wanted));
        if (refusal === undefined) {
          limits.set(change.set, change.limit);
          continue;
        }
        assert.ok(refusal instanceof GatewayError && refusal.status === 400);
        assert.match(refusal.message, new RegExp(`USD \\(${change.set}\\)`));
        const named = others.filter((other) => refusal.message.includes(`the ${other.interval} limit of`));
        assert.equal(named.length, 1, refusal.message);
        assert.equal(
          decreases(
            new Map([
              [named[0]!.interval, named[0]!.limitNano],
              [change.set, change.limit],
            ]),
          ),
          false,
        );
      }
      assert.ok(decreases(limits));
    }),
    { numRuns: samples(2_000) },
  );
});
