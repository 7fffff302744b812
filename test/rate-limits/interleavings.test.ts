/**
 * Rate limits under generated interleavings: three processes on one database, requests that hold more tokens, end or
 * are abandoned, kills, lost database answers, changed limits, and a clock that passes from one window to the next. The
 * model is the sum of the admitted requests.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { compileLimits, type RateLimit, type RateLimitHold, rateLimitMigrations } from '../../src/rate-limits/index.ts';
import { settle } from '../../src/testing/clock/clock.ts';
import { freshDatabase } from '../../src/testing/database/database.ts';
import { RateProcess, type RateWorld } from '../../src/testing/database/rate-process.ts';
import type { Fault } from '../../src/testing/database/spend-process.ts';
import { samples } from '../../src/testing/laws/samples.ts';

type Step =
  | { do: 'admit'; process: number; times: number }
  | { do: 'hold'; which: number; tokens: number }
  | { do: 'settle'; which: number; percent: number }
  | { do: 'kill'; process: number }
  | { do: 'fault'; process: number; fault: Fault }
  | { do: 'limit'; requests: number; tokens: number }
  | { do: 'later' }
  | { do: 'wait' };

const processIndex = fc.constantFrom(0, 0, 1, 1, 2);
const which = fc.nat(20);
const of = <D extends Step['do'], M extends object>(name: D, members: { [K in keyof M]: fc.Arbitrary<M[K]> }) =>
  fc.record({ do: fc.constant(name), ...members }) as unknown as fc.Arbitrary<Step>;
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 10, arbitrary: of('admit', { process: processIndex, times: fc.integer({ min: 1, max: 12 }) }) },
  { weight: 6, arbitrary: of('hold', { which, tokens: fc.integer({ min: 1, max: 60 }) }) },
  { weight: 6, arbitrary: of('settle', { which, percent: fc.constantFrom(0, 10, 50, 100) }) },
  { weight: 1, arbitrary: of('kill', { process: processIndex }) },
  {
    weight: 1,
    arbitrary: of('fault', {
      process: processIndex,
      fault: fc.constantFrom<Fault>('before commit', 'after commit', 'down'),
    }),
  },
  {
    weight: 1,
    arbitrary: of('limit', { requests: fc.integer({ min: 5, max: 60 }), tokens: fc.integer({ min: 20, max: 200 }) }),
  },
  { weight: 1, arbitrary: of('later', {}) },
  { weight: 3, arbitrary: of('wait', {}) },
);

interface Passed {
  process: RateProcess;
  hold: RateLimitHold;
  window: number;
  open: boolean;
  used: number;
}

class World {
  readonly #world: RateWorld;
  readonly #scope: string;
  readonly #processes: RateProcess[] = [];
  readonly #all: RateProcess[] = [];
  readonly #passed: Passed[] = [];
  readonly #asked = new Map<Promise<unknown>, RateProcess>();
  /** The highest limits per window. */
  readonly #most = new Map<number, { requests: number; tokens: number }>();
  #now = Date.UTC(2026, 4, 6, 12);
  #limits: RateLimit[] = [];
  #present = { requests: 30, tokens: 120 };
  /** True while no lease was lost, so that every refusal must be justified. */
  whole = true;

  constructor(processIndex: Omit<RateWorld, 'now'>, scope: string) {
    this.#world = { ...processIndex, now: () => this.#now };
    this.#scope = scope;
    this.#setLimit(this.#present);
  }

  async start(): Promise<void> {
    for (let n = 0; n < 3; n++) this.#processes.push(await this.#begin());
  }

  async #begin(): Promise<RateProcess> {
    const process = await RateProcess.start(this.#world);
    this.#all.push(process);
    return process;
  }

  async run(step: Step): Promise<void> {
    if (step.do === 'admit') for (let n = 0; n < step.times; n++) this.#admit(this.#processes[step.process]!);
    else if (step.do === 'hold') this.#hold(step.which, step.tokens);
    else if (step.do === 'settle') this.#settle(step.which, step.percent);
    else if (step.do === 'kill') await this.#kill(step.process);
    else if (step.do === 'fault') this.#fault(this.#processes[step.process]!, step.fault);
    else if (step.do === 'limit') this.#setLimit(step);
    else if (step.do === 'later') this.#later();
    else await this.#rest();
    await settle(2);
    this.check();
  }

  get #window(): number {
    return Math.floor(this.#now / 60_000);
  }

  #setLimit({ requests, tokens }: { requests: number; tokens: number }): void {
    this.#present = { requests, tokens };
    this.#limits = compileLimits('key', this.#scope, { requests_per_minute: requests, tokens_per_minute: tokens }, {});
    const before = this.#most.get(this.#window);
    this.#most.set(this.#window, {
      requests: Math.max(requests, before?.requests ?? 0),
      tokens: Math.max(tokens, before?.tokens ?? 0),
    });
    // Leases granted under a higher limit may still be used, and their usage counts under a lower one.
    if (before !== undefined) this.whole = false;
  }

  #later(): void {
    this.#now += 60_000;
    this.whole = true;
    this.#setLimit(this.#present);
  }

  #admit(process: RateProcess): void {
    const window = this.#window;
    const answer = Promise.resolve(process.limiter.admit(this.#limits, this.#now)).then(
      (hold) => {
        if (!('refused' in hold)) this.#passed.push({ process, hold, window, open: true, used: 0 });
      },
      () => {},
    );
    this.#await(process, answer);
  }

  #running(which: number): Passed | undefined {
    const running = this.#passed.filter(({ open, process }) => open && !process.dead);
    return running[which % Math.max(1, running.length)];
  }

  #hold(which: number, tokens: number): void {
    const one = this.#running(which);
    if (one === undefined) return;
    const answer = Promise.resolve(one.hold.raiseTo(one.hold.heldTokens + tokens)).catch(() => {});
    this.#await(one.process, answer);
  }

  #settle(which: number, percent: number): void {
    const one = this.#running(which);
    if (one === undefined) return;
    one.open = false;
    one.used = Math.floor((one.hold.heldTokens * percent) / 100);
    one.hold.settle(one.used);
  }

  async #kill(index: number): Promise<void> {
    this.whole = false;
    await this.#processes[index]!.kill();
    this.#processes[index] = await this.#begin();
  }

  #fault(process: RateProcess, fault: Fault): void {
    this.whole = false;
    process.fault(fault);
    this.#await(
      process,
      settle(10).then(() => process.fault(undefined)),
    );
  }

  #await(process: RateProcess, promise: Promise<unknown>): void {
    this.#asked.set(promise, process);
    void promise.finally(() => this.#asked.delete(promise));
  }

  async #rest(): Promise<void> {
    await Promise.all([...this.#asked].filter(([, process]) => !process.dead).map(([promise]) => promise));
  }

  check(): void {
    for (const [window, most] of this.#most) {
      const passed = this.#passed.filter((one) => one.window === window);
      assert.ok(passed.length <= most.requests, `${passed.length} requests passed a limit of ${most.requests}`);
      const tokens = passed.reduce((sum, one) => sum + (one.open ? one.hold.heldTokens : one.used), 0);
      assert.ok(tokens <= most.tokens, `${tokens} tokens passed a limit of ${most.tokens}`);
    }
  }

  /**
   * After all requests have ended, every process must be able to use the rest of the window, to the last request and
   * token.
   */
  async end(): Promise<void> {
    await this.#rest();
    for (const one of this.#passed) if (one.open && !one.process.dead) this.#settle(0, 100);
    for (const process of this.#processes) {
      for (let n = 0; n < this.#present.requests; n++) this.#admit(process);
    }
    await this.#rest();
    this.check();
    const passed = this.#passed.filter((one) => one.window === this.#window);
    if (this.whole) assert.equal(passed.length, this.#present.requests, 'too few requests passed');
  }

  async close(): Promise<void> {
    for (const process of this.#all) await process.close();
  }
}

test('under any interleaving, with crashes and lost answers, exactly the limit is admitted', async (t) => {
  const { database, target } = await freshDatabase(t, { migrations: rateLimitMigrations, poolSize: 10 });
  let runs = 0;
  let whole = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: 60 }), async (steps) => {
      const world = new World({ database, target }, `key-${++runs}`);
      await world.start();
      try {
        for (const each of steps) await world.run(each);
        await world.end();
        if (world.whole) whole += 1;
      } finally {
        await world.close();
      }
    }),
    { numRuns: samples(25, 500), endOnFailure: true, seed: 20260506 },
  );
  assert.ok(whole > 0, 'no run showed that everything passes');
});
