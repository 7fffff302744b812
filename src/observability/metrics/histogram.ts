/** Counts values by size for a Prometheus histogram, with their sum. */

/** A request that has a trace. */
export interface Exemplar {
  readonly traceId: string;
  readonly spanId: string;
  readonly value: number;
  /** Wall time in ms. */
  readonly at: number;
}

export class Histogram {
  readonly bounds: readonly number[];
  /** One more than bounds: the last counts values above all bounds. Not cumulative. */
  readonly counts: Float64Array;
  sum = 0;
  /** The last of each count; undefined before the first. */
  exemplars: (Exemplar | undefined)[] | undefined;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number, traced?: Omit<Exemplar, 'value'>): void {
    const { bounds } = this;
    let at = 0;
    while (at < bounds.length && value > bounds[at]!) at += 1;
    this.counts[at]! += 1;
    this.sum += value;
    if (traced === undefined) return;
    this.exemplars ??= [];
    this.exemplars[at] = { traceId: traced.traceId, spanId: traced.spanId, value, at: traced.at };
  }
}

/** Seconds. Control-plane responses take milliseconds, model responses up to minutes. */
export const DURATION_BOUNDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600] as const;
export const FIRST_TOKEN_BOUNDS = [0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 30, 60] as const;
