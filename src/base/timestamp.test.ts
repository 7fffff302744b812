import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readDay, readTimestamp } from './timestamp.ts';

test('a time has seconds and a zone, and is a moment of the years 1 to 9999', () => {
  for (const [text, iso] of [
    ['2028-02-29T00:00:00Z', '2028-02-29T00:00:00.000Z'],
    ['2026-12-31t23:59:59.5z', '2026-12-31T23:59:59.500Z'],
    ['2026-12-31T24:00:00Z', '2027-01-01T00:00:00.000Z'],
    ['2027-01-01T00:30:00+14:00', '2026-12-31T10:30:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.999Z', '9999-12-31T23:59:59.999Z'],
  ] as const) {
    assert.equal(readTimestamp('start', text).toISOString(), iso, text);
  }
  for (const text of [
    '2026-02-29T00:00:00Z',
    '2100-02-29T00:00:00Z',
    '2026-11-31T00:00:00Z',
    '2026-12-31T23:59:60Z',
    '2026-12-31T24:00:01Z',
    '2026-01-01T00:00:00',
    '2026-01-01T00:00Z',
    '2026-01-01',
    '2026',
    '1764460800',
    '0000-12-31T23:59:59Z',
    '0001-01-01T00:00:00+00:01',
    '9999-12-31T23:59:59-00:01',
    '+010000-01-01T00:00:00Z',
    '',
  ]) {
    assert.throws(() => readTimestamp('start', text), { message: /^start must be an ISO 8601 time/ }, text);
  }
});

test('a day is written in full and exists', () => {
  assert.equal(readDay('date', '2028-02-29'), Date.UTC(2028, 1, 29));
  for (const text of [
    '2026-02-29',
    '2026-00-10',
    '2026-13-01',
    '2026-11',
    '2026',
    '2026-1-1',
    '2026-01-01T00:00:00Z',
    '',
  ]) {
    assert.throws(() => readDay('date', text), { message: /^date must be a day/ }, text);
  }
});
