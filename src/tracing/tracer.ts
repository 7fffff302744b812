/**
 * Follows the requests of one process. Finished requests are encoded a few dozen at a time, so nearly only bytes wait for
 * delivery. They are sent once a second, and bounded, so that a collector that is slow or dead neither delays nor loses a
 * request.
 */
import { randomUUID } from 'node:crypto';
import { Allowance } from '../base/allowance.ts';
import { type Clock, type Timer, waitAtMost } from '../base/clock.ts';
import type { TracingSettings } from '../base/config.ts';
import { DeliveryQueue, type Problem } from '../base/delivery-queue.ts';
import { type Log, redact } from '../base/log.ts';
import { type Egress, post } from '../egress/index.ts';
import type { FinishedExchange } from '../http/operation.ts';
import {
  JSON_TRACES,
  PROTOBUF_TRACES,
  SCHEMA_URL,
  SERVICE_NAME,
  type Source,
  type SpanWriter,
  type TraceEncoding,
} from '../otlp/index.ts';
import type { Generation } from '../spend/index.ts';
import { Ids } from './ids.ts';
import { RequestTrace } from './request-trace.ts';
import { addSpans, type FinishedRequest, finishedRequest } from './spans.ts';
import { remoteParent } from './trace-context.ts';

interface TracerParts {
  settings: TracingSettings;
  clock: Clock;
  log: Log;
  /** For addresses that the operator has configured. */
  egress: Pick<Egress, 'request'>;
  /** Of the gateway. */
  version: string;
}

/** Encoded spans. */
interface Piece {
  bytes: Buffer;
  count: number;
}

const GATHER_MS = 1_000;
/** Requests that are encoded one after the other: the code is in the processor's caches then. */
const TOGETHER = 64;
const PIECE_BYTES = 256 * 1024;
const BATCH_BYTES = 1024 * 1024;
/** Waiting in this process. */
const MOST_BYTES = 16 * 1024 * 1024;
/** How long closing waits for the last delivery. */
const LAST_DELIVERY_MS = 2_000;
/** Operations that machines poll. */
const PROBES: ReadonlySet<string> = new Set(['getHealth', 'getReadiness', 'getMetrics']);
/** The digits of a trace id that sampling compares: as many as a double holds exactly. */
const COMPARED_DIGITS = 13;

export function startTracer(parts: TracerParts): Tracer {
  return new Tracer(parts);
}

export class Tracer {
  /** Spans that were not delivered. */
  dropped = 0;
  readonly #parts: TracerParts;
  readonly #ids = new Ids();
  readonly #encoding: TraceEncoding;
  readonly #writer: SpanWriter;
  readonly #source: Source;
  readonly #queue: DeliveryQueue<Piece>;
  #finished: FinishedRequest[] = [];
  #count = 0;
  #timer: Timer | undefined;
  #failing = false;

  constructor(parts: TracerParts) {
    const { settings, version } = parts;
    this.#parts = parts;
    this.#encoding = settings.encoding === 'json' ? JSON_TRACES : PROTOBUF_TRACES;
    this.#writer = this.#encoding.writer();
    const own = { 'service.name': SERVICE_NAME, 'service.version': version, 'service.instance.id': randomUUID() };
    this.#source = {
      resource: { ...own, ...settings.resource },
      ...{ name: SERVICE_NAME, version, schemaUrl: SCHEMA_URL },
    };
    for (const secret of Object.values(settings.headers)) redact(secret.reveal());
    this.#queue = new DeliveryQueue<Piece>({
      clock: parts.clock,
      memory: new Allowance(MOST_BYTES),
      sizeOf: ({ bytes }) => bytes.length,
      batchSize: BATCH_BYTES,
      // What comes here has been gathered.
      gatherMs: 0,
      deliver: (pieces) => this.#deliver(pieces),
      delivered: () => this.#recovered(),
      failed: (message) => this.#failed(message),
      dropped: (pieces, message) => {
        for (const { count } of pieces) this.dropped += count;
        this.#failed(message);
      },
    });
  }

  /** @param durationMs since its start, so far */
  begin({ headers, startedAt, durationMs }: Pick<FinishedExchange, 'headers' | 'startedAt' | 'durationMs'>) {
    const parent = this.#parts.settings.propagates ? remoteParent(headers) : undefined;
    const traceId = parent?.traceId ?? this.#ids.trace();
    const sampled = this.#samples(traceId, parent?.sampled);
    return new RequestTrace(this.#ids, this.#parts.clock, { parent, sampled, startedAt, ageMs: durationMs }, traceId);
  }

  /** A request is over. @returns its trace, if it is sampled */
  finished(exchange: FinishedExchange, row: Generation | undefined): RequestTrace | undefined {
    if (exchange.operation !== undefined && PROBES.has(exchange.operation.id)) return undefined;
    const trace = (exchange.trace as RequestTrace | undefined) ?? this.begin(exchange);
    if (!trace.sampled) return undefined;
    this.#finished.push(finishedRequest(trace, exchange, row));
    if (this.#finished.length >= TOGETHER) this.#encode();
    if (this.#writer.size >= PIECE_BYTES) this.#handOn();
    else this.#timer ??= this.#parts.clock.timer(GATHER_MS, () => this.#handOn());
    return trace;
  }

  #encode(): void {
    const finished = this.#finished;
    this.#finished = [];
    for (const request of finished) this.#count += addSpans(this.#writer, request);
  }

  /** One attempt at everything that waits. */
  async flush(): Promise<void> {
    this.#handOn();
    await this.#queue.flush();
  }

  async close(): Promise<void> {
    await waitAtMost(this.#parts.clock, LAST_DELIVERY_MS, this.flush());
    this.#queue.close();
  }

  #samples(traceId: string, parent: boolean | undefined): boolean {
    const { parentBased, ratio } = this.#parts.settings.sampler;
    if (parentBased && parent !== undefined) return parent;
    if (ratio === 1) return true;
    return Number.parseInt(traceId.slice(-COMPARED_DIGITS), 16) < ratio * 16 ** COMPARED_DIGITS;
  }

  #handOn(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#encode();
    if (this.#count === 0) return;
    this.#queue.add({ bytes: this.#writer.take(), count: this.#count });
    this.#count = 0;
  }

  #deliver(pieces: readonly Piece[]): Promise<Problem | undefined> {
    const { settings, egress } = this.#parts;
    const headers = Object.entries(settings.headers).map(([name, secret]) => [name, secret.reveal()]);
    const body = this.#encoding.body(
      this.#source,
      pieces.map(({ bytes }) => bytes),
    );
    return post(
      egress,
      {
        ...{ url: settings.url, method: 'POST', body },
        headers: { 'content-type': this.#encoding.contentType, ...Object.fromEntries(headers) },
      },
      { receiver: 'the collector of traces', timeoutMs: settings.timeoutMs, tlsOnly: false },
    );
  }

  #recovered(): void {
    if (this.#failing) this.#parts.log.info('traces are delivered again');
    this.#failing = false;
  }

  #failed(reason: string): void {
    if (!this.#failing) this.#parts.log.warn('traces are not delivered', { reason });
    this.#failing = true;
  }
}
