import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { spansOf } from './spans.ts';

const HOUR_MS = 3_600_000;
const START = Date.UTC(2027, 0, 1);
const LENGTHS = { day: 24 * HOUR_MS, hour: HOUR_MS, rows: 1 };

const moment = fc
  .record({ hour: fc.integer({ min: -60, max: 120 }), ms: fc.constantFrom(0, 0, 1, 1_800_000) })
  .map(({ hour, ms }) => START + hour * HOUR_MS + ms);
const hours = fc
  .oneof(
    fc.uniqueArray(fc.integer({ min: -70, max: 130 }), { maxLength: 4 }),
    fc.uniqueArray(fc.integer({ min: 0, max: 90 })),
  )
  .map((hours) => hours.toSorted((a, b) => a - b).map((hour) => START + hour * HOUR_MS));

test('spans follow each other through the range, and totals are read only of whole, counted hours and days', () => {
  fc.assert(
    fc.property(moment, moment, hours, fc.boolean(), (one, other, noted, byHour) => {
      fc.pre(one !== other);
      const [from, until] = [Math.min(one, other), Math.max(one, other)];
      const spans = spansOf(from, until, noted, byHour);
      assert.equal(spans[0]?.from, from);
      assert.equal(spans.at(-1)?.until, until);
      for (const [at, span] of spans.entries()) {
        assert.ok(span.from < span.until);
        assert.equal(spans[at + 1]?.from ?? until, span.until);
        if (span.grain === 'rows') continue;
        assert.ok(span.from % LENGTHS[span.grain] === 0 && span.until % LENGTHS[span.grain] === 0, span.grain);
        assert.ok(!noted.some((hour) => hour >= span.from && hour < span.until), 'an hour that is not counted');
        assert.ok(span.grain === 'hour' || !byHour);
      }
      assert.ok(spans.length <= 12);
      const whole = Math.ceil(from / LENGTHS.day) < Math.floor(until / LENGTHS.day);
      if (noted.length === 0 && whole && !byHour) assert.ok(spans.some(({ grain }) => grain === 'day'));
    }),
  );
});

test('a month from hour to hour reads days, hours at its ends, and rows of the hour that runs', () => {
  const until = START + 30 * LENGTHS.day + 5.5 * HOUR_MS;
  assert.deepEqual(spansOf(START + 7 * HOUR_MS, until, [START + 30 * LENGTHS.day + 4 * HOUR_MS], false), [
    { grain: 'hour', from: START + 7 * HOUR_MS, until: START + LENGTHS.day },
    { grain: 'day', from: START + LENGTHS.day, until: START + 30 * LENGTHS.day },
    { grain: 'hour', from: START + 30 * LENGTHS.day, until: START + 30 * LENGTHS.day + 4 * HOUR_MS },
    { grain: 'rows', from: START + 30 * LENGTHS.day + 4 * HOUR_MS, until },
  ]);
});
