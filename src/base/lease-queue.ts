/**
 * Who waits for leases: a lease is this process's part of a window of a limit, which it may use up without asking. They
 * are served in the order in which they came, as soon as the leases cover all that they want.
 *
 * Nothing is held while waiting: each takes all of its parts in one step or none, so no two can wait for each other,
 * whatever order their windows come in.
 */
import { type Clock, Pause } from './clock.ts';
import { GatewayError } from './errors.ts';

/** What is wanted of one window. */
export interface LeasePart {
  /** `blocked`: somebody waits for it, so nobody may pass. Kept here. */
  readonly window: { blocked: boolean };
}

export interface Waiter<Part> {
  readonly parts: readonly Part[];
  /** Monotonic time in ms at which it came. */
  readonly since: number;
}

/** What differs from one kind of limit to another. */
export interface LeaseRules<Part, Refusal> {
  /** As those are told who find no place in the queue: `a budget`. */
  readonly wanted: string;
  /** More are told to come back. */
  readonly maxWaiting: number;
  /** Turns follow each other this soon where nothing comes back meanwhile. */
  readonly restMs: number;
  /** Whether the lease of its window covers it. */
  covers(part: Part): boolean;
  /** Of one whom the leases do not cover; undefined where waiting may help. */
  refusalOf(parts: readonly Part[]): Refusal | undefined;
  /**
   * Called while anybody waits, after all who can be served were: asks for what is missing. Must not reject.
   * @returns whether the next turn is due at once
   */
  turn(): Promise<boolean>;
}

interface Waiting<Part, Refusal> extends Waiter<Part> {
  take(): void;
  refuse(refusal: Refusal): void;
  fail(error: unknown): void;
}

export class LeaseQueue<Part extends LeasePart, Refusal> {
  readonly #rules: LeaseRules<Part, Refusal>;
  readonly #clock: Clock;
  readonly #pause: Pause;
  #waiting: Waiting<Part, Refusal>[] = [];
  #running = false;
  #signalled = false;

  constructor(clock: Clock, rules: LeaseRules<Part, Refusal>) {
    this.#rules = rules;
    this.#clock = clock;
    this.#pause = new Pause(clock);
  }

  /**
   * Resolves with what `take` yields, which is called once all of `parts` are covered, or with the refusal. Rejects with
   * GatewayError 429 when the queue is full.
   */
  wait<T>(parts: readonly Part[], take: () => T, place: 'first' | 'last' = 'last'): Promise<T | Refusal> {
    if (this.#waiting.length >= this.#rules.maxWaiting) return Promise.reject(this.#full());
    return new Promise((resolve, reject) => {
      const waiting = {
        parts,
        since: this.#clock.monotonic(),
        take: () => resolve(take()),
        refuse: resolve,
        fail: reject,
      };
      if (place === 'first') this.#waiting.unshift(waiting);
      else this.#waiting.push(waiting);
      for (const part of parts) if (!this.#rules.covers(part)) part.window.blocked = true;
      if (this.#running) this.signal();
      else void this.#run();
    });
  }

  /** Something came back, here or elsewhere. */
  signal(): void {
    this.#signalled = true;
    this.#pause.end();
  }

  /** Serves who can be served, in order, and refuses who is to be; nobody passes another who waits for the same window. */
  serve(): void {
    const blocked = new Set<LeasePart['window']>();
    const waiting: Waiting<Part, Refusal>[] = [];
    for (const { parts } of this.#waiting) for (const { window } of parts) window.blocked = false;
    for (const each of this.#waiting) {
      const lacking = each.parts.filter((part) => blocked.has(part.window) || !this.#rules.covers(part));
      if (lacking.length === 0) {
        each.take();
        continue;
      }
      const refusal = this.#rules.refusalOf(each.parts);
      if (refusal !== undefined) {
        each.refuse(refusal);
        continue;
      }
      for (const { window } of lacking) blocked.add(window);
      waiting.push(each);
    }
    for (const window of blocked) window.blocked = true;
    this.#waiting = waiting;
  }

  /** What is wanted of the windows that somebody waits for, of each in order. */
  get wanted(): Map<Part['window'], Part[]> {
    const blocked = this.#waiting.flatMap(({ parts }) => parts.filter(({ window }) => window.blocked));
    return Map.groupBy(blocked, ({ window }): Part['window'] => window);
  }

  /** Refuses those who have waited for long enough, for whom `refusalOf` has a refusal; it is the turn of those behind them. */
  giveUp(refusalOf: (waiter: Waiter<Part>) => Refusal | undefined): void {
    const waiting = this.#waiting.filter((each) => {
      const refusal = refusalOf(each);
      if (refusal === undefined) return true;
      for (const { window } of each.parts) window.blocked = false;
      each.refuse(refusal);
      return false;
    });
    if (waiting.length === this.#waiting.length) return;
    this.#waiting = waiting;
    this.serve();
  }

  /** Fails all who wait for a window that does not cover what they want. */
  fail(error: unknown): void {
    const failed = new Set(this.#waiting.filter(({ parts }) => parts.some(({ window }) => window.blocked)));
    this.#waiting = this.#waiting.filter((each) => !failed.has(each));
    for (const each of failed) {
      for (const { window } of each.parts) window.blocked = false;
      each.fail(error);
    }
  }

  async #run(): Promise<void> {
    this.#running = true;
    // What is wanted by those that come one right after the other is asked for together.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      this.#signalled = false;
      this.serve();
      const again = await this.#rules.turn();
      if (this.#waiting.length > 0 && !again && !this.#signalled) await this.#pause.wait(this.#rules.restMs);
    }
    this.#running = false;
  }

  #full(): GatewayError {
    return new GatewayError('rate_limit_exceeded', `too many requests wait for ${this.#rules.wanted}`, {
      retryAfterSeconds: 1,
    });
  }
}
