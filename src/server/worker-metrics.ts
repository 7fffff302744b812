/**
 * A metrics scrape reaches one of several workers (GATEHOUSE_WORKERS) but must report all of them: that worker asks the
 * primary, which collects the metrics of the others.
 */
import type { Clock } from '../base/clock.ts';
import type { Exposed } from '../observability/index.ts';

/** Workers that do not report within this time are left out: they may have just died. */
const REPORT_TIMEOUT_MS = 1_000;

/** From a worker to the primary. */
export type ToCollector =
  | { type: 'collect metrics'; id: number }
  | { type: 'metrics'; collection: number; metrics: Exposed[] };

/** From the primary to a worker. */
export type FromCollector =
  | { type: 'report metrics'; collection: number }
  | { type: 'collected metrics'; id: number; metrics: Exposed[][] };

/** In a worker. */
export class PeerMetrics {
  readonly #send: (message: ToCollector) => void;
  readonly #clock: Clock;
  readonly #waiting = new Map<number, (metrics: Exposed[][]) => void>();
  #count = 0;

  constructor(send: (message: ToCollector) => void, clock: Clock) {
    this.#send = send;
    this.#clock = clock;
  }

  /** Metrics of the other workers; empty if the primary does not answer. */
  collect(): Promise<Exposed[][]> {
    const id = ++this.#count;
    const { promise, resolve } = Promise.withResolvers<Exposed[][]>();
    const timeout = this.#clock.timer(2 * REPORT_TIMEOUT_MS, () => this.#answer(id, []));
    this.#waiting.set(id, (metrics) => {
      timeout.cancel();
      resolve(metrics);
    });
    this.#send({ type: 'collect metrics', id });
    return promise;
  }

  /** @param report metrics of this worker */
  async receive(message: FromCollector, report: () => Promise<Exposed[]>): Promise<void> {
    if (message.type === 'collected metrics') this.#answer(message.id, message.metrics);
    else this.#send({ type: 'metrics', collection: message.collection, metrics: await report() });
  }

  #answer(id: number, metrics: Exposed[][]): void {
    this.#waiting.get(id)?.(metrics);
    this.#waiting.delete(id);
  }
}

export interface MetricsWorker {
  id: number;
  send(message: FromCollector): void;
}

interface Collection {
  /** Ids of the workers that have not reported yet. */
  pending: Set<number>;
  metrics: Exposed[][];
  finish(): void;
}

/** In the primary. */
export class MetricsCollector {
  readonly #clock: Clock;
  readonly #collections = new Map<number, Collection>();
  #count = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** @param others the workers except the sender */
  receive(message: ToCollector, from: MetricsWorker, others: readonly MetricsWorker[]): void {
    if (message.type === 'collect metrics') this.#collect(message.id, from, others);
    else this.#add(message.collection, from.id, message.metrics);
  }

  #collect(id: number, from: MetricsWorker, others: readonly MetricsWorker[]): void {
    const collection = ++this.#count;
    const metrics: Exposed[][] = [];
    const finish = () => {
      if (!this.#collections.delete(collection)) return;
      timeout.cancel();
      from.send({ type: 'collected metrics', id, metrics });
    };
    const timeout = this.#clock.timer(REPORT_TIMEOUT_MS, finish);
    this.#collections.set(collection, { pending: new Set(others.map((other) => other.id)), metrics, finish });
    if (others.length === 0) finish();
    for (const other of others) other.send({ type: 'report metrics', collection });
  }

  #add(id: number, workerId: number, metrics: Exposed[]): void {
    const collection = this.#collections.get(id);
    if (collection === undefined || !collection.pending.delete(workerId)) return;
    collection.metrics.push(metrics);
    if (collection.pending.size === 0) collection.finish();
  }
}
