/** Counts the running calls of each provider, per process, against its `max_concurrency`. */
import type { Provider } from '../../providers/index.ts';

export class Concurrency {
  readonly #running = new Map<string, number>();

  /** Takes a slot, which `leave` gives back. Returns false when the provider is full. */
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
