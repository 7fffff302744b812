import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Pace, retryDelayMs } from './pace.ts';

test('the number of items at once stays between one and its limit, rises with success and falls with refusals', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('ok', 'busy', 'together', 'alone'), { maxLength: 200 }), (events) => {
      const pace = new Pace({ first: 4, most: 8 });
      for (const event of events) {
        const before = pace.limit;
        if (event === 'ok') pace.succeeded();
        else if (event === 'alone') pace.alone();
        else pace.overloaded(event === 'together');
        assert.ok(pace.limit >= 1 && pace.limit <= 8);
        if (event === 'ok') assert.ok(pace.limit === before || pace.limit === before + 1);
        if (event === 'busy') assert.equal(pace.limit, Math.max(1, Math.floor(before / 2)));
        if (event === 'together') assert.equal(pace.limit, before);
      }
      for (let n = 0; n < 100; n += 1) pace.succeeded();
      assert.equal(pace.limit, 8);
    }),
  );
});

test('an item is never tried again before the time that its refusal names', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), fc.option(fc.nat(100_000), { nil: undefined }), (attempts, after) => {
      const delay = retryDelayMs(attempts, after);
      assert.ok(delay >= (after ?? 0) * 1000 && delay >= 1_000);
      assert.ok(delay <= Math.max(60_000, (after ?? 0) * 1000));
    }),
  );
});
