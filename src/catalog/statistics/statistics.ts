/**
 * The live statistics of one process: records are folded into slices once a second; every ten seconds slices are
 * published and those of other processes are read. Requests never wait for any of it. While the database is down, the
 * process uses its own statistics alone.
 */
import { randomUUID } from 'node:crypto';
import type { Clock, Timer } from '../../base/clock.ts';
import type { Log } from '../../base/log.ts';
import type { Database } from '../../storage/database.ts';
import { type EndpointFigures, type EndpointStatistics, type Measured, NO_FIGURES } from './figures.ts';
import { Ring } from './ring.ts';
import { loadSketches, type SketchMaker } from './sketch.ts';
import { Series } from './slices.ts';
import { type PublishedRow, publish, readOthers, removeExpired } from './store.ts';

const FOLD_MS = 1_000;
const EXCHANGE_MS = 10_000;
const CLEAN_MS = 5 * 60_000;
/** Computed figures are reused for this long. */
const FRESH_MS = 2_000;
/** Most tracked endpoints. Clients can invent names on open-ended providers, so there must be a limit. */
const MOST_ENDPOINTS = 10_000;

interface StatisticsOptions {
  database: Database;
  clock: Clock;
  log: Log;
}

export interface Statistics extends EndpointStatistics {
  /** Counts one call. Cheap enough for every request, see `ring.ts`. */
  record(endpointId: string, measured: Measured): void;
  /** Folds, publishes and reads now. Resolves even if the database is down. */
  exchange(): Promise<void>;
  close(): Promise<void>;
}

/** Starts at once; the counts of other processes arrive some milliseconds later. */
export function createStatistics(options: StatisticsOptions): Statistics {
  return new LiveStatistics(options);
}

interface Tracked {
  series: Series;
  figures: EndpointFigures;
  /** Monotonic time. */
  workedOutAt: number;
}

class LiveStatistics implements Statistics {
  readonly #options: StatisticsOptions;
  readonly #processId = randomUUID();
  readonly #ring = new Ring();
  readonly #tracked = new Map<string, Tracked>();
  readonly #timer: Timer;
  #make: SketchMaker | undefined;
  #folding: Timer | undefined;
  #horizon: string | null = null;
  #cleanedAt: number;
  #exchanged: Promise<void> = Promise.resolve();
  #closed = false;
  #failing = false;

  constructor(options: StatisticsOptions) {
    this.#options = options;
    const { clock } = options;
    this.#cleanedAt = clock.monotonic();
    this.#timer = clock.timer(EXCHANGE_MS, () => void this.#tick());
    void this.exchange();
  }

  record(endpointId: string, measured: Measured): void {
    this.#ring.push(endpointId, measured);
    this.#folding ??= this.#options.clock.timer(FOLD_MS, () => {
      this.#folding = undefined;
      void this.#fold();
    });
  }

  of(endpointId: string): EndpointFigures {
    const tracked = this.#tracked.get(endpointId);
    if (tracked === undefined || this.#make === undefined) return NO_FIGURES;
    const now = this.#options.clock.monotonic();
    if (now - tracked.workedOutAt >= FRESH_MS) {
      tracked.workedOutAt = now;
      tracked.figures = tracked.series.figures(this.#options.clock.now(), this.#make);
    }
    return tracked.figures;
  }

  /** Exchanges run one after another, so that everything recorded before the call is included. */
  exchange(): Promise<void> {
    this.#exchanged = this.#exchanged.then(() => this.#exchange());
    return this.#exchanged;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer.cancel();
    this.#folding?.cancel();
    await this.exchange();
  }

  async #tick(): Promise<void> {
    await this.exchange();
    if (!this.#closed) this.#timer.refresh();
  }

  async #fold(): Promise<void> {
    if (this.#ring.empty) return;
    this.#make ??= await loadSketches();
    const now = this.#options.clock.now();
    this.#ring.drain((endpointId, measured) => {
      const tracked = this.#track(endpointId);
      tracked?.series.add(now, measured, this.#make!);
    });
  }

  /** The endpoint's entry, created if missing; undefined if there are too many. */
  #track(endpointId: string): Tracked | undefined {
    let tracked = this.#tracked.get(endpointId);
    if (tracked === undefined) {
      if (this.#tracked.size >= MOST_ENDPOINTS) return undefined;
      tracked = { series: new Series(), figures: NO_FIGURES, workedOutAt: Number.NEGATIVE_INFINITY };
      this.#tracked.set(endpointId, tracked);
    }
    return tracked;
  }

  async #exchange(): Promise<void> {
    await this.#fold();
    try {
      await this.#publish();
      await this.#adopt();
      await this.#clean();
      this.#failing = false;
    } catch (cause) {
      // Logged once per outage.
      if (!this.#failing) this.#options.log.warn('endpoint statistics cannot be shared between processes', { cause });
      this.#failing = true;
    }
    const now = this.#options.clock.now();
    for (const [id, { series }] of this.#tracked) if (series.expire(now)) this.#tracked.delete(id);
  }

  async #publish(): Promise<void> {
    const rows: PublishedRow[] = [];
    for (const [endpointId, { series }] of this.#tracked) {
      for (const slice of series.takeChanged()) rows.push({ ...slice, endpointId });
    }
    if (rows.length === 0) return;
    try {
      await publish(this.#options.database, this.#processId, rows);
    } catch (error) {
      for (const row of rows) this.#tracked.get(row.endpointId)?.series.putBack([row]);
      throw error;
    }
  }

  async #adopt(): Promise<void> {
    const { database, clock } = this.#options;
    const { rows, horizon } = await readOthers(database, this.#processId, this.#horizon, clock.now());
    this.#horizon = horizon;
    if (rows.length > 0) this.#make ??= await loadSketches();
    for (const { endpointId, span, startsAt, processId, slice } of rows) {
      this.#track(endpointId)?.series.adopt(span, startsAt, processId, slice);
    }
  }

  async #clean(): Promise<void> {
    const { database, clock } = this.#options;
    if (clock.monotonic() - this.#cleanedAt < CLEAN_MS) return;
    this.#cleanedAt = clock.monotonic();
    await removeExpired(database, clock.now());
  }
}
