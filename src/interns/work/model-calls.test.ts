/** A call is counted for the run that made it, even if other runs go on at the same time; in doubt, no cost is reported. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { ModelCall } from '../../egress-proxy/index.ts';
import type { Queryable } from '../../storage/database.ts';
import { settle, TestClock } from '../../testing/clock/clock.ts';
import { ModelCalls, type RunUsage } from './model-calls.ts';

const REPORTED = { promptTokens: 1, completionTokens: 2, cachedTokens: 0 };

function calls() {
  const clock = new TestClock();
  /** Rows that are written. */
  const rows = new Map<string, number>();
  const proxy = { pid: 1 };
  const database = {
    query: async (_sql: string, [, , ids]: [Date, string, string[]]) =>
      ids
        .filter((id) => rows.has(id))
        .map((id) => ({ id, cost: String(rows.get(id)), prompt: '10', completion: '5', cached: '0' })),
  } as unknown as Queryable;
  const way = { reported: async () => proxy.pid };
  const all = new ModelCalls({ database, clock, keyId: 'key', way: () => way });
  let count = 0;
  const begin = (session: string | null) => {
    count += 1;
    all.called({ requestId: `r${count}`, session, state: 'begun' });
    return `r${count}`;
  };
  const end = (requestId: string, state: ModelCall['state'] = 'charged') =>
    all.called({ requestId, session: null, state });
  return { clock, rows, proxy, all, begin, end };
}

test('runs next to each other are charged for the calls that name them, in any order', async () => {
  const sessions = fc.constantFrom('a', 'b', 'c');
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(sessions, fc.integer({ min: 0, max: 1_000_000 })), { maxLength: 12 }),
      async (made) => {
        const { all, begin, end, rows } = calls();
        const meters = new Map(
          await Promise.all(['a', 'b', 'c'].map(async (id) => [id, await all.meter(id)] as const)),
        );
        for (const [session, cost] of made) {
          const id = begin(session);
          end(id);
          rows.set(id, cost);
        }
        for (const [session, meter] of meters) {
          const own = made.filter(([each]) => each === session);
          const usage = await meter.usage(REPORTED);
          assert.equal(usage?.costNano, BigInt(own.reduce((sum, [, cost]) => sum + cost, 0)));
          assert.equal(usage?.promptTokens, own.length === 0 ? 1 : 10 * own.length);
        }
      },
    ),
    { numRuns: 30 },
  );
});

test('a call without a session belongs to the only run, and to no run for certain if there are two', async () => {
  const { all, begin, end, rows } = calls();
  const first = await all.meter('a');
  const alone = begin(null);
  end(alone);
  rows.set(alone, 7);
  assert.equal((await first.usage(null))?.costNano, 7n);

  const [second, third] = [await all.meter('a'), await all.meter('b')];
  end(begin(null));
  assert.deepEqual(await second.usage(REPORTED), { ...REPORTED, costNano: null });
  assert.equal(await third.usage(null), null);
});

test('a session that calls after its run has ended is not charged to the run of another session', async () => {
  const { all, begin } = calls();
  await (await all.meter('a')).usage(null);
  const other = await all.meter('b');
  begin('a');
  assert.equal((await other.usage(REPORTED))?.costNano, 0n);
});

test('the end waits for a call that still runs and for its row, and gives up after some seconds', async () => {
  const { all, begin, end, rows, clock } = calls();
  const meter = await all.meter('a');
  const slow = begin('a');
  let usage: RunUsage | null | undefined;
  void meter.usage(REPORTED).then((told) => {
    usage = told;
  });
  const pass = async (steps: number) => {
    for (let step = 0; step < steps; step += 1) {
      await settle();
      clock.advance(50);
    }
    await settle();
  };
  await pass(10);
  end(slow);
  await pass(10);
  assert.equal(usage, undefined);
  rows.set(slow, 9);
  await pass(2);
  assert.equal((usage as RunUsage | undefined)?.costNano, 9n);

  const late = await all.meter('a');
  end(begin('a'));
  void late.usage(REPORTED).then((told) => {
    usage = told;
  });
  await pass(110);
  assert.deepEqual(usage, { ...REPORTED, costNano: null });
});

test('a call that was refused or broken counts if it has a row, and a restarted proxy may have lost reports', async () => {
  const { all, begin, end, rows, clock, proxy } = calls();
  const meter = await all.meter('a');
  const [broken, refused] = [begin('a'), begin('a')];
  end(broken, 'unclear');
  end(refused, 'unclear');
  end(begin('a'), 'free');
  rows.set(broken, 4);
  const usage = meter.usage(REPORTED);
  for (let step = 0; step < 25; step += 1) {
    await settle();
    clock.advance(50);
  }
  assert.equal((await usage)?.costNano, 4n);

  const crossed = await all.meter('a');
  proxy.pid = 2;
  assert.equal((await crossed.usage(REPORTED))?.costNano, null);
});
