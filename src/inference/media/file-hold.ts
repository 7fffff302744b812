/**
 * The memory that one request takes for stored files, of the share of the process. A small request can name large files, so
 * without a bound a few clients could exhaust the process.
 */
import { GatewayError } from '../../base/errors.ts';
import type { MemoryBudget } from '../../base/memory-budget.ts';

export class FileHold {
  readonly #memory: MemoryBudget;
  #bytes = 0;

  constructor(memory: MemoryBudget) {
    this.#memory = memory;
  }

  /** @throws GatewayError 503 while other requests use the share */
  take(bytes: number, path: string): void {
    if (!this.#memory.take(bytes)) {
      throw new GatewayError('provider_overloaded', `${path}: too many stored files are in use at the moment`, {
        path,
        retryAfterSeconds: 1,
      });
    }
    this.#bytes += bytes;
  }

  giveBack(bytes: number): void {
    this.#bytes -= bytes;
    this.#memory.release(bytes);
  }

  /** At the end of the request. */
  release(): void {
    this.giveBack(this.#bytes);
  }
}
