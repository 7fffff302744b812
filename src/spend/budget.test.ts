import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { test } from 'node:test';
import fc from 'fast-check';
import { INTERVALS, refusalError, windowEnd, windowId, windowStart } from './budget.ts';

const time = fc.integer({ min: Date.UTC(1970, 0, 5), max: Date.UTC(2100, 0, 1) });

test('windows are half-open, adjoin without a gap, and contain the time they are computed for', () => {
  fc.assert(
    fc.property(time, fc.constantFrom(...INTERVALS), (at, interval) => {
      const start = windowStart(interval, at);
      const end = windowEnd(interval, at);
      assert.ok(start <= at);
      if (end === null) return assert.equal(interval, 'lifetime');
      assert.ok(at < end);
      assert.equal(windowStart(interval, end), end);
      assert.equal(windowStart(interval, end - 1), start);
    }),
  );
});

test('a week begins on Monday at 00:00 UTC all year, over daylight-saving changes', () => {
  for (let week = 0; week < 60; week++) {
    const monday = Date.UTC(2026, 0, 5) + week * 7 * 86_400_000;
    assert.equal(windowStart('weekly', monday), monday);
    assert.equal(windowStart('weekly', monday - 1), monday - 7 * 86_400_000);
    assert.equal(new Date(windowStart('weekly', monday + 1)).getUTCDay(), 1);
  }
});

test('a month ends on the first of the next one, also from the 31st', () => {
  assert.equal(windowEnd('monthly', Date.UTC(2026, 0, 31, 12)), Date.UTC(2026, 1, 1));
  assert.equal(windowEnd('monthly', Date.UTC(2026, 11, 31, 23, 59, 59, 999)), Date.UTC(2027, 0, 1));
  assert.equal(windowStart('monthly', Date.UTC(2028, 1, 29)), Date.UTC(2028, 1, 1));
});

test('windows begin at the same instant in every time zone of the process', () => {
  const script = `import { windowStart } from ${JSON.stringify(new URL('./budget.ts', import.meta.url).href)};
    const at = Date.UTC(2026, 2, 8, 23, 59, 59, 999);
    console.log(['daily', 'weekly', 'monthly'].map((interval) => windowStart(interval, at)).join());`;
  const expected = [Date.UTC(2026, 2, 8), Date.UTC(2026, 2, 2), Date.UTC(2026, 2, 1)].join();
  for (const TZ of ['Asia/Tokyo', 'America/New_York', 'Pacific/Apia']) {
    const printed = execFileSync(process.execPath, ['--input-type=module', '-e', script], { env: { TZ } });
    assert.equal(String(printed).trim(), expected, TZ);
  }
});

test('windows of different scopes, intervals and times never share a counter', () => {
  const day = 86_400_000;
  const ids = [
    windowId('key', 'a', 'daily', day),
    windowId('key', 'a', 'daily', 2 * day),
    windowId('key', 'a', 'weekly', 2 * day),
    windowId('key', 'a', 'lifetime', 2 * day),
    windowId('key', 'b', 'daily', day),
    windowId('workspace', 'a', 'daily', day),
  ];
  assert.equal(new Set(ids).size, ids.length);
});

test('a refusal is 402 and names the possible cost, the remaining amount and the budget', () => {
  const error = refusalError({
    refused: true,
    budget: { scope: 'workspace', scopeId: 'w-1', interval: 'daily', limitNano: 5_000_000_000n, includeByok: false },
    neededNano: 250_000_000n,
    leftNano: 100_000_000n,
    spentNano: 4_900_000_000n,
    resetsAt: Date.UTC(2026, 2, 19),
  });
  assert.equal(error.status, 402);
  assert.match(error.message, /could cost 0\.25 USD.*0\.1 USD are left.*daily budget of the workspace/);
  assert.deepEqual(error.details.metadata?.['budget'], {
    scope: 'workspace',
    id: 'w-1',
    interval: 'daily',
    limit_usd: 5,
    spent_usd: 4.9,
    resets_at: '2026-03-19T00:00:00.000Z',
  });
});
