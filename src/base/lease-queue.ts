/**
 * Requests that wait for leases. A lease is this process's part of a window of a limit, which it may use without asking the
 * database. Requests are served in order of arrival, as soon as the leases cover all that they need.
 *
 * A waiting request holds nothing: it takes all of its parts in one step or none, so there is no deadlock, whatever the order
 * of the windows.
 */
import { type Clock, Pause } from './clock.ts';
import { GatewayError } from './errors.ts';

/** A part requested of one window. */
interface LeasePart {
  /** `blocked`: another request waits for this window, so later ones must not overtake it. Maintained here. */
  readonly window: { blocked: boolean };
}

export interface WaitingRequest<Part> {
  readonly parts: readonly Part[];
  /** Monotonic time of arrival in ms. */
  readonly since: number;
}

/** The parts that depend on the kind of limit. */
interface LeaseRules<Part, Refusal> {
  /** Name of the limit in the error when the queue is full: `a budget`. */
  readonly wanted: string;
  /** Maximum queue length; more requests are refused. */
  readonly maxWaiting: number;
  /** Delay until the next turn if nothing is returned meanwhile. */
  readonly retryMs: number;
  /** Whether the lease of the window covers the part. */
  covers(part: Part): boolean;
  /** The refusal of a request that the leases do not cover; undefined if waiting may help. */
  refusalOf(parts: readonly Part[]): Refusal | undefined;
  /**
   * Called while requests wait, after those that could be served: asks the database for the missing parts. Must not reject.
   * @returns whether the next turn is due at once
   */
  turn(): Promise<boolean>;
}

interface Waiting<Part, Refusal> extends WaitingRequest<Part> {
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
   * Calls `take` once all of `parts` are covered and resolves with its result, or resolves with the refusal. Rejects with
   * GatewayError 429 when the queue is full.
   */
  wait<T>(parts: readonly Part[], take: () => T, position: 'first' | 'last' = 'last'): Promise<T | Refusal> {
    if (this.#waiting.length >= this.#rules.maxWaiting) return Promise.reject(this.#full());
    return new Promise((resolve, reject) => {
      const waiting = {
        parts,
        since: this.#clock.monotonic(),
        take: () => resolve(take()),
        refuse: resolve,
        fail: reject,
      };
      if (position === 'first') this.#waiting.unshift(waiting);
      else this.#waiting.push(waiting);
      for (const part of parts) if (!this.#rules.covers(part)) part.window.blocked = true;
      if (this.#running) this.signal();
      else void this.#run();
    });
  }

  /** Called when something was returned, in this or another process. */
  signal(): void {
    this.#signalled = true;
    this.#pause.end();
  }

  /** Serves requests that can be served, in order, and refuses those with a refusal. No request overtakes another that waits
   * for the same window. */
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

  /** The parts that waiting requests need, by window, in order. */
  get wanted(): Map<Part['window'], Part[]> {
    const blocked = this.#waiting.flatMap(({ parts }) => parts.filter(({ window }) => window.blocked));
    return Map.groupBy(blocked, ({ window }): Part['window'] => window);
  }

  /** Refuses requests that waited long enough and for which `refusalOf` has a refusal, so that later ones get their turn. */
  refuseWaiting(refusalOf: (waiter: WaitingRequest<Part>) => Refusal | undefined): void {
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

  /** Fails all requests that wait for a window that does not cover them. */
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
    // Requests that arrive right after each other share one query.
    await Promise.resolve();
    while (this.#waiting.length > 0) {
      this.#signalled = false;
      this.serve();
      const retryNow = await this.#rules.turn();
      if (this.#waiting.length > 0 && !retryNow && !this.#signalled) await this.#pause.wait(this.#rules.retryMs);
    }
    this.#running = false;
  }

  #full(): GatewayError {
    return new GatewayError('rate_limit_exceeded', `too many requests wait for ${this.#rules.wanted}`, {
      retryAfterSeconds: 1,
    });
  }
}
