import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import {
  compileLimits,
  type RateLimit,
  type RateLimitHold,
  type RateLimits,
  rateLimitMigrations,
} from '../../src/rate-limits/index.ts';
import type { RateRefusal } from '../../src/rate-limits/limits.ts';
import { settle } from '../../src/testing/clock/clock.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { RateProcess, type RateWorld } from '../../src/testing/database/rate-process.ts';

const NOON = Date.UTC(2026, 4, 6, 12);

class Installation {
  readonly #world: RateWorld;
  readonly #test: TestContext;
  now = NOON;

  constructor(test: TestContext, world: Omit<RateWorld, 'now'>) {
    this.#test = test;
    this.#world = { ...world, now: () => this.now };
  }

  static async open(test: TestContext): Promise<Installation> {
    return new Installation(test, await freshDatabase(test, { migrations: rateLimitMigrations }));
  }

  async process(): Promise<RateProcess> {
    const process = await RateProcess.start(this.#world);
    this.#test.after(() => process.close());
    return process;
  }
}

const limitsOf = (limits: RateLimits): RateLimit[] => compileLimits('key', 'key-1', limits, {});

async function admitted(process: RateProcess, limits: RateLimit[], at: number): Promise<RateLimitHold | undefined> {
  const answer = await process.limiter.admit(limits, at);
  return 'refused' in answer ? undefined : answer;
}

async function countAdmitted(process: RateProcess, limits: RateLimit[], times: number, at = NOON): Promise<number> {
  const answers = await Promise.all(Array.from({ length: times }, () => admitted(process, limits, at)));
  return answers.filter(Boolean).length;
}

test('two processes together admit exactly the limit', async (t) => {
  const installation = await Installation.open(t);
  const processes = [await installation.process(), await installation.process()];
  const limits = limitsOf({ requests_per_minute: 100 });
  // The first process has leased spare room before the rush, which the second needs in the end.
  assert.equal(await countAdmitted(processes[0]!, limits, 1), 1);
  const counts = await Promise.all(processes.map((process) => countAdmitted(process, limits, 150)));
  assert.equal(1 + counts[0]! + counts[1]!, 100);
});

test('another process gets the unused lease of a process', async (t) => {
  const installation = await Installation.open(t);
  const [idle, busy] = [await installation.process(), await installation.process()];
  const limits = limitsOf({ requests_per_hour: 160 });
  assert.equal(await countAdmitted(idle, limits, 1), 1);
  assert.equal(await countAdmitted(busy, limits, 400), 159);
});

test('a used-up window refuses without a query, and the next one admits', async (t) => {
  const installation = await Installation.open(t);
  const process = await installation.process();
  const limits = limitsOf({ requests_per_minute: 3 });
  assert.equal(await countAdmitted(process, limits, 5), 3);
  const { asked } = process;
  const refused = process.limiter.admit(limits, NOON + 59_999) as RateRefusal;
  assert.equal(refused.refused, true);
  assert.deepEqual([refused.remaining, refused.resetsAt], [0, NOON + 60_000]);
  assert.equal(process.asked, asked);
  assert.equal(await countAdmitted(process, limits, 5, NOON + 60_000), 3);
});

test('far from the limit most requests need no query', async (t) => {
  const installation = await Installation.open(t);
  const process = await installation.process();
  const limits = limitsOf({ requests_per_minute: 10_000, requests_per_day: 100_000 });
  for (let n = 0; n < 1_000; n++) assert.ok(await admitted(process, limits, NOON));
  assert.ok(process.asked <= 5, `${process.asked} transactions`);
});

test('a process that dies loses its lease and nothing more', async (t) => {
  const installation = await Installation.open(t);
  const [dying, living] = [await installation.process(), await installation.process()];
  const limits = limitsOf({ requests_per_day: 320 });
  assert.equal(await countAdmitted(dying, limits, 1), 1);
  await dying.kill();
  // The first lease is one request plus a sixteenth of the remainder.
  assert.equal(await countAdmitted(living, limits, 400), 320 - 1 - Math.floor(319 / 16));
});

test('a process that exits returns its unused lease', async (t) => {
  const installation = await Installation.open(t);
  const [ending, living] = [await installation.process(), await installation.process()];
  const limits = limitsOf({ requests_per_day: 320 });
  assert.equal(await countAdmitted(ending, limits, 1), 1);
  await ending.close();
  assert.equal(await countAdmitted(living, limits, 400), 319);
});

test('tokens are held at their bound and settled at the actual usage, for every process', async (t) => {
  const installation = await Installation.open(t);
  const [one, other] = [await installation.process(), await installation.process()];
  const limits = limitsOf({ tokens_per_minute: 1_000 });
  const first = (await admitted(one, limits, NOON))!;
  assert.equal(await first.raiseTo(900), undefined);
  const second = (await admitted(other, limits, NOON))!;
  const refusal = (await second.raiseTo(300))!;
  assert.equal(refusal.needed, 300);
  assert.ok(refusal.remaining <= 100);
  first.settle(200);
  first.settle(900);
  // Until the other process is notified, its last answer about the limit applies.
  while ((await second.raiseTo(800)) !== undefined) await settle();
  assert.equal((await (await admitted(one, limits, NOON))!.raiseTo(1))?.refused, true);
});

test('a lowered limit applies at once, and a raised one admits more', async (t) => {
  const installation = await Installation.open(t);
  const process = await installation.process();
  assert.equal(await countAdmitted(process, limitsOf({ requests_per_hour: 100 }), 10), 10);
  assert.equal(await countAdmitted(process, limitsOf({ requests_per_hour: 12 }), 10), 2);
  assert.equal(await countAdmitted(process, limitsOf({ requests_per_hour: 20 }), 20), 8);
});

test('a request takes from all of its limits or from none', async (t) => {
  const installation = await Installation.open(t);
  const process = await installation.process();
  const workspace = compileLimits('workspace', 'w', { requests_per_minute: 3 }, {});
  const tight = [...limitsOf({ requests_per_minute: 2 }), ...workspace];
  assert.equal(await countAdmitted(process, tight, 10), 2);
  assert.equal(await countAdmitted(process, workspace, 10), 1);
});

test('while the database is down a request gets 503 and can be retried', async (t) => {
  const installation = await Installation.open(t);
  const process = await installation.process();
  const limits = limitsOf({ requests_per_minute: 2 });
  process.fault('down');
  await assert.rejects(async () => process.limiter.admit(limits, NOON), { status: 503 });
  process.fault(undefined);
  assert.equal(await countAdmitted(process, limits, 5), 2);
});
