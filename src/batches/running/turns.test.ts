import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { type TakesTurns, Turns } from './turns.ts';

class Run implements TakesTurns {
  readonly workspaceId: string;
  running = 0;
  left: number;
  begun = 0;

  constructor(workspaceId: string, items: number) {
    this.workspaceId = workspaceId;
    this.left = items;
  }

  get ready(): boolean {
    return this.left > 0;
  }
}

/** Begins one item, if one may begin. */
function beginOne(turns: Turns<Run>): Run | undefined {
  const run = turns.next();
  if (run === undefined) return undefined;
  turns.begun(run);
  run.left -= 1;
  run.running += 1;
  run.begun += 1;
  return run;
}

const runningOf = (runs: readonly Run[]) => runs.reduce((sum, { running }) => sum + running, 0);

/** Numbers of items of the batches of each workspace. */
const workspaces = fc.array(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }), {
  minLength: 1,
  maxLength: 8,
});

test('whatever batches there are and whenever items end, a workspace of which nothing runs is the next, or one place away for each other', () => {
  fc.assert(
    fc.property(workspaces, fc.integer({ min: 1, max: 80 }), fc.infiniteStream(fc.nat()), (batches, most, random) => {
      const turns = new Turns<Run>(most);
      const runs = batches.flatMap((counts, at) => counts.map((items) => new Run(`w${at}`, items)));
      for (const run of runs) turns.add(run);
      const ofWorkspace = batches.map((_, at) => runs.filter(({ workspaceId }) => workspaceId === `w${at}`));
      const waits = batches.map(() => 0);
      let left = runs.reduce((sum, run) => sum + run.left, 0);
      const everything = left;
      for (let step = 0; left > 0 || runningOf(runs) > 0; step += 1) {
        assert.ok(step < 10 * everything + 10, 'the work comes to its end');
        const run = beginOne(turns);
        if (run !== undefined) left -= 1;
        for (const [at, own] of ofWorkspace.entries()) {
          const isWaiting = runningOf(own) === 0 && own.some(({ ready }) => ready);
          waits[at] = isWaiting ? waits[at]! + (run === undefined ? 0 : 1) : 0;
          assert.ok(waits[at]! < batches.length, `w${at} waits while ${waits[at]} others begin`);
        }
        assert.ok(runningOf(runs) <= most);
        if (run !== undefined) continue;
        const busy = runs.filter(({ running }) => running > 0);
        assert.ok(busy.length > 0, 'something runs when nothing may begin');
        busy[random.next().value % busy.length]!.running -= 1;
      }
    }),
  );
});

test('a small batch is not delayed by a large one of another workspace, although that one fills every other place', () => {
  fc.assert(
    fc.property(fc.integer({ min: 8, max: 200 }), fc.integer({ min: 1, max: 20 }), (most, batchesOfOther) => {
      const turns = new Turns<Run>(most);
      const large = Array.from({ length: batchesOfOther }, () => new Run('large', 100_000));
      for (const run of large) turns.add(run);
      while (beginOne(turns) !== undefined);
      assert.equal(runningOf(large), most - Math.floor(most / 8));
      const small = new Run('small', 10);
      turns.add(small);
      assert.equal(beginOne(turns), small, 'it begins at once');
      // Once the last eighth is free again, places that become free are its own until it has as many as the other workspace.
      large.find(({ running }) => running > 0)!.running -= 1;
      while (small.ready && small.running < runningOf(large) - 1) {
        large.find(({ running }) => running > 0)!.running -= 1;
        assert.equal(beginOne(turns), small);
      }
    }),
  );
});

test('the batches of one workspace share its turn', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 30 }), fc.integer({ min: 2, max: 10 }), (batches, rounds) => {
      const turns = new Turns<Run>(1_000);
      const single = new Run('single', 1_000);
      const many = Array.from({ length: batches }, () => new Run('many', 1_000));
      for (const run of [...many, single]) turns.add(run);
      for (let n = 0; n < 2 * rounds; n += 1) beginOne(turns);
      assert.equal(single.begun, rounds);
      const shares = many.map(({ begun }) => begun);
      assert.ok(Math.max(...shares) - Math.min(...shares) <= 1, shares.join());
    }),
  );
});

test('a batch that has left takes no turn, and the others go on', () => {
  const turns = new Turns<Run>(10);
  const [one, other] = [new Run('a', 5), new Run('b', 5)];
  turns.add(one);
  turns.add(other);
  turns.delete(one);
  turns.delete(one);
  assert.deepEqual(turns.runs, [other]);
  assert.equal(beginOne(turns), other);
  turns.delete(other);
  assert.equal(turns.next(), undefined);
});
