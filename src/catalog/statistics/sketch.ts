/**
 * Percentiles of a stream of values in bounded memory, mergeable without loss: DDSketch, whose answers are within 2 % of
 * the true value. Values are kept between 0.01 and 10^7, so a sketch has 530 bins at most. In the database a sketch is its
 * filled bins, key and count in turn.
 */
import type { DDSketch } from '@datadog/sketches-js';
import type { Percentiles } from './figures.ts';

const RELATIVE_ACCURACY = 0.02;
const LEAST = 0.01;
const MOST = 1e7;

/** Keys and counts in turn: `[key, count, key, count]`. */
export type Bins = number[];

export type SketchMaker = () => Sketch;

/** Loads the library on the first use: most of its 40 ms would be the start's otherwise. */
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

  /** By its bins: the library's own merge (2.1.1) takes a highest key of 0 for none, and loses what is counted there. */
  merge(other: Sketch): void {
    this.mergeBins(other.bins());
  }

  /** Adds what another process has counted. The middle of a bin falls into that bin again, so nothing shifts. */
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

/** More digits than the sketch is exact to would be noise. */
function round(value: number): number {
  return Number(value.toPrecision(4));
}
