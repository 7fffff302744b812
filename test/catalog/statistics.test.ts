import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { silentLog } from '../../src/base/log.ts';
import {
  createStatistics,
  type Measured,
  NO_FIGURES,
  type Statistics,
  statisticsMigrations,
} from '../../src/catalog/statistics/index.ts';
import { Ring } from '../../src/catalog/statistics/ring.ts';
import { loadSketches } from '../../src/catalog/statistics/sketch.ts';
import { TestClock } from '../../src/testing/clock/clock.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';

const MINUTE = 60_000;
const answered = (latencyMs: number, throughput = 50): Measured => ({
  outcome: 'answered',
  latencyMs,
  throughput,
  toolCalls: 0,
  invalidToolCalls: 0,
});
const failed: Measured = { outcome: 'failed', latencyMs: null, throughput: null, toolCalls: 0, invalidToolCalls: 0 };

/** One process on the database. */
function processOn(database: Parameters<typeof createStatistics>[0]['database'], clock: TestClock): Statistics {
  return createStatistics({ database, clock, log: silentLog });
}

const near = (actual: number, expected: number) =>
  assert.ok(Math.abs(actual - expected) <= expected * 0.1, `${actual} is not within 10 % of ${expected}`);

test('percentiles are within 10 % of the true ones, and uptime ignores rate limits and client errors', async (t) => {
  const { database } = await freshDatabase(t, { migrations: statisticsMigrations });
  const statistics = processOn(database, new TestClock());
  t.after(() => statistics.close());
  assert.equal(statistics.of('a:m'), NO_FIGURES);
  for (let ms = 1; ms <= 1000; ms++) statistics.record('a:m', answered(ms, ms / 10));
  for (let count = 0; count < 250; count++) statistics.record('a:m', failed);
  statistics.record('a:m', { ...failed, outcome: 'rate_limited' });
  statistics.record('a:m', { ...failed, outcome: 'none', toolCalls: 4, invalidToolCalls: 1 });
  await statistics.exchange();
  const figures = statistics.of('a:m');
  near(figures.latencyMs!.p50, 500);
  near(figures.latencyMs!.p75, 750);
  near(figures.latencyMs!.p90, 900);
  near(figures.latencyMs!.p99, 990);
  near(figures.throughput!.p50, 50);
  assert.deepEqual([figures.uptime5m, figures.uptime30m, figures.uptime1d], [80, 80, 80]);
  assert.deepEqual([figures.requests5m, figures.rateLimited30m], [1250, 1]);
  assert.deepEqual([figures.toolCalls1d, figures.invalidToolCalls1d], [4, 1]);
  assert.equal(statistics.of('a:other'), NO_FIGURES);
});

test('each window drops older data', async (t) => {
  const { database } = await freshDatabase(t, { migrations: statisticsMigrations });
  const clock = new TestClock();
  const statistics = processOn(database, clock);
  t.after(() => statistics.close());
  statistics.record('a:m', failed);
  statistics.record('a:m', answered(300));
  await statistics.exchange();
  const ages: [number, unknown[]][] = [
    [4 * MINUTE, [50, 50, 50, true]],
    [3 * MINUTE, [null, 50, 50, true]],
    [22 * MINUTE, [null, 50, 50, true]],
    [7 * MINUTE, [null, null, 50, false]],
    [23 * 60 * MINUTE, [null, null, 50, false]],
    [2 * 60 * MINUTE, [null, null, null, false]],
  ];
  for (const [later, expected] of ages) {
    clock.advance(later);
    await statistics.exchange();
    const { uptime5m, uptime30m, uptime1d, latencyMs } = statistics.of('a:m');
    assert.deepEqual([uptime5m, uptime30m, uptime1d, latencyMs !== null], expected);
  }
  assert.equal(statistics.of('a:m'), NO_FIGURES);
});

test('two processes see the sum of both, and a later process sees the earlier counts', async (t) => {
  const { database } = await freshDatabase(t, { migrations: statisticsMigrations });
  const clock = new TestClock();
  const [one, two] = [processOn(database, clock), processOn(database, clock)];
  t.after(() => two.close());
  for (let count = 0; count < 300; count++) one.record('a:m', answered(100));
  for (let count = 0; count < 100; count++) two.record('a:m', answered(1000));
  two.record('a:m', failed);
  for (let round = 0; round < 2; round++) for (const each of [one, two]) await each.exchange();
  clock.advance(3_000);
  for (const each of [one, two]) {
    near(each.of('a:m').latencyMs!.p50, 100);
    near(each.of('a:m').latencyMs!.p90, 1000);
    assert.equal(each.of('a:m').requests30m, 401);
  }
  one.record('a:m', failed);
  await one.close();
  const three = processOn(database, clock);
  t.after(() => three.close());
  await three.exchange();
  assert.equal(three.of('a:m').requests30m, 402);
  assert.equal(three.of('a:m').uptime5m, 99.502);
  near(three.of('a:m').latencyMs!.p90, 1000);
});

test('publishing twice changes nothing: slices are replaced, not added', async (t) => {
  const { database } = await freshDatabase(t, { migrations: statisticsMigrations });
  const clock = new TestClock();
  const [one, two] = [processOn(database, clock), processOn(database, clock)];
  t.after(() => one.close());
  t.after(() => two.close());
  for (let count = 1; count <= 3; count++) {
    one.record('a:m', answered(100));
    await one.exchange();
    await two.exchange();
    clock.advance(3_000);
    assert.equal(two.of('a:m').requests5m, count);
  }
});

test('without the database a process counts for itself, and shares the counts when the database is back', async (t) => {
  const { database } = await freshDatabase(t, { migrations: statisticsMigrations });
  const clock = new TestClock();
  let away = true;
  const flaky = new Proxy(database, {
    get(target, name) {
      if (name === 'query' && away) return () => Promise.reject(new Error('away'));
      return Reflect.get(target, name).bind?.(target) ?? Reflect.get(target, name);
    },
  });
  const [one, two] = [processOn(flaky, clock), processOn(database, clock)];
  t.after(() => one.close());
  t.after(() => two.close());
  one.record('a:m', answered(100));
  await one.exchange();
  assert.equal(one.of('a:m').requests5m, 1);
  away = false;
  await one.exchange();
  await two.exchange();
  clock.advance(3_000);
  assert.equal(two.of('a:m').requests5m, 1);
});

test('slices outside every window are deleted from the database', async (t) => {
  const { database } = await freshDatabase(t, { migrations: statisticsMigrations });
  const clock = new TestClock();
  const statistics = processOn(database, clock);
  t.after(() => statistics.close());
  const rows = async () =>
    Number((await database.query<{ n: bigint }>('select count(*) as n from endpoint_statistics'))[0]!.n);
  statistics.record('a:m', answered(100));
  await statistics.exchange();
  assert.equal(await rows(), 3);
  clock.advance(50 * MINUTE);
  await statistics.exchange();
  assert.equal(await rows(), 1);
  clock.advance(26 * 60 * MINUTE);
  await statistics.exchange();
  await statistics.exchange();
  assert.equal(await rows(), 0);
});

test('merging sketches equals counting everything in one, for any values', async () => {
  const make = await loadSketches();
  fc.assert(
    fc.property(fc.array(fc.array(fc.double({ min: 0, max: 1e9, noNaN: true }))), (parts) => {
      const [whole, merged, shipped] = [make(), make(), make()];
      for (const part of parts) {
        const one = make();
        for (const value of part) {
          whole.add(value);
          one.add(value);
        }
        merged.merge(one);
        shipped.mergeBins(one.bins());
      }
      assert.deepEqual(merged.bins(), whole.bins());
      assert.deepEqual(shipped.bins(), whole.bins());
      assert.deepEqual(shipped.percentiles(), whole.percentiles());
      assert.ok(whole.bins().length <= 2 * 550);
    }),
  );
});

test('a sketch whose highest bin has key 0 is merged without loss', async () => {
  const make = await loadSketches();
  const [whole, low, high] = [make(), make(), make()];
  for (const value of [0, 0.96, 0]) whole.add(value);
  low.add(0);
  for (const value of [0.96, 0]) high.add(value);
  low.merge(high);
  assert.deepEqual(low.bins(), whole.bins());
});

test('calls beyond the ring capacity cost no memory: they are not counted', () => {
  const ring = new Ring();
  for (let count = 0; count < 20_000; count++) ring.push('a:m', answered(count));
  let drained = 0;
  ring.drain((_, { latencyMs }) => assert.equal(latencyMs, drained++));
  assert.equal(drained, 8192);
  assert.ok(ring.empty);
});
