/**
 * Buffer for recorded calls: fixed memory, written without lookups and emptied once a second by `statistics.ts`. When
 * full, further calls are not counted.
 */
import type { Measured } from './figures.ts';

const CAPACITY = 8192;
const FIELDS = 5;
const OUTCOMES = ['answered', 'failed', 'rate_limited', 'none'] as const;
const OUTCOME_NUMBERS: Record<Measured['outcome'], number> = { answered: 0, failed: 1, rate_limited: 2, none: 3 };

export class Ring {
  readonly #endpoints: string[] = [];
  /** Outcome, latency, throughput, calls, invalid calls; NaN means null. */
  #fields = new Float64Array(256 * FIELDS);
  #count = 0;

  get empty(): boolean {
    return this.#count === 0;
  }

  push(endpointId: string, measured: Measured): void {
    if (this.#count === CAPACITY) return;
    const at = this.#count * FIELDS;
    if (at === this.#fields.length) this.#grow();
    this.#endpoints[this.#count++] = endpointId;
    const fields = this.#fields;
    fields[at] = OUTCOME_NUMBERS[measured.outcome];
    fields[at + 1] = measured.latencyMs ?? Number.NaN;
    fields[at + 2] = measured.throughput ?? Number.NaN;
    fields[at + 3] = measured.toolCalls;
    fields[at + 4] = measured.invalidToolCalls;
  }

  /** Passes every record to `take`, oldest first, and empties the buffer. */
  drain(take: (endpointId: string, measured: Measured) => void): void {
    for (let index = 0; index < this.#count; index++) {
      const at = index * FIELDS;
      const fields = this.#fields;
      take(this.#endpoints[index]!, {
        outcome: OUTCOMES[fields[at]!]!,
        latencyMs: orNull(fields[at + 1]!),
        throughput: orNull(fields[at + 2]!),
        toolCalls: fields[at + 3]!,
        invalidToolCalls: fields[at + 4]!,
      });
    }
    this.#count = 0;
  }

  #grow(): void {
    const larger = new Float64Array(this.#fields.length * 2);
    larger.set(this.#fields);
    this.#fields = larger;
  }
}

function orNull(value: number): number | null {
  return Number.isNaN(value) ? null : value;
}
