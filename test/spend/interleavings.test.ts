/**
 * Hard budgets and exactly-once rows under generated interleavings: three processes on one database, requests that
 * wait, grow, end or are abandoned, kills, interrupted replays, lost database answers, changed limits, and a clock that
 * passes midnight. The model is the sum of the admitted requests.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { generationId } from '../../src/base/ids.ts';
import { silentLog } from '../../src/base/log.ts';
import {
  type Budget,
  type OpenGeneration,
  type Reservation,
  spendMigrations,
  windowStart,
} from '../../src/spend/index.ts';
import { replayJournal } from '../../src/spend/replay.ts';
import type { Database } from '../../src/storage/database.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { type Fault, faulty, SpendProcess, type SpendWorld } from '../../src/testing/database/spend-process.ts';
import { samples } from '../../src/testing/laws/samples.ts';
import {
  begin,
  NOON,
  sampleAccepted,
  sampleAttempt,
  sampleBudget,
  sampleGeneration,
} from '../../src/testing/laws/spend-samples.ts';

type Step =
  | { do: 'reserve'; process: number; amount: number; budgets: number; begins: boolean }
  | { do: 'settle'; which: number; percent: number }
  | { do: 'extend'; which: number; amount: number }
  | { do: 'seen'; which: number }
  | { do: 'kill'; process: number }
  | { do: 'replay'; interruptAfter: number }
  | { do: 'flush'; process: number }
  | { do: 'limit'; limit: number }
  | { do: 'fault'; process: number; fault: Fault }
  | { do: 'midnight' }
  | { do: 'wait' };

// Mostly one process, so that its lease is used up and requested again.
const place = fc.constantFrom(0, 0, 0, 1, 1, 2);
const percent = fc.constantFrom(0, 10, 50, 100, 100);
const which = fc.nat(20);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      do: fc.constant('reserve' as const),
      process: place,
      amount: fc.integer({ min: 0, max: 40 }),
      budgets: fc.integer({ min: 1, max: 3 }),
      begins: fc.constantFrom(true, true, false),
    }),
  },
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('settle' as const), which, percent }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('extend' as const), which, amount: fc.integer({ min: 0, max: 30 }) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('seen' as const), which }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('kill' as const), process: place }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('replay' as const), interruptAfter: fc.nat(4) }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('flush' as const), process: place }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('limit' as const), limit: fc.integer({ min: 20, max: 150 }) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('fault' as const),
      process: place,
      fault: fc.constantFrom<Fault>('before commit', 'after commit', 'down'),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('midnight' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wait' as const) }) },
);

/** An admitted request. */
interface Passed {
  id: string;
  process: SpendProcess;
  /** Scope ids of its budgets. */
  scopes: string[];
  day: number;
  held: bigint;
  /** undefined while it is running. */
  cost: bigint | undefined;
  /** Index of the limit that it was accepted with; it may grow under that limit. */
  since: number;
  /** Its cost if its process dies. */
  promptNano: bigint;
  /** The hold that its journal records. */
  journaled: bigint;
  /** Its hold when it was settled in memory only. */
  perhaps: bigint;
  /** It was open when its process died: its cost is unknown, so its bound stays held. */
  unreturned: boolean;
  reservation: Reservation;
  /** Its progress: only held, on its way into the journal, or running. */
  begun: 'no' | 'at the end of this turn' | 'yes';
  open: OpenGeneration | undefined;
  /** Its row is not journaled yet, so its client has received nothing. */
  untold: boolean;
}

class World {
  readonly passed: Passed[] = [];
  readonly #place: SpendWorld;
  readonly #database: Database;
  readonly #processes: SpendProcess[] = [];
  readonly #dead = new Set<SpendProcess>();
  readonly #waiting = new Map<Promise<unknown>, SpendProcess>();
  /** All limits so far, the current one last. */
  readonly #limits: number[] = [];
  #now = NOON;
  #budgets: Budget[] = [];

  constructor(place: SpendWorld) {
    this.#place = { ...place, now: () => this.#now };
    this.#database = place.database;
    this.#setLimit(100);
  }

  async start(): Promise<void> {
    for (let n = 0; n < 3; n++) this.#processes.push(await SpendProcess.start(this.#place));
  }

  async run(step: Step): Promise<void> {
    if (step.do === 'reserve') this.#reserve(step.process, BigInt(step.amount), step.budgets, step.begins);
    else if (step.do === 'settle') this.#settle(step.which, BigInt(step.percent));
    else if (step.do === 'extend') this.#extend(step.which, BigInt(step.amount));
    else if (step.do === 'seen') this.#running(step.which)?.open?.seen(4);
    else if (step.do === 'kill') await this.#kill(step.process);
    else if (step.do === 'replay') await this.#replay(step.interruptAfter);
    else if (step.do === 'flush') await this.#processes[step.process]!.spend.flush();
    else if (step.do === 'limit') this.#setLimit(step.limit);
    else if (step.do === 'midnight') this.#now += 86_400_000;
    else if (step.do === 'fault') this.#processes[step.process]!.fault(step.fault);
    else {
      for (const process of this.#processes) process.fault(undefined);
      for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Ends all requests, and compares the database with the model. */
  async finish(): Promise<void> {
    for (const process of this.#processes) process.fault(undefined);
    // Requests that were admitted late begin late.
    while (this.#waiting.size > 0) await Promise.allSettled([...this.#waiting.keys()]);
    while (this.#running(0)) this.#settle(0, 50n);
    for (const process of this.#processes) await process.spend.flush();
    while ((await this.#deadJournals()).length > 0) await this.#replay(0);
    await this.#checkRows();
    await Promise.all(this.#processes.map((process) => process.close()));
    await this.#checkCounters();
  }

  #setLimit(highest: number): void {
    this.#limits.push(highest);
    const limit = BigInt(highest);
    this.#budgets = [
      sampleBudget(limit, { scope: 'key', scopeId: 'key-1' }),
      sampleBudget(2n * limit, { scope: 'workspace', scopeId: 'workspace-1' }),
    ];
  }

  #reserve(at: number, amount: bigint, mask: number, begins: boolean): void {
    const process = this.#processes[at]!;
    const budgets = this.#budgets.filter((_, index) => mask & (1 << index));
    const since = this.#limits.length - 1;
    const acceptedAt = this.#now;
    const bound = { creditNano: amount, byokNano: 0n };
    const letThrough = (reservation: Reservation): void => {
      const id = generationId(acceptedAt);
      const passed: Passed = {
        id,
        process,
        scopes: budgets.map((budget) => budget.scopeId),
        day: windowStart('daily', acceptedAt),
        held: amount,
        cost: undefined,
        since,
        promptNano: amount / 2n,
        journaled: 0n,
        perhaps: 0n,
        unreturned: false,
        reservation,
        begun: 'no',
        open: undefined,
        untold: false,
      };
      this.passed.push(passed);
      if (amount > 0n) this.#checkLimits(passed, since);
      if (begins) this.#watch(process, this.#begin(passed, acceptedAt));
    };
    const answer = process.spend.reserve(budgets, bound, acceptedAt);
    if (!(answer instanceof Promise)) {
      if (!answer.refused) letThrough(answer);
      return;
    }
    this.#watch(
      process,
      answer.then((late) => {
        if (!late.refused && !this.#dead.has(process)) letThrough(late);
      }),
    );
  }

  async #begin(passed: Passed, createdAt: number): Promise<void> {
    passed.begun = 'at the end of this turn';
    passed.journaled = passed.held;
    const attempt = sampleAttempt({ promptNano: passed.promptNano, outputPrice: 0n });
    passed.open = await begin(
      passed.process.spend,
      sampleAccepted(passed.id, { createdAt }),
      passed.reservation,
      attempt,
    );
    passed.begun = 'yes';
  }

  /** A 503 while the database is down is expected; any other error is a failure. */
  #watch(process: SpendProcess, work: Promise<unknown>): void {
    const watched = work.catch((error) => {
      if (error.status !== 503) throw error;
    });
    this.#waiting.set(watched, process);
    watched.finally(() => this.#waiting.delete(watched)).catch((error) => this.#failures.push(error));
  }

  readonly #failures: unknown[] = [];

  /** The law: spend plus possible spend stays within a limit that applied while the request waited. */
  #checkLimits(passed: Passed, since: number): void {
    const highest = Math.max(...this.#limits.slice(since));
    for (const scope of passed.scopes) {
      let sum = 0n;
      for (const other of this.passed) {
        if (other.day === passed.day && other.scopes.includes(scope)) sum += committed(other);
      }
      const limit = BigInt(scope === 'key-1' ? highest : 2 * highest);
      if (sum > limit) this.#failures.push(new Error(`${scope} could spend ${sum} of ${limit}`));
    }
  }

  #running(which: number): Passed | undefined {
    const running = this.passed.filter(
      ({ cost, process, begun }) =>
        cost === undefined && !this.#dead.has(process) && begun !== 'at the end of this turn',
    );
    return running[which % Math.max(running.length, 1)];
  }

  #settle(which: number, percent: bigint): void {
    const passed = this.#running(which);
    if (passed === undefined) return;
    const { open, reservation, held } = passed;
    passed.cost = open === undefined ? 0n : (held * percent) / 100n;
    if (open === undefined) reservation.release();
    else {
      const accepted = sampleAccepted(passed.id, { createdAt: passed.day + 43_200_000 });
      passed.untold = true;
      open.settle(sampleGeneration(accepted, { costNano: passed.cost }), () => {
        passed.untold = false;
      });
    }
  }

  #extend(which: number, amount: bigint): void {
    const passed = this.#running(which);
    if (passed === undefined) return;
    const grown = (answer: unknown): void => {
      if (answer !== true || passed.cost !== undefined || this.#dead.has(passed.process)) return;
      passed.held += amount;
      if (amount > 0n) this.#checkLimits(passed, passed.since);
      if (passed.open === undefined) return;
      passed.open.attempt(sampleAttempt({ promptNano: passed.promptNano, outputPrice: 0n }));
      passed.journaled = passed.held;
    };
    const answer = passed.reservation.extend({ creditNano: amount, byokNano: 0n });
    if (answer instanceof Promise) this.#watch(passed.process, answer.then(grown));
    else grown(answer);
  }

  async #kill(at: number): Promise<void> {
    const process = this.#processes[at]!;
    this.#dead.add(process);
    await process.kill();
    // Pending writes of the turn are lost; their clients have received nothing.
    for (const passed of this.passed) {
      if (passed.process !== process || !passed.untold) continue;
      passed.cost = undefined;
      // Its hold was already free in memory, so it may have been returned.
      passed.perhaps = passed.journaled;
      passed.journaled = 0n;
    }
    // Requests that waited in the process are never answered.
    for (const [waiting, owner] of this.#waiting) if (owner === process) this.#waiting.delete(waiting);
    this.#processes[at] = await SpendProcess.start(this.#place);
  }

  async #deadJournals(): Promise<string[]> {
    const alive = new Set(this.#processes.map((process) => process.processId));
    return readdirSync(join(this.#place.dataDir, 'journal')).filter((name) => !alive.has(name));
  }

  async #replay(interruptAfter: number): Promise<void> {
    const [processId] = await this.#deadJournals();
    if (processId === undefined) return;
    const left = this.passed.filter((each) => each.cost === undefined && each.process.processId === processId);
    // Other processes may use what the replay returns, so update the model first.
    for (const passed of left) {
      passed.cost = passed.open === undefined ? 0n : passed.promptNano;
      passed.unreturned = passed.open !== undefined;
    }
    const directory = join(this.#place.dataDir, 'journal', processId);
    if (interruptAfter > 0) {
      const interrupted = faulty(this.#database, interruptAfter);
      await replayJournal(directory, processId, interrupted, silentLog).catch((error) => {
        assert.equal(error.status, 503);
      });
    }
    await replayJournal(directory, processId, this.#database, silentLog).catch((error) => {
      // The interruption came after the journal was removed.
      assert.equal(error.code, 'ENOENT');
    });
  }

  async #checkRows(): Promise<void> {
    assert.deepEqual(this.#failures, []);
    const rows = await this.#database.query<{ id: string; cost_nano: bigint }>('SELECT id, cost_nano FROM generations');
    const begun = this.passed.filter((passed) => passed.open !== undefined);
    const expected = new Map(begun.map((passed) => [passed.id, passed.cost]));
    assert.deepEqual(new Map(rows.map((row) => [row.id, row.cost_nano])), expected);
  }

  async #checkCounters(): Promise<void> {
    const left = this.passed.filter(({ unreturned }) => unreturned);
    const checkLeased = (window: string, leased: bigint): void => {
      const [, scopeId, , day] = window.split('/');
      const held = left.filter((passed) => passed.day === Number(day) && passed.scopes.includes(scopeId!));
      const least = held.reduce((sum, passed) => sum + committed(passed) - passed.cost!, 0n);
      const most = held.reduce((sum, { perhaps }) => sum + perhaps, least);
      assert.ok(leased >= least && leased <= most, `${window}: ${leased} instead of ${least} to ${most}`);
    };
    const leases = await this.#database.query<{ id: string; nano: bigint }>(
      'SELECT window_id AS id, sum(amount_nano)::bigint AS nano FROM spend_leases GROUP BY 1',
    );
    for (const { id, nano } of leases) checkLeased(id, nano);
    const windows = await this.#database.query<{ id: string; spent_nano: bigint; leased_nano: bigint }>(
      'SELECT * FROM spend_windows',
    );
    for (const window of windows) {
      if (window.id.includes('/daily/')) checkLeased(window.id, window.leased_nano);
      else assert.equal(window.leased_nano, 0n, window.id);
      if (!window.id.includes('/daily/')) continue;
      const day = Number(window.id.split('/')[3]);
      const rows = this.passed.filter((passed) => passed.day === day && passed.open !== undefined);
      const sum = rows.reduce((total, passed) => total + (passed.cost ?? 0n), 0n);
      assert.equal(window.spent_nano, sum, window.id);
    }
  }
}

/** Actual or possible cost of a request. */
function committed({ cost, held, journaled, unreturned }: Passed): bigint {
  if (cost === undefined) return held;
  return unreturned && journaled > cost ? journaled : cost;
}

test('no interleaving exceeds a limit, loses a row or enters one twice', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations: spendMigrations, poolSize: 8 });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 100, size: 'max' }), async (steps) => {
      const dataDir = mkdtempSync(join(tmpdir(), 'spend-'));
      try {
        await database.query('TRUNCATE generations, spend_windows, spend_leases, spend_processes');
        const options = { leases: { patienceMs: 20, waitMs: 60 }, ledger: { flushMs: 5 }, maintainMs: 10 };
        const world = new World({ database, target, dataDir, now: () => NOON, options });
        await world.start();
        for (const each of steps) await world.run(each);
        await world.finish();
      } finally {
        rmSync(dataDir, { recursive: true, force: true });
      }
    }),
    { numRuns: samples(12), endOnFailure: true },
  );
});
