/**
 * The metrics that a scrape reads: the counts of `recorder.ts`, current gauges, and Node.js's process metrics, in
 * Prometheus's text format. The first scrape loads the library; until then a process does not measure its event loop.
 */
import type { Registry } from 'prom-client';
import type { Exemplar, Histogram } from './histogram.ts';
import type { Recorder, Series } from './recorder.ts';

type Labels = Record<string, string | number>;

/** One metric as plain data, for exchange between processes. */
export interface Exposed {
  name: string;
  help: string;
  type: 'counter' | 'gauge' | 'histogram' | 'summary';
  /** How the values of several processes are combined. */
  aggregator: 'sum' | 'min' | 'max' | 'first' | 'average' | 'omit';
  values: { value: number; labels: Labels; metricName?: string; exemplar?: ExposedExemplar | undefined }[];
}

/** As prom-client renders it. */
interface ExposedExemplar {
  labelSet: Record<string, string>;
  value: number;
  /** Seconds since 1970. */
  timestamp: number;
}

/** The current values. */
export interface Gauges {
  databaseUp: boolean;
  /** Change notifications of other processes arrive here. */
  changesArrive: boolean;
  /** Every stored credential needed so far could be decrypted. */
  credentialsOpen: boolean;
  /** HTTP requests whose response is not complete. */
  openRequests: number;
  /** Accepted generations without a row. */
  openGenerations: number;
  waitingRows: number;
  journalBytes: number;
  /** Since the start: inputs and outputs, and cached answers, dropped because the database was too slow. */
  droppedContents: number;
  droppedAnswers: number;
  /** Records of generations that a destination did not get. */
  droppedRecords: number;
  /** Undefined: the gateway does not trace. */
  droppedSpans: number | undefined;
}

type PromClient = typeof import('prom-client');

export class Exposition {
  readonly #recorder: Recorder;
  readonly #gauges: () => Gauges;
  #process: Promise<{ client: PromClient; registry: Registry }> | undefined;

  constructor(recorder: Recorder, gauges: () => Gauges) {
    this.#recorder = recorder;
    this.#gauges = gauges;
  }

  /** The metrics of this process, for the process that renders the text. */
  async report(): Promise<Exposed[]> {
    const { registry } = await this.#started();
    const ofProcess = (await registry.getMetricsAsJSON()) as unknown as Exposed[];
    return [...this.#own(), ...ofProcess];
  }

  /** @param others the reports of the gateway's other processes; undefined with a single process */
  async text(others?: readonly Exposed[][]): Promise<{ text: string; contentType: string }> {
    const { client, registry } = await this.#started();
    const all = others === undefined ? registry : client.AggregatorRegistry.aggregate([await this.report(), ...others]);
    if (others !== undefined) return { text: await all.metrics(), contentType: all.contentType };
    const own = new client.Registry();
    for (const metric of this.#own()) register(own, metric);
    return { text: `${await own.metrics()}\n${await all.metrics()}`, contentType: all.contentType };
  }

  /**
   * In the OpenMetrics format, the only one with exemplars.
   *
   * @param others as for `text`
   */
  async openMetrics(others: readonly Exposed[][] = []): Promise<{ text: string; contentType: string }> {
    const { client } = await this.#started();
    const reports = [await this.report(), ...others];
    const exemplars = exemplarsOf(reports.flat());
    const registry = new client.Registry<import('prom-client').OpenMetricsContentType>();
    registry.setContentType(client.Registry.OPENMETRICS_CONTENT_TYPE);
    const sums = (await client.AggregatorRegistry.aggregate(reports).getMetricsAsJSON()) as unknown as Exposed[];
    for (const { values, ...sum } of sums) {
      const exposed = values.map((each) => ({ ...each, exemplar: exemplars.get(exemplarKey(each)) }));
      register(registry, { ...sum, values: exposed });
    }
    return { text: await registry.metrics(), contentType: registry.contentType };
  }

  #started() {
    this.#process ??= import('prom-client').then((client) => {
      const registry = new client.Registry();
      client.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 });
      return { client, registry };
    });
    return this.#process;
  }

  #own(): Exposed[] {
    return [...requestMetrics([...this.#recorder.series()]), ...this.#usageMetrics(), ...gaugeMetrics(this.#gauges())];
  }

  #usageMetrics(): Exposed[] {
    const tokens = counter('gatehouse_tokens_total', 'Tokens by kind; the kinds add up to all tokens.');
    const reasoning = counter('gatehouse_reasoning_tokens_total', 'Reasoning tokens, a part of the output tokens.');
    const cost = counter('gatehouse_cost_usd_total', 'Cost of requests charged to credits, USD.');
    const byok = counter(
      'gatehouse_byok_cost_usd_total',
      "Cost of requests at customers' provider accounts (BYOK), USD.",
    );
    const attempts = counter('gatehouse_upstream_attempts_total', 'Calls to upstreams by outcome.');
    for (const used of this.#recorder.consumption()) {
      const labels = { provider: used.provider, model: used.model };
      tokens.values.push(
        { value: used.input, labels: { ...labels, kind: 'input' } },
        { value: used.cacheRead, labels: { ...labels, kind: 'cache_read' } },
        { value: used.cacheWrite, labels: { ...labels, kind: 'cache_write' } },
        { value: used.output, labels: { ...labels, kind: 'output' } },
      );
      reasoning.values.push({ value: used.reasoning, labels });
      cost.values.push({ value: used.costNano / 1e9, labels });
      byok.values.push({ value: used.byokNano / 1e9, labels });
    }
    for (const { provider, model, outcomes } of this.#recorder.attempts()) {
      for (const [outcome, value] of outcomes) attempts.values.push({ value, labels: { provider, model, outcome } });
    }
    const callbacks = counter(
      'gatehouse_batch_callbacks_total',
      'Attempts to deliver callbacks of batches and videos by outcome.',
    );
    for (const [outcome, value] of this.#recorder.callbacks()) callbacks.values.push({ value, labels: { outcome } });
    return [tokens, reasoning, cost, byok, attempts, callbacks];
  }
}

function requestMetrics(series: readonly Series[]): Exposed[] {
  const requests = counter(
    'gatehouse_requests_total',
    'Finished requests; status 0 if the client left before a response.',
  );
  const cancelled = counter('gatehouse_requests_cancelled_total', 'Requests whose client disconnected before the end.');
  const cached = counter('gatehouse_requests_cached_total', 'Requests served from the response cache.');
  const durations = histogram(
    'gatehouse_request_duration_seconds',
    'From the head of a request to the end of its response.',
  );
  const firstTokens = histogram(
    'gatehouse_time_to_first_token_seconds',
    'From the dispatch of a request to the first visible output.',
  );
  for (const one of series) {
    const { operation, provider, model } = one;
    const labels = { operation, ...(provider !== '' && { provider, model }) };
    for (const [status, value] of one.statuses) requests.values.push({ value, labels: { ...labels, status } });
    if (one.cancelled > 0) cancelled.values.push({ value: one.cancelled, labels });
    if (one.cached > 0) cached.values.push({ value: one.cached, labels });
    addHistogram(durations, one.durations, labels);
    if (one.firstTokens !== undefined) addHistogram(firstTokens, one.firstTokens, labels);
  }
  return [requests, cancelled, cached, durations, firstTokens];
}

function gaugeMetrics(now: Gauges): Exposed[] {
  return [
    gauge('gatehouse_processes', 'Serving processes in this report.', 1),
    gauge('gatehouse_open_requests', 'HTTP requests whose response is not complete.', now.openRequests),
    gauge('gatehouse_open_generations', 'Accepted generations that have no row yet.', now.openGenerations),
    gauge('gatehouse_ledger_waiting_rows', 'Rows in memory that wait to be written to the database.', now.waitingRows),
    gauge(
      'gatehouse_journal_bytes',
      'Size of the journal of rows that the database does not have yet.',
      now.journalBytes,
    ),
    gauge('gatehouse_database_up', '1 while every process reaches the database.', now.databaseUp ? 1 : 0, 'min'),
    gauge(
      'gatehouse_changes_arrive',
      '1 while every process receives change notifications; one that does not reads the database for each request.',
      now.changesArrive ? 1 : 0,
      'min',
    ),
    gauge(
      'gatehouse_credentials_open',
      '1 while every process can decrypt the stored credentials.',
      now.credentialsOpen ? 1 : 0,
      'min',
    ),
    count('gatehouse_contents_dropped_total', 'Inputs and outputs that could not be logged.', now.droppedContents),
    count('gatehouse_cached_answers_dropped_total', 'Answers that could not be cached.', now.droppedAnswers),
    count(
      'gatehouse_destination_records_dropped_total',
      'Generations not delivered to destinations.',
      now.droppedRecords,
    ),
    ...(now.droppedSpans === undefined
      ? []
      : [count('gatehouse_trace_spans_dropped_total', 'Spans of traces not delivered.', now.droppedSpans)]),
  ];
}

/** The library changes the names of counters, so it must read the object that it has registered. */
function register(registry: Pick<Registry, 'registerMetric'>, metric: Exposed): void {
  const registered = { ...metric, get: () => registered };
  registry.registerMetric(registered as unknown as Parameters<Registry['registerMetric']>[0]);
}

/** The latest of all processes. */
function exemplarsOf(reported: readonly Exposed[]): Map<string, ExposedExemplar> {
  const found = new Map<string, ExposedExemplar>();
  for (const { values } of reported) {
    for (const value of values) {
      const { exemplar } = value;
      if (exemplar === undefined) continue;
      const key = exemplarKey(value);
      if ((found.get(key)?.timestamp ?? 0) < exemplar.timestamp) found.set(key, exemplar);
    }
  }
  return found;
}

function exemplarKey({ metricName, labels }: Exposed['values'][number]): string {
  return JSON.stringify([metricName, Object.entries(labels).toSorted()]);
}

function counter(name: string, help: string): Exposed {
  return { name, help, type: 'counter', aggregator: 'sum', values: [] };
}

function count(name: string, help: string, value: number): Exposed {
  return { ...counter(name, help), values: [{ value, labels: {} }] };
}

function histogram(name: string, help: string): Exposed {
  return { name, help, type: 'histogram', aggregator: 'sum', values: [] };
}

function gauge(name: string, help: string, value: number, aggregator: Exposed['aggregator'] = 'sum'): Exposed {
  return { name, help, type: 'gauge', aggregator, values: [{ value, labels: {} }] };
}

function exposedExemplar({ traceId, spanId, value, at }: Exemplar): ExposedExemplar {
  return { labelSet: { trace_id: traceId, span_id: spanId }, value, timestamp: at / 1_000 };
}

function addHistogram({ name, values }: Exposed, { bounds, counts, sum, exemplars }: Histogram, labels: Labels): void {
  let count = 0;
  for (const [at, bound] of [...bounds, '+Inf'].entries()) {
    count += counts[at]!;
    const exemplar = exemplars?.[at];
    values.push({
      ...{ metricName: `${name}_bucket`, value: count, labels: { ...labels, le: bound } },
      ...(exemplar && { exemplar: exposedExemplar(exemplar) }),
    });
  }
  values.push({ metricName: `${name}_sum`, value: sum, labels }, { metricName: `${name}_count`, value: count, labels });
}
