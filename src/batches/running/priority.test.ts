import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { TestClock } from '../../testing/clock/clock.ts';
import { Priority } from './priority.ts';

const SECOND = 1_000;

/** A process whose event loop works on interactive requests for a share of the time, and for some time on each item. */
function processWith({ interactive, itemMs }: { interactive: number; itemMs: number }) {
  const clock = new TestClock();
  let items = 0;
  const load = {
    open: interactive > 0 ? 1 : 0,
    begun: 0,
    busyMs: () => clock.monotonic() * interactive + items * itemMs,
  };
  const priority = new Priority(clock, load);
  return {
    load,
    /** Begins items whenever that is allowed; returns how many. */
    during(ms: number): number {
      const before = items;
      const endsAt = clock.monotonic() + ms;
      while (clock.monotonic() < endsAt) {
        const waitMs = priority.admit();
        if (waitMs === 0) items += 1;
        clock.advance(waitMs === 0 ? itemMs : waitMs);
      }
      return items - before;
    },
  };
}

test('without interactive requests every item begins at once', () => {
  const { during } = processWith({ interactive: 0, itemMs: 1 });
  assert.equal(during(SECOND), SECOND);
});

test('with interactive requests the event loop stays half idle, or items begin rarely', () => {
  fc.assert(
    fc.property(
      fc.double({ min: 0.01, max: 1, noNaN: true }),
      fc.double({ min: 0.1, max: 5, noNaN: true }),
      (share, ms) => {
        const { during } = processWith({ interactive: share, itemMs: ms });
        during(10 * SECOND);
        const items = during(20 * SECOND);
        const busy = share + (items * ms) / (20 * SECOND);
        // The rate is felt out from below and above.
        assert.ok(busy < 0.65 || items <= 20 * 10, `${items} items, ${busy} busy`);
        assert.ok(items >= 20, `${items} items: they never stop entirely`);
      },
    ),
  );
});

test('the room that interactive requests leave is used', () => {
  const { during } = processWith({ interactive: 0.1, itemMs: 1 });
  during(10 * SECOND);
  const perSecond = during(20 * SECOND) / 20;
  assert.ok(perSecond > 150, `${perSecond} items a second`);
});

test('some seconds after the last interactive request nothing is held back', () => {
  const { load, during } = processWith({ interactive: 0.9, itemMs: 1 });
  during(5 * SECOND);
  load.open = 0;
  during(3 * SECOND);
  assert.equal(during(SECOND), SECOND);
  load.begun += 1;
  assert.ok(during(SECOND) < SECOND / 2, 'one more request is enough');
});
