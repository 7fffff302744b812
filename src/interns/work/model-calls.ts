/**
 * Assigns the model calls of an intern's sandbox, which the egress proxy reports, to its runs: a call belongs to the
 * run whose session it names, or else to the only run. The cost of a run is the sum of the charges of its calls in the
 * ledger.
 */
import { type Clock, sleep } from '../../base/clock.ts';
import type { Nano } from '../../base/money.ts';
import type { EgressWay, ModelCall } from '../../egress-proxy/index.ts';
import { type RequestCharge, requestCharges } from '../../spend/index.ts';
import type { Queryable } from '../../storage/database.ts';
import type { AgentUsage } from '../agents/index.ts';

/** What the run was charged; null: unknown. */
export type RunUsage = AgentUsage & { readonly costNano: Nano | null };

/** Counts the calls of one run. */
export interface RunMeter {
  /**
   * Call it at the end of the run. Waits for the rows of its calls, at most some seconds.
   * @param reported what the agent says
   */
  usage(reported: AgentUsage | null): Promise<RunUsage | null>;
}

interface CallParts {
  database: Queryable;
  clock: Clock;
  /** Of the intern. */
  keyId: string;
  /** Undefined while nothing was reported, or in a sandbox without egress. */
  way(): Pick<EgressWay, 'reported'> | undefined;
}

/** Calls of one run. */
const MOST_CALLS = 10_000;
/** Sessions whose runs have ended. They may still make calls. */
const MOST_SESSIONS = 1_000;
/** How long to wait for the rows of answered calls. */
const ROWS_MS = 5_000;
/** How long to wait for rows that may never be written. */
const UNCLEAR_MS = 1_000;
const LOOK_MS = 50;
/** Margin before the start of a run, because clocks of machines differ. */
const CLOCKS_MS = 60_000;

export class ModelCalls {
  readonly #parts: CallParts;
  readonly #meters = new Set<Meter>();
  readonly #sessions = new Set<string>();

  constructor(parts: CallParts) {
    this.#parts = parts;
  }

  called(call: ModelCall): void {
    if (call.state === 'begun') this.#begun(call);
    else for (const meter of this.#meters) meter.ended(call);
  }

  /** Before the prompt is sent. @param session the agent's id */
  async meter(session: string): Promise<RunMeter> {
    const proxy = await this.#reported();
    const meter = new Meter(session, this.#parts, proxy, {
      reported: () => this.#reported(),
      left: () => this.#meters.delete(meter),
    });
    this.#meters.add(meter);
    this.#sessions.add(session);
    for (const oldest of this.#sessions) {
      if (this.#sessions.size <= MOST_SESSIONS) break;
      this.#sessions.delete(oldest);
    }
    return meter;
  }

  #begun({ requestId, session }: ModelCall): void {
    const running = [...this.#meters].filter(({ isRunning }) => isRunning);
    const own = running.filter((meter) => meter.session === session);
    // A session whose run has ended makes calls on its own, such as for a title.
    const known = session !== null && this.#sessions.has(session);
    const candidates = own.length > 0 || known ? own : running;
    const [only] = candidates;
    if (candidates.length === 1) only!.begun(requestId);
    else for (const meter of candidates) meter.isUnclear = true;
  }

  /** Undefined without egress. */
  #reported(): Promise<number | undefined> {
    return (
      this.#parts
        .way()
        ?.reported()
        .catch(() => undefined) ?? Promise.resolve(undefined)
    );
  }
}

class Meter implements RunMeter {
  readonly session: string;
  readonly #parts: CallParts;
  readonly #since: number;
  readonly #proxy: number | undefined;
  readonly #events: { reported(): Promise<number | undefined>; left(): void };
  readonly #calls = new Map<string, ModelCall['state']>();
  /** Calls of other runs may be counted here, or calls of this run there. */
  isUnclear = false;
  isRunning = true;

  constructor(
    session: string,
    parts: CallParts,
    proxy: number | undefined,
    events: { reported(): Promise<number | undefined>; left(): void },
  ) {
    this.session = session;
    this.#parts = parts;
    this.#proxy = proxy;
    this.#events = events;
    this.#since = parts.clock.now() - CLOCKS_MS;
  }

  begun(requestId: string): void {
    if (this.#calls.size < MOST_CALLS) this.#calls.set(requestId, 'begun');
    else this.isUnclear = true;
  }

  ended({ requestId, state }: ModelCall): void {
    if (this.#calls.has(requestId)) this.#calls.set(requestId, state);
  }

  async usage(reported: AgentUsage | null): Promise<RunUsage | null> {
    const proxy = await this.#events.reported();
    this.isRunning = false;
    const isKnown = proxy !== undefined && proxy === this.#proxy && !this.isUnclear;
    // Without the database, the run still ends.
    const charged = isKnown ? await this.#charged().catch(() => undefined) : undefined;
    this.#events.left();
    if (charged === undefined) return reported && { ...reported, costNano: null };
    return this.#calls.size === 0 ? reported && { ...reported, costNano: 0n } : charged;
  }

  /** Undefined if that is not known in time. */
  async #charged(): Promise<RunUsage | undefined> {
    const { database, clock, keyId } = this.#parts;
    const began = clock.monotonic();
    while (true) {
      const requestIds = [...this.#calls.keys()];
      const since = new Date(this.#since);
      const rows = requestIds.length === 0 ? NO_ROWS : await requestCharges(database, { keyId, since, requestIds });
      const waited = clock.monotonic() - began;
      const isSettled = ([id, state]: [string, ModelCall['state']]) =>
        state !== 'begun' && (state === 'free' || rows.has(id) || (state === 'unclear' && waited >= UNCLEAR_MS));
      if ([...this.#calls].every(isSettled)) return sumOf([...rows.values()]);
      if (waited >= ROWS_MS) return undefined;
      await sleep(clock, LOOK_MS);
    }
  }
}

const NO_ROWS: ReadonlyMap<string, RequestCharge> = new Map();

function sumOf(charges: readonly RequestCharge[]): RunUsage {
  const sum = { costNano: 0n, promptTokens: 0, completionTokens: 0, cachedTokens: 0 };
  for (const charge of charges) {
    sum.costNano += charge.costNano;
    sum.promptTokens += charge.promptTokens;
    sum.completionTokens += charge.completionTokens;
    sum.cachedTokens += charge.cachedTokens;
  }
  return sum;
}
