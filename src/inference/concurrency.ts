/** How many calls run at each provider at once (`max_concurrency`), per process. */
import type { Provider } from '../providers/index.ts';

export class Concurrency {
  readonly #running = new Map<string, number>();

  /** False when the provider is full; true takes a place that `leave` gives back. */
  enter(provider: Provider): boolean {
    const running = this.#running.get(provider.id) ?? 0;
    if (running >= provider.maxConcurrency) return false;
    this.#running.set(provider.id, running + 1);
    return true;
  }

  leave(provider: Provider): void {
    this.#running.set(provider.id, (this.#running.get(provider.id) ?? 1) - 1);
  }
}
