import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Colleagues, type InquiryMessage, ReportDesk, type ReportMessage } from './between-processes.ts';
import type { Exposed } from './observability/index.ts';
import { TestClock } from './testing/clock.ts';

const reportOf = (id: number): Exposed[] => [
  { name: `of-${id}`, help: '', type: 'gauge', aggregator: 'sum', values: [{ value: id, labels: {} }] },
];

/** Processes and their primary, with messages that arrive in the next moment as they do between real ones. */
function installation(ids: readonly number[], dead: readonly number[] = []) {
  const clock = new TestClock();
  const desk = new ReportDesk(clock);
  const workers = ids.map((id) => {
    const colleagues = new Colleagues((message) => queueMicrotask(() => told(id, message)), clock);
    const tell = (message: InquiryMessage) => {
      if (!dead.includes(id)) queueMicrotask(() => void colleagues.heard(message, async () => reportOf(id)));
    };
    return { id, tell, colleagues };
  });
  const told = (id: number, message: ReportMessage) => {
    const from = workers.find((worker) => worker.id === id)!;
    desk.heard(
      structuredClone(message),
      from,
      workers.filter((worker) => worker !== from),
    );
  };
  return { clock, desk, ask: (id: number) => workers.find((worker) => worker.id === id)!.colleagues.reports() };
}

const namesOf = (reports: Exposed[][]) => reports.flat().map(({ name }) => name);

test('a process hears of all others and not of itself, also when several ask at once', async () => {
  const { clock, ask } = installation([1, 2, 3]);
  const [first, second] = await Promise.all([ask(1), ask(2)]);
  assert.deepEqual(namesOf(first).toSorted(), ['of-2', 'of-3']);
  assert.deepEqual(namesOf(second).toSorted(), ['of-1', 'of-3']);
  assert.equal(clock.timers, 0);
});

test('a process that does not report is left out after a second, and a single process does not wait', async () => {
  const { clock, ask } = installation([1, 2, 3], [3]);
  const asked = ask(1);
  // The messages are on their way; time goes on only when they have arrived.
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
  clock.advance(1_000);
  assert.deepEqual(namesOf(await asked), ['of-2']);
  assert.deepEqual(await installation([1]).ask(1), []);
});

test('a process whose primary is silent reports itself only', async () => {
  const clock = new TestClock();
  const asked = new Colleagues(() => {}, clock).reports();
  clock.advance(2_000);
  assert.deepEqual(await asked, []);
});

test('late and unrequested reports are ignored', () => {
  const clock = new TestClock();
  const desk = new ReportDesk(clock);
  const told: InquiryMessage[] = [];
  const asker = { id: 1, tell: (message: InquiryMessage) => void told.push(message) };
  const other = { id: 2, tell: () => {} };
  desk.heard({ type: 'reports wanted', id: 7 }, asker, [other]);
  desk.heard({ type: 'reported', inquiry: 99, report: reportOf(2) }, other, [asker]);
  desk.heard({ type: 'reported', inquiry: 1, report: reportOf(3) }, { id: 3, tell: () => {} }, []);
  clock.advance(1_000);
  desk.heard({ type: 'reported', inquiry: 1, report: reportOf(2) }, other, [asker]);
  assert.deepEqual(told, [{ type: 'reports', id: 7, reports: [] }]);
});
