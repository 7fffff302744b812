/**
 * Counts this process's requests in plain numbers: recording takes two map lookups and some additions. Only a scrape
 * renders them as text (`exposition.ts`). Label values are bounded: operations and providers are fixed; a model has its
 * own label if the catalog lists it or it has answered once, and above the limit on series it is `other`.
 */
import type { FinishedExchange } from '../../http/operation.ts';
import type { Generation } from '../../spend/index.ts';
import { DURATION_BOUNDS, type Exemplar, FIRST_TOKEN_BOUNDS, Histogram } from './histogram.ts';

/**
 * Requests of one operation to one model at one provider; the latter two are empty for requests without an endpoint.
 */
export interface Series {
  readonly operation: string;
  readonly provider: string;
  readonly model: string;
  /** By HTTP status; 0 if the client disconnected before a response. */
  readonly statuses: Map<number, number>;
  readonly durations: Histogram;
  /** Undefined before the first value. */
  firstTokens: Histogram | undefined;
  cancelled: number;
  /** Served from the response cache. */
  cached: number;
}

/** Usage and cost of a model at a provider. */
interface Consumption {
  readonly provider: string;
  readonly model: string;
  input: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
  costNano: number;
  byokNano: number;
}

interface Attempts {
  readonly provider: string;
  readonly model: string;
  readonly outcomes: Map<string, number>;
}

/** Limit for each kind of series; above it, models are counted together. */
const MAX_SERIES = 1_000;
const NO_OPERATION = 'none';
const OTHER = 'other';

export class Recorder {
  readonly #isListed: (endpointId: string) => boolean;
  readonly #maxSeries: number;
  readonly #byOperation = new Map<string, Map<string, Series>>();
  readonly #consumption = new Map<string, Consumption>();
  readonly #attempts = new Map<string, Attempts>();
  readonly #callbacks = new Map<string, number>();
  #series = 0;

  /** @param isListed whether the catalog lists an endpoint; clients can invent the names of others */
  constructor(isListed: (endpointId: string) => boolean, maxSeries = MAX_SERIES) {
    this.#isListed = isListed;
    this.#maxSeries = maxSeries;
  }

  /** An attempt to deliver a callback has finished. */
  callbackAttempted(outcome: string): void {
    this.#callbacks.set(outcome, (this.#callbacks.get(outcome) ?? 0) + 1);
  }

  /** By outcome. */
  callbacks(): Iterable<[string, number]> {
    return this.#callbacks;
  }

  /**
   * A request has finished.
   *
   * @param row of its generation, if it has one
   * @param traced its trace, if it has one
   */
  finished(exchange: FinishedExchange, row: Generation | undefined, traced?: Omit<Exemplar, 'value'>): void {
    const series = this.#seriesOf(exchange.operation?.id ?? NO_OPERATION, row);
    const { status } = exchange;
    series.statuses.set(status, (series.statuses.get(status) ?? 0) + 1);
    series.durations.observe(exchange.durationMs / 1000, traced);
    if (exchange.closed) series.cancelled += 1;
    if (row === undefined) return;
    if (row.responseCacheSourceId !== null) series.cached += 1;
    if (row.latencyMs !== null) {
      series.firstTokens ??= new Histogram(FIRST_TOKEN_BOUNDS);
      series.firstTokens.observe(row.latencyMs / 1000, traced);
    }
    this.#consume(row);
  }

  /** A call to an upstream has finished. */
  attempted(endpointId: string, outcome: string): void {
    let attempts = this.#attempts.get(endpointId);
    if (attempts === undefined) {
      attempts = this.#admitted(this.#attempts, endpointId, outcome === 'answered', (provider, model) => ({
        provider,
        model,
        outcomes: new Map(),
      }));
    }
    attempts.outcomes.set(outcome, (attempts.outcomes.get(outcome) ?? 0) + 1);
  }

  *series(): Generator<Series> {
    for (const operation of this.#byOperation.values()) yield* operation.values();
  }

  consumption(): Iterable<Consumption> {
    return this.#consumption.values();
  }

  attempts(): Iterable<Attempts> {
    return this.#attempts.values();
  }

  #seriesOf(operation: string, row: Generation | undefined): Series {
    let ofOperation = this.#byOperation.get(operation);
    if (ofOperation === undefined) {
      ofOperation = new Map();
      this.#byOperation.set(operation, ofOperation);
    }
    const endpointId = row?.endpointId ?? '';
    const known = ofOperation.get(endpointId);
    if (known !== undefined) return known;
    const make = (provider: string, model: string): Series => {
      this.#series += 1;
      const durations = new Histogram(DURATION_BOUNDS);
      const counts = { statuses: new Map(), cancelled: 0, cached: 0 };
      return { operation, provider, model, ...counts, durations, firstTokens: undefined };
    };
    if (endpointId === '') {
      const series = make('', '');
      ofOperation.set('', series);
      return series;
    }
    return this.#admitted(ofOperation, endpointId, row !== undefined && isAnswered(row), make, this.#series);
  }

  #consume(row: Generation): void {
    const { usage, endpointId } = row;
    if (endpointId === null || (usage === null && row.costNano === 0n)) return;
    const make = (provider: string, model: string): Consumption => ({
      ...{ provider, model, input: 0, cacheRead: 0, cacheWrite: 0, output: 0, reasoning: 0, costNano: 0, byokNano: 0 },
    });
    const used =
      this.#consumption.get(endpointId) ?? this.#admitted(this.#consumption, endpointId, isAnswered(row), make);
    used.costNano += Number(row.costNano);
    used.byokNano += Number(row.byokNano);
    if (usage === null) return;
    used.input += usage.input;
    used.cacheRead += usage.cacheRead;
    used.cacheWrite += usage.cacheWrite5m + usage.cacheWrite1h;
    used.output += usage.output;
    used.reasoning += usage.reasoning;
  }

  /** The entry of a new endpoint: its own, or the one that its provider's other endpoints share. */
  #admitted<Entry>(
    entries: Map<string, Entry>,
    endpointId: string,
    answered: boolean,
    make: (provider: string, model: string) => Entry,
    size = entries.size,
  ): Entry {
    const colon = endpointId.indexOf(':');
    const provider = endpointId.slice(0, colon);
    const own = size < this.#maxSeries && (answered || this.#isListed(endpointId));
    const key = own ? endpointId : `${provider}:`;
    let entry = entries.get(key);
    if (entry === undefined) {
      entry = make(provider, own ? endpointId.slice(colon + 1) : OTHER);
      entries.set(key, entry);
    }
    return entry;
  }
}

function isAnswered(row: Generation): boolean {
  return row.status === 200 && row.error === null && !row.cancelled;
}
