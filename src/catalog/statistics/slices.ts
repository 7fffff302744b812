/**
 * The time windows of one endpoint. Time is divided into slices of one minute (for the last 5 minutes), five minutes
 * (for the last 30) and one hour (for the last day); a window consists of all slices that it overlaps. Each process
 * counts in its own slices and publishes them whole; a window sums the slices of all processes.
 */
import { type EndpointFigures, type Measured, NO_FIGURES } from './figures.ts';
import type { Bins, Sketch, SketchMaker } from './sketch.ts';

interface Span {
  /** Length of a slice. */
  lengthMs: number;
  windowMs: number;
  /** Whether its percentiles are needed. */
  sketched: boolean;
}

const MINUTE_MS = 60_000;
export const SPANS = {
  minute: { lengthMs: MINUTE_MS, windowMs: 5 * MINUTE_MS, sketched: false },
  fiveMinutes: { lengthMs: 5 * MINUTE_MS, windowMs: 30 * MINUTE_MS, sketched: true },
  hour: { lengthMs: 60 * MINUTE_MS, windowMs: 24 * 60 * MINUTE_MS, sketched: false },
} as const satisfies Record<string, Span>;

export type SpanName = keyof typeof SPANS;
export const SPAN_NAMES = Object.keys(SPANS) as SpanName[];

interface Counts {
  answered: number;
  failed: number;
  rateLimited: number;
  toolCalls: number;
  invalidToolCalls: number;
}

/** A slice of another process, as stored. */
export interface ForeignSlice extends Counts {
  latency: Bins;
  throughput: Bins;
}

class OwnSlice implements Counts {
  answered = 0;
  failed = 0;
  rateLimited = 0;
  toolCalls = 0;
  invalidToolCalls = 0;
  latency: Sketch | undefined;
  throughput: Sketch | undefined;
  /** Whether it changed since it was published. */
  changed = false;

  add(measured: Measured, sketched: boolean, make: SketchMaker): void {
    this.changed = true;
    if (measured.outcome === 'answered') this.answered++;
    else if (measured.outcome === 'failed') this.failed++;
    else if (measured.outcome === 'rate_limited') this.rateLimited++;
    this.toolCalls += measured.toolCalls;
    this.invalidToolCalls += measured.invalidToolCalls;
    if (!sketched) return;
    if (measured.latencyMs !== null) {
      this.latency ??= make();
      this.latency.add(measured.latencyMs);
    }
    if (measured.throughput !== null) {
      this.throughput ??= make();
      this.throughput.add(measured.throughput);
    }
  }
}

/** A slice to publish. */
export interface PublishedSlice extends ForeignSlice {
  span: SpanName;
  startsAt: number;
}

/** Start of the oldest slice that the span's window overlaps. */
export function oldestStart(span: SpanName, nowMs: number): number {
  const { lengthMs, windowMs } = SPANS[span];
  return startOf(nowMs - windowMs, lengthMs);
}

function startOf(atMs: number, lengthMs: number): number {
  return Math.floor(atMs / lengthMs) * lengthMs;
}

export class Series {
  readonly #own: Record<SpanName, Map<number, OwnSlice>> = {
    minute: new Map(),
    fiveMinutes: new Map(),
    hour: new Map(),
  };
  /** Keyed by slice start and process. */
  readonly #foreign: Record<SpanName, Map<string, { startsAt: number; slice: ForeignSlice }>> = {
    minute: new Map(),
    fiveMinutes: new Map(),
    hour: new Map(),
  };

  add(nowMs: number, measured: Measured, make: SketchMaker): void {
    for (const name of SPAN_NAMES) {
      const { lengthMs, sketched } = SPANS[name];
      const startsAt = startOf(nowMs, lengthMs);
      let slice = this.#own[name].get(startsAt);
      if (slice === undefined) {
        slice = new OwnSlice();
        this.#own[name].set(startsAt, slice);
      }
      slice.add(measured, sketched, make);
    }
  }

  /** Replaces the known slice of another process. */
  adopt(span: SpanName, startsAt: number, processId: string, slice: ForeignSlice): void {
    this.#foreign[span].set(`${startsAt} ${processId}`, { startsAt, slice });
  }

  /** Drops slices outside every window; true if none is left. */
  expire(nowMs: number): boolean {
    let left = 0;
    for (const name of SPAN_NAMES) {
      const oldest = oldestStart(name, nowMs);
      for (const startsAt of this.#own[name].keys()) if (startsAt < oldest) this.#own[name].delete(startsAt);
      for (const [key, { startsAt }] of this.#foreign[name]) if (startsAt < oldest) this.#foreign[name].delete(key);
      left += this.#own[name].size + this.#foreign[name].size;
    }
    return left === 0;
  }

  /** Slices that changed since the last call. */
  takeChanged(): PublishedSlice[] {
    const changed: PublishedSlice[] = [];
    for (const span of SPAN_NAMES) {
      for (const [startsAt, slice] of this.#own[span]) {
        if (!slice.changed) continue;
        slice.changed = false;
        const { answered, failed, rateLimited, toolCalls, invalidToolCalls, latency, throughput } = slice;
        changed.push({
          span,
          startsAt,
          ...{ answered, failed, rateLimited, toolCalls, invalidToolCalls },
          latency: latency?.bins() ?? [],
          throughput: throughput?.bins() ?? [],
        });
      }
    }
    return changed;
  }

  /** Marks slices as changed again, because publishing failed. */
  putBack(slices: readonly PublishedSlice[]): void {
    for (const { span, startsAt } of slices) {
      const slice = this.#own[span].get(startsAt);
      if (slice) slice.changed = true;
    }
  }

  figures(nowMs: number, make: SketchMaker): EndpointFigures {
    const minutes = this.#sum('minute', nowMs);
    const half = this.#sum('fiveMinutes', nowMs);
    const day = this.#sum('hour', nowMs);
    if (day.answered + day.failed + day.rateLimited + day.toolCalls + half.answered === 0 && !this.#anySketch()) {
      return NO_FIGURES;
    }
    return {
      latencyMs: this.#merged('latency', nowMs, make),
      throughput: this.#merged('throughput', nowMs, make),
      uptime5m: uptime(minutes),
      uptime30m: uptime(half),
      uptime1d: uptime(day),
      requests5m: minutes.answered + minutes.failed,
      requests30m: half.answered + half.failed,
      rateLimited30m: half.rateLimited,
      toolCalls1d: day.toolCalls,
      invalidToolCalls1d: day.invalidToolCalls,
    };
  }

  #anySketch(): boolean {
    return this.#own.fiveMinutes.size + this.#foreign.fiveMinutes.size > 0;
  }

  #sum(span: SpanName, nowMs: number): Counts {
    const sum: Counts = { answered: 0, failed: 0, rateLimited: 0, toolCalls: 0, invalidToolCalls: 0 };
    const oldest = oldestStart(span, nowMs);
    for (const [startsAt, slice] of this.#own[span]) if (startsAt >= oldest) addCounts(sum, slice);
    for (const { startsAt, slice } of this.#foreign[span].values()) if (startsAt >= oldest) addCounts(sum, slice);
    return sum;
  }

  #merged(figure: 'latency' | 'throughput', nowMs: number, make: SketchMaker) {
    const all = make();
    const oldest = oldestStart('fiveMinutes', nowMs);
    for (const [startsAt, slice] of this.#own.fiveMinutes) {
      const sketch = slice[figure];
      if (startsAt >= oldest && sketch !== undefined) all.merge(sketch);
    }
    for (const { startsAt, slice } of this.#foreign.fiveMinutes.values()) {
      if (startsAt >= oldest) all.mergeBins(slice[figure]);
    }
    return all.percentiles();
  }
}

function addCounts(sum: Counts, counts: Counts): void {
  sum.answered += counts.answered;
  sum.failed += counts.failed;
  sum.rateLimited += counts.rateLimited;
  sum.toolCalls += counts.toolCalls;
  sum.invalidToolCalls += counts.invalidToolCalls;
}

function uptime({ answered, failed }: Counts): number | null {
  return answered + failed === 0 ? null : Number(((100 * answered) / (answered + failed)).toFixed(3));
}
