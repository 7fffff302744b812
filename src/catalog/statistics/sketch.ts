/**
 * Percentiles of a stream of values in bounded memory, mergeable without loss: DDSketch, accurate to 2 %. Values are
 * clamped to 0.01..10^7, so a sketch has at most 530 bins. The database stores a sketch as its filled bins, alternating
 * keys and counts.
 */
import type { DDSketch } from '@datadog/sketches-js';
import type { Percentiles } from './figures.ts';

const RELATIVE_ACCURACY = 0.02;
const LEAST = 0.01;
const MOST = 1e7;

/** Alternating keys and counts: `[key, count, key, count]`. */
export type Bins = number[];

export type SketchMaker = () => Sketch;

/** Loads the library on first use, because it would add most of its 40 ms to the start. */
export async function loadSketches(): Promise<SketchMaker> {
  const library = await import('@datadog/sketches-js');
  return () => new Sketch(new library.DDSketch({ relativeAccuracy: RELATIVE_ACCURACY }));
}

export class Sketch {
  readonly #sketch: DDSketch;

  constructor(sketch: DDSketch) {
    this.#sketch = sketch;
  }

  get count(): number {
    return this.#sketch.count;
  }

  add(value: number): void {
    this.#sketch.accept(Math.min(Math.max(value, LEAST), MOST));
  }

  /** Merges bin by bin: the library's own merge (2.1.1) treats a highest key of 0 as missing and loses its counts. */
  merge(other: Sketch): void {
    this.mergeBins(other.bins());
  }

  /** Adds the bins of another process. The middle of a bin falls into the same bin again, so nothing shifts. */
  mergeBins(bins: Bins): void {
    const { mapping } = this.#sketch;
    for (let at = 0; at + 1 < bins.length; at += 2) {
      if (bins[at + 1]! > 0) this.#sketch.accept(mapping.value(bins[at]!), bins[at + 1]);
    }
  }

  bins(): Bins {
    const { bins, offset } = this.#sketch.store;
    const filled: Bins = [];
    for (let at = 0; at < bins.length; at++) if (bins[at]! > 0) filled.push(at + offset, bins[at]!);
    return filled;
  }

  percentiles(): Percentiles | null {
    if (this.#sketch.count === 0) return null;
    const at = (quantile: number) => round(this.#sketch.getValueAtQuantile(quantile));
    return { p50: at(0.5), p75: at(0.75), p90: at(0.9), p99: at(0.99) };
  }
}

/** More digits would exceed the sketch's accuracy. */
function round(value: number): number {
  return Number(value.toPrecision(4));
}
