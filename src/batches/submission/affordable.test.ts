import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nanoFromPrice } from '../../base/money.ts';
import type { BudgetState } from '../../spend/index.ts';
import { samples } from '../../testing/laws/samples.ts';
import { type PromptSum, refusalOf } from './affordable.ts';

const DAY_MS = 24 * 3_600_000;
const NOTHING_LEFT = { leasedNano: 0n, unreturnedNano: 0n };

function stateOf(limitNano: bigint, spentNano: bigint, resetsAt: number | null, includeByok = false): BudgetState {
  return {
    budget: { scope: 'key', scopeId: 'k', interval: resetsAt === null ? 'lifetime' : 'daily', limitNano, includeByok },
    ...{ ...NOTHING_LEFT, spentNano, resetsAt },
    remainingNano: limitNano > spentNano ? limitNano - spentNano : 0n,
  };
}

const moment = fc.nat(DAY_MS - 1);
const nano = fc.bigInt({ min: 0n, max: 5n * 10n ** 9n });
/** What happens while the batch runs: its items, and other requests that spend from the same budget. */
const events = fc.array(
  fc.oneof(
    fc.record({ at: moment, bytes: fc.nat(500_000), bytesPerToken: fc.integer({ min: 1, max: 10 }) }),
    fc.record({ at: moment, nano }),
  ),
  { maxLength: 12 },
);
const budget = fc.record({ limit: nano, spent: nano, resetsAt: fc.option(fc.integer({ min: 1, max: 2 * DAY_MS })) });
/** 10^-18 USD a token. */
const price = fc.bigInt({ min: 0n, max: 20n * 10n ** 12n });

test('in whatever order items and other requests spend, a batch whose prompts can be paid is not refused', () => {
  let carried = 0;
  let refused = 0;
  fc.assert(
    fc.property(events, budget, price, (happening, { limit, spent, resetsAt }, perToken) => {
      let left = limit > spent ? limit - spent : 0n;
      let isPaid = true;
      let isRenewed = resetsAt === null || resetsAt >= DAY_MS;
      let bytes = 0;
      for (const event of happening.toSorted((one, another) => one.at - another.at)) {
        if (!isRenewed && event.at >= resetsAt!) {
          isRenewed = true;
          left = limit;
        }
        if ('nano' in event) {
          if (event.nano <= left) left -= event.nano;
          continue;
        }
        bytes += event.bytes;
        const cost = nanoFromPrice(BigInt(Math.ceil(event.bytes / event.bytesPerToken)) * perToken);
        if (cost > left) isPaid = false;
        else left -= cost;
      }
      const prompts: PromptSum[] = [{ bytes, price: { credit: perToken, any: perToken } }];
      const refusal = refusalOf([stateOf(limit, spent, resetsAt)], prompts, DAY_MS);
      // Each item's cost is rounded on its own, the estimate once.
      const isRounded = refusal !== undefined && refusal.neededNano - refusal.leftNano <= BigInt(happening.length);
      if (isPaid) {
        carried += 1;
        assert.ok(
          refusal === undefined || isRounded,
          JSON.stringify(refusal, (_, value) => String(value)),
        );
      } else if (refusal !== undefined) refused += 1;
    }),
    { numRuns: samples(2_000) },
  );
  assert.ok(carried > 100 && refused > 100, `${carried} carried, ${refused} refused`);
});

test('the budget that cannot pay for the prompts refuses, with what is needed and left in it', () => {
  const prompts = [
    { bytes: 10_000, price: { credit: 2n * 10n ** 12n, any: 2n * 10n ** 12n } },
    { bytes: 10_009, price: { credit: 0n, any: 10n ** 12n } },
  ];
  const rich = stateOf(10n ** 10n, 0n, null);
  assert.equal(refusalOf([], prompts, DAY_MS), undefined);
  assert.equal(refusalOf([rich, stateOf(2_000_000n, 0n, null)], prompts, DAY_MS), undefined);
  const refusal = refusalOf([rich, stateOf(2_000_000n, 1n, null)], prompts, DAY_MS);
  assert.deepEqual([refusal?.neededNano, refusal?.leftNano, refusal?.spentNano], [2_000_000n, 1_999_999n, 1n]);
  // BYOK spend counts in budgets that include it.
  assert.equal(refusalOf([stateOf(2_999_999n, 0n, null, true)], prompts, DAY_MS)?.neededNano, 3_000_000n);
  // A window that ends in time counts once more.
  assert.equal(refusalOf([stateOf(1_000_000n, 0n, DAY_MS - 1)], prompts, DAY_MS), undefined);
  assert.equal(refusalOf([stateOf(1_000_000n, 1n, DAY_MS - 1)], prompts, DAY_MS)?.leftNano, 1_999_999n);
  assert.equal(refusalOf([stateOf(1_000_000n, 0n, DAY_MS)], prompts, DAY_MS)?.leftNano, 1_000_000n);
});
