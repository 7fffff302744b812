/**
 * Observability: metrics for Prometheus (`GET /metrics`), the request log, and sums of usage and cost (`GET
 * /activity`). It only observes: nothing here delays or decides a request. Not here: the statistics that routing reads
 * (`catalog/statistics`), and the rows themselves (`spend`).
 */
import type { Caller } from '../access/index.ts';
import type { Config } from '../base/config.ts';
import { type Log, redact } from '../base/log.ts';
import type { Catalog } from '../catalog/index.ts';
import type { FinishedExchange, Operation } from '../http/operation.ts';
import type { Generation } from '../spend/index.ts';
import type { RequestTrace, Tracer } from '../tracing/index.ts';
import { type ActivityParts, activityOperation } from './activity.ts';
import { type Exposed, Exposition, type Gauges } from './metrics/exposition.ts';
import { type MetricsOperationParts, metricsOperation } from './metrics/operation.ts';
import { Recorder } from './metrics/recorder.ts';
import { RequestLog } from './request-log.ts';

export type { Exposed, Gauges } from './metrics/exposition.ts';

interface ObservabilityOptions {
  config: Pick<Config, 'requestLogShare' | 'metrics'>;
  log: Log;
  catalog(): Catalog;
  gauges(): Gauges;
  /** Reads the metrics of this gateway's other processes; absent with a single process. */
  peerMetrics?: (() => Promise<Exposed[][]>) | undefined;
  /** Traces requests. Absent: off. */
  tracer?: Pick<Tracer, 'finished'> | undefined;
}

export interface Observability {
  /** An HTTP exchange has finished; its `record` is the row of its generation, if it has one. */
  finished(exchange: FinishedExchange<Caller>): void;
  /** A call to an upstream has finished. */
  attempted(endpointId: string, outcome: string): void;
  /** An attempt to deliver a callback has finished. */
  callbackAttempted(outcome: string): void;
  /** The metrics of this process. */
  report(): Promise<Exposed[]>;
  readonly metrics: MetricsOperationParts;
}

export function createObservability(options: ObservabilityOptions): Observability {
  const { config, peerMetrics, tracer } = options;
  const { token } = config.metrics;
  if (token !== null) redact(token.reveal());
  const recorder = new Recorder(listedIn(options.catalog));
  const exposition = new Exposition(recorder, options.gauges);
  const requestLog = config.requestLogShare === null ? undefined : new RequestLog(options.log, config.requestLogShare);
  const inText = shared(async () => exposition.text(await peerMetrics?.()));
  const withExemplars = shared(async () => exposition.openMetrics(await peerMetrics?.()));
  return {
    finished(exchange) {
      const row = exchange.record as Generation | undefined;
      recorder.finished(exchange, row, exemplarOf(tracer?.finished(exchange, row)));
      requestLog?.finished(exchange, row);
    },
    attempted: (endpointId, outcome) => recorder.attempted(endpointId, outcome),
    callbackAttempted: (outcome) => recorder.callbackAttempted(outcome),
    report: () => exposition.report(),
    metrics: {
      settings: config.metrics,
      // Without traces there are no exemplars, and nothing that the other format would add.
      read: (takesOpenMetrics) => (takesOpenMetrics && tracer !== undefined ? withExemplars() : inText()),
    },
  };
}

function exemplarOf(trace: RequestTrace | undefined) {
  return trace && { traceId: trace.traceId, spanId: trace.spanId, at: trace.now() };
}

/** Concurrent scrapes share one reading. */
function shared<T>(read: () => Promise<T>): () => Promise<T> {
  let reading: Promise<T> | undefined;
  return () => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    return reading;
  };
}

/** Whether the current catalog lists an endpoint. */
function listedIn(catalog: () => Catalog): (endpointId: string) => boolean {
  let read: Catalog | undefined;
  let ids = new Set<string>();
  return (endpointId) => {
    const now = catalog();
    if (now !== read) {
      ids = new Set(now.models.flatMap(({ endpoints }) => endpoints.map(({ id }) => id)));
      read = now;
    }
    return ids.has(endpointId);
  };
}

export interface ObservabilityOperationParts extends ActivityParts {
  metrics: MetricsOperationParts;
}

/** @param parts read at each request */
export function observabilityOperations(parts: ObservabilityOperationParts): Operation<Caller>[] {
  return [metricsOperation(() => parts.metrics), activityOperation(parts)];
}
