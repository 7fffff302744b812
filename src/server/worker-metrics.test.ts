import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Exposed } from '../observability/index.ts';
import { TestClock } from '../testing/clock/clock.ts';
import { type FromCollector, MetricsCollector, PeerMetrics, type ToCollector } from './worker-metrics.ts';

const metricsOf = (id: number): Exposed[] => [
  { name: `of-${id}`, help: '', type: 'gauge', aggregator: 'sum', values: [{ value: id, labels: {} }] },
];

/** Workers and their primary, with messages that arrive in the next microtask. */
function installation(ids: readonly number[], dead: readonly number[] = []) {
  const clock = new TestClock();
  const collector = new MetricsCollector(clock);
  const workers = ids.map((id) => {
    const peers = new PeerMetrics((message) => queueMicrotask(() => toPrimary(id, message)), clock);
    const send = (message: FromCollector) => {
      if (!dead.includes(id)) queueMicrotask(() => void peers.receive(message, async () => metricsOf(id)));
    };
    return { id, send, peers };
  });
  const toPrimary = (id: number, message: ToCollector) => {
    const from = workers.find((worker) => worker.id === id)!;
    collector.receive(
      structuredClone(message),
      from,
      workers.filter((worker) => worker !== from),
    );
  };
  return { clock, collect: (id: number) => workers.find((worker) => worker.id === id)!.peers.collect() };
}

const namesOf = (metrics: Exposed[][]) => metrics.flat().map(({ name }) => name);

test('a worker gets the metrics of all others and not its own, also when several ask at once', async () => {
  const { clock, collect } = installation([1, 2, 3]);
  const [first, second] = await Promise.all([collect(1), collect(2)]);
  assert.deepEqual(namesOf(first).toSorted(), ['of-2', 'of-3']);
  assert.deepEqual(namesOf(second).toSorted(), ['of-1', 'of-3']);
  assert.equal(clock.timers, 0);
});

test('a worker that does not report is left out after a second, and a single worker does not wait', async () => {
  const { clock, collect } = installation([1, 2, 3], [3]);
  const collected = collect(1);
  // Let the messages arrive before time passes.
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  clock.advance(1_000);
  assert.deepEqual(namesOf(await collected), ['of-2']);
  assert.deepEqual(await installation([1]).collect(1), []);
});

test('a worker whose primary does not answer reports only itself', async () => {
  const clock = new TestClock();
  const collected = new PeerMetrics(() => {}, clock).collect();
  clock.advance(2_000);
  assert.deepEqual(await collected, []);
});

test('late and unrequested metrics are ignored', () => {
  const clock = new TestClock();
  const collector = new MetricsCollector(clock);
  const sent: FromCollector[] = [];
  const asker = { id: 1, send: (message: FromCollector) => void sent.push(message) };
  const other = { id: 2, send: () => {} };
  collector.receive({ type: 'collect metrics', id: 7 }, asker, [other]);
  collector.receive({ type: 'metrics', collection: 99, metrics: metricsOf(2) }, other, [asker]);
  collector.receive({ type: 'metrics', collection: 1, metrics: metricsOf(3) }, { id: 3, send: () => {} }, []);
  clock.advance(1_000);
  collector.receive({ type: 'metrics', collection: 1, metrics: metricsOf(2) }, other, [asker]);
  assert.deepEqual(sent, [{ type: 'collected metrics', id: 7, metrics: [] }]);
});
